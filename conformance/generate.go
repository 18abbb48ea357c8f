package conformance

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
)

// action is one operation or a few as rapid draws them, independent of the state, such as "complete
// a live lease with half of what it took". A machine fits them to the state. So what rapid draws
// for one move does not depend on the others, and it can shrink a long script by leaving moves out.
type action func(m *machine)

// machine is a state machine whose operations rapid draws. It plays them in the model and a world
// in lockstep. It knows which leases are live, ended or expired, so that every verb often meets
// every state of a lease.
type machine struct {
	*lockstep
	ctx     context.Context
	h       *Harness
	most    int         // operations at most
	expired func() bool // may be nil
	found   *difference

	leases []*trackedLease
	denied []Op          // reserves that were denied; their IDs may be used again
	wait   time.Duration // the retry-after of the last denial
	ids    uint64        // the number of lease IDs made so far
}

// trackedLease is a lease that the machine has made.
type trackedLease struct {
	reserve Op
	limits  []weir.LimitStatus
	expires time.Time
	holds   time.Time
	adjust  Op // the last one that was applied
	end     Op // the complete
	ended   time.Time
}

const (
	maxTracked = 64 // leases that a machine tracks
	maxSets    = 9  // configurations in a script
)

// ended is the value with which a machine panics if rapid runs out of bits. Rapid would otherwise
// draw again in each of the nested generators.
type ended struct{ cause any }

// run makes moves until there are enough operations, an answer differs, or time is up.
func (m *machine) run(t *rapid.T) {
	defer func() {
		if e, ok := recover().(ended); ok {
			panic(e.cause)
		}
	}()
	moves := rapid.OneOf(moves(m.h)...)
	for !m.done() {
		m.several(moves, 512).Draw(t, "moves")
	}
}

// several draws and makes up to n moves, in two halves each. The halves make shrinking fast: rapid
// tries to leave out what each generator drew, the outer ones first, and so removes a thousand
// operations about as fast as one.
func (m *machine) several(moves *rapid.Generator[action], n int) *rapid.Generator[bool] {
	if n == 1 {
		return rapid.Map(moves, func(do action) bool {
			do(m)
			return true
		})
	}
	half := m.several(moves, n/2)
	return rapid.Custom(func(t *rapid.T) bool {
		defer func() {
			if p := recover(); p != nil {
				if _, ok := p.(ended); !ok {
					p = ended{p}
				}
				panic(p)
			}
		}()
		for i := 0; i < 2 && !m.done(); i++ {
			half.Draw(t, "half")
		}
		return true
	})
}

func (m *machine) done() bool {
	return m.found != nil || len(m.script.Ops) >= m.most || m.expired != nil && m.expired()
}

// do plays an operation in the world and in the model, and adds it to the script. The operation is
// first written and parsed, so that a replay of the text plays the same one. If the lease memory is
// small, no two leases may end in the same millisecond, because the order in which they are
// forgotten is not specified.
func (m *machine) do(o Op) answer {
	if m.done() {
		return answer{}
	}
	if o.Verb == opAdvance && m.h.WholeSecondRest {
		o.By = (o.By + time.Second - 1).Truncate(time.Second)
	}
	o, err := ParseOp(o.String())
	if err != nil {
		panic(fmt.Sprintf("%v: %v", o, err))
	}
	m.script.Ops = append(m.script.Ops, o)
	var a answer
	if a, m.found = m.step(m.ctx, len(m.script.Ops)-1); m.found != nil {
		return a
	}
	switch {
	case a.lease != nil && !o.ID.IsZero():
		m.track(o, a.lease)
	case o.Verb == opReserve:
		if d, ok := deniedBy(a.err); ok && !o.ID.IsZero() {
			m.denied, m.wait = append(m.denied, o), exactWait(d)
		}
	case a.receipt != nil:
		m.settled(o, a.receipt)
	}
	renewed := a.lease != nil || o.Verb == opExtend && a.receipt != nil
	if renewed && m.script.Size > 0 && m.model.Tied(o.ID) {
		m.do(Op{Verb: opAdvance, By: time.Millisecond})
		m.do(Op{Verb: opExtend, ID: o.ID})
	}
	return a
}

func (m *machine) track(o Op, l *weir.Lease) {
	if m.find(o.ID) != nil {
		return
	}
	m.leases = append(m.leases, &trackedLease{
		reserve: o, limits: l.Limits, expires: l.Expires, holds: l.HoldsUntil,
	})
	if len(m.leases) > maxTracked {
		m.leases = m.leases[1:]
	}
}

func (m *machine) find(id weir.LeaseID) *trackedLease {
	for _, e := range m.leases {
		if e.reserve.ID == id {
			return e
		}
	}
	return nil
}

func (m *machine) settled(o Op, r *weir.Receipt) {
	e := m.find(o.ID)
	if e == nil {
		return
	}
	switch o.Verb {
	case opAdjust:
		if o.Seq > e.adjust.Seq {
			e.adjust = o
		}
	case opExtend:
		e.expires = r.Expires
	case opComplete:
		e.end, e.ended = o, r.At
	case opCancel:
		e.ended = r.At
	}
	e.holds = r.HoldsUntil
}

// live returns the youngest live lease that satisfies a condition, or nil.
func (m *machine) live(is func(*trackedLease) bool) *trackedLease {
	for _, e := range slices.Backward(m.leases) {
		if m.model.StateOf(e.reserve.ID) == driver.LeaseLive && is(e) {
			return e
		}
	}
	return nil
}

// pick returns a lease in a state, the youngest for 0, or nil.
func (m *machine) pick(state driver.LeaseState, which uint8) *trackedLease {
	m.leases = slices.DeleteFunc(m.leases, func(e *trackedLease) bool {
		return m.model.StateOf(e.reserve.ID) == "" // forgotten
	})
	var found []*trackedLease
	for _, e := range slices.Backward(m.leases) {
		is := m.model.StateOf(e.reserve.ID)
		if is == driver.LeaseLive && !m.model.Now().Before(e.expires) {
			is = driver.LeaseExpired
		}
		if is == state {
			found = append(found, e)
		}
	}
	if len(found) == 0 {
		return nil
	}
	return found[int(which)%len(found)]
}

// unknown is the state of a lease ID that was never used.
const unknown driver.LeaseState = ""

// get returns a lease in a state. If there is none, it first plays operations that lead to one; it
// returns nil if they fail.
func (m *machine) get(state driver.LeaseState, which uint8) *trackedLease {
	if state == unknown {
		return &trackedLease{reserve: m.simple()}
	}
	if e := m.pick(state, which); e != nil {
		return e
	}
	live := m.pick(driver.LeaseLive, which)
	if live == nil && state != driver.LeaseVoided {
		m.do(m.simple())
		if live = m.pick(driver.LeaseLive, 0); live == nil {
			return nil
		}
	}
	switch state {
	case driver.LeaseVoided:
		e := &trackedLease{reserve: m.simple()}
		m.do(Op{Verb: opCancel, ID: e.reserve.ID})
		m.leases = append(m.leases, e)
	case driver.LeaseCompleted:
		m.do(Op{Verb: opComplete, ID: live.reserve.ID})
	case driver.LeaseCancelled:
		m.do(Op{Verb: opCancel, ID: live.reserve.ID})
	case driver.LeaseExpired:
		m.advanceTo(live.expires, 0)
	}
	return m.pick(state, 0)
}

// simple returns a reservation that fits unless every limit is full.
func (m *machine) simple() Op {
	c := weir.Charge{Entity: "bot", Resource: "gpt"}
	if chain := m.model.Chain(c.Entity, c.Resource); len(chain) > 0 {
		c.Costs = weir.Costs{chain[0].Limit: 1}
	}
	return Op{Verb: opReserve, ID: m.newID(0), Charges: []weir.Charge{c}}
}

// newID returns a lease ID whose time differs from the clock's by some milliseconds. The rest of
// the ID counts up, because rapid would shrink random bits to equal IDs.
func (m *machine) newID(off int64) weir.LeaseID {
	return m.idAt(m.model.Now().UnixMilli() + off)
}

func (m *machine) idAt(ms int64) weir.LeaseID {
	m.ids++
	var id weir.LeaseID
	// The factor is odd, so that all IDs differ, and large, because stores may divide leases by any
	// bits.
	spread := m.ids * 0x9e3779b97f4a7c15
	binary.BigEndian.PutUint64(id[:], uint64(ms)<<16)
	binary.BigEndian.PutUint64(id[6:], spread)
	binary.BigEndian.PutUint64(id[8:], spread)
	return id
}

func (m *machine) memoryMS() int64 {
	if m.script.Memory == 0 {
		return (10 * time.Minute).Milliseconds()
	}
	return m.script.Memory.Milliseconds()
}

// farthest is the longest single step of time, so that a script stays near its start.
const farthest = 40 * 24 * time.Hour

// advanceTo advances to an instant plus an offset.
func (m *machine) advanceTo(at time.Time, off time.Duration) {
	by := at.Sub(m.model.Now().Truncate(time.Millisecond)) + off
	if by > 0 && by < farthest {
		m.do(Op{Verb: opAdvance, By: by})
	}
}
