package weir

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-limiter/weir/internal/identifier"
)

// nameSeparator separates the parts of a full name. No entity, resource or limit has it in its name.
const nameSeparator = '#'

// FullName returns the full name of a limit of the charge on s, as the totals of a lease whose
// request was [Request.Keyed] have it: entity, resource and limit, with a '#' between them.
func (s Subject) FullName(limit string) string {
	return s.Entity + string(nameSeparator) + s.Resource + string(nameSeparator) + limit
}

// key returns the hash by which a lease knows the charge on s. It is the same in every process.
func (s Subject) key() uint64 {
	return uint64(fingerprintSeed.addString(s.Entity).addString(s.Resource))
}

// keysOf returns the keys of a request's charges, of which no two may be equal.
func keysOf(charges []Charge) ([]uint64, error) {
	keys := make([]uint64, len(charges))
	for i := range charges {
		s := Subject{charges[i].Entity, charges[i].Resource}
		keys[i] = s.key()
		if slices.Contains(keys[:i], keys[i]) {
			return nil, invalid(fmt.Sprintf("charges[%d]", i), s.Entity+"/"+s.Resource, "is given twice")
		}
	}
	return keys, nil
}

// checkFullName takes a full name apart, or says what is wrong with it. A name without two marks is
// none: then key is 0.
func checkFullName(name string) (key uint64, reason string) {
	last := strings.LastIndexByte(name, nameSeparator)
	middle := strings.LastIndexByte(name[:max(last, 0)], nameSeparator)
	if middle < 0 {
		return 0, ""
	}
	s := Subject{name[:middle], name[middle+1 : last]}
	if reason = identifier.CheckEntity(s.Entity, true); reason == "" {
		reason = identifier.CheckResource(s.Resource)
	}
	if reason == "" {
		reason = identifier.CheckLimit(name[last+1:])
	}
	return s.key(), reason
}

// shortenName keeps a hostile name out of the field of an error, but no full name that a lease can
// have: two of them may differ at their ends alone.
func shortenName(name string) string {
	const longest = identifier.MaxEntity + 1 + identifier.MaxResource + 1 + identifier.MaxLimit
	if len(name) <= longest && strings.Count(name, string(nameSeparator)) >= 2 {
		return name
	}
	return shorten(name)
}
