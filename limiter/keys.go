package limiter

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/clip"
	"github.com/weir-limiter/weir/internal/identifier"
)

// keyOf returns the hash by which a lease knows the charge on s. It is the same in every process.
func keyOf(s weir.Subject) uint64 {
	return uint64(fingerprintSeed.addString(s.Entity).addString(s.Resource))
}

// keysOf returns the keys of a request's charges, of which no two may be equal.
func keysOf(charges []weir.Charge) ([]uint64, error) {
	keys := make([]uint64, len(charges))
	for i := range charges {
		s := weir.Subject{Entity: charges[i].Entity, Resource: charges[i].Resource}
		keys[i] = keyOf(s)
		if slices.Contains(keys[:i], keys[i]) {
			return nil, invalid(fmt.Sprintf("charges[%d]", i), s.Entity+"/"+s.Resource, "is given twice")
		}
	}
	return keys, nil
}

// checkFullName takes a full name apart, or says what is wrong with it. A name without two marks is
// none: then key is 0.
func checkFullName(name string) (key uint64, reason string) {
	last := strings.LastIndexByte(name, weir.NameSeparator)
	middle := strings.LastIndexByte(name[:max(last, 0)], weir.NameSeparator)
	if middle < 0 {
		return 0, ""
	}
	s := weir.Subject{Entity: name[:middle], Resource: name[middle+1 : last]}
	if reason = identifier.CheckEntity(s.Entity, true); reason == "" {
		reason = identifier.CheckResource(s.Resource)
	}
	if reason == "" {
		reason = identifier.CheckLimit(name[last+1:])
	}
	return keyOf(s), reason
}

// shortenName keeps a hostile name out of the field of an error, but no full name that a lease can
// have: two of them may differ at their ends alone.
func shortenName(name string) string {
	const longest = identifier.MaxEntity + 1 + identifier.MaxResource + 1 + identifier.MaxLimit
	if len(name) <= longest && strings.Count(name, string(weir.NameSeparator)) >= 2 {
		return name
	}
	return clip.Text(name)
}
