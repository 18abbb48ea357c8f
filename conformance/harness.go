// Package conformance says what it means to be a weir store, by running.
//
// [TestService] checks a [weir.Service] line by line against docs/semantics.md, then drives it and
// a slow obvious model with the same random operations and compares every answer. [TestStore]
// checks a [driver.Store] through the limiter in the same way, and its own seam besides. A store's
// test is a [Harness] of about thirty lines and one call.
package conformance

import (
	"context"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/limiter"
)

// T is what a case needs of [*testing.T]. The suites also run on recorders, to show that they catch
// what is wrong.
type T interface {
	Helper()
	Name() string
	Context() context.Context
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Skipf(format string, args ...any)
}

// Setup is what a case asks of a world.
type Setup struct {
	// Start is the world's first instant.
	Start time.Time
	// Definitions are the limits and entities configured at first, not normalized.
	Definitions *weir.Definitions
	// Options are the limiter's; Now is the world's own.
	Options limiter.Options
}

// World is one fresh service with a clock of its own.
type World interface {
	weir.Service
	// Now is the world's time.
	Now() time.Time
	// Advance moves the world's time; backwards too, if the harness says that clocks may step.
	Advance(d time.Duration)
	// Configure replaces the definitions, through the service's own process.
	Configure(d *weir.Definitions) error
	// Close ends the world.
	Close() error
}

// Harness makes worlds of one kind and says what they cannot do. The suites skip by what it says,
// never by a store's name.
type Harness struct {
	// Open makes a world. Failing to is fatal.
	Open func(t T, s Setup) World
	// Traits are the store's.
	Traits driver.Traits
	// RealTime is true where Advance has to wait, so that long cases are left out.
	RealTime bool
	// NoSkew is true where time cannot step back.
	NoSkew bool
	// Inexact is true where a retry-after may be a lower bound and a denial may be contended, so
	// that answers are held against the definition instead of the model's exact ones.
	Inexact bool
	// NoLists is true where the worlds cannot say where something is in use, so that a status needs
	// a resource: those of a store that is no [driver.SubjectLister].
	NoLists bool
	// Leeway is what else the worlds may do otherwise. Default: nothing.
	Leeway
}
