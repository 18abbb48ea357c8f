package replay

// Call is one call of a trace. A trace may have millions, so it is small: 40 bytes, and it points
// at nothing.
type Call struct {
	AtMS          int64 // when it came, in Unix milliseconds
	Input, Output int64 // tokens; their sum fits too
	Line          int32 // of the trace
	Caller        int32 // who made it: an index of the trace's or the workload's callers
	LastsMS       int32 // how long it lasted, in milliseconds; negative where the trace does not say
}

// untold is how long a call lasted of which the trace does not say it.
const untold = -1

// Tokens are those that went in and those that came out.
func (c *Call) Tokens() int64 { return c.Input + c.Output }

// Caller is who calls what.
type Caller struct {
	Entity, Resource string
	// rank puts tenants by their numbers; others stand by their names.
	rank int32
}

// Trace is recorded traffic, in the order of its times; of two calls at one instant the one that
// the file has first comes first.
type Trace struct {
	Name  string // for messages
	Calls []Call
	// Callers are whom the calls name. Without a column for the entity there is one for each
	// resource, and its entity is empty.
	Callers []Caller
	// EntityColumn, ModelColumn and DurationColumn are those that were read; empty for none.
	EntityColumn, ModelColumn, DurationColumn string
}
