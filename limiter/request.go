package limiter

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/clip"
	"github.com/weir-limiter/weir/internal/identifier"
)

// Bounds of one request (docs/semantics.md, 3.2).
const (
	maxCharges = 16
	maxCosts   = 32
)

// normalize checks a request and puts it into the form that the rest of the package uses: a list of
// charges, their costs as sorted lists in c.costs, and the limits that the request brings, which it
// returns normalized.
func (c *scratch) normalize(r *weir.Request) (brought []weir.Limit, err error) {
	c.charges = nil // of an earlier call
	charges := r.Charges
	if len(charges) == 0 {
		c.chargeBuf[0] = weir.Charge{Entity: r.Entity, Resource: r.Resource, Costs: r.Costs}
		charges = c.chargeBuf[:]
	} else if r.Entity != "" || r.Resource != "" || r.Costs != nil {
		return nil, invalid("charges", len(charges),
			"cannot be combined with entity, resource or costs")
	}
	if len(charges) > maxCharges {
		return nil, invalid("charges", len(charges), fmt.Sprintf("a request has at most %d",
			maxCharges))
	}
	total := 0
	for i := range charges {
		total += len(charges[i].Costs)
	}
	if total > maxCosts {
		return nil, invalid("costs", total, fmt.Sprintf("a request has at most %d", maxCosts))
	}
	for i := range charges {
		err := checkSubject(charges[i].Entity, charges[i].Resource)
		if err == nil {
			err = c.costs.add(charges[i].Costs, "costs")
		}
		if err != nil {
			if e, ok := errors.AsType[*weir.Error](err); ok && len(r.Charges) > 0 {
				e.Field = fmt.Sprintf("charges[%d].%s", i, e.Field)
			}
			return nil, err
		}
	}
	c.charges = charges
	if c.reservation.keys = nil; r.Keyed {
		if c.reservation.keys, err = keysOf(charges); err != nil {
			return nil, err
		}
	}
	if len(r.Limits) == 0 {
		return nil, nil
	}
	return weir.NormalizeLimits("limits", r.Limits)
}

// checkSubject refuses a malformed entity or resource.
func checkSubject(entity, resource string) error {
	if reason := identifier.CheckEntity(entity); reason != "" {
		return invalid("entity", entity, reason)
	}
	if reason := identifier.CheckResource(resource); reason != "" {
		return invalid("resource", resource, reason)
	}
	return nil
}

// keyOf returns the key of the charge on s: a hash that is the same in every process.
func keyOf(s weir.Subject) uint64 {
	return uint64(fingerprintSeed.addString(s.Entity).addString(s.Resource))
}

// keysOf returns the keys of a request's charges, or an error if two charges have the same key.
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

// checkFullName parses a full name and returns the key of its charge, or what is wrong with it. If
// the name has fewer than two separators it is not a full name, and the key is 0.
func checkFullName(name string) (key uint64, reason string) {
	last := strings.LastIndexByte(name, weir.NameSeparator)
	middle := strings.LastIndexByte(name[:max(last, 0)], weir.NameSeparator)
	if middle < 0 {
		return 0, ""
	}
	s := weir.Subject{Entity: name[:middle], Resource: name[middle+1 : last]}
	if reason = identifier.CheckEntity(s.Entity); reason == "" {
		reason = identifier.CheckResource(s.Resource)
	}
	if reason == "" {
		reason = identifier.CheckLimit(name[last+1:])
	}
	return keyOf(s), reason
}

// shortenName shortens a name for the field of an error, so that a hostile one does not fill a log.
// It keeps any full name that a lease can have, because two of those may differ only at the end.
func shortenName(name string) string {
	const longest = identifier.MaxEntity + 1 + identifier.MaxResource + 1 + identifier.MaxLimit
	if len(name) <= longest && strings.Count(name, string(weir.NameSeparator)) >= 2 {
		return name
	}
	return clip.Text(name)
}
