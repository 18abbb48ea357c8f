package broken

import (
	"math/big"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/conformance/model"
)

// elapsed is what a bucket gains in a time, as most write it: by the difference.
func elapsed(l *weir.Limit, from, to int64) *big.Int {
	n := new(big.Int).Mul(times(l.RefillAmount, milli), big.NewInt(to-from))
	return n.Div(n, big.NewInt(l.RefillPeriod.Milliseconds()))
}

// bucketRules break lines 2.1, 2.5, 8.2 and 8.4.
func bucketRules() []rule {
	return append([]rule{
		{"a bucket starts empty", "2.5", func(w, _ *model.Rules) {
			w.Fresh = func(*weir.Limit) *big.Int { return new(big.Int) }
		}},
		{
			"the gain is floored at each touch",
			"S1: starvation",
			func(w, _ *model.Rules) { w.Gain = elapsed },
		},
		{"the gain is rounded up at each touch", "2.1", func(w, r *model.Rules) {
			w.Gain = func(l *weir.Limit, from, to int64) *big.Int {
				g := r.Gain(l, from, to)
				if to > from {
					g.Add(g, big.NewInt(1))
				}
				return g
			}
		}},
		{"a bucket is refilled once a period", "2.1", func(w, _ *model.Rules) {
			w.Gain = func(l *weir.Limit, from, to int64) *big.Int {
				p := l.RefillPeriod.Milliseconds()
				return new(big.Int).Mul(times(l.RefillAmount, milli), big.NewInt(to/p-from/p))
			}
		}},
		{"a bucket regains its capacity each period", "2.1", func(w, r *model.Rules) {
			w.Gain = func(l *weir.Limit, from, to int64) *big.Int {
				c := *l
				c.RefillAmount = l.Capacity
				return r.Gain(&c, from, to)
			}
		}},
		{"a bucket in debt regains nothing", "2.1", func(w, r *model.Rules) {
			w.Touch = func(b model.Bucket, l *weir.Limit, now int64) model.Bucket {
				if b.Balance.Sign() < 0 {
					return model.Bucket{Balance: b.Balance, At: now, Limit: *l}
				}
				return r.Touch(b, l, now)
			}
		}},
		{"a limit that has enough is not refilled", "S2: refill dropped", func(w, r *model.Rules) {
			w.Touch = func(b model.Bucket, l *weir.Limit, now int64) model.Bucket {
				if b.Balance.Cmp(big.NewInt(milli)) >= 0 {
					return model.Bucket{Balance: r.Trim(l, b.Balance), At: now, Limit: *l}
				}
				return r.Touch(b, l, now)
			}
		}},
		{"a balance has no ceiling", "2.1", func(w, _ *model.Rules) {
			w.Fill = func(_ *weir.Limit, balance, gained *big.Int) *big.Int {
				return new(big.Int).Add(balance, gained)
			}
		}},
	}, changedBuckets()...)
}

func changedBuckets() []rule {
	same := func(b model.Bucket, l *weir.Limit) bool { return b.Limit.Same(*l) }
	return []rule{
		{"the new rate counts for the past", "8.2", func(w, r *model.Rules) {
			w.Touch = func(b model.Bucket, l *weir.Limit, now int64) model.Bucket {
				b.Limit = *l
				return r.Touch(b, l, now)
			}
		}},
		{"a raised capacity fills the bucket up", "8.2", func(w, r *model.Rules) {
			w.Touch = func(b model.Bucket, l *weir.Limit, now int64) model.Bucket {
				c := r.Touch(b, l, now)
				if more := l.Capacity - b.Limit.Capacity; more > 0 {
					c.Balance = new(big.Int).Add(c.Balance, times(more, milli))
				}
				return c
			}
		}},
		{"a lowered capacity does not trim", "L2: changed limits", func(w, _ *model.Rules) {
			w.Trim = func(_ *weir.Limit, balance *big.Int) *big.Int { return balance }
		}},
		{"a lowered capacity becomes debt", "8.2", func(w, r *model.Rules) {
			w.Touch = func(b model.Bucket, l *weir.Limit, now int64) model.Bucket {
				c := r.Touch(b, l, now)
				if less := b.Limit.Capacity - l.Capacity; less > 0 {
					c.Balance = new(big.Int).Sub(c.Balance, times(less, milli))
				}
				return c
			}
		}},
		{
			"a changed capacity starts the bucket anew",
			"capacity set back and forth",
			func(w, r *model.Rules) {
				w.Touch = func(b model.Bucket, l *weir.Limit, now int64) model.Bucket {
					if !same(b, l) {
						return model.Bucket{Balance: capacityOf(l), At: now, Limit: *l}
					}
					return r.Touch(b, l, now)
				}
			},
		},
		{"a full bucket is never forgotten", "8.4", func(w, _ *model.Rules) {
			w.Forgotten = func(model.Bucket, int64) bool { return false }
		}},
		{"a full bucket is forgotten at once", "8.4", func(w, r *model.Rules) {
			w.Forgotten = func(b model.Bucket, now int64) bool { return r.Forgotten(b, now+60_000) }
		}},
		{"a denial brings a forgotten bucket back", "8.4", func(w, _ *model.Rules) {
			w.Stamps = func(bool, bool) bool { return true }
		}},
		{"an idle bucket is forgotten", "8.4", func(w, _ *model.Rules) {
			w.Forgotten = func(b model.Bucket, now int64) bool { return now-b.At >= 60_000 }
		}},
	}
}
