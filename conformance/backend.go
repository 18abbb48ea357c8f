package conformance

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
)

// BackendHarness opens stores of one kind and says what they cannot do, as [Harness] does.
type BackendHarness struct {
	// Open opens an empty store with the definitions of the setup. Failing to is fatal.
	Open func(t T, s Setup) weir.Backend
	// Configure replaces the definitions of a store that is no [weir.ConfigWriter].
	// Default: through the limiter.
	Configure func(t T, b weir.Backend, d *weir.Definitions) error
	// Front puts something between the limiter and the suites. It is for showing that they would
	// notice. Default: nothing.
	Front func(World) World
	// RealTime is true for a store with a clock of its own, so that Advance has to wait.
	RealTime bool
	// NoSkew is true where time cannot step back.
	NoSkew bool
	// Inexact is as in [Harness].
	Inexact bool
}

// TestBackend checks a store through the limiter as [TestService] does, then what lies below the
// limiter: the seam of docs/new-backend.md, and what becomes of calls that the store does not answer.
func TestBackend(t *testing.T, h BackendHarness) {
	t.Helper()
	service := h.Service(t)
	t.Run("service", func(t *testing.T) { TestService(t, service) })
	t.Run("seam", func(t *testing.T) { runCases(t, service, h.Cases()) })
}

// Service makes worlds of a limiter over a store.
func (h BackendHarness) Service(t T) Harness {
	t.Helper()
	b := h.Open(t, Setup{Start: begin(), Definitions: &weir.Definitions{}})
	traits := b.Traits()
	if err := b.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
	return Harness{
		Open: func(t T, s Setup) World {
			t.Helper()
			return h.front(h.world(t, s, h.Open(t, s)))
		},
		Traits: traits, RealTime: h.RealTime, NoSkew: h.NoSkew, Inexact: h.Inexact,
	}
}

func (h BackendHarness) front(w World) World {
	if h.Front == nil {
		return w
	}
	return h.Front(w)
}

// Cases returns the cases for a store alone.
func (h BackendHarness) Cases() []Case {
	var cases []Case
	for _, c := range slices.Concat(seamCases(), unavailableCases(), cacheCases(), editCases()) {
		run := func(t T, _ Harness) { c.run(t, h) }
		cases = append(cases, Case{c.name, c.line, c.needs, run})
	}
	return cases
}

// backendCase is a case that needs the store itself.
type backendCase struct {
	name, line string
	needs      Needs
	run        func(t T, h BackendHarness)
}

// backendWorld is a world around a limiter.
type backendWorld struct {
	*weir.Limiter
	timekeeper
	configure func(*weir.Definitions) error
}

// timekeeper is a world's time.
type timekeeper interface {
	Now() time.Time
	Advance(d time.Duration)
}

// world opens a limiter over a store.
func (h BackendHarness) world(t T, s Setup, b weir.Backend) *backendWorld {
	t.Helper()
	w := &backendWorld{timekeeper: NewClock(s.Start)}
	if h.RealTime {
		w.timekeeper = realTime{}
	}
	s.Options.Now = w.Now
	var err error
	if w.Limiter, err = weir.New(b, &s.Options); err != nil {
		t.Fatalf("open a limiter: %v", err)
	}
	w.configure = func(d *weir.Definitions) error { return w.Limiter.Configure(t.Context(), d) }
	if h.Configure != nil {
		w.configure = func(d *weir.Definitions) error {
			defer w.DropCache()
			return h.Configure(t, b, d)
		}
	}
	return w
}

// Configure replaces the definitions.
func (w *backendWorld) Configure(d *weir.Definitions) error {
	if err := w.configure(d); err != nil {
		return fmt.Errorf("configure: %w", err)
	}
	return nil
}

// realTime is the machine's own.
type realTime struct{}

func (realTime) Now() time.Time { return time.Now() }

func (realTime) Advance(d time.Duration) { <-time.After(d) }
