package oracle

import (
	"bytes"
	"encoding/json"
)

// Fields without a tag are matched by their name in lower case.

// headLine is what the checker reads of every line before it knows what the line is.
type headLine struct {
	Kind   string
	Format int
	AtMS   *int64 `json:"at_ms"`
}

type subjectLine struct {
	Kind, Entity, Resource, Parent string
	Limits                         []limitLine
}

type limitLine struct {
	Name, Kind, Every, Zone string
	Capacity                *int64
	Shadow                  bool
	RefillAmount            int64 `json:"refill_amount"`
	RefillPeriodMS          int64 `json:"refill_period_ms"`
	WindowMS                int64 `json:"window_ms"`
	TimeoutMS               int64 `json:"timeout_ms"`
}

type reserveLine struct {
	Kind, Lease, Error string
	AtMS               int64 `json:"at_ms"`
	Charges            []chargeLine
	Allowed            *bool
	RetryAfterMS       int64 `json:"retry_after_ms"`
	Limits             []statusLine
}

type chargeLine struct {
	Entity, Resource string
	Costs            map[string]int64
}

// statusLine is one limit of a decision. Its available is text: what is left need not be an int64.
type statusLine struct {
	Entity, Resource, Limit, Kind string
	Capacity, Requested           int64
	Available                     json.Number
	Exceeded, Shadow              bool
	RetryAfterMS                  int64 `json:"retry_after_ms"`

	why string // of what the semantics say
}

// verbLine is an adjust (seq, totals), a complete (actuals), a cancel, an extend, or the end.
type verbLine struct {
	Kind, Lease, Error string
	AtMS               int64 `json:"at_ms"`
	Seq                *int64
	Totals, Actuals    []map[string]int64
}

// with decodes a line, in which an unknown field is an error, and hands it on.
func with[T any](raw []byte, do func(*T) error) error {
	var line T
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&line); err != nil {
		return err
	}
	return do(&line)
}
