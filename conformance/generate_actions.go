package conformance

import (
	"fmt"
	"time"

	"pgregory.net/rapid"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
)

// moves returns the moves of a machine. A frequent move comes first, and several times: rapid draws
// each of the first two of many a tenth of the time, each of the next two a twentieth, each of the
// next four a fiftieth, and all others about equally.
func moves(h *Harness) []*rapid.Generator[action] {
	limits := limits(h)
	charges := charges()
	reserve, advance := reserveFresh(charges), advance()
	all := []*rapid.Generator[action]{reserve, reserve, advance, advance}
	add := func(weight int, moves ...*rapid.Generator[action]) {
		for range weight {
			all = append(all, moves...)
		}
	}
	const live, expired = driver.LeaseLive, driver.LeaseExpired
	onLive := drawUpdate(live)
	onOther := drawUpdate(expired, driver.LeaseCancelled, driver.LeaseCompleted, unknown, expired, driver.LeaseVoided)
	add(4, onLive, advance)
	change := configure(h)
	if h.NoConfigure {
		change = drawStatus(h)
	}
	add(2, onOther, drawStatus(h), retry(), toLeaseEvent(), drawWrongUpdate(charges), reserveAgain(charges),
		reserveWrong(charges), change)
	add(30, onOther)
	add(14, reserve, advance, onLive)
	add(24, drawWrongUpdate(charges), reserveWrong(charges))
	add(12, reserveAgain(charges), drawRepeat(), growAndShrink(), toPeriodEnd(h))
	add(8, drawStatus(h), change, reserveBringing(charges, limits))
	add(6, drawWrongStatus(), retry(), toLeaseEvent())
	if !h.NoSkew && !h.OwnClock {
		add(10, stepBack())
	}
	for len(all) < 256 { // as many as a byte can choose from
		all = append(all, reserve)
	}
	return all
}

// advance lets some time pass, mostly a little.
func advance() *rapid.Generator[action] {
	return rapid.Custom(func(t *rapid.T) action {
		const us, ms, m, h = time.Microsecond, time.Millisecond, time.Minute, time.Hour
		type span struct {
			most uint32
			unit time.Duration
		}
		s := sample(t, "span", span{5, ms}, span{15_000, ms}, span{900, ms}, span{15_000, ms},
			span{5, ms}, span{15_000, ms}, span{2500, us}, span{10, m}, span{200, m}, span{80, h})
		by := time.Duration(between(t, "units", 0, s.most)) * s.unit
		return func(m *machine) { m.do(Op{Verb: opAdvance, By: by}) }
	})
}

// stepBack sets the clock back by at most five seconds.
func stepBack() *rapid.Generator[action] {
	return rapid.Map(rapid.Uint32Range(1, 5000), func(ms uint32) action {
		return func(m *machine) { m.do(Op{Verb: opAdvance, By: -time.Duration(ms) * time.Millisecond}) }
	})
}

// around draws an offset from an instant, most often 0.
func around(t *rapid.T) time.Duration {
	return sample(t, "off", 0, 0, 0, -time.Millisecond, time.Millisecond)
}

// toPeriodEnd advances to the end of a budget's period.
func toPeriodEnd(h *Harness) *rapid.Generator[action] {
	return rapid.Custom(func(t *rapid.T) action {
		l := weir.Limit{Every: sample(t, "every", everies()...), Zone: sample(t, "zone", zones()...)}
		off := around(t)
		return func(m *machine) {
			_, end := m.calendar.Period(&l, m.model.Now().UnixMilli())
			m.advanceTo(time.UnixMilli(end), off)
		}
	})
}

// toLeaseEvent advances to the next instant at which something happens to a lease, and may then ask
// about it.
func toLeaseEvent() *rapid.Generator[action] {
	return rapid.Custom(func(t *rapid.T) action {
		event := sample(t, "event", "units return", "it is forgotten", "it expires", "its slots time out",
			"units return", "it is forgotten")
		state := driver.LeaseLive
		if event == "it is forgotten" {
			state = sample(t, "state", driver.LeaseCompleted, driver.LeaseCancelled, driver.LeaseExpired)
		}
		which, off := rapid.Uint8().Draw(t, "lease"), around(t)
		number, looks := rapid.Uint8().Draw(t, "number"), rapid.Bool().Draw(t, "looks")
		again := rapid.Bool().Draw(t, "reserves again")
		return func(m *machine) {
			e := m.get(state, which)
			if e == nil {
				return
			}
			c := e.reserve.Charges[int(number)%len(e.reserve.Charges)]
			after := Op{Verb: opStatus, Entity: c.Entity, Resource: c.Resource}
			switch event {
			case "units return":
				if ends := m.model.Returns(c.Entity, c.Resource); len(ends) > 0 {
					m.advanceTo(ends[int(number)%min(4, len(ends))], off)
				}
			case "it expires":
				m.advanceTo(e.expires, off)
			case "its slots time out":
				if !e.holds.IsZero() {
					m.advanceTo(e.holds, off)
				}
			default:
				m.advanceTo(m.forgotten(e), off)
				if after = (Op{Verb: opCancel, ID: e.reserve.ID}); again {
					after = e.reserve
				}
			}
			if looks {
				m.do(after)
			}
		}
	})
}

// forgotten returns when an ended lease may be forgotten.
func (m *machine) forgotten(e *trackedLease) time.Time {
	last := e.ended
	if last.IsZero() {
		last = e.expires
	}
	if id := e.reserve.ID.Time(); id.After(last) {
		last = id
	}
	return last.Add(time.Duration(m.memoryMS()) * time.Millisecond)
}

// drawStatus draws a status or an explain.
func drawStatus(h *Harness) *rapid.Generator[action] {
	of := resources()
	if !h.NoLists {
		of = append(of, "", "")
	}
	return rapid.Custom(func(t *rapid.T) action {
		o := Op{Verb: opStatus, Entity: sample(t, "entity", entities()...)}
		o.Resource = sample(t, "resource", of...)
		if o.Resource != "" && oneIn(t, "explain", 4) {
			o.Verb = opExplain
		}
		return func(m *machine) { m.do(o) }
	})
}

// drawWrongStatus draws a status of a malformed name.
func drawWrongStatus() *rapid.Generator[action] {
	return rapid.Custom(func(t *rapid.T) action {
		bad := sample(t, "name", badNames()...)
		o := Op{Verb: opStatus, Entity: bad, Resource: sample(t, "resource", resources()...)}
		if rapid.Bool().Draw(t, "explain") {
			o = Op{Verb: opExplain, Entity: sample(t, "entity", entities()...), Resource: bad}
		}
		return func(m *machine) { m.do(o) }
	})
}

func badNames() []string {
	return []string{"", "a b", "\xff", "a#b", "x\n", "..", "_default_", "$SYSTEM"}
}

// configure draws a change to definitions that the script has already, or to new ones derived from
// the first.
func configure(h *Harness) *rapid.Generator[action] {
	changes := changes(h)
	return rapid.Custom(func(t *rapid.T) action {
		earlier, which := rapid.Bool().Draw(t, "earlier ones"), rapid.Uint8().Draw(t, "which")
		change := changes.Draw(t, "change")
		return func(m *machine) {
			set := m.script.Sets[int(which)%len(m.script.Sets)]
			known := earlier || len(m.script.Sets) == maxSets
			if !known {
				set = Set{fmt.Sprintf("set%d", len(m.script.Sets)), clone(m.script.Sets[0].Definitions)}
				change(set.Definitions)
			}
			if !known {
				m.script.Sets = append(m.script.Sets, reread(&Script{Sets: []Set{set}}).Sets...)
			}
			m.do(Op{Verb: opConfigure, Set: set.Name})
		}
	})
}

// reread returns a script as it is parsed from its text.
func reread(s *Script) *Script {
	read, err := ParseScript(s.String())
	if err != nil {
		panic(fmt.Sprintf("read back: %v\n%s", err, s))
	}
	return read
}
