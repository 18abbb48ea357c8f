package broken

import (
	"errors"
	"math/big"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/conformance/model"
)

// weirCode is an error's code; empty if it has none.
func weirCode(err error) weir.Code {
	if e, ok := errors.AsType[*weir.Error](err); ok {
		return e.Code
	}
	return ""
}

func largest(parts []weir.Part) *big.Int {
	var most int64
	for _, p := range parts {
		most = max(most, p.Units)
	}
	return big.NewInt(most)
}

// judgeRules break lines 3.1, 3.2, 3.6, 3.7 and 3.8.
func judgeRules() []rule {
	return []rule{
		{"judging stops at the first denial", "3.7", func(w, _ *model.Rules) {
			w.JudgeOn = func(denied bool) bool { return !denied }
		}},
		{"shadow limits deny", "3.6", func(w, _ *model.Rules) {
			w.Denies = func(_ *weir.Limit, fits bool) bool { return !fits }
		}},
		{"shadow limits are never satisfiable", "3.6", func(w, r *model.Rules) {
			w.CheckCost = func(t *model.Take) error {
				c := *t
				c.Limit.Shadow = false
				return r.CheckCost(&c)
			}
		}},
		{"shadow limits stop at their capacity", "3.6", func(w, r *model.Rules) {
			w.Room = func(l *weir.Limit, used *big.Int) *big.Int {
				room := r.Room(l, used)
				if l.Shadow && room.Sign() < 0 {
					return new(big.Int)
				}
				return room
			}
		}},
		{
			"only the largest cost on a limit is judged",
			"3.2",
			func(w, _ *model.Rules) { w.Cost = largest },
		},
		{
			"only the largest cost on a limit is taken",
			"3.2",
			func(w, _ *model.Rules) { w.TakenCost = largest },
		},
		{
			"a denied request charges the limits that had room",
			"denied by one limit but charged by another",
			func(w, _ *model.Rules) {
				w.TakesAnyway = func(_ *model.Take, fits bool) bool { return fits }
			},
		},
		{"a denied request charges the limit that denied", "3.1", func(w, _ *model.Rules) {
			w.TakesAnyway = func(_ *model.Take, fits bool) bool { return !fits }
		}},
		{"a full shadow limit refuses what it cannot count", "3.6", func(w, _ *model.Rules) {
			w.SparesUncounted = func(*weir.Limit) bool { return false }
		}},
		{"a full shadow limit holds up settlements", "7.11", func(w, _ *model.Rules) {
			w.SparesUncounted = func(*weir.Limit) bool { return false }
		}},
		{"what cannot be counted is left out of any limit", "7.11", func(w, _ *model.Rules) {
			w.SparesUncounted = func(*weir.Limit) bool { return true }
		}},
		{"an admitted reservation reports what there was", "3.8", func(w, _ *model.Rules) {
			w.Reported = func(before, _ weir.LimitStatus) weir.LimitStatus { return before }
		}},
		{"an admitted reservation reports nothing asked", "3.8", func(w, _ *model.Rules) {
			w.Reported = func(_, after weir.LimitStatus) weir.LimitStatus {
				after.Requested = 0
				return after
			}
		}},
	}
}

// denialRules break section 4.
func denialRules() []rule {
	return append(
		waitRules(),
		rule{"the shortest wait counts", "4.1", func(w, _ *model.Rules) {
			w.RetryAfter = func(limits []weir.LimitStatus) (least time.Duration) {
				for _, s := range limits {
					if s.Exceeded && !s.Shadow && (least == 0 || s.RetryAfter < least) {
						least = s.RetryAfter
					}
				}
				return least
			}
		}},
		rule{"the waits are added", "4.1", func(w, _ *model.Rules) {
			w.RetryAfter = func(limits []weir.LimitStatus) (sum time.Duration) {
				for _, s := range limits {
					if s.Exceeded && !s.Shadow {
						sum += s.RetryAfter
					}
				}
				return sum
			}
		}},
		rule{"a shadow limit's wait counts", "4.1", func(w, r *model.Rules) {
			w.RetryAfter = func(limits []weir.LimitStatus) time.Duration {
				longest := r.RetryAfter(limits)
				for _, s := range limits {
					longest = max(longest, s.RetryAfter)
				}
				return longest
			}
		}},
		rule{
			"a denial is an error like others",
			"errors that look like denials",
			func(w, _ *model.Rules) {
				w.Denial = func(*weir.DeniedError) error { return &weir.Error{Code: weir.Unavailable} }
			},
		},
		rule{"a denial is an error too", "errors that look like denials", func(w, _ *model.Rules) {
			w.Denial = func(d *weir.DeniedError) error {
				return errors.Join(d, &weir.Error{Code: weir.NeverSatisfiable})
			}
		}},
		rule{"a denial names only what denied", "4.1", func(w, _ *model.Rules) {
			w.Denial = func(d *weir.DeniedError) error {
				c := *d
				c.Limits = nil
				for _, s := range d.Limits {
					if s.Exceeded {
						c.Limits = append(c.Limits, s)
					}
				}
				return &c
			}
		}},
	)
}

func waitRules() []rule {
	bucket := func(change int64) func(w, r *model.Rules) {
		return func(w, r *model.Rules) {
			w.BucketWait = func(b model.Bucket, want *big.Int, now int64) *big.Int {
				ms := r.BucketWait(b, want, now)
				if ms == nil || ms.Sign() == 0 {
					return ms
				}
				return new(big.Int).Add(ms, big.NewInt(change))
			}
			w.Forgotten = r.Forgotten
		}
	}
	pieces := func(pick func(ends []model.Piece) int64) func(w, r *model.Rules) {
		return func(w, _ *model.Rules) {
			w.PiecesWait = func(pieces []model.Piece, _ *big.Int, now int64) *big.Int {
				return big.NewInt(pick(pieces) - now)
			}
		}
	}
	return []rule{
		{"a bucket's wait is a millisecond short", "4.2", bucket(-1)},
		{"a bucket's wait is a millisecond long", "4.2", bucket(1)},
		{"a bucket's wait is rounded down", "1.4", bucket(-1)},
		{"a bucket's wait forgets the debt", "4.2", func(w, r *model.Rules) {
			w.BucketWait = func(b model.Bucket, want *big.Int, now int64) *big.Int {
				if b.Balance.Sign() < 0 {
					b.Balance = new(big.Int)
				}
				return r.BucketWait(b, want, now)
			}
			w.Forgotten = r.Forgotten
		}},
		{"a window waits for the first unit", "4.2", pieces(func(pieces []model.Piece) int64 {
			first := pieces[0].Until
			for _, p := range pieces {
				first = min(first, p.Until)
			}
			return first
		})},
		{"a window waits for the last unit", "4.2", pieces(func(pieces []model.Piece) int64 {
			var last int64
			for _, p := range pieces {
				last = max(last, p.Until)
			}
			return last
		})},
		{"a budget waits for a day", "4.2", func(w, _ *model.Rules) {
			w.BudgetWait = func([]model.Piece, *big.Int, int64) *big.Int { return big.NewInt(86_400_000) }
		}},
		{"a long wait wraps", "4.3", func(w, _ *model.Rules) {
			w.Clamp = func(ms *big.Int) time.Duration { return time.Duration(ms.Int64() * 1_000_000) }
		}},
		{"a long wait is a century", "4.3", func(w, r *model.Rules) {
			w.Clamp = func(ms *big.Int) time.Duration { return min(r.Clamp(ms), 100*365*24*time.Hour) }
		}},
	}
}
