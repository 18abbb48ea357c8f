package apijson

import (
	"encoding/json"
	"fmt"

	"github.com/weir-limiter/weir"
)

// ReserveRequest is the body of a reserve in one of three forms: entity, resource and costs;
// charges; or requirements, the flat keys of ADR 30.
type ReserveRequest struct {
	LeaseID      string           `json:"lease_id,omitempty"`
	Entity       string           `json:"entity,omitempty"`
	Resource     string           `json:"resource,omitempty"`
	Costs        weir.Costs       `json:"costs,omitempty"`
	Charges      []Charge         `json:"charges,omitempty"`
	Requirements []Requirement    `json:"requirements,omitempty"`
	Keyed        bool             `json:"keyed,omitempty"`
	Limits       map[string]Limit `json:"limits,omitempty"`
}

// Charge is one of several charges.
type Charge struct {
	Entity   string     `json:"entity"`
	Resource string     `json:"resource"`
	Costs    weir.Costs `json:"costs,omitempty"`
}

// Requirement asks for an amount of a flat key. Key K stands for entity K, resource "key", limit
// "units".
type Requirement struct {
	Key    string `json:"key"`
	Amount int64  `json:"amount"`
}

// ReserveRequestOf returns the body of a request without its lease ID. It refuses only what JSON
// cannot express; the server checks the rest.
func ReserveRequestOf(r *weir.Request) (*ReserveRequest, error) {
	if len(r.Charges) > 0 && (r.Entity != "" || r.Resource != "" || r.Costs != nil) {
		return nil, Invalid("charges", len(r.Charges),
			"cannot be combined with entity, resource or costs")
	}
	b := &ReserveRequest{Entity: r.Entity, Resource: r.Resource, Costs: r.Costs, Keyed: r.Keyed}
	check := func(at string, entity, resource string, c weir.Costs) error {
		if err := CheckText(at+"entity", entity); err != nil {
			return err
		}
		if err := CheckText(at+"resource", resource); err != nil {
			return err
		}
		return checkNames(at+"costs", c)
	}
	if err := check("", r.Entity, r.Resource, r.Costs); err != nil {
		return nil, err
	}
	for i, c := range r.Charges {
		if err := check(fmt.Sprintf("charges[%d].", i), c.Entity, c.Resource, c.Costs); err != nil {
			return nil, err
		}
		b.Charges = append(b.Charges, Charge{c.Entity, c.Resource, c.Costs})
	}
	if len(r.Limits) == 0 {
		return b, nil
	}
	if err := CheckLimits(r.Limits); err != nil {
		return nil, err
	}
	b.Limits = LimitsOf(r.Limits)
	return b, nil
}

// ActualAmount is the used amount of a flat key.
type ActualAmount struct {
	Key          string `json:"key"`
	ActualAmount int64  `json:"actual_amount"`
}

// AdjustRequest is the body of an adjust.
type AdjustRequest struct {
	LeaseID weir.LeaseID `json:"lease_id"`
	Seq     int64        `json:"seq"`
	Totals  Totals       `json:"totals"`
}

// CompleteRequest is the body of a complete.
type CompleteRequest struct {
	LeaseID weir.LeaseID `json:"lease_id"`
	Actuals Totals       `json:"actuals,omitempty"`
}

// LeaseRequest is the body of a cancel or an extend.
type LeaseRequest struct {
	LeaseID weir.LeaseID `json:"lease_id"`
}

// Totals is one of three forms: an object of amounts by limit name, for all charges; an array of
// such objects, one for each charge in order; or an array of flat keys.
type Totals = json.RawMessage

// TotalsOf returns an object for one set of amounts, and an array for several. No amounts are an
// empty object, never null.
func TotalsOf(field string, totals []weir.Costs) (Totals, error) {
	all := make([]weir.Costs, max(1, len(totals)))
	all[0] = weir.Costs{}
	for i, c := range totals {
		at := field
		if len(totals) > 1 {
			at = fmt.Sprintf("%s[%d]", field, i)
		}
		if err := checkNames(at, c); err != nil {
			return nil, err
		}
		if all[i] = c; c == nil {
			all[i] = weir.Costs{}
		}
	}
	if len(all) == 1 {
		return Write(all[0])
	}
	return Write(all)
}
