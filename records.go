package weir

import "time"

// AuditEvent is the record of one change of the configuration.
type AuditEvent struct {
	// ID is a ULID; a later event has a greater one.
	ID string
	// At is when it happened, to the second.
	At time.Time
	// Action says what: "entity_created", "entity_deleted", "entity_parent_changed", "limits_set",
	// "limits_deleted", or what another program on the same store calls its own.
	Action string
	// Entity is whom it concerns; "$SYSTEM" or "$RESOURCE:" and a name where that is nobody.
	Entity string
	// Principal is who did it; empty if nobody knows.
	Principal string
	// Resource is the resource that it concerns; empty if none.
	Resource string
	// Details are the action's own: strings, bools, int64s, json.Numbers, nil, and maps and
	// slices of them.
	Details map[string]any
}

// Usage is what was counted on one (entity, resource) in one window of time, or the sum of several
// windows. As a question it says which ones are meant.
type Usage struct {
	// Entity and Resource are where it was used. In a question: empty for any.
	Entity   string
	Resource string
	// Window is "hourly", "daily" or "monthly". In a question: empty for any.
	Window string
	// Start is when the window began and End when it ended: the first instant after it. In a
	// question: windows that begin at Start or later, and before End; zero for no bound.
	Start, End time.Time
	// Events is how many changes of limits were counted.
	Events int64
	// Units are what was used, by limit.
	Units map[string]int64
	// Overdrawn is how often a limit that does not deny was left in debt, by limit.
	Overdrawn map[string]int64
	// Windows is how many windows are summed up: 1 in a record.
	Windows int
}

// Add counts another record in. It fails with code [Unsupported] if a sum does not fit 64 bits.
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
		return NewError(Unsupported, "usage", "", "adds up to more than 64 bits hold: ask for less time")
	}
	return nil
}
