package apijson

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/weir-limiter/weir"
)

// ActualAmount says what was used of a flat key.
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

// Totals is one object of amounts by limit name, for all charges; or an array with one for each
// charge in order; or an array of flat keys.
type Totals = json.RawMessage

// TotalsOf is one object where there is one set for all charges, an array where there is one
// for each of them. Nothing named is an empty object.
func TotalsOf(field string, totals []weir.Costs) (Totals, error) {
	for i, c := range totals {
		at := field
		if len(totals) > 1 {
			at = fmt.Sprintf("%s[%d]", field, i)
		}
		if err := checkNames(at, c); err != nil {
			return nil, err
		}
	}
	switch len(totals) {
	case 0:
		return Write(weir.Costs{})
	case 1:
		return Write(orEmpty(totals[0]))
	}
	whole := make([]weir.Costs, len(totals))
	for i, c := range totals {
		whole[i] = orEmpty(c)
	}
	return Write(whole)
}

// orEmpty keeps null off the wire.
func orEmpty(c weir.Costs) weir.Costs {
	if c == nil {
		return weir.Costs{}
	}
	return c
}

// Update is a verb on a lease as it was read. The zero value reads a cancel or an extend.
type Update struct {
	LeaseID weir.LeaseID
	Seq     int64
	Totals  []weir.Costs
	// byCharge is whether the totals were an array.
	byCharge bool
	// flat are the flat keys that were named, which totals are made of; nil where there are none.
	flat []ActualAmount
	// field and amount are what the totals, and the amount of a flat key in them, are called.
	field, amount string
}

// NewAdjust is an adjust that is to be read.
func NewAdjust() Update { return Update{field: "totals", amount: "amount"} }

// NewComplete is a complete that is to be read; without actuals nothing is named.
func NewComplete() Update {
	return Update{field: "actuals", amount: "actual_amount"}
}

// adjusts is whether there must be a sequence number and totals.
func (r *Update) adjusts() bool { return r.field == "totals" }

// parseUpdate reads a body in any form that the verb of r has.
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

// totals reads one of three forms: an object for all charges, an array of objects by charge, or an
// array of flat keys. An array is flat where its first element has a key that is a string: amounts
// are numbers.
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
		a := ActualAmount{}
		a.Key, a.ActualAmount = d.keyAmount(v, r.amount)
		if a.Key != "" && slices.ContainsFunc(r.flat, func(other ActualAmount) bool {
			return other.Key == a.Key
		}) {
			d.add(Invalid(v.path()+".key", a.Key, "is given twice"))
		}
		r.flat = append(r.flat, a)
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

// flatName is the full name of the units of a flat key.
func flatName(key string) string {
	return weir.Subject{Entity: key, Resource: flatResource}.FullName(flatLimit)
}

// translate makes totals by full name of the flat keys.
func (r *Update) translate() {
	costs := make(weir.Costs, len(r.flat))
	for i := range r.flat {
		costs[flatName(r.flat[i].Key)] = r.flat[i].ActualAmount
	}
	r.Totals = []weir.Costs{costs}
}

// mustNameKeys is the service's reason to refuse totals of a lease with keys that name none.
const mustNameKeys = "must name the keys: several were reserved"

// Reword puts the caller's words for what the service calls flat keys and totals.
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

// rewordFlat puts a flat key, or its amount, for the full name of its units.
func (r *Update) rewordFlat(f *weir.Error) {
	if f.Code == weir.UnknownLease {
		f.Reason = "is not known here as one with flat keys"
		return
	}
	for i := range r.flat {
		a := &r.flat[i]
		name := flatName(a.Key)
		if f.Field != r.field+"."+name && f.Field != r.field+"."+Shorten(name) {
			continue
		}
		f.Field = r.element(i) + "." + r.amount
		if f.Value == Shorten(name) {
			f.Field, f.Value = r.element(i)+".key", Shorten(a.Key)
		}
		return
	}
}

func (r *Update) element(i int) string { return r.field + "[" + strconv.Itoa(i) + "]" }

// scanUpdate reads the body of a verb on a lease in plain form: one object of amounts, if any. It
// returns false for any other, and r is as it was; [parseUpdate] reads the same of what this one
// reads.
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
	if !scanLeaseID(id, &lease) { // also where there is none
		return false
	}
	r.LeaseID, r.Seq = lease, seq
	if totals.given {
		r.Totals = []weir.Costs{totals.costs(newKeptText(totals.length()))}
	}
	return true
}

// ReadUpdate reads the body of a verb on a lease into r, which says which verb it is.
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
