package httphandler

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/apijson"
)

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

// flatAmount reads an object with a key and an amount, and appends it to list. The key must not be
// in list already.
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

// isFlat reports whether text begins with an object that has a string member "key".
func isFlat(text []byte) (flat bool) {
	var d bodyReader
	if d.begin(text) != nil || d.decoder.PeekKind() != jsontext.KindBeginObject {
		return false
	}
	d.each(func(name []byte) {
		flat = flat || string(name) == "key" && d.decoder.PeekKind() == jsontext.KindString
		d.skip()
	})
	return flat
}

// translate makes one charge of each requirement. It sorts the charges by key, so that a request
// with the same keys in another order is a replay and not a conflict.
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

// flatName returns the full name of the limit of a flat key.
func flatName(key string) string {
	return weir.Subject{Entity: key, Resource: flatResource}.FullName(flatLimit)
}

// translate makes the totals by full name from the flat keys.
func (u *updateBody) translate() {
	costs := make(weir.Costs, len(u.flat))
	for i := range u.flat {
		costs[flatName(u.flat[i].key)] = u.flat[i].amount
	}
	u.totals = []weir.Costs{costs}
}

// word returns the name that the caller used for the field of a fault. The service does not always
// name the charge.
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

// rewordFlat replaces the full name of a limit with its flat key, or with the path of the key's
// amount.
func (u *updateBody) rewordFlat(f *weir.Error) {
	if f.Code == weir.UnknownLease {
		f.Reason = "is not known as a lease with flat keys"
		return
	}
	for i := range u.flat {
		a := &u.flat[i]
		name := flatName(a.key)
		if f.Field != u.field+"."+name && f.Field != u.field+"."+apijson.Shorten(name) {
			continue
		}
		element := u.field + "[" + strconv.Itoa(i) + "]"
		f.Field = element + "." + u.amount
		if f.Value == apijson.Shorten(name) {
			f.Field, f.Value = element+".key", apijson.Shorten(a.key)
		}
		return
	}
}
