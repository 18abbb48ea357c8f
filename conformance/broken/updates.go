package broken

import (
	"context"
	"math/big"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/conformance/model"
	"github.com/weir-limiter/weir/driver"
)

// standFor changes what a holding stands for after an update.
func standFor(change func(s *model.UpdatedHolding, right []driver.Part) []driver.Part) model.Points {
	return model.Points{StandFor: change}
}

// unchanged leaves a holding as it was in the updates that which selects.
func unchanged(which func(s *model.UpdatedHolding, right []driver.Part) bool) model.Points {
	return standFor(func(s *model.UpdatedHolding, right []driver.Part) []driver.Part {
		if which(s, right) {
			return s.Parts
		}
		return right
	})
}

// zero leaves nothing of a holding in the updates that which selects.
func zero(which func(s *model.UpdatedHolding) bool) model.Points {
	return standFor(func(s *model.UpdatedHolding, right []driver.Part) []driver.Part {
		if which(s) {
			return with(right, func(int) int64 { return 0 })
		}
		return right
	})
}

func isSlots(s *model.UpdatedHolding) bool { return s.Limit.Kind == weir.Concurrency }

// standRules returns variants that break lines 7.1 to 7.4.
func standRules() []pointVariant {
	named := func(s *model.UpdatedHolding) bool {
		return slices.ContainsFunc(s.Totals, func(c weir.Costs) bool {
			_, ok := c[s.Limit.Name]
			return ok
		})
	}
	reserved := skipCheck("7.4", "is more slots than there are")
	reserved.StandFor = unchanged(func(s *model.UpdatedHolding, right []driver.Part) bool {
		return isSlots(s) && grown(s, right) > 0
	}).StandFor
	return []pointVariant{
		{"totals are differences", "7.1", standFor(func(s *model.UpdatedHolding, right []driver.Part) []driver.Part {
			if !named(s) || isSlots(s) {
				return right
			}
			return with(right, func(i int) int64 { return right[i].Units + s.Parts[i].Units })
		})},
		{"what is not named is 0", "7.2", zero(func(s *model.UpdatedHolding) bool { return !named(s) })},
		{"totals change the entity alone", "7.1", unchanged(func(s *model.UpdatedHolding, _ []driver.Part) bool {
			return s.Verb != weir.VerbCancel && s.Content.Charges[s.Parts[0].Charge].Entity != s.Entity
		})},
		{"names that were not reserved are ignored", "7.4", skipCheck("7.4", "was not reserved")},
		{"one set counts for every charge", "7.4", skipCheck("7.4", "was reserved by several")},
		{"negative totals are taken", "7.4", skipCheck("7.4", "is negative")},
		{"a lease may take more slots", "7.4", skipCheck("7.4", "is more slots than there are")},
		{"slots may be named up to what was reserved", "7.4", reserved},

		{"a complete keeps the slots", "leaked slots", standFor(func(s *model.UpdatedHolding, right []driver.Part) []driver.Part {
			if s.Verb == weir.VerbComplete {
				return s.Asked
			}
			return right
		})},
		{"a complete gives nothing back", "over-reservation blocking traffic",
			unchanged(func(s *model.UpdatedHolding, right []driver.Part) bool {
				return s.Verb == weir.VerbComplete && !isSlots(s) && grown(s, right) < 0
			})},
		{"a complete gives everything back", "7.2",
			zero(func(s *model.UpdatedHolding) bool { return s.Verb == weir.VerbComplete })},
		{"a complete keeps what the adjust said", "7.2", unchanged(func(s *model.UpdatedHolding, _ []driver.Part) bool {
			return s.Verb == weir.VerbComplete && !isSlots(s)
		})},
		{"a cancel gives nothing back", "7.3", unchanged(func(s *model.UpdatedHolding, _ []driver.Part) bool {
			return s.Verb == weir.VerbCancel
		})},
		{"a cancel leaves the slots", "leaked slots", unchanged(func(s *model.UpdatedHolding, _ []driver.Part) bool {
			return s.Verb == weir.VerbCancel && isSlots(s)
		})},
		{"a cancel gives back twice", "double refunds", standFor(func(s *model.UpdatedHolding, right []driver.Part) []driver.Part {
			if s.Verb != weir.VerbCancel {
				return right
			}
			return with(right, func(i int) int64 { return -s.Parts[i].Units })
		})},
	}
}

// with returns parts with other units.
func with(parts []driver.Part, units func(i int) int64) []driver.Part {
	out := slices.Clone(parts)
	for i := range out {
		out[i].Units = units(i)
	}
	return out
}

// grown returns a number above zero if an update grows a holding, and below zero if it shrinks it.
func grown(s *model.UpdatedHolding, to []driver.Part) int { return sumOf(to).Cmp(sumOf(s.Parts)) }

// growthRules returns variants that break lines 7.5 and 7.6.
func growthRules() []pointVariant {
	growth := func(end func(t model.Expiry) int64) model.Points {
		return until(model.Grown, weir.Window, func(t model.Expiry, _ int64) int64 { return end(t) })
	}
	fromNow := func(t model.Expiry) int64 { return t.From + t.Limit.Window.Milliseconds() }
	return []pointVariant{
		{"an overrun is forgiven", "overrun not counted",
			unchanged(func(s *model.UpdatedHolding, right []driver.Part) bool { return grown(s, right) > 0 })},
		{"an overrun is forgiven by buckets", "overrun not counted",
			unchanged(func(s *model.UpdatedHolding, right []driver.Part) bool {
				return s.Limit.Kind == weir.Bucket && grown(s, right) > 0
			})},
		{"an overrun counts up to the capacity", "7.5", standFor(func(s *model.UpdatedHolding, right []driver.Part) []driver.Part {
			return with(right, func(i int) int64 {
				return min(right[i].Units, s.Parts[i].Units+s.Limit.Capacity)
			})
		})},
		{"units learned of late are forgiven", "7.5",
			growth(func(t model.Expiry) int64 { return t.Pieces[0].Until })},
		{"grown units are occupied from the adjust", "7.5", growth(fromNow)},
		{"a growth renews the entire window", "7.5", growth(func(t model.Expiry) int64 {
			for _, p := range t.Pieces {
				if p.Until > t.From {
					p.Until = fromNow(t)
				}
			}
			return fromNow(t)
		})},
		{"a shrink takes what was added first", "7.6", shrink(func(s model.ShrunkHolding, _ []*model.Piece) []*model.Piece {
			return shrunk(s.Pieces, s.Less)
		})},
		{"what stays ends later", "7.6", shrink(func(s model.ShrunkHolding, right []*model.Piece) []*model.Piece {
			return ending(right, s.Now, func(until int64) int64 { return until + 10_000 })
		})},
		{"what stays ends at once", "7.6", shrink(func(s model.ShrunkHolding, _ []*model.Piece) []*model.Piece {
			return ending(s.Pieces, s.Now, func(int64) int64 { return s.Now })
		})},
		{"what has returned is not part of a shrink", "7.6",
			shrink(func(s model.ShrunkHolding, _ []*model.Piece) []*model.Piece {
				inOrder := slices.Clone(s.Pieces)
				slices.Reverse(inOrder)
				slices.SortStableFunc(inOrder, func(a, b *model.Piece) int { // pieces that have returned come first
					return rank(b.Until <= s.Now) - rank(a.Until <= s.Now)
				})
				shrunk(inOrder, s.Less)
				return s.Pieces
			})},
		{"a shrink frees nothing", "7.6", shrink(func(s model.ShrunkHolding, _ []*model.Piece) []*model.Piece {
			return s.Pieces
		})},
	}
}

func shrink(f func(s model.ShrunkHolding, right []*model.Piece) []*model.Piece) model.Points {
	return model.Points{Shrink: f}
}

// shrunk takes units from pieces, beginning with the first.
func shrunk(pieces []*model.Piece, less int64) []*model.Piece {
	for _, p := range pieces {
		n := min(p.Units, less)
		p.Units -= n
		less -= n
	}
	return pieces
}

// ending changes the end of the pieces that have not returned.
func ending(pieces []*model.Piece, now int64, change func(until int64) int64) []*model.Piece {
	for _, p := range pieces {
		if p.Until > now {
			p.Until = change(p.Until)
		}
	}
	return pieces
}

// refundRules returns variants that break lines 7.7 and 7.8.
func refundRules() []pointVariant {
	refund := func(f func(r model.RefundedBalance, right *big.Int) *big.Int) model.Points {
		return model.Points{Refund: f}
	}
	extend := func(end func(t model.Expiry) int64) model.Points {
		return until(model.Extended, weir.Concurrency, func(t model.Expiry, _ int64) int64 { return end(t) })
	}
	book := until(model.Booked, weir.Budget, func(t model.Expiry, _ int64) int64 {
		_, end := t.Limit.Period(time.UnixMilli(t.From))
		return end.UnixMilli()
	})
	noCeiling := refund(func(r model.RefundedBalance, _ *big.Int) *big.Int { return add(r.Balance, r.Back) })
	noCeiling.Bucket = func(t model.BucketRead, right model.Bucket) model.Bucket {
		if t.Was.Balance != nil && t.Was.Balance.Cmp(capacityOf(t.Limit)) > 0 {
			right.Balance = t.Was.Balance
		}
		return right
	}
	return []pointVariant{
		{"a refund has no ceiling", "R1: balance above capacity", noCeiling},
		{"a refund is lost", "over-reservation blocking traffic",
			refund(func(r model.RefundedBalance, _ *big.Int) *big.Int { return r.Balance })},
		{"a refund stops at zero", "7.7", refund(func(r model.RefundedBalance, right *big.Int) *big.Int {
			if r.Balance.Sign() < 0 {
				return least(right, num(0))
			}
			return right
		})},
		{"usage is booked when it is learned of", "U2: usage", book},
		{"a refund goes to the current period", "7.7", book},
		{"an extend revives slots", "7.8", extend(func(t model.Expiry) int64 {
			return t.From + t.Limit.Timeout.Milliseconds()
		})},
		{"an extend leaves the slots", "7.8", extend(func(t model.Expiry) int64 { return t.Pieces[0].Until })},
		{"an extend adds to the slots' time", "7.8", extend(func(t model.Expiry) int64 {
			until := t.Pieces[0].Until
			if until <= t.From {
				return until
			}
			return until + t.Limit.Timeout.Milliseconds()
		})},
	}
}

// updateVariants returns variants that are wrong in the verbs on a lease.
func updateVariants() []wrappedVariant {
	return []wrappedVariant{
		{"a complete without actuals gives everything back", "aborted streams losing usage", func(w *wrongWorld) {
			w.complete = func(ctx context.Context, id weir.LeaseID, actuals []weir.Costs) (*weir.Receipt, error) {
				if len(actuals) == 0 {
					return w.World.Cancel(ctx, id)
				}
				return w.World.Complete(ctx, id, actuals)
			}
		}},
		{"what was used does not count", "11.1", func(w *wrongWorld) {
			w.complete = func(ctx context.Context, id weir.LeaseID, _ []weir.Costs) (*weir.Receipt, error) {
				return w.World.Complete(ctx, id, nil)
			}
		}},
		{"a complete that failed is said to be done", "a failed complete swallowed",
			completing(weir.Invalid, (*completion).done)},
		{"a complete that failed ends the lease", "7.10", completing(weir.Invalid, func(c *completion) {
			_, _ = c.w.World.Complete(context.Background(), c.id, nil)
		})},
		{"a complete is done in two steps", "7.4", completing(weir.Invalid, func(c *completion) {
			if len(c.actuals) == 2 {
				_, _ = c.w.World.Adjust(context.Background(), c.id, 1<<40, []weir.Costs{c.actuals[0], {}})
			}
		})},
		{"sets that are missing are left out", "7.4", settledBy(false,
			func(_ *wrongWorld, r *weir.Request, totals []weir.Costs) []weir.Costs {
				if missing := len(r.Charges) - len(totals); len(totals) > 1 && missing > 0 {
					return append(slices.Clone(totals), make([]weir.Costs, missing)...)
				}
				return totals
			})},
		{"slots that have timed out cannot be named", "7.9", rejectTimedOutActuals},
		{"a shrink gives everything back for a moment", "7.6", adjustInTwoSteps},
		{"a cancel does nothing", "X1: ", func(w *wrongWorld) {
			w.cancel = func(_ context.Context, id weir.LeaseID) (*weir.Receipt, error) { return w.done(id), nil }
		}},
		{"leases of removed limits cannot be settled", "8.3", refuseCancel},
	}
}

// refuseCancel refuses to cancel leases whose limits have been removed.
func refuseCancel(w *wrongWorld) {
	asked := remembering(w)
	w.cancel = func(ctx context.Context, id weir.LeaseID) (*weir.Receipt, error) {
		if r := asked(id); r != nil {
			e, err := w.World.Explain(ctx, r.Entity, r.Resource)
			for name := range r.Costs {
				if err == nil && !has(e.Limits, name) {
					return nil, refused(weir.UnknownLimit)
				}
			}
		}
		return w.World.Cancel(ctx, id)
	}
}

// adjustInTwoSteps adjusts in two steps: first to nothing, then to the totals.
func adjustInTwoSteps(w *wrongWorld) {
	w.adjust = func(
		ctx context.Context, id weir.LeaseID, seq int64, totals []weir.Costs,
	) (*weir.Receipt, error) {
		if len(totals) == 1 && totals[0]["n"] > 0 && seq < 1<<60 {
			if _, err := w.World.Adjust(ctx, id, 2*seq-1, []weir.Costs{{"n": 0}}); err == nil {
				runtime.Gosched()
			}
		}
		return w.World.Adjust(ctx, id, 2*seq, totals)
	}
}

// rejectTimedOutActuals refuses actuals for leases whose slots have timed out.
func rejectTimedOutActuals(w *wrongWorld) {
	var mu sync.Mutex
	until := map[weir.LeaseID]time.Time{}
	admitting(func(_ *wrongWorld, l *weir.Lease) {
		mu.Lock()
		defer mu.Unlock()
		until[l.ID] = l.HoldsUntil
	})(w)
	w.complete = func(ctx context.Context, id weir.LeaseID, actuals []weir.Costs) (*weir.Receipt, error) {
		mu.Lock()
		end := until[id]
		mu.Unlock()
		if len(actuals) > 0 && !end.IsZero() && !w.Now().Before(end) {
			return nil, refused(weir.Invalid)
		}
		return w.World.Complete(ctx, id, actuals)
	}
}
