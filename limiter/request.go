package limiter

import (
	"errors"
	"fmt"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/identifier"
)

// Bounds of one request (docs/semantics.md, 3.2).
const (
	maxCharges = 16
	maxCosts   = 32
)

// normalize checks a request and puts it into the form that everything behind the door uses:
// charges, their costs as lists, and the limits it brings, normalized.
func (c *scratch) normalize(r *weir.Request, slash bool) (brought []weir.Limit, err error) {
	charges := r.Charges
	if len(charges) == 0 {
		c.chargeBuf[0] = weir.Charge{Entity: r.Entity, Resource: r.Resource, Costs: r.Costs}
		charges = c.chargeBuf[:]
	} else if r.Entity != "" || r.Resource != "" || r.Costs != nil {
		return nil, invalid("charges", len(charges), "must not stand beside entity, resource or costs")
	}
	if len(charges) > maxCharges {
		return nil, invalid("charges", len(charges), fmt.Sprintf("at most %d in a request", maxCharges))
	}
	total := 0
	for i := range charges {
		total += len(charges[i].Costs)
	}
	if total > maxCosts {
		return nil, invalid("costs", total, fmt.Sprintf("at most %d in a request", maxCosts))
	}
	for i := range charges {
		err := checkSubject(charges[i].Entity, charges[i].Resource, slash)
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
func checkSubject(entity, resource string, slash bool) error {
	if reason := identifier.CheckEntity(entity, slash); reason != "" {
		return invalid("entity", entity, reason)
	}
	if reason := identifier.CheckResource(resource); reason != "" {
		return invalid("resource", resource, reason)
	}
	return nil
}
