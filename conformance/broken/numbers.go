package broken

import (
	"math"
	"math/big"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/conformance/model"
)

const milli = 1000

// capacityOf is a limit's capacity in milli-units.
func capacityOf(l *weir.Limit) *big.Int { return times(l.Capacity, milli) }

func times(a, b int64) *big.Int { return new(big.Int).Mul(big.NewInt(a), big.NewInt(b)) }

// numberRules break section 1.
func numberRules() []rule {
	return append([]rule{
		{"an instant counts to the next millisecond", "1.2", func(w, r *model.Rules) {
			w.Instant = func(t time.Time) int64 {
				return r.Instant(t.Add(time.Millisecond - time.Nanosecond))
			}
		}},
		{"an instant counts to the second", "1.2", func(w, r *model.Rules) {
			w.Instant = func(t time.Time) int64 { return r.Instant(t) / 1000 * 1000 }
		}},
		{"state moves backwards with the clock", "C1: clock skew", func(w, _ *model.Rules) {
			w.Now = func(now, _ int64) int64 { return now }
		}},
		{"the refill time moves backwards", "C1: clock skew", func(w, r *model.Rules) {
			w.Now = func(now, _ int64) int64 { return now }
			w.Gain = func(l *weir.Limit, from, to int64) *big.Int { return r.Gain(l, min(from, to), to) }
		}},
		{"a denial is not seen by the state", "1.3", func(w, _ *model.Rules) {
			w.Stamps = func(denied, known bool) bool { return !denied && known }
		}},
		{"the lease table believes every clock", "1.3", func(w, _ *model.Rules) {
			w.Clock = func(_, now int64) int64 { return now }
		}},
		{"the lease table stays ahead for ever", "1.3", func(w, _ *model.Rules) {
			w.Clock = func(table, now int64) int64 { return max(table, now) }
		}},
		{"debt is rounded towards zero", "1.4", func(w, _ *model.Rules) {
			w.Units = func(n *big.Int, scale int64) int64 {
				return new(big.Int).Quo(n, big.NewInt(scale)).Int64()
			}
		}},
		{"available is rounded up", "1.4", func(w, r *model.Rules) {
			w.Units = func(n *big.Int, scale int64) int64 {
				return -r.Units(new(big.Int).Neg(n), scale)
			}
		}},
	}, countingRules()...)
}

// countingRules break line 1.1 and what overflows.
func countingRules() []rule {
	return []rule{
		{"available goes through a float", "1.1", func(w, r *model.Rules) {
			w.Units = func(n *big.Int, scale int64) int64 {
				f, _ := new(big.Float).SetInt(big.NewInt(r.Units(n, scale))).Float32()
				return int64(f)
			}
		}},
		{"costs are judged as floats", "1.1", func(w, _ *model.Rules) {
			float := func(n *big.Int) float64 {
				f, _ := new(big.Float).SetInt(new(big.Int).Quo(n, big.NewInt(milli))).Float64()
				return f
			}
			w.Fits = func(_ weir.Kind, available, cost *big.Int) bool { return float(available) >= float(cost) }
		}},
		{"a bucket may be asked for anything", "1.1", func(w, _ *model.Rules) {
			w.BucketMost = func() int64 { return math.MaxInt64 }
		}},
		{"a counter wraps", "64-bit overflow", func(w, _ *model.Rules) {
			w.Sum = func(amounts ...int64) (sum int64, ok bool) {
				for _, n := range amounts {
					sum += n
				}
				return sum, true
			}
		}},
		{"a sum of costs wraps", "64-bit overflow", func(w, _ *model.Rules) {
			sum := func(parts []weir.Part) *big.Int {
				var n int64
				for _, p := range parts {
					n += p.Units
				}
				return big.NewInt(n)
			}
			w.Cost, w.TakenCost = sum, sum
			w.CheckCost = func(t *model.Take) error {
				if sum(t.Parts).Cmp(big.NewInt(t.Ceiling)) > 0 {
					return &weir.Error{Code: weir.NeverSatisfiable, Field: "costs." + t.Limit.Name}
				}
				return nil
			}
		}},
		{"a sum that does not fit is applied", "7.11", func(w, _ *model.Rules) {
			w.Failing = func(error) bool { return true }
		}},
	}
}
