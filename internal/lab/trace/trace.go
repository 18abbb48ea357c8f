// Package trace reads recorded traffic: who called which model when, and with how many tokens.
package trace

import (
	"errors"
)

// Call is one call of a trace. A trace may have millions, so it is small: 40 bytes, and it points
// at nothing.
type Call struct {
	AtMS          int64 // when it came, in Unix milliseconds
	Input, Output int64 // tokens; their sum fits too
	Line          int32 // of the trace
	Caller        int32 // who made it: an index of the trace's or the workload's callers
	LastsMS       int32 // how long it lasted, in milliseconds; negative where the trace does not say
}

// NoDuration is how long a call lasted of which the trace does not say it.
const NoDuration = -1

// Tokens are those that went in and those that came out.
func (c *Call) Tokens() int64 { return c.Input + c.Output }

// EntityModel is who calls what.
type EntityModel struct {
	Entity, Resource string
	// Rank puts tenants by their numbers; others stand by their names.
	Rank int32
}

// Trace is recorded traffic, in the order of its times; of two calls at one instant the one that
// the file has first comes first.
type Trace struct {
	Name  string // for messages
	Calls []Call
	// Callers are whom the calls name. Without a column for the entity there is one for each
	// resource, and its entity is empty.
	Callers []EntityModel
	// EntityColumn, ModelColumn and DurationColumn are those that were read; empty for none.
	EntityColumn, ModelColumn, DurationColumn string
}

// Options says how a trace is written.
type Options struct {
	// Time, Input and Output are the columns for when a call came, how many tokens went in and how
	// many came out. Default: TIMESTAMP, ContextTokens and GeneratedTokens.
	Time, Input, Output string
	// Entity is the column for who called. Default: none; [NewWorkload] spreads the calls.
	Entity string
	// Model is the column for the resource that was called. Default: none.
	Model string
	// Duration is the column for how long the call lasted. Default: none.
	Duration string
	// TimeUnit is what a time counts that is a number: since 1970, or since the trace began.
	// Default: seconds.
	TimeUnit Unit
	// DurationUnit is what a duration counts that is a number. Default: milliseconds.
	DurationUnit Unit
	// Resource is what every call uses where no column says it. Default: llm.
	Resource string
	// Sort sorts the calls by their times. Default: calls that are out of order are mistakes.
	Sort bool

	mostBytes int64 // Default: MaxTraceBytes
	mostCalls int   // Default: MaxCalls
}

// withDefaults returns a copy with the defaults filled in.
func (o *Options) withDefaults() *Options {
	filled := Options{}
	if o != nil {
		filled = *o
	}
	for _, f := range []struct {
		field *string
		value string
	}{
		{&filled.Time, "TIMESTAMP"}, {&filled.Input, "ContextTokens"},
		{&filled.Output, "GeneratedTokens"}, {&filled.Resource, "llm"},
	} {
		if *f.field == "" {
			*f.field = f.value
		}
	}
	if filled.TimeUnit == "" {
		filled.TimeUnit = Seconds
	}
	if filled.DurationUnit == "" {
		filled.DurationUnit = Milliseconds
	}
	if filled.mostBytes == 0 {
		filled.mostBytes = MaxBytes
	}
	if filled.mostCalls == 0 {
		filled.mostCalls = MaxCalls
	}
	return &filled
}

// Unit is what a number of a trace counts. It is the value of a flag.
type Unit string

// The units of time.
const (
	Seconds      Unit = "s"
	Milliseconds Unit = "ms"
	Microseconds Unit = "us"
	Nanoseconds  Unit = "ns"
)

// Set reads the flag's text.
func (u *Unit) Set(s string) error {
	switch Unit(s) {
	case Seconds, Milliseconds, Microseconds, Nanoseconds:
		*u = Unit(s)
		return nil
	}
	return errors.New("must be s, ms, us or ns")
}

// String returns the flag's text.
func (u *Unit) String() string { return string(*u) }

// Type names the values in the help.
func (u *Unit) Type() string { return "s|ms|us|ns" }

// perMS is how many of the unit a millisecond has; 0 for seconds, which have many of those.
func (u Unit) perMS() int64 {
	switch u {
	case Milliseconds:
		return 1
	case Microseconds:
		return 1_000
	case Nanoseconds:
		return 1_000_000
	}
	return 0
}
