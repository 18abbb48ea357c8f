package broken

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/conformance/model"
)

// leaseRules break lines 6.1 to 6.5.
func leaseRules() []rule {
	return append([]rule{
		{"a lease has no end", "6.3", func(w, _ *model.Rules) {
			w.Expired = func(int64, int64) bool { return false }
		}},
		{"a lease ends a millisecond late", "6.3", func(w, _ *model.Rules) {
			w.Expired = func(ends, now int64) bool { return now > ends }
		}},
		{"a lease may be shorter than its slots", "6.3", func(w, r *model.Rules) {
			w.Ends = func(now, lifetime int64, _ []int64) int64 { return r.Ends(now, lifetime, nil) }
		}},
		{"a lease is as long as its slots", "6.3", func(w, _ *model.Rules) {
			w.Ends = func(now, lifetime int64, timeouts []int64) int64 {
				if len(timeouts) > 0 {
					return now + slices.Max(timeouts)
				}
				return now + lifetime
			}
		}},
		{"leases live for an hour, whatever the option", "6.3", func(w, r *model.Rules) {
			w.Ends = func(now, _ int64, timeouts []int64) int64 { return r.Ends(now, 3_600_000, timeouts) }
		}},
		{"a denied request leaves a lease", "6.5", func(w, _ *model.Rules) {
			w.KeepsDenied = func() bool { return true }
		}},
		{"any brought ID is taken", "6.1", func(w, _ *model.Rules) {
			w.CheckID = func(int64, int64, int64) error { return nil }
		}},
		{"an ID may be ahead by any time", "6.1", func(w, r *model.Rules) {
			w.CheckID = func(idMS, horizon, now int64) error { return r.CheckID(min(idMS, now), horizon, now) }
		}},
		{"an ID may not be ahead", "6.1", func(w, r *model.Rules) {
			w.CheckID = func(idMS, horizon, now int64) error {
				if idMS > now {
					return &weir.Error{Code: weir.Invalid, Field: "lease_id"}
				}
				return r.CheckID(idMS, horizon, now)
			}
		}},
	}, append(memoryRules(), voidRules()...)...)
}

// voidRules break line 6.7.
func voidRules() []rule {
	return []rule{
		{"a cancel of an unknown lease is forgotten at once", "6.7", func(w, _ *model.Rules) {
			w.Voids = func(weir.Verb, error) bool { return false }
		}},
		{"every verb on an unknown lease ends its ID", "6.7", func(w, r *model.Rules) {
			w.Voids = func(_ weir.Verb, refused error) bool { return r.Voids(weir.VerbCancel, refused) }
		}},
		{"a cancel of an ID that is refused anyway takes room in the memory", "6.7",
			func(w, _ *model.Rules) {
				w.Voids = func(v weir.Verb, _ error) bool { return v == weir.VerbCancel }
			}},
		{"a voided ID is remembered for as long as the default", "6.7", func(w, r *model.Rules) {
			w.Forgets = func(ended, idMS, _, now int64) bool { return r.Forgets(ended, idMS, 600_000, now) }
		}},
	}
}

func memoryRules() []rule {
	return []rule{
		{"the horizon forgets what was forgotten early", "6.2", func(w, r *model.Rules) {
			w.Horizon = func(now, memory, _, opened int64) int64 { return r.Horizon(now, memory, 0, opened) }
		}},
		{"the horizon forgets the opening", "6.2", func(w, r *model.Rules) {
			w.Horizon = func(now, memory, early, opened int64) int64 {
				if early == opened {
					early = 0
				}
				return r.Horizon(now, memory, early, 0)
			}
		}},
		{"the horizon forgets the lease memory", "6.2", func(w, r *model.Rules) {
			w.Horizon = func(_, _, early, opened int64) int64 { return r.Horizon(0, 0, early, opened) }
		}},
		{"the horizon stays before what was forgotten", "6.2", func(w, _ *model.Rules) {
			w.ForgottenEarly = func(newest, idMS int64) int64 { return max(newest, idMS) }
		}},
		{"ended leases are never forgotten", "6.4", func(w, _ *model.Rules) {
			w.Forgets = func(int64, int64, int64, int64) bool { return false }
		}},
		{"ended leases are forgotten at once", "6.4", func(w, _ *model.Rules) {
			w.Forgets = func(ended, _, _, now int64) bool { return now > ended }
		}},
		{"ended leases are forgotten by the time in their ID", "6.4", func(w, _ *model.Rules) {
			w.Forgets = func(_, idMS, memory, now int64) bool { return now > idMS+memory }
		}},
		{"an ID ahead is forgotten before its time", "6.4", func(w, _ *model.Rules) {
			w.Forgets = func(ended, _, memory, now int64) bool { return now > ended+memory }
		}},
		{"the memory is never full", "6.4", func(w, _ *model.Rules) {
			w.Overfull = func(int, int) bool { return false }
		}},
		{"the memory holds one less", "6.4", func(w, _ *model.Rules) {
			w.Overfull = func(ended, size int) bool { return ended > size-1 }
		}},
		{"the memory ignores the option", "6.4", func(w, _ *model.Rules) {
			w.Forgets = func(ended, idMS, _, now int64) bool { return now > max(ended, idMS)+600_000 }
		}},
	}
}

// tableRules put something else into each cell of the table in section 6.
func tableRules() []rule {
	right := model.Right(model.NewCalendar())
	var rules []rule
	for _, verb := range []weir.Verb{weir.VerbReserve, weir.VerbAdjust, weir.VerbComplete,
		weir.VerbCancel, weir.VerbExtend} {
		for _, state := range []weir.LeaseState{weir.LeaseLive, weir.LeaseCompleted, weir.LeaseCancelled,
			weir.LeaseExpired, weir.LeaseVoided, ""} {
			for _, same := range []bool{true, false} {
				if was := right.React(verb, state, same); was != right.React(verb, state, !same) || same {
					rules = append(rules, cells(verb, state, same, was)...)
				}
			}
		}
	}
	return append(rules,
		rule{"an expired lease is reserved again", "expired lease re-reserved", react(
			weir.VerbReserve, weir.LeaseExpired, model.Do)},
		rule{"a repeated reserve is charged again", "replay of a multi-limit reserve", react(
			weir.VerbReserve, weir.LeaseLive, model.Do)},
		rule{"a cancel after a complete gives back again", "double refunds", react(
			weir.VerbCancel, weir.LeaseCompleted, model.Replay)},
	)
}

// cells are the wrong reactions in place of a right one.
func cells(v weir.Verb, s weir.LeaseState, same bool, was model.Reaction) []rule {
	var rules []rule
	for _, wrong := range []model.Reaction{model.Replay, model.Conflict, model.Ended, model.Unknown} {
		if wrong == was || wrong == model.Replay && s == "" {
			continue
		}
		state := string(s)
		if s == "" {
			state = "unknown"
		}
		name := fmt.Sprintf("%s on %s, same content %v, is %s", v, state, same, wrong)
		rules = append(rules, rule{name, "6 table", func(w, r *model.Rules) {
			w.React = func(verb weir.Verb, of weir.LeaseState, content bool) model.Reaction {
				if verb == v && of == s && (content == same || r.React(v, s, true) == r.React(v, s, false)) {
					return wrong
				}
				return r.React(verb, of, content)
			}
		}})
		break // one wrong answer for each cell
	}
	return rules
}

func react(v weir.Verb, s weir.LeaseState, does model.Reaction) func(w, r *model.Rules) {
	return func(w, r *model.Rules) {
		w.React = func(verb weir.Verb, of weir.LeaseState, same bool) model.Reaction {
			if verb == v && of == s {
				return does
			}
			return r.React(verb, of, same)
		}
	}
}

// contentRules change what counts as the same.
func contentRules() []rule {
	request := func(name string, change func(c *model.Content)) rule {
		return rule{name, "6 content", func(w, r *model.Rules) {
			w.SameRequest = func(a, b *model.Content) bool {
				x, y := *a, *b
				change(&x)
				change(&y)
				return r.SameRequest(&x, &y)
			}
		}}
	}
	return []rule{
		request("the order of charges does not matter", func(c *model.Content) {
			c.Charges = slices.Clone(c.Charges)
			slices.SortFunc(c.Charges, func(a, b weir.Charge) int {
				return strings.Compare(fmt.Sprint(a), fmt.Sprint(b))
			})
		}),
		request("brought limits are no content", func(c *model.Content) { c.Brought = nil }),
		request("costs are no content", func(c *model.Content) {
			c.Charges = slices.Clone(c.Charges)
			for i := range c.Charges {
				c.Charges[i].Costs = nil
			}
		}),
		request("resources are no content", func(c *model.Content) {
			c.Charges = slices.Clone(c.Charges)
			for i := range c.Charges {
				c.Charges[i].Resource = "m"
			}
		}),
		{"every request has one content", "6 content", func(w, _ *model.Rules) {
			w.SameRequest = func(_, _ *model.Content) bool { return true }
		}},
		{"no request repeats another", "6 content", func(w, _ *model.Rules) {
			w.SameRequest = func(_, _ *model.Content) bool { return false }
		}},
		{"every complete has one content", "6 content", func(w, _ *model.Rules) {
			w.SameTotals = func(_, _ []weir.Costs) bool { return true }
		}},
		{"actuals of one effect are the same", "6 content", func(w, r *model.Rules) {
			w.SameTotals = func(a, b []weir.Costs) bool {
				return r.SameTotals(a[:min(len(a), 1)], b[:min(len(b), 1)])
			}
		}},
		{"negative totals are taken", "7.4", func(w, _ *model.Rules) {
			w.CheckTotals = func([]weir.Costs) error { return nil }
		}},
		{"a sequence number may be anything", "7.1", func(w, _ *model.Rules) {
			w.CheckSeq = func(int64) error { return nil }
		}},
		{"sequence numbers begin at 2", "7.1", func(w, r *model.Rules) {
			w.CheckSeq = func(seq int64) error { return r.CheckSeq(max(seq, math.MinInt64+1) - 1) }
		}},
	}
}
