package broken

import (
	"math"
	"math/big"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/conformance/model"
)

// occupancyRules break lines 2.2, 2.3 and 2.6.
func occupancyRules() []rule {
	return append([]rule{
		{"a window is fixed", "2.2", func(w, _ *model.Rules) {
			w.WindowUntil = func(l *weir.Limit, now int64) int64 {
				ms := l.Window.Milliseconds()
				return (now/ms + 1) * ms
			}
		}},
		{"a window is a millisecond too long", "2.2", func(w, r *model.Rules) {
			w.WindowUntil = func(l *weir.Limit, now int64) int64 { return r.WindowUntil(l, now) + 1 }
		}},
		{"a window is a millisecond too short", "2.2", func(w, r *model.Rules) {
			w.WindowUntil = func(l *weir.Limit, now int64) int64 { return r.WindowUntil(l, now) - 1 }
		}},
		{"units return after their instant", "2.2", func(w, _ *model.Rules) {
			w.Returned = func(p *model.Piece, now int64) bool { return p.Until < now }
		}},
		{"units return early", "2.2", func(w, _ *model.Rules) {
			w.Returned = func(p *model.Piece, now int64) bool { return p.Until-500 <= now }
		}},
		{"slots never time out", "leaked slots", func(w, _ *model.Rules) {
			w.HoldUntil = func(*weir.Limit, int64) int64 { return math.MaxInt64 / 2 }
		}},
		{"slots time out late", "2.3", func(w, r *model.Rules) {
			w.HoldUntil = func(l *weir.Limit, now int64) int64 { return r.HoldUntil(l, now) + 1 }
		}},
		{"every request takes one slot", "amount ignored by concurrency", func(w, _ *model.Rules) {
			w.Slots = func(int64) int64 { return 1 }
		}},
		{"a request takes at most one slot", "amount ignored by concurrency", func(w, _ *model.Rules) {
			w.Slots = func(cost int64) int64 { return min(cost, 1) }
		}},
	}, fitRules()...)
}

func fitRules() []rule {
	none := big.NewInt(0)
	strict := func(kind weir.Kind) func(w, r *model.Rules) {
		return func(w, r *model.Rules) {
			w.Fits = func(k weir.Kind, available, cost *big.Int) bool {
				return r.Fits(k, available, cost) && (k != kind || available.Cmp(cost) > 0 || cost.Sign() == 0)
			}
		}
	}
	loose := func(kind weir.Kind) func(w, r *model.Rules) {
		return func(w, r *model.Rules) {
			w.Fits = func(k weir.Kind, available, cost *big.Int) bool {
				return r.Fits(k, available, cost) || k == kind && available.Sign() > 0
			}
		}
	}
	return []rule{
		{"the last unit of a bucket is refused", "2.1", strict(weir.Bucket)},
		{"the last unit of a window is refused", "2.2", strict(weir.Window)},
		{"the last slot is refused", "2.3", strict(weir.Concurrency)},
		{"the last unit of a budget is refused", "2.4", strict(weir.Budget)},
		{"a bucket admits while anything is left", "2.1", loose(weir.Bucket)},
		{"a window admits while anything is left", "2.2", loose(weir.Window)},
		{"slots are admitted while any is left", "2.3", loose(weir.Concurrency)},
		{"a budget admits while anything is left", "2.4", loose(weir.Budget)},
		{"a cost of 0 always fits", "2.6", func(w, r *model.Rules) {
			w.Fits = func(k weir.Kind, available, cost *big.Int) bool {
				return cost.Sign() == 0 || r.Fits(k, available, cost)
			}
		}},
		{"a cost of 0 needs a unit", "2.6", func(w, r *model.Rules) {
			w.Fits = func(k weir.Kind, available, cost *big.Int) bool {
				return r.Fits(k, available, cost) && (cost.Sign() != 0 || available.Cmp(none) > 0)
			}
		}},
		{"nothing is ever denied", "3.1", func(w, _ *model.Rules) {
			w.Fits = func(weir.Kind, *big.Int, *big.Int) bool { return true }
		}},
		{"a new limit is not empty", "2.5", func(w, r *model.Rules) {
			w.Room = func(l *weir.Limit, used *big.Int) *big.Int {
				return new(big.Int).Sub(r.Room(l, used), big.NewInt(1))
			}
		}},
		{"a limit has a unit to spare", "2.2", func(w, r *model.Rules) {
			w.Room = func(l *weir.Limit, used *big.Int) *big.Int {
				return new(big.Int).Add(r.Room(l, used), big.NewInt(1))
			}
		}},
	}
}
