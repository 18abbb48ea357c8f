package httphandler

import (
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/apijson"
)

// updateBody is the body of an update. The zero value reads a cancel or an extend.
type updateBody struct {
	leaseID weir.LeaseID
	seq     int64
	totals  []weir.Costs
	// byCharge reports whether the totals were an array.
	byCharge bool
	// flat has the flat keys from which the totals were made, or nil.
	flat []flatAmount
	// field is the name of the member with the totals, and amount the name of a flat key's amount.
	field, amount string
}

// adjustBody returns an updateBody for an adjust.
func adjustBody() updateBody { return updateBody{field: "totals", amount: "amount"} }

// completeBody returns an updateBody for a complete. Its actuals are optional.
func completeBody() updateBody { return updateBody{field: "actuals", amount: "actual_amount"} }

// update reads the body of an update into u. The fields of u that are set already tell the verb.
func (d *bodyReader) update(text []byte, u *updateBody) error {
	if err := d.begin(text); err != nil {
		return err
	}
	var id, seq, totals bool
	adjusts := u.field == "totals"
	if d.fields(func(name []byte) bool {
		switch {
		case string(name) == "lease_id":
			id, u.leaseID = true, d.leaseID()
		case string(name) == "seq" && adjusts:
			seq, u.seq = true, d.integer()
		case string(name) == u.field && u.field != "":
			totals = true
			d.totals(u)
		default:
			return false
		}
		return true
	}) {
		d.require("lease_id", id)
		d.require("seq", seq || !adjusts)
		d.require("totals", totals || !adjusts)
	}
	return d.end()
}

// totals reads [apijson.Totals] in any form. An array contains flat keys if its first element has a
// string member "key". Otherwise it contains costs, whose members are numbers.
func (d *bodyReader) totals(u *updateBody) {
	switch kind := d.decoder.PeekKind(); kind {
	case jsontext.KindBeginObject:
		// The totals may have more members than the costs of a request, because a concurrency limit
		// can be taken without being named.
		u.totals = []weir.Costs{d.costs(maxMembers)}
		return
	case jsontext.KindBeginArray:
	default:
		if d.value(); !d.malformed {
			d.refuse("must be an object or an array, not " + typeOf(kind))
		}
		return
	}
	u.byCharge = true
	first, flat := true, false
	d.elements(0, func() {
		if first {
			first, flat = false, isFlat(d.text[d.decoder.InputOffset():])
		}
		if flat {
			u.flat = d.flatAmount(u.amount, u.flat)
		} else {
			u.totals = append(u.totals, d.costs(maxMembers))
		}
	})
	if flat {
		u.translate()
	}
}

// mustNameKeys is the reason in the engine's error for totals that do not name the keys of a keyed
// lease.
const mustNameKeys = "must name the keys, because several were reserved"

// reword returns err with the flat keys and the member names that the caller used.
func (u *updateBody) reword(err error) error {
	faults := apijson.FaultsOf(err)
	if u.flat == nil && !u.byCharge || len(faults) == 0 {
		return err
	}
	var errs []error
	for _, f := range faults[:min(len(faults), apijson.MaxMistakes)] {
		reworded := *f
		if u.flat != nil {
			u.rewordFlat(&reworded)
		} else if f.Reason == mustNameKeys {
			reworded.Field, reworded.Value = u.field, strconv.Itoa(len(u.totals))
		}
		errs = append(errs, &reworded)
	}
	return apijson.Join(errs)
}
