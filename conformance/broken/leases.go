package broken

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/conformance/model"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/limiter"
)

// react replaces the reaction in some cells of the table of section 6.
func react(does model.Reaction, where func(c model.TableCell, right model.Reaction) bool) model.Points {
	return model.Points{React: func(c model.TableCell, right model.Reaction) model.Reaction {
		if where(c, right) {
			return does
		}
		return right
	}}
}

// leaseRules returns variants that break lines 6.3 and 6.4.
func leaseRules() []pointVariant {
	lease := func(cause model.ExpiryCause, end func(t model.Expiry) int64) model.Points {
		return until(cause, "", func(t model.Expiry, _ int64) int64 { return end(t) })
	}
	return []pointVariant{
		{"a lease may be shorter than its slots", "6.3",
			lease(model.Leased, func(t model.Expiry) int64 { return t.From + t.Length })},
		{"a lease is as long as its slots", "6.3", lease(model.Leased, func(t model.Expiry) int64 {
			if t.Timeout > 0 {
				return t.From + t.Timeout
			}
			return t.From + t.Length
		})},
		{"ended leases are never forgotten", "6.4",
			lease(model.Remembered, func(model.Expiry) int64 { return math.MaxInt64 })},
		{"ended leases are forgotten at once", "6.4",
			lease(model.Remembered, func(t model.Expiry) int64 { return t.From })},
		{"ended leases are forgotten by the time in their ID", "6.4",
			lease(model.Remembered, func(t model.Expiry) int64 { return t.IDTime + t.Length })},
		{"an ID ahead is forgotten before its time", "6.4",
			lease(model.Remembered, func(t model.Expiry) int64 { return t.From + t.Length })},
	}
}

// unknownRules returns variants that break lines 6.1, 6.2 and 6.7: IDs that are not known.
func unknownRules() []pointVariant {
	horizon := func(change func(h *model.Horizon)) model.Points {
		return model.Points{Horizon: func(h model.Horizon, _ int64) int64 {
			change(&h)
			return h.Oldest()
		}}
	}
	return []pointVariant{
		{"any brought ID is taken", "6.1", skipCheck("6.1", "")},
		{"an ID may be ahead by any time", "6.1", skipCheck("6.1", "is too far ahead")},
		{"the horizon forgets what was forgotten early", "6.2", horizon(func(h *model.Horizon) { h.Early = 0 })},
		{"the horizon forgets the opening", "6.2", horizon(func(h *model.Horizon) {
			if h.Early == h.Opened {
				h.Early = 0
			}
			h.Opened = 0
		})},
		{"the horizon forgets the lease memory", "6.2", horizon(func(h *model.Horizon) { h.Now = 0 })},
		{"the horizon stays before what was forgotten", "6.2", horizon(func(h *model.Horizon) { h.Early-- })},

		{"a cancel of an unknown lease is forgotten at once", "6.7", react(model.Unknown,
			func(_ model.TableCell, right model.Reaction) bool { return right == model.Void })},
		{"every verb on an unknown lease ends its ID", "6.7", react(model.Void,
			func(c model.TableCell, right model.Reaction) bool {
				return c.State == "" && right == model.Unknown && !c.Refused
			})},
		{"a cancel of an ID that is refused anyway takes room in the memory", "6.7", react(model.Void,
			func(c model.TableCell, _ model.Reaction) bool { return c.State == "" && c.Verb == weir.VerbCancel })},
	}
}

// sequenceRules returns variants that break line 7.1.
func sequenceRules() []pointVariant {
	// adjust replaces the rule of which adjusts of a live lease are applied.
	adjust := func(applies func(seq, last int64) bool) model.Points {
		return model.Points{React: func(c model.TableCell, right model.Reaction) model.Reaction {
			switch {
			case c.Verb != weir.VerbAdjust || c.State != driver.LeaseLive:
				return right
			case applies(c.Seq, c.Last):
				return model.Do
			default:
				return model.Replay
			}
		}}
	}
	return []pointVariant{
		{"every adjust is applied", "7.1", adjust(func(int64, int64) bool { return true })},
		{"an adjust is applied again", "7.1", adjust(func(seq, last int64) bool { return seq >= last })},
		{"a gap is not applied", "7.1", adjust(func(seq, last int64) bool { return seq == last+1 })},
		{"sequence numbers are counted modulo 2^44", "7.1", adjust(func(seq, last int64) bool {
			return seq > last && (last == 0 || (seq-last)%(1<<44) != 0)
		})},
		{"no adjust is applied", "7.1", adjust(func(int64, int64) bool { return false })},
		{"a sequence number may be anything", "7.1", skipCheck("7.1", "")},
	}
}

// leaseFronts returns variants that break lines 6.1, 6.3, 6.4, 6.7 and 11.1.
func leaseFronts() []wrappedVariant {
	extend := func(expires time.Duration) func(w *wrongWorld) {
		return func(w *wrongWorld) {
			w.extend = func(_ context.Context, id weir.LeaseID) (*weir.Receipt, error) {
				r := w.done(id)
				if expires > 0 {
					r.Expires = r.At.Add(expires)
				}
				return r, nil
			}
		}
	}
	memory := func(size func(was int) int) func(w *wrongWorld) {
		return set(func(o *limiter.Options) { o.LeaseMemorySize = size(o.LeaseMemorySize) })
	}
	return []wrappedVariant{
		{"a lease has no end", "6.3", overdue(100 * 365 * 24 * time.Hour)},
		{"a lease ends a millisecond late", "6.3", overdue(time.Millisecond)},
		{"leases live for an hour, whatever the option", "6.3",
			set(func(o *limiter.Options) { o.LeaseLifetime = 0 })},
		{"the memory ignores the option", "6.4", set(func(o *limiter.Options) { o.LeaseMemory = 0 })},
		{"a voided ID is remembered for as long as the default", "6.7",
			set(func(o *limiter.Options) { o.LeaseMemory = 0 })},
		{"the memory is never full", "6.4", memory(func(int) int { return math.MaxInt })},
		{"the memory holds one less", "6.4", memory(func(was int) int { return max(was-1, 1) })},
		{"an ID may not be ahead", "6.1", asking(func(w *wrongWorld, r *weir.Request) error {
			if !r.LeaseID.IsZero() && r.LeaseID.Time().After(w.Now()) {
				return refused(weir.Invalid)
			}
			return nil
		})},
		{"a lease says that it ends with its slots", "6.3", admitting(func(_ *wrongWorld, l *weir.Lease) {
			if !l.HoldsUntil.IsZero() {
				l.Expires = l.HoldsUntil
			}
		})},
		{"an extend does nothing", "11.1", extend(10 * time.Second)},
		{"an extend does not renew the lease", "6.3", extend(0)},
	}
}

// sequenceFronts returns variants that break line 7.1.
func sequenceFronts() []wrappedVariant {
	return []wrappedVariant{
		{"sequence numbers begin at 2", "7.1", func(w *wrongWorld) {
			w.adjust = func(ctx context.Context, id weir.LeaseID, seq int64, totals []weir.Costs) (*weir.Receipt, error) {
				if seq < 2 {
					return nil, refused(weir.Invalid)
				}
				return w.World.Adjust(ctx, id, seq, totals)
			}
		}},
		{"a refused call uses its number up", "7.1", func(w *wrongWorld) {
			w.adjust = func(ctx context.Context, id weir.LeaseID, seq int64, totals []weir.Costs) (*weir.Receipt, error) {
				r, err := w.World.Adjust(ctx, id, seq, totals)
				if errors.Is(err, weir.Invalid) {
					_, _ = w.World.Adjust(ctx, id, seq, nil)
				}
				return r, err
			}
		}},
		{"a replay says when it was repeated", "7.1", func(w *wrongWorld) {
			w.adjust = func(ctx context.Context, id weir.LeaseID, seq int64, totals []weir.Costs) (*weir.Receipt, error) {
				r, err := w.World.Adjust(ctx, id, seq, totals)
				if err == nil {
					r.At = w.Now()
				}
				return r, err
			}
		}},
	}
}

// overdue ends leases later than it says.
func overdue(by time.Duration) func(w *wrongWorld) {
	return func(w *wrongWorld) {
		w.points = until(model.Leased, "", later(by.Milliseconds()))
		admitting(func(_ *wrongWorld, l *weir.Lease) { l.Expires = l.Expires.Add(-by) })(w)
		said := func(r *weir.Receipt, err error) (*weir.Receipt, error) {
			if err == nil && !r.Expires.IsZero() {
				r.Expires = r.Expires.Add(-by)
			}
			return r, err
		}
		w.extend = func(ctx context.Context, id weir.LeaseID) (*weir.Receipt, error) {
			return said(w.World.Extend(ctx, id))
		}
		w.adjust = func(
			ctx context.Context, id weir.LeaseID, seq int64, totals []weir.Costs,
		) (*weir.Receipt, error) {
			return said(w.World.Adjust(ctx, id, seq, totals))
		}
	}
}

// tableRules returns a variant for each cell of the table of section 6, with another reaction.
func tableRules() []pointVariant {
	var rules []pointVariant
	for _, verb := range []weir.Verb{weir.VerbReserve, weir.VerbAdjust, weir.VerbComplete,
		weir.VerbCancel, weir.VerbExtend} {
		for _, state := range []driver.LeaseState{driver.LeaseLive, driver.LeaseCompleted, driver.LeaseCancelled,
			driver.LeaseExpired, driver.LeaseVoided, ""} {
			same := model.React(model.TableCell{Verb: verb, State: state, Same: true, Seq: 1})
			other := model.React(model.TableCell{Verb: verb, State: state, Seq: 1})
			rules = append(rules, cell(verb, state, true, same, same != other))
			if same != other {
				rules = append(rules, cell(verb, state, false, other, true))
			}
		}
	}
	instead := func(v weir.Verb, s driver.LeaseState, does model.Reaction) model.Points {
		return react(does, func(c model.TableCell, _ model.Reaction) bool { return c.Verb == v && c.State == s })
	}
	return append(rules,
		pointVariant{"an expired lease is reserved again", "expired lease re-reserved",
			instead(weir.VerbReserve, driver.LeaseExpired, model.Do)},
		pointVariant{"a repeated reserve is charged again", "replay of a multi-limit reserve",
			instead(weir.VerbReserve, driver.LeaseLive, model.Do)},
		pointVariant{"a cancel after a complete gives back again", "double refunds",
			instead(weir.VerbCancel, driver.LeaseCompleted, model.Replay)},
	)
}

// cell replaces the right reaction of a cell with a replay, or with a conflict if a replay is
// right. If the content does not count in the cell, the variant applies to any content.
func cell(v weir.Verb, s driver.LeaseState, same bool, right model.Reaction, counts bool) pointVariant {
	wrong := model.Replay
	if right == model.Replay || s == "" {
		wrong = model.Conflict
	}
	state := string(s)
	if s == "" {
		state = "unknown"
	}
	name := fmt.Sprintf("%s on %s, same content %v, is %s", v, state, same, wrong)
	return pointVariant{name, "6 table", react(wrong, func(c model.TableCell, _ model.Reaction) bool {
		return c.Verb == v && c.State == s && (c.Same == same || !counts)
	})}
}

// comparing changes the content by which calls are compared.
func comparing(change func(c *model.Content)) model.Points {
	return model.Points{Same: func(t model.RepeatedCall, _ bool) bool {
		was, is := *t.Was, *t.Is
		was.Charges, is.Charges = slices.Clone(was.Charges), slices.Clone(is.Charges)
		change(&was)
		change(&is)
		return was.Same(&is)
	}}
}

// contentRules returns variants that compare the wrong content, in requests and in completes.
func contentRules() []pointVariant {
	eachCharge := func(change func(c *weir.Charge)) model.Points {
		return comparing(func(c *model.Content) {
			for i := range c.Charges {
				change(&c.Charges[i])
			}
		})
	}
	whatever := func(request, same bool) model.Points {
		return model.Points{Same: func(t model.RepeatedCall, right bool) bool {
			if request == (len(t.Is.Charges) > 0) {
				return same
			}
			return right
		}}
	}
	return []pointVariant{
		{"the order of charges does not matter", "6 content", comparing(func(c *model.Content) {
			slices.SortFunc(c.Charges, func(a, b weir.Charge) int {
				return strings.Compare(fmt.Sprint(a), fmt.Sprint(b))
			})
		})},
		{"brought limits are no content", "6 content", comparing(func(c *model.Content) { c.Brought = nil })},
		{"costs are no content", "6 content", eachCharge(func(c *weir.Charge) { c.Costs = nil })},
		{"resources are no content", "6 content", eachCharge(func(c *weir.Charge) { c.Resource = "m" })},
		{"every request has one content", "6 content", whatever(true, true)},
		{"no request repeats another", "6 content", whatever(true, false)},
		{"every complete has one content", "6 content", whatever(false, true)},
		{"actuals of one effect are the same", "6 content", comparing(func(c *model.Content) {
			c.Totals = c.Totals[:min(len(c.Totals), 1)]
		})},
	}
}
