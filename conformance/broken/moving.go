package broken

import (
	"fmt"
	"math/big"
	"slices"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/conformance/model"
)

// growthRules break lines 7.5 and 7.6.
func growthRules() []rule {
	return append([]rule{
		{"an overrun is forgiven", "overrun not counted", func(w, _ *model.Rules) {
			w.Grown = func(*weir.Limit, *big.Int) *big.Int { return new(big.Int) }
		}},
		{"an overrun is forgiven by buckets", "overrun not counted", func(w, _ *model.Rules) {
			w.Grown = func(l *weir.Limit, more *big.Int) *big.Int {
				if l.Kind == weir.Bucket {
					return new(big.Int)
				}
				return more
			}
		}},
		{"an overrun counts up to the capacity", "7.5", func(w, _ *model.Rules) {
			w.Grown = func(l *weir.Limit, more *big.Int) *big.Int {
				if most := big.NewInt(l.Capacity); more.Cmp(most) > 0 {
					return most
				}
				return more
			}
		}},
		{"units learned of late are forgiven", "7.5", func(w, _ *model.Rules) {
			w.GrownUntil = func(_ *weir.Limit, pieces []*model.Piece, _ int64) int64 { return pieces[0].Until }
		}},
		{"grown units are occupied from the adjust", "7.5", func(w, r *model.Rules) {
			w.GrownUntil = func(l *weir.Limit, _ []*model.Piece, now int64) int64 { return r.WindowUntil(l, now) }
		}},
		{"a bucket in debt gains nothing", "7.5", func(w, _ *model.Rules) {
			w.Fill = func(l *weir.Limit, balance, gained *big.Int) *big.Int {
				if balance.Sign() < 0 {
					return balance
				}
				if sum := new(big.Int).Add(balance, gained); sum.Cmp(capacityOf(l)) < 0 {
					return sum
				}
				return capacityOf(l)
			}
		}},
		{"a growth renews the whole window", "7.5", func(w, r *model.Rules) {
			w.GrownUntil = func(l *weir.Limit, pieces []*model.Piece, now int64) int64 {
				until := r.WindowUntil(l, now)
				for _, p := range pieces {
					if !r.Returned(p, now) {
						p.Until = until
					}
				}
				return until
			}
		}},
	}, shrinkRules()...)
}

func shrinkRules() []rule {
	return []rule{
		{"a shrink takes what was added first", "7.6", func(w, _ *model.Rules) {
			w.Shrink = func(pieces []*model.Piece, less, _ int64) {
				for _, p := range pieces {
					n := min(p.Units, less)
					p.Units -= n
					less -= n
				}
			}
		}},
		{"what stays begins anew", "7.6", func(w, r *model.Rules) {
			w.Shrink = func(pieces []*model.Piece, less, now int64) {
				r.Shrink(pieces, less, now)
				for _, p := range pieces {
					if !r.Returned(p, now) {
						p.Until += 10_000
					}
				}
			}
		}},
		{"what stays ends at once", "7.6", func(w, r *model.Rules) {
			w.Shrink = func(pieces []*model.Piece, _, now int64) {
				for _, p := range pieces {
					if !r.Returned(p, now) {
						p.Until = now
					}
				}
			}
		}},
		{"what has returned is not part of a shrink", "7.6", func(w, r *model.Rules) {
			w.Shrink = func(pieces []*model.Piece, less, now int64) {
				var held, gone []*model.Piece
				for _, p := range pieces {
					if r.Returned(p, now) {
						gone = append(gone, p)
					} else {
						held = append(held, p)
					}
				}
				r.Shrink(append(held, gone...), less, now) // the ones that have returned first
			}
		}},
		{"a shrink frees nothing", "7.6", func(w, _ *model.Rules) {
			w.Shrink = func([]*model.Piece, int64, int64) {}
		}},
	}
}

// refundRules break lines 7.7 and 7.8.
func refundRules() []rule {
	return []rule{
		{"a refund has no ceiling", "R1: balance above capacity", func(w, r *model.Rules) {
			w.Refund = func(_ *weir.Limit, balance, back *big.Int) *big.Int {
				return new(big.Int).Add(balance, back)
			}
			w.Touch = func(b model.Bucket, l *weir.Limit, now int64) model.Bucket {
				if b.Balance.Cmp(capacityOf(l)) > 0 {
					return model.Bucket{Balance: b.Balance, At: now, Limit: *l}
				}
				return r.Touch(b, l, now)
			}
		}},
		{"a refund is lost", "over-reservation blocking traffic", func(w, _ *model.Rules) {
			w.Refund = func(_ *weir.Limit, balance, _ *big.Int) *big.Int { return balance }
		}},
		{"a refund stops at zero", "7.7", func(w, r *model.Rules) {
			w.Refund = func(l *weir.Limit, balance, back *big.Int) *big.Int {
				if balance.Sign() < 0 {
					c := *l
					c.Capacity = 0
					return r.Refund(&c, balance, back)
				}
				return r.Refund(l, balance, back)
			}
		}},
		{"usage is booked when it is learned of", "U2: usage", func(w, r *model.Rules) {
			w.Book = func(l *weir.Limit, _ *model.Piece, now int64) int64 {
				_, end := r.Period(l, now)
				return end
			}
		}},
		{"a refund goes where time has got to", "7.7", func(w, r *model.Rules) {
			w.Book = func(l *weir.Limit, _ *model.Piece, now int64) int64 {
				_, end := r.Period(l, now)
				return end
			}
		}},
		{"an extend revives slots", "7.8", func(w, r *model.Rules) {
			w.Extended = func(_ *model.Piece, l *weir.Limit, now int64) int64 { return r.HoldUntil(l, now) }
		}},
		{"an extend leaves the slots", "7.8", func(w, _ *model.Rules) {
			w.Extended = func(p *model.Piece, _ *weir.Limit, _ int64) int64 { return p.Until }
		}},
		{"an extend adds to the slots' time", "7.8", func(w, r *model.Rules) {
			w.Extended = func(p *model.Piece, l *weir.Limit, now int64) int64 {
				if r.Returned(p, now) {
					return p.Until
				}
				return r.HoldUntil(l, p.Until)
			}
		}},
	}
}

// changeRules break lines 8.1, 8.3, 8.5 and 8.6.
func changeRules() []rule {
	return append([]rule{
		{"a change does not take effect", "O2: default changes", func(w, _ *model.Rules) {
			w.Configured = func(was, is *weir.Definitions) *weir.Definitions {
				if was != nil {
					return was
				}
				return is
			}
		}},
		{"a removed limit stays", "E1: leftovers", func(w, _ *model.Rules) {
			w.Configured = func(was, is *weir.Definitions) *weir.Definitions {
				if was == nil {
					return is
				}
				c := *is
				c.System = leftover(was.System, is.System)
				return &c
			}
		}},
		{"removed entities stay", "E1: leftovers", func(w, _ *model.Rules) {
			w.Configured = func(was, is *weir.Definitions) *weir.Definitions {
				if was == nil || len(is.Entities) > 0 {
					return is
				}
				c := *is
				c.Entities = was.Entities
				return &c
			}
		}},
		{"the last configuration stays", "P1: leftovers", func(w, _ *model.Rules) {
			w.Configured = func(was, is *weir.Definitions) *weir.Definitions {
				if was != nil && len(is.System)+len(is.Resources)+len(is.Entities) == 0 {
					return was
				}
				return is
			}
		}},
	}, keptRules()...)
}

// keptRules break what a change keeps.
func keptRules() []rule {
	return []rule{
		{"an added limit starts empty", "L1: changed limits", func(w, _ *model.Rules) {
			w.Fresh = func(l *weir.Limit) *big.Int {
				if l.Name == "b" {
					return new(big.Int)
				}
				return capacityOf(l)
			}
		}},
		{"a changed calendar forgets the old period", "8.5", func(w, r *model.Rules) {
			w.KeyOf = func(s weir.Subject, l *weir.Limit) model.Key {
				k := r.KeyOf(s, l)
				k.Name += l.Every
				return k
			}
		}},
		{"an old period is forgotten after 64 others", "8.5", func(w, r *model.Rules) {
			seen := make(map[*model.Piece]int64)
			w.Returned = func(p *model.Piece, now int64) bool {
				if _, known := seen[p]; !known {
					seen[p] = now
				}
				return r.Returned(p, now) || now-seen[p] > (64*time.Hour).Milliseconds()
			}
		}},
		{"a changed kind keeps its use", "8.5", func(w, r *model.Rules) {
			w.KeyOf = func(s weir.Subject, l *weir.Limit) model.Key {
				k := r.KeyOf(s, l)
				if k.Kind != weir.Bucket {
					k.Kind = weir.Window
				}
				return k
			}
		}},
		{"a settlement works under the old definition", "8.6", func(w, _ *model.Rules) {
			w.SettledUnder = func(own, _ *weir.Limit) *weir.Limit { return own }
		}},
		{"without a definition nothing is refunded", "8.6", func(w, _ *model.Rules) {
			w.SettledUnder = func(own, inForce *weir.Limit) *weir.Limit {
				if inForce != nil {
					return inForce
				}
				c := *own
				c.Capacity = 1
				return &c
			}
		}},
		{"a change takes effect with the one after it", "8.1", late},
		{"a changed limit begins anew", "8.2", func(w, r *model.Rules) {
			w.KeyOf = func(s weir.Subject, l *weir.Limit) model.Key {
				k := r.KeyOf(s, l)
				k.Name = fmt.Sprintf("%s %d %v %v", k.Name, l.Capacity, l.Window, l.Timeout)
				return k
			}
		}},
		{"a removed limit is forgotten", "8.3", forgotten},
	}
}

// late keeps each change back until the next.
func late(w, _ *model.Rules) {
	var next *weir.Definitions
	w.Configured = func(was, is *weir.Definitions) *weir.Definitions {
		if was == nil {
			return is
		}
		if next == nil {
			next = was
		}
		now := next
		next = is
		return now
	}
}

// forgotten lets whatever is configured anew begin anew.
func forgotten(w, r *model.Rules) {
	generation, empty := 0, true
	w.Configured = func(was, is *weir.Definitions) *weir.Definitions {
		if empty && len(is.System) > 0 {
			generation++
		}
		empty = len(is.System) == 0
		return r.Configured(was, is)
	}
	w.KeyOf = func(s weir.Subject, l *weir.Limit) model.Key {
		k := r.KeyOf(s, l)
		k.Name = fmt.Sprint(k.Name, " ", generation)
		return k
	}
}

func leftover(was, is []weir.Limit) []weir.Limit {
	out := slices.Clone(is)
	for _, l := range was {
		if !slices.ContainsFunc(is, func(o weir.Limit) bool { return o.Name == l.Name }) {
			out = append(out, l)
		}
	}
	return out
}
