package httphandler

import (
	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/apijson"
)

// reserveBody is the body of a reserve.
type reserveBody struct {
	weir.Request

	// brings reports whether the member limits was given, even if empty.
	brings bool
	// requirements has the flat keys in the order of the document.
	requirements []flatAmount
	// order has the index of the requirement of each charge. It is nil if there are no
	// requirements.
	order []int
}

// reserve reads a body in one of its three forms: entity, resource and costs; charges; or
// requirements. If it returns an error, the result is nil for a body that is not JSON, and
// otherwise only brings is meaningful.
func (d *bodyReader) reserve(text []byte) (*reserveBody, error) {
	if err := d.begin(text); err != nil {
		return nil, err
	}
	r := &reserveBody{}
	var single, charges, requirements bool
	var keyed []byte
	d.fields(func(name []byte) bool {
		switch string(name) {
		case "lease_id":
			r.LeaseID = d.leaseID()
		case "entity":
			single, r.Entity = true, d.string()
		case "resource":
			single, r.Resource = true, d.string()
		case "costs":
			single, r.Costs = true, d.costs(maxCosts)
		case "charges":
			charges, r.Charges = true, d.charges()
		case "requirements":
			requirements, r.requirements = true, d.requirements()
		case "keyed":
			r.Keyed = d.boolean()
			keyed = d.last
		case "limits":
			r.brings, r.Limits = true, d.limits()
		default:
			return false
		}
		return true
	})
	const besideSingle = "cannot be combined with entity, resource or costs"
	switch {
	case requirements && charges:
		d.add(apijson.Invalid("requirements", len(r.requirements),
			"cannot be combined with charges"))
	case requirements && single:
		d.add(apijson.Invalid("requirements", len(r.requirements), besideSingle))
	case requirements && keyed != nil:
		d.add(apijson.Invalid("keyed", string(keyed), "cannot be combined with requirements"))
	case charges && single:
		d.add(apijson.Invalid("charges", len(r.Charges), besideSingle))
	}
	if requirements {
		r.translate()
	}
	err := d.end()
	if d.malformed {
		return nil, err
	}
	return r, err
}

func (d *bodyReader) charges() []weir.Charge {
	charges := []weir.Charge{}
	d.elements(1, func() {
		c := weir.Charge{}
		d.fields(func(name []byte) bool {
			switch string(name) {
			case "entity":
				c.Entity = d.string()
			case "resource":
				c.Resource = d.string()
			case "costs":
				c.Costs = d.costs(maxCosts)
			default:
				return false
			}
			return true
		})
		charges = append(charges, c)
	})
	return charges
}

func (d *bodyReader) requirements() []flatAmount {
	var requirements []flatAmount
	d.elements(1, func() { requirements = d.flatAmount("amount", requirements) })
	return requirements
}

// reword returns err with the names of the requirements in place of the charges made from them.
func (r *reserveBody) reword(err error) error {
	if r.order == nil {
		return err
	}
	return apijson.Reword(err, r.word)
}
