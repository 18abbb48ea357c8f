package httphandler

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/apijson"
)

// reserveBody is the body of a reserve.
type reserveBody struct {
	weir.Request

	// brings is true if the member limits was given, empty or not.
	brings bool
	// requirements are the flat keys in the order of the document.
	requirements []flatAmount
	// order has for each charge the index of its requirement. It is nil without requirements.
	order []int
}

// reserve reads a body in any of its three forms: entity, resource and costs; charges; or
// requirements. With an error the result is nil if the body is not JSON, and otherwise only brings
// is meaningful.
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
	const besideSingle = "must not stand beside entity, resource or costs"
	switch {
	case requirements && charges:
		d.add(apijson.Invalid("requirements", len(r.requirements), "must not stand beside charges"))
	case requirements && single:
		d.add(apijson.Invalid("requirements", len(r.requirements), besideSingle))
	case requirements && keyed != nil:
		d.add(apijson.Invalid("keyed", string(keyed), "must not stand beside requirements"))
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

// A flat key K stands for entity K, resource "key", limit "units" (ADR 30).
const (
	flatResource = "key"
	flatLimit    = "units"
)

// flatAmount is an amount of a flat key.
type flatAmount struct {
	key    string
	amount int64
}

// flatAmount reads an object with a key and an amount, and appends it to the list before it, in
// which the key must not be.
func (d *bodyReader) flatAmount(amountName string, list []flatAmount) []flatAmount {
	var f flatAmount
	var key, amount bool
	if d.fields(func(name []byte) bool {
		switch string(name) {
		case "key":
			key, f.key = true, d.string()
		case amountName:
			amount, f.amount = true, d.integer()
		default:
			return false
		}
		return true
	}) {
		d.require("key", key)
		d.require(amountName, amount)
	}
	same := func(other flatAmount) bool { return other.key == f.key }
	if f.key != "" && slices.ContainsFunc(list, same) {
		d.add(apijson.Invalid(d.path()+".key", f.key, "is given twice"))
	}
	return append(list, f)
}

// translate makes a charge of each requirement. The charges are in the order of the keys, so that
// the same keys in another order are the same request.
func (r *reserveBody) translate() {
	r.Keyed = true
	r.order = make([]int, len(r.requirements))
	for i := range r.order {
		r.order[i] = i
	}
	slices.SortStableFunc(r.order, func(a, b int) int {
		return cmp.Compare(r.requirements[a].key, r.requirements[b].key)
	})
	for _, at := range r.order {
		q := &r.requirements[at]
		r.Charges = append(r.Charges, weir.Charge{
			Entity: q.key, Resource: flatResource, Costs: weir.Costs{flatLimit: q.amount},
		})
	}
}

// reword returns err with the names of requirements instead of those of the charges made of them.
func (r *reserveBody) reword(err error) error {
	if r.order == nil {
		return err
	}
	return apijson.Reword(err, r.word)
}

// word returns the caller's name for the field of a fault. The service does not always say which
// charge it means.
func (r *reserveBody) word(f *weir.Error) string {
	for i, at := range r.order {
		from, to := "charges["+strconv.Itoa(i)+"]", "requirements["+strconv.Itoa(at)+"]"
		switch {
		case f.Field == from+".entity", f.Field == "entity" && f.Value == r.requirements[at].key:
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
