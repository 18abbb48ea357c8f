package conformance

import (
	"maps"
	"math"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
)

// drawUpdate draws an update of a lease in one of the states, which may be unknown.
func drawUpdate(states ...driver.LeaseState) *rapid.Generator[action] {
	totals := drawTotals()
	return rapid.Custom(func(t *rapid.T) action {
		verb := sample(t, "verb", opComplete, opExtend, opAdjust, opCancel, opAdjust)
		state := sample(t, "state", states...)
		which, more := rapid.Uint8().Draw(t, "lease"), rapid.Bool().Draw(t, "an adjusted one")
		skipped, totals := between(t, "skipped numbers", 0, 2), totals.Draw(t, "totals")
		return func(m *machine) {
			e := m.get(state, which)
			if e == nil {
				return
			}
			if state == driver.LeaseLive && verb == opAdjust && more {
				e = m.adjusted(e)
			}
			o := Op{Verb: verb, ID: e.reserve.ID}
			if verb == opAdjust {
				o.Seq = e.adjust.Seq + 1 + skipped
			}
			if verb == opAdjust || verb == opComplete {
				o.Totals = totals.of(e)
			}
			m.do(o)
		}
	})
}

// adjusted returns a live lease that was adjusted, so that its units were taken at several
// instants, or e if there is none.
func (m *machine) adjusted(e *trackedLease) *trackedLease {
	if o := m.live(func(o *trackedLease) bool { return o.adjust.Seq > 0 }); e.adjust.Seq == 0 && o != nil {
		return o
	}
	return e
}

// drawRepeat draws a repeat of a lease's last adjust or of its complete, or an adjust with an older
// sequence number.
func drawRepeat() *rapid.Generator[action] {
	return rapid.Custom(func(t *rapid.T) action {
		which, back := rapid.Uint8().Draw(t, "lease"), oneIn(t, "a complete", 4)
		older, other := rapid.Uint8().Draw(t, "older"), oneIn(t, "other totals", 3)
		return func(m *machine) {
			if back {
				if e := m.get(driver.LeaseCompleted, which); e != nil {
					m.do(e.end)
				}
				return
			}
			e := m.get(driver.LeaseLive, which)
			if e == nil {
				return
			}
			e = m.adjusted(e)
			o := e.adjust
			if o.Seq == 0 {
				o = Op{Verb: opAdjust, ID: e.reserve.ID, Seq: 2}
			} else {
				o.Seq -= int64(older) % o.Seq
			}
			if other {
				o.Totals = []weir.Costs{{"ghost": 1}}
			}
			m.do(o)
		}
	})
}

// growAndShrink has a lease take units at several instants and give some back, and watches them
// return. Half of the time the lease's first units of windows have returned before. Only then do
// the answers show which units are given back, because units that are taken earlier return with the
// first ones.
func growAndShrink() *rapid.Generator[action] {
	return rapid.Custom(func(t *rapid.T) action {
		which, number := rapid.Uint8().Draw(t, "lease"), rapid.Uint8().Draw(t, "number")
		step := rapid.Custom(func(t *rapid.T) [2]int64 {
			return [2]int64{between(t, "factor", 0, 3), between(t, "ms", 0, 5000)}
		})
		steps := rapid.SliceOfN(step, 0, 4).Draw(t, "steps")
		looks, late := between(t, "looks", 0, 2), rapid.Bool().Draw(t, "late")
		return func(m *machine) {
			var e *trackedLease
			if late {
				e = m.returned()
			}
			returned := e != nil
			if !returned {
				e = m.get(driver.LeaseLive, which)
			}
			if e == nil {
				return
			}
			c := e.reserve.Charges[int(number)%len(e.reserve.Charges)]
			if returned {
				m.resize(e, 2+int64(which%2), 0)
				m.resize(e, 1, 1)
				m.do(Op{Verb: opStatus, Entity: c.Entity, Resource: c.Resource})
			}
			for i, step := range steps {
				m.resize(e, step[0], int64(i%2))
				if step[1] > 0 {
					m.do(Op{Verb: opAdvance, By: time.Duration(step[1]) * time.Millisecond})
				}
			}
			for i := range int(looks) {
				if ends := m.model.Returns(c.Entity, c.Resource); len(ends) > 0 {
					m.advanceTo(ends[(int(number)+i)%min(4, len(ends))], 0)
				}
				m.do(Op{Verb: opStatus, Entity: c.Entity, Resource: c.Resource})
			}
		}
	})
}

// resize adjusts a lease to factor times the units that it reserved, plus the units in more.
func (m *machine) resize(e *trackedLease, factor, more int64) {
	o := Op{Verb: opAdjust, ID: e.reserve.ID, Seq: e.adjust.Seq + 1}
	for _, c := range e.reserve.Charges {
		set := make(weir.Costs)
		for name, n := range c.Costs {
			if n < maxBucket/10 && !e.slots(name) {
				set[name] = n*factor + more
			}
		}
		o.Totals = append(o.Totals, set)
	}
	m.do(o)
}

// returned advances to when the units that a live lease took of windows have returned, and returns
// the lease, or nil if there is none.
func (m *machine) returned() *trackedLease {
	e := m.live(func(e *trackedLease) bool {
		end := m.model.WindowsEnd(e.reserve.ID)
		return !end.IsZero() && end.Before(e.expires)
	})
	if e != nil {
		m.advanceTo(m.model.WindowsEnd(e.reserve.ID), 0)
	}
	return e
}

// totalChoices chooses the totals of a lease: a list of words and numbers, which starts over if a
// lease has more costs.
type totalChoices struct {
	each []totalChoice
	// none gives no totals at all, joint one set for all charges, and unkeyed a set for each charge
	// of a keyed lease.
	none, joint, unkeyed bool
}

type totalChoice struct {
	how   string
	units uint64
}

func drawTotals() *rapid.Generator[totalChoices] {
	each := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) totalChoice {
		return totalChoice{
			sample(t, "how", "up to all", "a few more", "up to all", "all", "nothing", "twice", "unnamed",
				"unnamed"),
			rapid.Uint64().Draw(t, "units"),
		}
	}), 1, 4)
	return rapid.Custom(func(t *rapid.T) totalChoices {
		return totalChoices{each.Draw(t, "each"), oneIn(t, "none", 8), oneIn(t, "joint", 3), oneIn(t, "unkeyed", 8)}
	})
}

// of returns totals for a lease: one set, one for each charge, or none.
func (u *totalChoices) of(e *trackedLease) []weir.Costs {
	if u.none {
		return nil
	}
	var sets []weir.Costs
	i := 0
	for _, c := range e.reserve.Charges {
		set := make(weir.Costs)
		for _, name := range slices.Sorted(maps.Keys(c.Costs)) {
			one := u.each[i%len(u.each)]
			if i++; one.how != "unnamed" {
				set[name] = one.of(c.Costs[name], e.slots(name))
			}
		}
		sets = append(sets, set)
	}
	if e.reserve.Keyed && !u.unkeyed {
		return []weir.Costs{fullNames(e.reserve.Charges, sets)}
	}
	if len(sets) > 1 && u.joint && disjoint(e.reserve.Charges) {
		for _, set := range sets[1:] {
			maps.Copy(sets[0], set)
		}
		return sets[:1]
	}
	return sets
}

// of returns a total for units reserved of a limit. Slots cannot grow.
func (o *totalChoice) of(n int64, slots bool) int64 {
	upTo := int64(o.units % uint64(n+1))
	switch {
	case o.how == "nothing":
		return 0
	case o.how == "all":
		return n
	case o.how == "twice" && !slots:
		return min(n, maxBucket/10)*2 + 1
	case o.how == "a few more" && !slots:
		return min(n, maxBucket/10) + 1 + int64(o.units%5)
	}
	return upTo
}

// fullNames converts totals for each charge to one set of full names.
func fullNames(charges []weir.Charge, totals []weir.Costs) weir.Costs {
	set := make(weir.Costs)
	for i, c := range charges {
		for name, n := range totals[i] {
			set[weir.Subject{Entity: c.Entity, Resource: c.Resource}.FullName(name)] = n
		}
	}
	return set
}

// disjoint reports whether no two charges name the same limit.
func disjoint(charges []weir.Charge) bool {
	seen := make(map[string]bool)
	for _, c := range charges {
		for name := range c.Costs {
			if seen[name] {
				return false
			}
			seen[name] = true
		}
	}
	return true
}

// twice returns a live lease that names a limit more than once. It reserves one if there is none.
func (m *machine) twice() *trackedLease {
	is := func(e *trackedLease) bool { return !e.reserve.Keyed && !disjoint(e.reserve.Charges) }
	if e := m.live(is); e != nil {
		return e
	}
	o := m.simple()
	o.Charges = append(o.Charges, o.Charges[0])
	m.do(o)
	return m.live(is)
}

// slots reports whether a name is that of a concurrency limit, whose use cannot grow.
func (e *trackedLease) slots(name string) bool {
	return slices.ContainsFunc(e.limits, func(l weir.LimitStatus) bool {
		return l.Limit == name && l.Kind == weir.Concurrency
	})
}

// drawWrongUpdate draws an update that does not fit its lease, or is malformed.
func drawWrongUpdate(charge *rapid.Generator[chargeChoice]) *rapid.Generator[action] {
	return rapid.Custom(func(t *rapid.T) action {
		mistake := between(t, "mistake", 0, 15)
		completes := rapid.Bool().Draw(t, "completes")
		which, bad := rapid.Uint8().Draw(t, "lease"), sample(t, "name", badNames()...)
		third, other := between(t, "third", 0, 2), charge.Draw(t, "other")
		return func(m *machine) {
			state := driver.LeaseLive
			if third == 0 && slices.Contains([]int64{0, 1, 4, 14}, mistake) { // malformed, of any lease
				state = driver.LeaseCompleted
			}
			e := m.get(state, which)
			if e == nil {
				return
			}
			o := Op{Verb: opAdjust, ID: e.reserve.ID, Seq: e.adjust.Seq + 1}
			if completes {
				o.Verb = opComplete
			}
			switch mistake {
			case 0:
				o.Totals = []weir.Costs{{bad: 1}}
			case 1, 14:
				o.Totals = []weir.Costs{{"rpm": -1}}
			case 4:
				o.Verb, o.Seq = opAdjust, -third%2
			case 5: // of another charge, or of a lease that is not keyed
				o.Totals = []weir.Costs{fullNames([]weir.Charge{other(m, 1)}, []weir.Costs{{"rpm": 1}})}
			case 6, 7, 12: // of one charge of several
				if e = m.twice(); e == nil {
					return
				}
				o.ID, o.Seq = e.reserve.ID, e.adjust.Seq+1
				o.Totals = []weir.Costs{maps.Clone(e.reserve.Charges[0].Costs)}
			case 2, 8, 10:
				o.Totals = []weir.Costs{{"par": 100}}
			case 9, 11:
				o.Totals = make([]weir.Costs, len(e.reserve.Charges)+1+int(third)%2)
			case 13:
				o.Totals = []weir.Costs{{"ghost": 1}}
			default:
				o.Totals = []weir.Costs{{}}
				for name := range e.reserve.Charges[0].Costs {
					o.Totals[0][name] = []int64{math.MaxInt64, maxBucket + 1, maxBucket}[third]
				}
			}
			m.do(o)
		}
	})
}
