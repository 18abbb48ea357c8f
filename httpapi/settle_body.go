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
	// byCharge is whether the totals are one for each charge.
	byCharge bool
	// flat are the flat keys that were named, instead of totals; nil where there are none.
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

// translate makes totals by charge of flat keys; keys are those of the lease, nil where it is not
// known as one that has any.
func (r *settleRequest) translate(keys []string) error {
	switch {
	case r.flat == nil:
		return r.unnamed(keys)
	case keys == nil:
		return &weir.Error{
			Code: weir.UnknownLease, Field: "lease_id", Value: r.id.String(),
			Reason: "is not known here as one with flat keys",
		}
	}
	return r.place(keys)
}

// place turns the flat keys that were named into totals by charge; keys are those of the lease, in
// the order of its charges.
func (r *settleRequest) place(keys []string) error {
	var d reader
	r.totals = make([]weir.Costs, len(keys))
	for i := range r.flat {
		a := &r.flat[i]
		at := slices.Index(keys, a.Key)
		if at < 0 {
			d.add(invalid(r.element(i)+".key", a.Key, "was not reserved"))
			continue
		}
		r.totals[at] = weir.Costs{flatLimit: a.ActualAmount}
	}
	return d.err()
}

// unnamed refuses totals that do not say which key they are for; keys are those of the lease. Its
// charges are in an order of their own, which the caller does not know.
func (r *settleRequest) unnamed(keys []string) error {
	if len(keys) < 2 {
		return nil
	}
	const reason = "must name the keys: several were reserved"
	if r.byCharge && len(r.totals) > 0 {
		return invalid(r.field, len(r.totals), reason)
	}
	for _, costs := range r.totals {
		if n, ok := costs[flatLimit]; ok {
			return invalid(r.field+"."+flatLimit, n, reason)
		}
	}
	return nil
}

func (r *settleRequest) element(i int) string { return r.field + "[" + strconv.Itoa(i) + "]" }

// word returns the caller's word for the field of a fault in translated totals; keys are those of
// the lease.
func (r *settleRequest) word(f *weir.Error, keys []string) string {
	for i := range r.flat {
		to := r.element(i) + "." + r.amount
		if f.Field == r.element(slices.Index(keys, r.flat[i].Key))+"."+flatLimit ||
			f.Field == r.field+"."+flatLimit && len(r.flat) == 1 {
			return to
		}
	}
	return f.Field
}
