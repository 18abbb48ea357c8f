// Package conformance is the executable definition of a weir store: suites that compare a service
// or a store with docs/semantics.md.
//
// A store's test is a [Harness] or [StoreHarness] of about thirty lines and one call. The harness
// opens worlds, each a fresh service with a clock of its own, and says what its worlds cannot do.
// The suites leave out only what the harness says, never by a store's name.
//
// [TestService] checks a [weir.Service] in three ways:
//
//   - Directed cases (suite.go). A [Case] checks one line of docs/semantics.md in a world. Most
//     cases are scripts in testdata; directed.go describes their language, directed_play.go plays
//     their steps, and directed_checks.go compares the answers. Cases that a script cannot express
//     are in Go, in the files cases_*.go, written with the helpers of a caseWorld.
//   - Random operations (random.go). Rapid draws a [Script]: definitions, then operations that a
//     machine fits to the leases that exist (generate*.go). Every operation is played in a world
//     and in the slow, simple model of package model, and the answers must agree (lockstep.go,
//     answer.go). A script that fails is shrunk and printed in a form that [Replay] accepts
//     (shrinking.go, script.go, op.go). [Coverage] counts the outcomes that were met.
//   - Concurrent calls (linear.go). Several goroutines call one world. A checker looks for an order
//     of the calls that explains the answers by the model.
//
// [TestStore] checks a [driver.Store] in the same way through a limiter, and then its own
// requirements (docs/new-backend.md) with stores that fail or hang (store_suite.go, faulty.go).
//
// A [Leeway] is a difference from docs/semantics.md that a store may have. Package broken shows
// that the suites catch wrong services and stores.
package conformance

import (
	"context"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/limiter"
)

// T is the part of [*testing.T] that a case uses. The suites also run on recorders, to show that
// they catch what is wrong.
type T interface {
	Helper()
	Name() string
	Context() context.Context
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Skipf(format string, args ...any)
}

// Setup says how a case wants its world opened.
type Setup struct {
	// Start is the first instant of the world.
	Start time.Time
	// Definitions are the limits and entities configured at first, not normalized.
	Definitions *weir.Definitions
	// Options are the limiter's options; Now is replaced by the world's clock.
	Options limiter.Options
}

// World is one fresh service with a clock of its own.
type World interface {
	weir.Service
	// Now returns the world's time.
	Now() time.Time
	// Advance moves the world's time, also backwards unless the harness says NoSkew.
	Advance(d time.Duration)
	// Configure replaces the definitions, through the service's own process.
	Configure(d *weir.Definitions) error
	// Close closes the world.
	Close() error
}

// Harness opens worlds of one kind and says what they cannot do. The suites skip by what it says,
// never by a store's name.
type Harness struct {
	// Open opens a world, or calls t.Fatalf.
	Open func(t T, s Setup) World
	// Traits are the traits of the store.
	Traits driver.Traits
	// RealTime is set if Advance has to wait, so that long cases are left out.
	RealTime bool
	// NoSkew is set if time cannot step back.
	NoSkew bool
	// NoConfigure is set if random operations must not change the configuration.
	NoConfigure bool
	// Inexact is set if a retry-after may be a lower bound and a denial may be contended, so that
	// answers are checked against the definition instead of the model's exact ones.
	Inexact bool
	// NoLists is set if the worlds cannot list where something is in use, so that a status needs a
	// resource. This is so if the store is not a [driver.SubjectLister].
	NoLists bool
	// Leeway is how the worlds may differ from docs/semantics.md. Default: not at all.
	Leeway
}
