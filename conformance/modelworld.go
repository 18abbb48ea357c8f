package conformance

import (
	"sync"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/conformance/model"
	"github.com/weir-limiter/weir/driver"
)

// Clock is a virtual clock. Its methods may be called concurrently.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// NewClock returns a clock that stands still at start.
func NewClock(start time.Time) *Clock { return &Clock{now: start} }

// Now returns the clock's time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves the clock, backwards if d is negative.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// ModelWorld is a world around a model.
type ModelWorld struct {
	*Clock
	*model.Model
}

// Close does nothing.
func (ModelWorld) Close() error { return nil }

// OpenModel returns a world around a model with some points; nil points make a right model. The
// calendar may be nil, or shared by several worlds.
func OpenModel(s Setup, c *model.Calendar, points *model.Points) (ModelWorld, error) {
	clock := NewClock(s.Start)
	s.Options.Now = clock.Now
	m, err := model.New(s.Definitions,
		model.Settings{Start: s.Start, Options: s.Options, Calendar: c}, points)
	return ModelWorld{clock, m}, err
}

// ModelHarness returns a harness of worlds around models with some points; nil points make right
// models.
func ModelHarness(points *model.Points) Harness {
	calendar := model.NewCalendar()
	return Harness{
		Open: func(t T, s Setup) World {
			t.Helper()
			w, err := OpenModel(s, calendar, points)
			if err != nil {
				t.Fatalf("open the model: %v", err)
			}
			return w
		},
		Traits: driver.Traits{
			Kinds:        []weir.Kind{weir.Bucket, weir.Window, weir.Concurrency, weir.Budget},
			CascadeDepth: 8,
			Local:        true,
		},
		Leeway: Leeway{NoCallers: true},
	}
}
