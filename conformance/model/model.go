// Package model is weir as one would write it to be read: one mutex, plain maps and slices, big
// integers, a calendar that looks at every minute. Each rule is a small function that says which
// line of docs/semantics.md it stands for, and each can be replaced by a wrong one (see [Rules]),
// to show that the suites would notice.
//
// It shares nothing with the code it checks but weir's types and the checking of definitions.
package model

import (
	"context"
	"sync"
	"time"

	"github.com/weir-limiter/weir"
)

// Settings are what a model is opened with.
type Settings struct {
	// Start is when the lease table opens: lease IDs from before it are refused.
	Start time.Time
	// Options are the limiter's. Those about stores, caches and observers mean nothing here.
	// Default of Now: always Start.
	Options weir.Options
	// Slash is true where an entity's name may contain '/'. Default: false.
	Slash bool
	// Calendar may be shared by models, since it only remembers. Default: a new one.
	Calendar *Calendar
	// NewID makes the lease ID of a request that brings none. Default: [weir.NewLeaseID].
	NewID func(now time.Time) weir.LeaseID
}

// Model fulfils [weir.Service] slowly. All methods may be called at once.
type Model struct {
	mu     sync.Mutex
	rules  Rules
	now    func() time.Time
	newID  func(now time.Time) weir.LeaseID
	slash  bool
	depth  int
	config *weir.Definitions
	levels []weir.Limit // the limiter's options' own
	states map[Key]*state
	table  leaseTable
	notes  notes
}

var _ weir.Service = (*Model)(nil)

// New opens a model. Rules that are nil are the right ones. It refuses definitions and limits that
// weir refuses.
func New(defs *weir.Definitions, s Settings, rules *Rules) (*Model, error) {
	m := &Model{
		now: s.Options.Now, newID: s.NewID, slash: s.Slash,
		depth:  orDefault(s.Options.CascadeDepth, 1),
		states: make(map[Key]*state),
	}
	if m.now == nil {
		m.now = func() time.Time { return s.Start }
	}
	if m.newID == nil {
		m.newID = weir.NewLeaseID
	}
	if s.Calendar == nil {
		s.Calendar = NewCalendar()
	}
	if rules != nil {
		m.rules = *rules
	}
	m.rules.fill(s.Calendar)
	m.table = newLeaseTable(s, &m.rules)
	var err error
	if m.levels, err = normalize(s.Options.Limits); err != nil {
		return nil, err
	}
	if defs == nil {
		defs = &weir.Definitions{}
	}
	return m, m.Configure(defs)
}

// Configure replaces the definitions (8.1: it takes effect with the next call). It refuses what weir
// refuses.
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
	m.config = m.rules.Configured(m.config, normal)
	return nil
}

// checkDepth: a longer chain is an error (9.1).
func (m *Model) checkDepth(d *weir.Definitions) error {
	for name := range d.Entities {
		ancestors := 0
		for at := name; m.rules.Above(d.Config(weir.Subject{Entity: at})) != ""; ancestors++ {
			at = m.rules.Above(d.Config(weir.Subject{Entity: at}))
		}
		if m.rules.TooDeep(ancestors, m.depth) {
			return invalid("entities."+name, "cascades too far")
		}
	}
	return nil
}

// SetNewID replaces what makes the lease IDs of requests that bring none.
func (m *Model) SetNewID(f func(now time.Time) weir.LeaseID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.newID = f
}

// read reads the clock, once for each call (1.2).
func (m *Model) read() int64 { return m.rules.Instant(m.now()) }

// Explain fulfils [weir.Service].
func (m *Model) Explain(_ context.Context, entity, resource string) (*weir.Explanation, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := checkSubject(entity, resource, m.slash); err != nil {
		return nil, m.notes.refuse("explain", err)
	}
	m.tick(m.read())
	e, err := m.explain(weir.Subject{Entity: entity, Resource: resource}, 0)
	if err != nil {
		return nil, m.notes.refuse("explain", err)
	}
	m.notes.set("explain", "ok")
	return e, nil
}

func orDefault[T comparable](v, byDefault T) T {
	var zero T
	if v == zero {
		return byDefault
	}
	return v
}

func at(ms int64) time.Time { return time.UnixMilli(ms) }
