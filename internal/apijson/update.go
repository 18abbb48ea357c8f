package apijson

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/weir-limiter/weir"
)

// ActualAmount is what was used of a flat key.
type ActualAmount struct {
	Key          string `json:"key"`
	ActualAmount int64  `json:"actual_amount"`
}

// AdjustRequest sets what a lease stands for.
type AdjustRequest struct {
	LeaseID weir.LeaseID `json:"lease_id"`
	Seq     int64        `json:"seq"`
	Totals  Totals       `json:"totals"`
}

// CompleteRequest names what was used.
type CompleteRequest struct {
	LeaseID weir.LeaseID `json:"lease_id"`
	Actuals Totals       `json:"actuals,omitempty"`
}

// LeaseRequest names the lease to cancel or extend.
type LeaseRequest struct {
	LeaseID weir.LeaseID `json:"lease_id"`
}

// Totals is an object of amounts by limit name, for all charges; or an array of such objects, one
// for each charge in order; or an array of flat keys.
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

// Update is an update that the handler reads. The zero value reads a cancel or an extend.
type Update struct {
	LeaseID weir.LeaseID
	Seq     int64
	Totals  []weir.Costs
	// byCharge is true if the totals were an array.
	byCharge bool
	// flat are the flat keys that Totals were made of, or nil.
	flat []flatAmount
	// field is the name of the totals, and amount that of the amount of a flat key in them.
	field, amount string
}

// NewAdjust returns an update that reads an adjust.
func NewAdjust() Update { return Update{field: "totals", amount: "amount"} }

// NewComplete returns an update that reads a complete. The actuals may be left out.
func NewComplete() Update {
	return Update{field: "actuals", amount: "actual_amount"}
}

// adjusts reports whether a sequence number and totals are required.
func (r *Update) adjusts() bool { return r.field == "totals" }

// parseUpdate reads a body in any form that the verb of r may have.
func parseUpdate(v *value, r *Update) error {
	var d reader
	adjusts := r.adjusts()
	var id, seq, totals *value
	d.fields(v, func(name string, v *value) bool {
		switch {
		case name == "lease_id":
			id, r.LeaseID = v, d.leaseID(v)
		case name == "seq" && adjusts:
			seq, r.Seq = v, d.integer(v)
		case name == r.field && name != "":
			totals = v
			d.totals(v, r)
		default:
			return false
		}
		return true
	})
	d.require(v, "lease_id", id)
	if adjusts {
		d.require(v, "seq", seq)
		d.require(v, "totals", totals)
	}
	return d.err()
}

// totals reads [Totals] in any form. An array is one of flat keys if its first element has a member
// "key" that is a string, because amounts are numbers.
func (d *reader) totals(v *value, r *Update) {
	if v.what() == "an object" {
		r.Totals = []weir.Costs{d.amounts(v)}
		return
	}
	if v.what() != "an array" {
		d.refuse(v, "must be an object or an array, is "+v.what())
		return
	}
	first, flat := true, false
	r.byCharge = true
	d.elements(v, func(v *value) {
		if first {
			first, flat = false, isFlat(v)
		}
		if !flat {
			r.Totals = append(r.Totals, d.amounts(v))
			return
		}
		r.flat = d.flatAmount(v, r.amount, r.flat)
	})
	if flat {
		r.translate()
	}
}

func isFlat(v *value) (flat bool) {
	if v.what() != "an object" {
		return false
	}
	err := v.each(func(m *value) bool {
		flat = flat || m.name == "key" && m.what() == "a string"
		return !flat
	})
	return flat && err == nil
}

// flatName returns the full name of the limit of a flat key.
func flatName(key string) string {
	return weir.Subject{Entity: key, Resource: flatResource}.FullName(flatLimit)
}

// translate makes totals by full name from the flat keys.
func (r *Update) translate() {
	costs := make(weir.Costs, len(r.flat))
	for i := range r.flat {
		costs[flatName(r.flat[i].key)] = r.flat[i].amount
	}
	r.Totals = []weir.Costs{costs}
}

// mustNameKeys is the reason of the engine's error if totals of a keyed lease name no keys.
const mustNameKeys = "must name the keys: several were reserved"

// Reword returns err with the caller's names for the flat keys and totals of the body.
func (r *Update) Reword(err error) error {
	if r.flat == nil && !r.byCharge {
		return err
	}
	faults := FaultsOf(err)
	if len(faults) == 0 {
		return err
	}
	var d reader
	for _, f := range faults {
		reworded := *f
		if r.flat != nil {
			r.rewordFlat(&reworded)
		} else if f.Reason == mustNameKeys {
			reworded.Field, reworded.Value = r.field, strconv.Itoa(len(r.Totals))
		}
		d.add(&reworded)
	}
	return d.err()
}

// rewordFlat replaces the full name of a limit by its flat key, or by the amount of that.
func (r *Update) rewordFlat(f *weir.Error) {
	if f.Code == weir.UnknownLease {
		f.Reason = "is not known here as one with flat keys"
		return
	}
	for i := range r.flat {
		a := &r.flat[i]
		name := flatName(a.key)
		if f.Field != r.field+"."+name && f.Field != r.field+"."+Shorten(name) {
			continue
		}
		f.Field = r.element(i) + "." + r.amount
		if f.Value == Shorten(name) {
			f.Field, f.Value = r.element(i)+".key", Shorten(a.key)
		}
		return
	}
}

func (r *Update) element(i int) string { return r.field + "[" + strconv.Itoa(i) + "]" }

// scanUpdate reads a body in plain form: one object of amounts, if any. It returns false for any
// other, and leaves r as it was. It reads what [parseUpdate] reads.
func scanUpdate(text []byte, r *Update) bool {
	s := plainScan{text: text}
	var id []byte
	var seq int64
	var hasSeq bool
	var totals plainCosts
	adjusts := r.adjusts()
	if !s.document(func(name []byte) bool {
		switch {
		case string(name) == "lease_id":
			return s.strOnce(&id)
		case adjusts && string(name) == "seq":
			return s.integerOnce(&seq, &hasSeq)
		case r.field != "" && string(name) == r.field:
			return totals.read(&s)
		}
		return false
	}) {
		return false
	}
	if adjusts && (!hasSeq || !totals.given) {
		return false
	}
	var lease weir.LeaseID
	if !scanLeaseID(id, &lease) { // also false without an ID
		return false
	}
	r.LeaseID, r.Seq = lease, seq
	if totals.given {
		r.Totals = []weir.Costs{totals.costs(newKeptText(totals.length()))}
	}
	return true
}

// ReadUpdate reads the body of an update into r, which says of which verb.
func ReadUpdate(text []byte, r *Update) error {
	if scanUpdate(text, r) {
		return nil
	}
	v, err := parseDocument(text)
	if err != nil {
		return err
	}
	return parseUpdate(v, r)
}
