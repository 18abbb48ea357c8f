package httpapi

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/weir-limiter/weir"
)

// The resource and the limit that a flat key stands for; the key is the entity.
const (
	flatResource = "key"
	flatLimit    = "units"
)

// reserveRequest is a reserve as it was read.
type reserveRequest struct {
	weir.Request

	// brings is whether the member limits was there, empty or not.
	brings bool
	// requirements are the flat keys, in the document's order.
	requirements []requirementBody
	// order says for each charge which requirement it stands for; nil without requirements.
	order []int
}

// readReserve reads the body of a reserve: exactly one of its three forms. The request is worth
// something only without an error, except for brings.
func readReserve(v *value) (*reserveRequest, error) {
	var d reader
	r := &reserveRequest{}
	var single, charges, requirements, keyed *value
	d.fields(v, func(name string, v *value) bool {
		switch name {
		case "lease_id":
			r.LeaseID = d.leaseID(v)
		case "entity":
			single, r.Entity = v, d.text(v)
		case "resource":
			single, r.Resource = v, d.text(v)
		case "costs":
			single, r.Costs = v, d.costs(v)
		case "charges":
			charges, r.Charges = v, d.charges(v)
		case "requirements":
			requirements, r.requirements = v, d.requirements(v)
		case "keyed":
			keyed, r.Keyed = v, d.boolean(v)
		case "limits":
			r.brings, r.Limits = true, d.limitSet(v)
		default:
			return false
		}
		return true
	})
	const besideSingle = "must not stand beside entity, resource or costs"
	switch {
	case requirements != nil && charges != nil:
		d.add(invalid("requirements", len(r.requirements), "must not stand beside charges"))
	case requirements != nil && single != nil:
		d.add(invalid("requirements", len(r.requirements), besideSingle))
	case requirements != nil && keyed != nil:
		d.add(invalid("keyed", string(keyed.text), "must not stand beside requirements"))
	case charges != nil && single != nil:
		d.add(invalid("charges", len(r.Charges), besideSingle))
	}
	if requirements != nil {
		r.translate()
	}
	return r, d.err()
}

func (d *reader) charges(v *value) []weir.Charge {
	charges := []weir.Charge{}
	d.elements(v, func(v *value) {
		c := weir.Charge{}
		d.fields(v, func(name string, v *value) bool {
			switch name {
			case "entity":
				c.Entity = d.text(v)
			case "resource":
				c.Resource = d.text(v)
			case "costs":
				c.Costs = d.costs(v)
			default:
				return false
			}
			return true
		})
		charges = append(charges, c)
	})
	d.notEmpty(v, len(charges))
	return charges
}

func (d *reader) notEmpty(v *value, n int) {
	if n == 0 && v.what() == "an array" {
		d.refuse(v, "must not be empty")
	}
}

func (d *reader) requirements(v *value) []requirementBody {
	requirements := []requirementBody{}
	d.elements(v, func(v *value) {
		r := requirementBody{}
		r.Key, r.Amount = d.keyAmount(v, "amount")
		if r.Key != "" && slices.ContainsFunc(requirements, func(other requirementBody) bool {
			return other.Key == r.Key
		}) {
			d.add(invalid(v.path()+".key", r.Key, "is given twice"))
		}
		requirements = append(requirements, r)
	})
	d.notEmpty(v, len(requirements))
	return requirements
}

// keyAmount reads an object of a key and an amount, of which both must be there.
func (d *reader) keyAmount(v *value, amountName string) (key string, amount int64) {
	hasKey, hasAmount := false, false
	d.fields(v, func(name string, v *value) bool {
		switch name {
		case "key":
			hasKey, key = true, d.text(v)
		case amountName:
			hasAmount, amount = true, d.integer(v)
		default:
			return false
		}
		return true
	})
	if v.what() == "an object" {
		if !hasKey {
			d.missing(v.path() + ".key")
		}
		if !hasAmount {
			d.missing(v.path() + "." + amountName)
		}
	}
	return key, amount
}

// translate makes a charge of each requirement, in the order of the keys: the same keys are the
// same request, however they are ordered.
func (r *reserveRequest) translate() {
	r.Keyed = true
	r.order = make([]int, len(r.requirements))
	for i := range r.order {
		r.order[i] = i
	}
	slices.SortStableFunc(r.order, func(a, b int) int {
		return cmp.Compare(r.requirements[a].Key, r.requirements[b].Key)
	})
	for _, at := range r.order {
		q := &r.requirements[at]
		r.Charges = append(r.Charges, weir.Charge{
			Entity: q.Key, Resource: flatResource, Costs: weir.Costs{flatLimit: q.Amount},
		})
	}
}

// word returns the caller's word for the field of a fault in a translated request. The service does
// not always say which charge it means.
func (r *reserveRequest) word(f *weir.Error) string {
	for i, at := range r.order {
		from, to := "charges["+strconv.Itoa(i)+"]", "requirements["+strconv.Itoa(at)+"]"
		switch {
		case f.Field == from+".entity", f.Field == "entity" && f.Value == r.requirements[at].Key:
			return to + ".key"
		case f.Field == from+".costs."+flatLimit, f.Field == "costs."+flatLimit && len(r.order) == 1:
			return to + ".amount"
		}
	}
	if f.Field == "charges" || f.Field == "costs."+flatLimit {
		return "requirements"
	}
	return f.Field
}
