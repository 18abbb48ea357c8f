package conformance

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/limiter"
)

// StoreHarness opens stores of one kind and says what they cannot do, as [Harness] does.
type StoreHarness struct {
	// Open opens an empty store with the definitions of the setup, or calls t.Fatalf. [Define]
	// writes definitions into a store that can be edited.
	Open func(t T, s Setup) driver.Store
	// Configure replaces the definitions of a store. Default: through the limiter, in one call if
	// the store is a [driver.ConfigWriter], by [Edit] if it is only a [driver.ConfigEditor].
	Configure func(t T, b driver.Store, d *weir.Definitions) error
	// OpenSecond opens the store as another process would, to change its configuration without the
	// limiter. Default: the store itself.
	OpenSecond func(t T, b driver.Store) driver.Store
	// StoreTimeout is how long a store gets to answer if a case does not say. Default: one minute,
	// so that a busy machine does not make a call unavailable. Cases in a bubble of
	// testing/synctest leave it to the limiter.
	StoreTimeout time.Duration
	// Wrap wraps the limiter, to show that the suites catch what is wrong with it. Default:
	// nothing.
	Wrap func(World) World
	// RealTime is set if the store has a clock of its own, so that Advance has to wait.
	RealTime bool
	// NoSkew is set if time cannot step back.
	NoSkew bool
	// Inexact is as in [Harness].
	Inexact bool
	// Leeway is as in [Harness].
	Leeway

	made    *Harness // the service's harness, once it is known
	virtual bool     // a bubble's time is virtual, so the limiter's own timeout is long enough
}

// TestStore checks a store through the limiter as [TestService] does, and then below the limiter:
// the requirements of docs/new-backend.md, and the results of calls that the store does not answer.
func TestStore(t *testing.T, h StoreHarness) {
	t.Helper()
	service := h.Service(t)
	t.Run("service", func(t *testing.T) { TestService(t, service) })
	t.Run("seam", func(t *testing.T) { runCases(t, service, h.Cases()) })
}

// Service returns a harness of limiters over the store.
func (h StoreHarness) Service(t T) Harness {
	t.Helper()
	if h.made != nil {
		return *h.made
	}
	b := h.Open(t, Setup{Start: begin(), Definitions: &weir.Definitions{}})
	traits := b.Traits()
	_, lists := b.(driver.SubjectLister)
	if err := b.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
	return Harness{
		Open: func(t T, s Setup) World {
			t.Helper()
			return h.front(h.world(t, s, h.Open(t, s)))
		},
		Traits: traits, RealTime: h.RealTime, NoSkew: h.NoSkew, Inexact: h.Inexact, NoLists: !lists,
		Leeway: h.Leeway,
	}
}

func (h StoreHarness) front(w World) World {
	if h.Wrap == nil {
		return w
	}
	return h.Wrap(w)
}

// Cases returns the cases that are for a store alone.
func (h StoreHarness) Cases() []Case {
	var cases []Case
	for _, c := range slices.Concat(seamCases(), unavailableCases(), cacheCases(), editCases()) {
		run := func(t T, service Harness) {
			with := h
			with.made = &service
			c.run(t, with)
		}
		cases = append(cases, Case{c.name, c.line, c.needs, run})
	}
	return cases
}

// storeCase is a case that needs the store itself.
type storeCase struct {
	name, line string
	needs      Needs
	run        func(t T, h StoreHarness)
}

// storeWorld is a world around a limiter.
type storeWorld struct {
	*limiter.Limiter
	timekeeper
	configure func(*weir.Definitions) error
}

// timekeeper is the time of a world.
type timekeeper interface {
	Now() time.Time
	Advance(d time.Duration)
}

// world opens a limiter over a store.
func (h StoreHarness) world(t T, s Setup, b driver.Store) *storeWorld {
	t.Helper()
	w := &storeWorld{timekeeper: NewClock(s.Start)}
	if h.RealTime {
		w.timekeeper = realTime{}
	}
	s.Options.Now = w.Now
	if s.Options.StoreTimeout == 0 && !h.virtual {
		s.Options.StoreTimeout = cmp.Or(h.StoreTimeout, time.Minute)
	}
	var err error
	if w.Limiter, err = limiter.New(b, &s.Options); err != nil {
		t.Fatalf("open a limiter: %v", err)
	}
	w.configure = func(d *weir.Definitions) error { return w.Limiter.Configure(t.Context(), d) }
	if h.Configure != nil {
		w.configure = func(d *weir.Definitions) error {
			defer w.DropCache()
			return h.Configure(t, b, d)
		}
	} else if editedOnly(b) {
		w.configure = w.editing(t, b.Traits(), s)
	}
	return w
}

// editedOnly reports whether the configuration of a store can be changed a piece at a time, but not
// in one call.
func editedOnly(b driver.Store) bool {
	if f, ok := b.(interface{ inner() driver.Store }); ok {
		b = f.inner()
	}
	_, writes := b.(driver.ConfigWriter)
	_, edits := b.(driver.ConfigEditor)
	return edits && !writes
}

// editing returns a function that replaces the definitions piece by piece. It remembers those in
// force.
func (w *storeWorld) editing(t T, traits driver.Traits, s Setup) func(*weir.Definitions) error {
	inForce := s.Definitions
	if inForce == nil {
		inForce = &weir.Definitions{}
	}
	return func(d *weir.Definitions) error {
		if _, err := d.Normalize(); err != nil {
			return err
		}
		if err := checkEdit(d, &traits, s.Options.CascadeDepth); err != nil {
			return err
		}
		if err := Edit(t.Context(), w.Limiter, inForce, d); err != nil {
			return err
		}
		inForce = d
		return nil
	}
}

// Configure replaces the definitions.
func (w *storeWorld) Configure(d *weir.Definitions) error {
	if err := w.configure(d); err != nil {
		return fmt.Errorf("configure: %w", err)
	}
	return nil
}

// realTime is the time of the machine.
type realTime struct{}

func (realTime) Now() time.Time { return time.Now() }

func (realTime) Advance(d time.Duration) { <-time.After(d) }
