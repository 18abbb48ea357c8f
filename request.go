package weir

import (
	"fmt"
	"slices"
	"strings"
)

// Bounds of one request (docs/semantics.md, 3.2).
const (
	maxCharges = 16
	maxCosts   = 32
)

// Costs is how many units are asked of each limit, by the limit's name. In a settlement it is what
// the lease stands for, or what was really used.
type Costs map[string]int64

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
	// Limits are brought by the request. Where limits are stored they may only lower: the request
	// is admitted if the stored limits admit it and the use after it stays within these
	// capacities. Where nothing is stored they are the limits. Default: none.
	Limits []Limit
}

// charges returns the request's charges in one form, with checked identifiers and costs, and the
// limits it brings, normalized.
func (r *Request) charges(slash bool) ([]Charge, []Limit, error) {
	charges := r.Charges
	if len(charges) == 0 {
		charges = []Charge{{r.Entity, r.Resource, r.Costs}}
	} else if r.Entity != "" || r.Resource != "" || r.Costs != nil {
		return nil, nil, invalid("charges", len(charges), "must not stand beside entity, resource or costs")
	}
	if len(charges) > maxCharges {
		return nil, nil, invalid("charges", len(charges), fmt.Sprintf("at most %d in a request", maxCharges))
	}
	total := 0
	for i := range charges {
		if err := charges[i].check(slash); err != nil {
			if len(r.Charges) > 0 {
				return nil, nil, prefixField(fmt.Sprintf("charges[%d]", i), err)
			}
			return nil, nil, err
		}
		total += len(charges[i].Costs)
	}
	if total > maxCosts {
		return nil, nil, invalid("costs", total, fmt.Sprintf("at most %d in a request", maxCosts))
	}
	if len(r.Limits) == 0 {
		return charges, nil, nil
	}
	brought, err := normalizeLimits("limits", r.Limits)
	return charges, brought, err
}

func (c *Charge) check(slash bool) error {
	if err := checkSubject(c.Entity, c.Resource, slash); err != nil {
		return err
	}
	return c.Costs.check("costs")
}

// check refuses malformed names and negative amounts, the first by name.
func (c Costs) check(field string) error {
	var bad *Error
	for name, n := range c {
		var e *Error
		if reason := checkLimitName(name); reason != "" {
			e = invalid(field+"."+shorten(name), name, reason)
		} else if n < 0 {
			e = invalid(field+"."+name, n, "must not be negative")
		}
		if e != nil && (bad == nil || e.Field < bad.Field) {
			bad = e
		}
	}
	if bad == nil {
		return nil
	}
	return bad
}

// names returns the costs' names in order.
func (c Costs) names() []string {
	names := make([]string, 0, len(c))
	for name := range c {
		names = append(names, name)
	}
	slices.SortFunc(names, strings.Compare)
	return names
}
