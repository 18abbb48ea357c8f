package conformance

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
)

// chargeChoice returns a charge for a share of what the limits of a subject have.
type chargeChoice func(m *machine, share int64) weir.Charge

func charges() *rapid.Generator[chargeChoice] {
	costs := rapid.SliceOfN(rapid.Custom(drawAsking), 1, 3)
	return rapid.Custom(func(t *rapid.T) chargeChoice {
		entity := sample(t, "entity", entities()...)
		resource := sample(t, "resource", resources()...)
		costs := costs.Draw(t, "costs")
		return func(m *machine, share int64) weir.Charge {
			c := weir.Charge{Entity: entity, Resource: resource}
			chain := m.model.Chain(entity, resource)
			if len(chain) == 0 {
				return c
			}
			c.Costs = make(weir.Costs)
			for _, cost := range costs {
				l := &chain[int(cost.limit)%len(chain)]
				c.Costs[l.Limit] = cost.of(l, lowest(chain, l.Limit)) / share
			}
			return c
		}
	})
}

// costChoice says which limit is charged, and how much: a number of units, unless another word says
// so.
type costChoice struct {
	limit uint8
	how   string
	units uint64
}

func drawAsking(t *rapid.T) costChoice {
	return costChoice{
		rapid.Uint8().Draw(t, "limit"),
		sample(t, "how", "some", "one", "available", "beyond a shadow limit", "a share", "too much",
			"some", "up to all", "one", "none", "some", "available"),
		rapid.Uint64().Draw(t, "units"),
	}
}

// of returns a cost of a limit that fits, or just does not.
func (c *costChoice) of(l *weir.LimitStatus, most int64) int64 {
	n := int64(0)
	switch c.how {
	case "some":
		n = c.upTo(max(1, min(most, l.Capacity)/4))
	case "one":
		n = 1
	case "available":
		n = max(0, l.Available)
	case "too much":
		n = max(0, min(l.Available, most-1)+1)
	case "up to all":
		n = c.upTo(most)
	case "a share":
		n = most / int64(1+c.units%8)
	case "beyond a shadow limit":
		if l.Shadow {
			return l.Capacity + c.upTo(min(l.Capacity/2, math.MaxInt64-l.Capacity))
		}
	}
	return min(n, most)
}

func (c *costChoice) upTo(most int64) int64 { return int64(c.units % (uint64(most) + 1)) }

// lowest returns the most that all limits of a name could hold.
func lowest(chain []weir.LimitStatus, name string) int64 {
	most := int64(math.MaxInt64)
	for i := range chain {
		if l := &chain[i]; l.Limit == name && (!l.Shadow || l.Kind == weir.Bucket) {
			most = min(most, l.Capacity)
		}
	}
	if most == math.MaxInt64 {
		return 1000
	}
	return most
}

// drawNewID draws the difference between the time in a new lease ID and the clock: not at all, a
// little older, or up to a minute ahead.
func drawNewID() *rapid.Generator[func(m *machine) weir.LeaseID] {
	return rapid.Custom(func(t *rapid.T) func(m *machine) weir.LeaseID {
		how, ms := between(t, "how", 0, 31), between(t, "ms", 1, 60_000)
		return func(m *machine) weir.LeaseID {
			switch how {
			case 28:
				return m.newID(ms)
			case 29:
				return m.newID(-min(ms, m.memoryMS()))
			case 30:
				return m.newID(-m.memoryMS())
			case 31:
				return m.newID(60_000)
			}
			return m.newID(0)
		}
	})
}

// reserveFresh draws a new reservation of one charge or several, some of which may be the same.
func reserveFresh(charge *rapid.Generator[chargeChoice]) *rapid.Generator[action] {
	fresh, several := drawNewID(), rapid.SliceOfN(charge, 2, 4)
	return rapid.Custom(func(t *rapid.T) action {
		id := fresh.Draw(t, "ID")
		if !oneIn(t, "several", 5) {
			only, unnamed := charge.Draw(t, "charge"), oneIn(t, "without an ID", 20)
			return func(m *machine) {
				o := Op{Verb: opReserve, Charges: []weir.Charge{only(m, 1)}}
				if !unnamed || m.script.Size > 0 {
					o.ID = id(m)
				}
				m.do(o)
			}
		}
		charges, isKeyed := several.Draw(t, "charges"), oneIn(t, "keyed", 4)
		twice := oneIn(t, "the same twice", 3)
		return func(m *machine) {
			o := Op{Verb: opReserve, ID: id(m), Keyed: isKeyed}
			for _, c := range charges {
				o.Charges = append(o.Charges, c(m, int64(len(charges))))
			}
			if twice {
				o.Charges[1] = o.Charges[0]
			}
			m.do(o)
		}
	})
}

// reserveAgain draws a repeat of a lease's reservation, or another request under its ID or under
// that of a denial.
func reserveAgain(charge *rapid.Generator[chargeChoice]) *rapid.Generator[action] {
	return rapid.Custom(func(t *rapid.T) action {
		state := sample(t, "state", driver.LeaseLive, driver.LeaseExpired, driver.LeaseLive, driver.LeaseVoided,
			driver.LeaseLive, driver.LeaseCompleted, driver.LeaseCancelled, unknown)
		which, different := rapid.Uint8().Draw(t, "lease"), sample(t, "different", "", "", "",
			"a charge more", "the first charge", "a cost")
		other := charge.Draw(t, "other")
		return func(m *machine) {
			var e *trackedLease
			if state == unknown && len(m.denied) > 0 {
				e = &trackedLease{reserve: m.denied[len(m.denied)-1]}
			} else if e = m.get(state, which); e == nil {
				return
			}
			o := e.reserve
			o.Charges = slices.Clone(o.Charges)
			switch different {
			case "a charge more":
				o.Charges = append(o.Charges, other(m, 1))
			case "the first charge":
				o.Charges[0] = other(m, 1)
			case "a cost":
				c := maps.Clone(o.Charges[0].Costs)
				if names := slices.Sorted(maps.Keys(c)); len(names) > 0 {
					c[names[0]]++
				}
				o.Charges[0].Costs = c
			}
			m.do(o)
		}
	})
}

// retry waits for a denial's retry-after, or a millisecond less, and may ask again.
func retry() *rapid.Generator[action] {
	fresh := drawNewID()
	return rapid.Custom(func(t *rapid.T) action {
		early, asks := oneIn(t, "early", 3), !oneIn(t, "only waits", 4)
		id := fresh.Draw(t, "ID")
		return func(m *machine) {
			if len(m.denied) == 0 || m.wait > farthest {
				return
			}
			again, by := m.denied[len(m.denied)-1], m.wait
			if early {
				by -= time.Millisecond
			}
			m.do(Op{Verb: opAdvance, By: by})
			if again.ID = id(m); asks {
				m.do(again)
			}
		}
	})
}

// reserveWrong draws a reservation with exactly one mistake: in the request, in its ID, or against
// the configuration. With two mistakes it would not be specified which is reported.
func reserveWrong(charge *rapid.Generator[chargeChoice]) *rapid.Generator[action] {
	return rapid.Custom(func(t *rapid.T) action {
		mistake := between(t, "mistake", 0, 15)
		bad, c := sample(t, "name", badNames()...), charge.Draw(t, "charge")
		third := between(t, "third", 0, 2)
		taken := oneIn(t, "under a lease's ID", 4)
		return func(m *machine) {
			c := c(m, 1)
			if c.Costs == nil {
				c.Costs = make(weir.Costs)
			}
			o := Op{Verb: opReserve, ID: m.newID(0)}
			if e := m.pick(driver.LeaseLive, uint8(third)); e != nil && taken {
				o.ID = e.reserve.ID
			}
			m.spoil(&o, &c, mistake, third, bad)
			o.Charges = append(o.Charges, c)
			m.do(o)
		}
	})
}

// spoil makes a mistake in a request or in one of its charges.
func (m *machine) spoil(o *Op, c *weir.Charge, mistake, third int64, bad string) {
	far := []int64{1, 5000, 3_600_000}[third]
	switch mistake {
	case 0, 1: // more than a limit can hold
		for _, l := range m.model.Chain(c.Entity, c.Resource) {
			if !l.Shadow && l.Capacity < math.MaxInt64-10 {
				c.Costs[l.Limit] = []int64{l.Capacity + 1, l.Capacity + 10, math.MaxInt64}[third]
				return
			}
		}
	case 2:
		c.Costs["ghost"] = 1
	case 3:
		*c = weir.Charge{Entity: "stranger", Resource: "nowhere", Costs: weir.Costs{"rpm": 1}}
	case 4:
		o.ID = m.newID(-m.memoryMS() - far)
	case 5:
		o.ID = m.idAt(m.script.Start.UnixMilli() - far)
	case 6:
		o.ID = m.newID(60_000 + far)
	case 7:
		c.Costs["rpm"] = []int64{-1, -1, math.MinInt64}[third]
	case 8:
		c.Costs[bad] = 1
	case 9:
		c.Entity = bad
	case 10:
		c.Resource = bad
	case 11:
		for range 16 {
			o.Charges = append(o.Charges, weir.Charge{Entity: "org", Resource: "gpt"})
		}
	case 12:
		for i := range 33 {
			c.Costs[fmt.Sprintf("n%d", i)] = 1
		}
	default:
		m.bringWrong(o, c, mistake+third)
	}
}

// bringWrong brings a limit that is not allowed.
func (m *machine) bringWrong(o *Op, c *weir.Charge, how int64) {
	l := weir.Limit{Name: "rpm", Kind: weir.Bucket, Capacity: 1}
	chain := m.model.Chain(c.Entity, c.Resource)
	own := slices.IndexFunc(chain, func(l weir.LimitStatus) bool { return l.Entity == c.Entity })
	o.Bring = []weir.Limit{l}
	switch how % 5 {
	case 0:
		o.Bring[0].Name = "ghost"
	case 1:
		o.Bring[0].Capacity = 0
	case 2:
		o.Bring = append(o.Bring, l)
	default:
		if own >= 0 {
			l := chain[own]
			for _, k := range m.h.Traits.Kinds { // the last of the other kinds, if there is one
				if k != chain[own].Kind {
					l.Kind = k
				}
			}
			o.Bring[0] = broughtLimit(&l, 1)
		}
	}
}

// broughtLimit returns a limit with the name and kind of one in force.
func broughtLimit(l *weir.LimitStatus, capacity int64) weir.Limit {
	b := weir.Limit{Name: l.Limit, Kind: l.Kind, Capacity: capacity}
	switch l.Kind {
	case weir.Bucket:
		b.Capacity = min(capacity, maxBucket)
	case weir.Window:
		b.Window = time.Minute
	case weir.Concurrency:
		b.Timeout = 30 * time.Second
	case weir.Budget:
		b.Every = "day"
	}
	return b
}

// reserveBringing draws a reservation that brings limits: some of those in force, lower or higher,
// or all of them if nothing is configured.
func reserveBringing(
	charge *rapid.Generator[chargeChoice], limits *rapid.Generator[[]weir.Limit],
) *rapid.Generator[action] {
	return rapid.Custom(func(t *rapid.T) action {
		first, more := charge.Draw(t, "charge"), rapid.SliceOfN(charge, 0, 1).Draw(t, "more")
		brought, costs := limits.Draw(t, "brought"), rapid.SliceOfN(rapid.Custom(drawAsking), 1, 3).Draw(t, "costs")
		which, units := rapid.Uint16().Draw(t, "which"), rapid.Uint64().Draw(t, "units")
		return func(m *machine) {
			o, c := Op{Verb: opReserve, ID: m.newID(0)}, first(m, 1)
			chain := m.model.Chain(c.Entity, c.Resource)
			if len(chain) == 0 {
				o.Bring = brought
				c.Costs = make(weir.Costs)
				for _, cost := range costs {
					l := o.Bring[int(cost.limit)%len(o.Bring)]
					c.Costs[l.Name] = cost.upTo(max(1, l.Capacity/3))
				}
			}
			for i := range chain {
				if l := &chain[i]; l.Entity == c.Entity && chosen(which, i) {
					half := max(1, l.Capacity/2)
					n := uint64(half) + units%uint64(l.Capacity-half+2)
					o.Bring = append(o.Bring, broughtLimit(l, int64(min(n, math.MaxInt64))))
				}
			}
			o.Charges = []weir.Charge{c}
			for _, c := range more {
				o.Charges = append(o.Charges, c(m, 2))
			}
			m.do(o)
		}
	})
}
