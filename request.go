package weir

import (
	"fmt"

	"github.com/weir-limiter/weir/internal/identifier"
)

// Bounds of one request (docs/semantics.md, 3.2).
const (
	maxCharges = 16
	maxCosts   = 32
)

// Charge is the costs of one request on one (entity, resource).
type Charge struct {
	Entity   string
	Resource string
	Costs    Costs
}

// Request is what a call may use. Give Entity, Resource and Costs, or several Charges, not both.
type Request struct {
	// LeaseID is the caller's own ID for the attempt. Default: the limiter makes one.
	LeaseID LeaseID
	// Entity, Resource and Costs are the only charge of a request that has one.
	Entity   string
	Resource string
	Costs    Costs
	// Charges are the charges of a request that has several: at most 16, with 32 costs together.
	Charges []Charge
	// Keyed is true if settlements tell the charges apart by their keys and never by their position,
	// because whoever settles does not know the order. The key of a charge is its entity and resource,
	// and no two charges may have the same. Totals are then one set, in which [Subject.FullName] says
	// which charge a limit is meant of; a limit that one charge alone has needs no more than its name.
	// Default: false.
	Keyed bool
	// Limits are brought by the request. Where limits are stored they may only lower: the request
	// is admitted if the stored limits admit it and the use after it stays within these
	// capacities. Where nothing is stored they are the limits. Default: none.
	Limits []Limit
}

// normalize checks a request and puts it into the form that everything behind the door uses: charges,
// their costs as lists, and the limits it brings, normalized.
func (r *Request) normalize(c *scratch, slash bool) (brought []Limit, err error) {
	charges := r.Charges
	if len(charges) == 0 {
		c.chargeBuf[0] = Charge{r.Entity, r.Resource, r.Costs}
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
			if len(r.Charges) > 0 {
				return nil, prefixField(fmt.Sprintf("charges[%d]", i), err)
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
	return normalizeLimits("limits", r.Limits)
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
