// Package model is an implementation of weir that is written to be read. It is slow and simple, so
// that its rules can be compared with docs/semantics.md by eye: one mutex, plain maps and slices,
// integers of any size, and a calendar that looks at every minute. The comment of each rule has the
// numbers of the lines that it implements.
//
// A [Model] is a [weir.Service]. A reservation goes through it as follows. reserve.go reads the
// clock, ends the leases whose time is over, and looks the lease ID up; table.go decides by the
// table of section 6 whether the call is a replay, an error or a new lease. plan.go resolves the
// limits (resolve.go) and sums the costs in takes. reserve.go judges every take on the state of its
// limit (state.go, kinds.go, calendar.go), and then takes all of them or none. holdings.go has what
// a lease stands for, and leases.go the table of live and ended leases. An update (update.go,
// totals.go) computes the changes of all holdings before it applies any of them. Every method holds
// the mutex from beginning to end.
//
// The model shares nothing with the code that it checks except weir's types and the validation of
// definitions.
//
// Package broken makes wrong models out of it, to show that the suites catch them: at a few places,
// a variant may replace a value with a wrong one (see [Points]). A reader of the rules can ignore
// them: a point that is not set returns the value that it is given.
package model

import (
	"context"
	"sync"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/limiter"
)

// Settings configure a model.
type Settings struct {
	// Start is when the lease table opens: lease IDs from before it are refused.
	Start time.Time
	// Options are the options of a limiter. Those about stores, caches and observers have no
	// effect. If Now is nil, the time is always Start.
	Options limiter.Options
	// Calendar may be shared by models, because it is only a cache. Default: a new one.
	Calendar *Calendar
	// NewID returns the lease ID of a request that brings none. Default: [weir.NewLeaseID].
	NewID func(now time.Time) weir.LeaseID
}

// Model implements [weir.Service]. Its methods may be called concurrently.
type Model struct {
	mu       sync.Mutex
	points   Points
	now      func() time.Time
	newID    func(now time.Time) weir.LeaseID
	depth    int
	calendar *Calendar
	config   *weir.Definitions
	levels   []weir.Limit // the limits of the limiter's options
	states   map[Key]*state
	held     map[Key]int64 // for how long the slots were held that returned last, in milliseconds
	table    leaseTable
	notes    notes
}

var _ weir.Service = (*Model)(nil)

// New returns a model. If points is nil, the model is right. New refuses definitions and limits
// that weir refuses.
func New(defs *weir.Definitions, s Settings, points *Points) (*Model, error) {
	m := &Model{
		now: s.Options.Now, newID: s.NewID, calendar: s.Calendar,
		depth:  orDefault(s.Options.CascadeDepth, 1),
		states: make(map[Key]*state), held: make(map[Key]int64),
		table: newLeaseTable(s),
	}
	if m.now == nil {
		m.now = func() time.Time { return s.Start }
	}
	if m.newID == nil {
		m.newID = weir.NewLeaseID
	}
	if m.calendar == nil {
		m.calendar = NewCalendar()
	}
	if points != nil {
		m.points = *points
	}
	var err error
	if m.levels, err = normalize(s.Options.Limits); err != nil {
		return nil, err
	}
	if defs == nil {
		defs = &weir.Definitions{}
	}
	return m, m.Configure(defs)
}

// Configure replaces the definitions (8.1: a change takes effect with the next call). It refuses
// definitions that weir refuses.
func (m *Model) Configure(d *weir.Definitions) error {
	normal, err := d.Normalize()
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.config != nil {
		if err := m.checkDepth(normal); err != nil {
			return err
		}
	}
	m.config = normal
	return nil
}

// checkDepth refuses a chain that is longer than the option allows (9.1).
func (m *Model) checkDepth(d *weir.Definitions) error {
	for name := range d.Entities {
		ancestors := 0
		for above := parentOf(d, name); above != ""; above = parentOf(d, above) {
			ancestors++
		}
		if ancestors > m.depth {
			return invalid("entities."+name, "cascades too far")
		}
	}
	return nil
}

// SetNewID replaces the function that returns the lease IDs of requests that bring none.
func (m *Model) SetNewID(f func(now time.Time) weir.LeaseID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.newID = f
}

// readClock returns the time. It is called once in each call (1.2).
func (m *Model) readClock() int64 { return unixMS(m.now()) }

// advanceTable advances the lease table's clock to the time of a call.
func (m *Model) advanceTable(now int64) { m.table.now = m.clock(now) }

// clock returns the lease table's time after a call that brings now. Leases use the latest now of
// any call; but a now that is more than a minute behind means that the clock had been wrong before
// (1.3).
func (m *Model) clock(now int64) int64 {
	latest := max(now, m.table.now)
	if now < m.table.now-minuteMS {
		latest = now
	}
	return m.points.Now.pass(ClockReading{now, m.table.now, true}, latest)
}

// Explain implements [weir.Service].
func (m *Model) Explain(_ context.Context, entity, resource string) (*weir.Explanation, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := checkSubject(entity, resource); err != nil {
		return nil, m.notes.fail("explain", err)
	}
	m.advanceTable(m.readClock())
	e, err := m.explain(weir.Subject{Entity: entity, Resource: resource}, 0)
	if err != nil {
		return nil, m.notes.fail("explain", err)
	}
	m.notes.set("explain", "ok")
	return e, nil
}

// explain returns which limits apply to an entity and its ancestors, and why.
func (m *Model) explain(s weir.Subject, ancestors int) (*weir.Explanation, error) {
	if ancestors > m.depth {
		return nil, invalid("entity", "cascades too far")
	}
	levels := m.levelsOf(s, nil)
	e := &weir.Explanation{Entity: s.Entity, Resource: s.Resource}
	if len(levels) > 0 {
		e.Level, e.Limits, e.Hidden = levels[0].Level, levels[0].Limits, levels[1:]
	}
	parent := parentOf(m.config, s.Entity)
	if parent == "" {
		return e, nil
	}
	var err error
	e.Parent, err = m.explain(weir.Subject{Entity: parent, Resource: s.Resource}, ancestors+1)
	if err != nil {
		return nil, err
	}
	return e, nil
}

func orDefault[T comparable](v, byDefault T) T {
	var zero T
	if v == zero {
		return byDefault
	}
	return v
}

func timeAt(ms int64) time.Time { return time.UnixMilli(ms) }
