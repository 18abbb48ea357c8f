package weir

import "time"

// AuditEvent is the record of one change of the configuration.
type AuditEvent struct {
	// ID is a ULID. A later event has a greater ID.
	ID string
	// At is when the change was made, to the second.
	At time.Time
	// Action is the sort of change: "entity_created", "entity_deleted", "entity_parent_changed",
	// "limits_set", "limits_deleted", or another word that another program on the same store has
	// written.
	Action string
	// Entity is the entity that was changed; "$SYSTEM" for the system, "$RESOURCE:" and a name for
	// a resource.
	Entity string
	// Principal is the person or program that made the change; empty if it is not known.
	Principal string
	// Resource is the resource on which something was changed; empty if there is none.
	Resource string
	// Details depend on the action: strings, bools, int64s, json.Numbers, nil, and maps and slices
	// of them.
	Details map[string]any
}

// Usage is the recorded use of one subject in one window of time, or the sum of several windows. As
// an argument it says which windows to return.
type Usage struct {
	// Entity and Resource are the subject. As an argument: empty for any.
	Entity   string
	Resource string
	// Window is "hourly", "daily" or "monthly". As an argument: empty for any.
	Window string
	// Start is when the window began, End is the first instant after it. As an argument: windows
	// that begin at or after Start and before End; zero for no bound.
	Start, End time.Time
	// Events is the number of changes of limits that were counted.
	Events int64
	// Units are the units used, by limit.
	Units map[string]int64
	// Overdrawn is the number of times that a limit that does not deny was left in debt, by limit.
	Overdrawn map[string]int64
	// Windows is the number of windows in the sum: 1 in a record.
	Windows int
}

// Add adds another record to u. It returns an error with code [Unsupported] if a sum does not fit
// 64 bits.
func (u *Usage) Add(o *Usage) error {
	if u.Windows == 0 || o.Start.Before(u.Start) {
		u.Start = o.Start
	}
	if o.End.After(u.End) {
		u.End = o.End
	}
	u.Windows += o.Windows
	fits := true
	sum := func(a, b int64) int64 {
		c := a + b
		fits = fits && (c > a) == (b > 0)
		return c
	}
	u.Events = sum(u.Events, o.Events)
	for name, n := range o.Units {
		u.Units[name] = sum(u.Units[name], n)
	}
	for name, n := range o.Overdrawn {
		u.Overdrawn[name] = sum(u.Overdrawn[name], n)
	}
	if !fits {
		return NewError(Unsupported, "usage", "",
			"the sum does not fit in 64 bits: ask for a shorter time")
	}
	return nil
}
