package apijson

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

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
// cannot express; the server judges the rest.
func ReserveRequestOf(r *weir.Request) (*ReserveRequest, error) {
	if len(r.Charges) > 0 && (r.Entity != "" || r.Resource != "" || r.Costs != nil) {
		return nil, Invalid("charges", len(r.Charges), "must not stand beside entity, resource or costs")
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

// The resource and limit of a flat key. The entity is the key.
const (
	flatResource = "key"
	flatLimit    = "units"
)

// Reserve is a reserve that the handler has read.
type Reserve struct {
	weir.Request

	// Brings is true if the member limits was given, empty or not.
	Brings bool
	// requirements are the flat keys in the order of the document.
	requirements []flatAmount
	// order has for each charge the index of its requirement. It is nil without requirements.
	order []int
}

// parseReserve reads a body in any of the three forms.
func parseReserve(v *value) (*Reserve, error) {
	var d reader
	r := &Reserve{}
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
			r.Brings, r.Limits = true, d.limitSet(v)
		default:
			return false
		}
		return true
	})
	const besideSingle = "must not stand beside entity, resource or costs"
	switch {
	case requirements != nil && charges != nil:
		d.add(Invalid("requirements", len(r.requirements), "must not stand beside charges"))
	case requirements != nil && single != nil:
		d.add(Invalid("requirements", len(r.requirements), besideSingle))
	case requirements != nil && keyed != nil:
		d.add(Invalid("keyed", string(keyed.text), "must not stand beside requirements"))
	case charges != nil && single != nil:
		d.add(Invalid("charges", len(r.Charges), besideSingle))
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

func (d *reader) requirements(v *value) []flatAmount {
	var requirements []flatAmount
	d.elements(v, func(v *value) { requirements = d.flatAmount(v, "amount", requirements) })
	d.notEmpty(v, len(requirements))
	return requirements
}

// flatAmount is an amount of a flat key.
type flatAmount struct {
	key    string
	amount int64
}

// flatAmount reads an object with a key and an amount, and appends it to the list before it, in
// which the key must not be.
func (d *reader) flatAmount(v *value, amountName string, list []flatAmount) []flatAmount {
	var f flatAmount
	var key, amount *value
	d.fields(v, func(name string, v *value) bool {
		switch name {
		case "key":
			key, f.key = v, d.text(v)
		case amountName:
			amount, f.amount = v, d.integer(v)
		default:
			return false
		}
		return true
	})
	d.require(v, "key", key)
	d.require(v, amountName, amount)
	if f.key != "" && slices.ContainsFunc(list, func(other flatAmount) bool { return other.key == f.key }) {
		d.add(Invalid(v.path()+".key", f.key, "is given twice"))
	}
	return append(list, f)
}

// translate makes a charge of each requirement. The charges are in the order of the keys, so that
// the same keys in another order are the same request.
func (r *Reserve) translate() {
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

// Reword returns err with the names of requirements instead of those of the charges made of them.
func (r *Reserve) Reword(err error) error {
	if r.order == nil {
		return err
	}
	return Reword(err, r.word)
}

// word returns the caller's name for the field of a fault. The service does not always say which
// charge it means.
func (r *Reserve) word(f *weir.Error) string {
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

// scanReserve reads a body in plain form: a single charge, and no limits. It returns nil for any
// other. What it returns is what [parseReserve] returns.
func scanReserve(text []byte) *Reserve {
	s := plainScan{text: text}
	var id, entity, resource []byte
	var costs plainCosts
	if !s.document(func(name []byte) bool {
		switch string(name) {
		case "lease_id":
			return s.strOnce(&id)
		case "entity":
			return s.strOnce(&entity)
		case "resource":
			return s.strOnce(&resource)
		case "costs":
			return costs.read(&s)
		}
		return false
	}) {
		return nil
	}
	r := &Reserve{}
	if id != nil && !scanLeaseID(id, &r.LeaseID) {
		return nil
	}
	kept := newKeptText(len(entity) + len(resource) + costs.length())
	r.Entity, r.Resource = kept.keep(entity), kept.keep(resource)
	r.Costs = costs.costs(kept)
	return r
}

// ReadReserve reads the body of a reserve. With an error the result is nil if the body is not JSON,
// and otherwise only Brings is meaningful.
func ReadReserve(text []byte) (*Reserve, error) {
	if r := scanReserve(text); r != nil {
		return r, nil
	}
	v, err := parseDocument(text)
	if err != nil {
		return nil, err
	}
	return parseReserve(v)
}
