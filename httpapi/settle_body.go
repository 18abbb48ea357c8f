package httpapi

import (
	"slices"
	"strconv"

	"github.com/weir-limiter/weir"
)

// settleRequest is a verb on a lease as it was read.
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

// leaseRefRequest is a cancel or extend that is to be read.
func leaseRefRequest() settleRequest { return settleRequest{} }

// adjustRequest is an adjust that is to be read.
func adjustRequest() settleRequest { return settleRequest{field: "totals", amount: "amount"} }

// completeRequest is a complete that is to be read; without actuals nothing is named.
func completeRequest() settleRequest {
	return settleRequest{field: "actuals", amount: "actual_amount"}
}

// adjusts is whether there must be a sequence number and totals.
func (r *settleRequest) adjusts() bool { return r.field == "totals" }

// readSettle reads what r has names for.
func readSettle(v *value, r *settleRequest) error {
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
	if v.what() == "an object" {
		if id == nil {
			d.missing("lease_id")
		}
		if seq == nil && adjusts {
			d.missing("seq")
		}
		if totals == nil && adjusts {
			d.missing("totals")
		}
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
