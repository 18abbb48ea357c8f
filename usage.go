package weir

import "time"

// UsageWindow is the length of the windows of time over which usage is summed. They begin on the
// hour, the day or the month, in UTC.
type UsageWindow string

// The windows of usage.
const (
	Hourly  UsageWindow = "hourly"
	Daily   UsageWindow = "daily"
	Monthly UsageWindow = "monthly"
)

// Valid reports whether w is one of the windows.
func (w UsageWindow) Valid() bool { return w == Hourly || w == Daily || w == Monthly }

// Start returns the start of the window that contains at. For an unknown window it returns at.
func (w UsageWindow) Start(at time.Time) time.Time {
	at = at.UTC()
	switch w {
	case Monthly:
		return time.Date(at.Year(), at.Month(), 1, 0, 0, 0, 0, time.UTC)
	case Daily:
		return time.Date(at.Year(), at.Month(), at.Day(), 0, 0, 0, 0, time.UTC)
	case Hourly:
		return at.Truncate(time.Hour)
	}
	return at
}

// End returns the first instant after the window that contains at. For an unknown window it returns
// at.
func (w UsageWindow) End(at time.Time) time.Time {
	start := w.Start(at)
	switch w {
	case Monthly:
		return start.AddDate(0, 1, 0)
	case Daily:
		return start.AddDate(0, 0, 1)
	case Hourly:
		return start.Add(time.Hour)
	}
	return start
}

// Usage is what one entity has used of one resource in one window, or the sum of several windows.
type Usage struct {
	Entity   string
	Resource string
	Window   UsageWindow
	// Start is when the window began, End is the first instant after it.
	Start, End time.Time
	// Events is the number of changes of limits that were counted.
	Events int64
	// Units are the units used, by limit: what was reserved and charged in the window, less what was
	// given back in it. A window in which more was given back than used has a number below zero. A
	// slot of a concurrency limit counts when it is taken; only a cancel gives it back.
	Units map[string]int64
	// Overdrawn is the number of times that a limit that does not deny was left in debt, by limit.
	Overdrawn map[string]int64
	// Windows is the number of windows in the sum: 1 in a record.
	Windows int
}

// Add adds another record to u, whose maps may be nil. It returns an error with code [Unsupported]
// if a sum does not fit 64 bits.
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
	add := func(to *map[string]int64, from map[string]int64) {
		if *to == nil && len(from) > 0 {
			*to = make(map[string]int64, len(from))
		}
		for name, n := range from {
			(*to)[name] = sum((*to)[name], n)
		}
	}
	u.Events = sum(u.Events, o.Events)
	add(&u.Units, o.Units)
	add(&u.Overdrawn, o.Overdrawn)
	if !fits {
		return NewError(Unsupported, "usage", "",
			"the sum does not fit in 64 bits: ask for a shorter time")
	}
	return nil
}

// UsageQuery says which usage to list. It must name an entity or a resource.
type UsageQuery struct {
	// Entity and Resource restrict the list to one entity, to one resource, or to both. Default: any.
	Entity, Resource string
	// Limit restricts the units to those of one limit. Default: any.
	Limit string
	// Window is the length of the windows. Default: Hourly.
	Window UsageWindow
	// From and To restrict the list to windows that begin at or after From and before To. Default:
	// no bound.
	From, To time.Time
	// After is the Next of the previous page. Default: begin with the first window.
	After string
	// Size is the largest number of windows in a page, up to 1,000. Default: 100.
	Size int
}

// UsagePage is one page of a list of usage.
type UsagePage struct {
	// Usage has a record for each resource and window in which something was used, sorted by resource
	// and then by time. If the query names no entity, the records are sorted by time and then by
	// entity.
	Usage []Usage
	// Gaps are the times within the query's bounds for which usage may be missing, in order.
	Gaps []UsageGap
	// Next is the After of the next page; empty if this is the last.
	Next string
}

// UsageGap is a time for which the recorded usage may be less than what was used.
type UsageGap struct {
	// From and To are the bounds: From is zero if there is none. To is the first instant after the
	// gap.
	From, To time.Time
	// Reason says why, for people: "older hours were dropped".
	Reason string
}
