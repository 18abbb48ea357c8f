package httpapi

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/weir-limiter/weir"
)

// actualBody says what was used of a flat key.
type actualBody struct {
	Key          string `json:"key"`
	ActualAmount int64  `json:"actual_amount"`
}

// adjustBody and settleBody carry totals and actuals in one of three forms, see totalsBody.
type adjustBody struct {
	LeaseID weir.LeaseID `json:"lease_id"`
	Seq     int64        `json:"seq"`
	Totals  totalsBody   `json:"totals"`
}

type completeBody struct {
	LeaseID weir.LeaseID `json:"lease_id"`
	Actuals totalsBody   `json:"actuals,omitempty"`
}

// leaseRefBody names the lease to cancel or extend.
type leaseRefBody struct {
	LeaseID weir.LeaseID `json:"lease_id"`
}

// totalsBody is one object of amounts by limit name, for all charges; or an array with one for each
// charge in order; or an array of flat keys.
type totalsBody = json.RawMessage

// totalsBodyOf is one object where there is one set for all charges, an array where there is one
// for each of them. Nothing named is an empty object.
func totalsBodyOf(field string, totals []weir.Costs) (totalsBody, error) {
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
		return write(weir.Costs{})
	case 1:
		return write(orEmpty(totals[0]))
	}
	whole := make([]weir.Costs, len(totals))
	for i, c := range totals {
		whole[i] = orEmpty(c)
	}
	return write(whole)
}

// orEmpty keeps null off the wire.
func orEmpty(c weir.Costs) weir.Costs {
	if c == nil {
		return weir.Costs{}
	}
	return c
}

// settleRequest is a verb on a lease as it was read. The zero value reads a cancel or an extend.
type settleRequest struct {
	id     weir.LeaseID
	seq    int64
	totals []weir.Costs
	// byCharge is whether the totals were an array.
	byCharge bool
	// flat are the flat keys that were named, which totals are made of; nil where there are none.
	flat []actualBody
	// field and amount are what the totals, and the amount of a flat key in them, are called.
	field, amount string
}

// adjustRequest is an adjust that is to be read.
func adjustRequest() settleRequest { return settleRequest{field: "totals", amount: "amount"} }

// completeRequest is a complete that is to be read; without actuals nothing is named.
func completeRequest() settleRequest {
	return settleRequest{field: "actuals", amount: "actual_amount"}
}

// adjusts is whether there must be a sequence number and totals.
func (r *settleRequest) adjusts() bool { return r.field == "totals" }

// parseSettle reads a body in any form that the verb of r has.
func parseSettle(v *value, r *settleRequest) error {
	var d reader
	adjusts := r.adjusts()
	var id, seq, totals *value
	d.fields(v, func(name string, v *value) bool {
		switch {
		case name == "lease_id":
			id, r.id = v, d.leaseID(v)
		case name == "seq" && adjusts:
			seq, r.seq = v, d.integer(v)
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
func (d *reader) totals(v *value, r *settleRequest) {
	if v.what() == "an object" {
		r.totals = []weir.Costs{d.amounts(v)}
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
			r.totals = append(r.totals, d.amounts(v))
			return
		}
		a := actualBody{}
		a.Key, a.ActualAmount = d.keyAmount(v, r.amount)
		if a.Key != "" && slices.ContainsFunc(r.flat, func(other actualBody) bool {
			return other.Key == a.Key
		}) {
			d.add(invalid(v.path()+".key", a.Key, "is given twice"))
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
func (r *settleRequest) translate() {
	costs := make(weir.Costs, len(r.flat))
	for i := range r.flat {
		costs[flatName(r.flat[i].Key)] = r.flat[i].ActualAmount
	}
	r.totals = []weir.Costs{costs}
}

// mustNameKeys is the service's reason to refuse totals of a lease with keys that name none.
const mustNameKeys = "must name the keys: several were reserved"

// reword puts the caller's words for what the service calls flat keys and totals.
func (r *settleRequest) reword(err error) error {
	if r.flat == nil && !r.byCharge {
		return err
	}
	faults := faultsOf(err)
	if len(faults) == 0 {
		return err
	}
	var d reader
	for _, f := range faults {
		reworded := *f
		if r.flat != nil {
			r.rewordFlat(&reworded)
		} else if f.Reason == mustNameKeys {
			reworded.Field, reworded.Value = r.field, strconv.Itoa(len(r.totals))
		}
		d.add(&reworded)
	}
	return d.err()
}

// rewordFlat puts a flat key, or its amount, for the full name of its units.
func (r *settleRequest) rewordFlat(f *weir.Error) {
	if f.Code == weir.UnknownLease {
		f.Reason = "is not known here as one with flat keys"
		return
	}
	for i := range r.flat {
		a := &r.flat[i]
		name := flatName(a.Key)
		if f.Field != r.field+"."+name && f.Field != r.field+"."+shorten(name) {
			continue
		}
		f.Field = r.element(i) + "." + r.amount
		if f.Value == shorten(name) {
			f.Field, f.Value = r.element(i)+".key", shorten(a.Key)
		}
		return
	}
}

func (r *settleRequest) element(i int) string { return r.field + "[" + strconv.Itoa(i) + "]" }

// scanSettle reads the body of a verb on a lease in plain form: one object of amounts, if any. It
// returns false for any other, and r is as it was; [parseSettle] reads the same of what this one
// reads.
func scanSettle(text []byte, r *settleRequest) bool {
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
	r.id, r.seq = lease, seq
	if totals.given {
		r.totals = []weir.Costs{totals.costs(newKeptText(totals.length()))}
	}
	return true
}

// readSettle reads the body of a verb on a lease into r, which says which verb it is.
func readSettle(text []byte, r *settleRequest) error {
	if scanSettle(text, r) {
		return nil
	}
	v, err := parseDocument(text)
	if err != nil {
		return err
	}
	return parseSettle(v, r)
}
