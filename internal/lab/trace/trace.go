// Package trace reads recorded traffic: which entity called which model when, and with how many
// tokens.
package trace

import (
	"cmp"
	"errors"
)

// Call is one call of a trace. A trace may have millions, so it is small: 40 bytes without
// pointers.
type Call struct {
	AtMS          int64 // arrival, in Unix milliseconds
	Input, Output int64 // tokens; their sum fits too
	Line          int32 // in the trace
	Caller        int32 // an index into the callers of the trace or the workload
	LastsMS       int32 // in milliseconds; negative if unknown
}

// NoDuration is the duration of a call if the trace does not have it.
const NoDuration = -1

// Tokens returns the sum of input and output tokens.
func (c *Call) Tokens() int64 { return c.Input + c.Output }

// EntityModel is an entity and the model that it calls.
type EntityModel struct {
	Entity, Resource string
	// Rank sorts tenants by their numbers.
	Rank int32
}

// Trace is recorded traffic, in the order of its times. Calls of the same time are in the order of
// the file.
type Trace struct {
	Name  string // for messages
	Calls []Call
	// Callers are the callers that the calls refer to. Without a column for the entity there is one
	// for each resource, and its entity is empty.
	Callers []EntityModel
	// EntityColumn, ModelColumn and DurationColumn are the columns that were read; empty for none.
	EntityColumn, ModelColumn, DurationColumn string
}

// Options describe the format of a trace.
type Options struct {
	// Time, Input and Output are the columns of a call's arrival and of its input and output
	// tokens. Default: TIMESTAMP, ContextTokens and GeneratedTokens.
	Time, Input, Output string
	// Entity is the column of the calling entity. Default: none; a workload spreads the calls.
	Entity string
	// Model is the column for the resource that was called. Default: none.
	Model string
	// Duration is the column of the call's duration. Default: none.
	Duration string
	// TimeUnit is the unit of numeric times, which count from 1970 or from the beginning of the
	// trace. Default: seconds.
	TimeUnit Unit
	// DurationUnit is the unit of durations that are numbers. Default: milliseconds.
	DurationUnit Unit
	// Resource is the resource of every call if the trace has no column for it. Default: llm.
	Resource string
	// Sort sorts the calls by their times. Default: calls that are out of order are mistakes.
	Sort bool

	mostBytes int64 // Default: MaxBytes
	mostCalls int   // Default: MaxCalls
}

// withDefaults returns a copy with the defaults filled in.
func (o *Options) withDefaults() *Options {
	filled := Options{}
	if o != nil {
		filled = *o
	}
	filled.Time = cmp.Or(filled.Time, "TIMESTAMP")
	filled.Input = cmp.Or(filled.Input, "ContextTokens")
	filled.Output = cmp.Or(filled.Output, "GeneratedTokens")
	filled.Resource = cmp.Or(filled.Resource, "llm")
	filled.TimeUnit = cmp.Or(filled.TimeUnit, Seconds)
	filled.DurationUnit = cmp.Or(filled.DurationUnit, Milliseconds)
	filled.mostBytes = cmp.Or(filled.mostBytes, MaxBytes)
	filled.mostCalls = cmp.Or(filled.mostCalls, MaxCalls)
	return &filled
}

// Unit is a unit of time of a trace. It is the value of a flag.
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

// perMS returns the number of the units in a millisecond; 0 for seconds.
func (u Unit) perMS() int64 {
	return map[Unit]int64{Milliseconds: 1, Microseconds: 1_000, Nanoseconds: 1_000_000}[u]
}
