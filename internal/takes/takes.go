// Package takes is what stores do alike with what a reservation takes of each limit.
package takes

import (
	"math"
	"strconv"

	"github.com/weir-limiter/weir"
)

// Cost is the sum of a take's parts. A sum that does not fit 64 bits is above every capacity, a
// [*weir.Error] with code [weir.NeverSatisfiable]; where the limit does not deny, [weir.Invalid].
func Cost(t *weir.Take) (int64, error) {
	if cost, ok := Sum(t.Parts); ok {
		return cost, nil
	}
	e := &weir.Error{
		Code: weir.NeverSatisfiable, Field: "costs." + t.Limit.Name,
		Value: strconv.FormatInt(t.Cost(), 10), Reason: "is more than can be counted",
	}
	if t.Limit.Shadow {
		e.Code = weir.Invalid
	}
	return 0, e
}

// Sum adds parts up, and reports whether the sum fits 64 bits.
func Sum(parts []weir.Part) (int64, bool) {
	var total int64
	for i := range parts {
		if parts[i].Units > math.MaxInt64-total {
			return 0, false
		}
		total += parts[i].Units
	}
	return total, true
}
