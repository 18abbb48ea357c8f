package schema

import (
	"fmt"
	"time"
)

// Window is how long usage is added up for.
type Window string

// The windows that usage is kept for.
const (
	Hourly  Window = "hourly"
	Daily   Window = "daily"
	Monthly Window = "monthly"
)

// The layouts of instants on items; all are in UTC.
const (
	timestampLayout = "2006-01-02T15:04:05Z"
	offsetLayout    = "2006-01-02T15:04:05+00:00"
	fractionLayout  = "2006-01-02T15:04:05.000000+00:00"
	dayLayout       = "2006-01-02"
	monthLayout     = "2006-01"
)

// Timestamp writes an instant as items have it, to the second: "2024-01-01T10:00:00Z".
func Timestamp(t time.Time) string { return t.UTC().Format(timestampLayout) }

// ParseTimestamp reads what [Timestamp] writes.
func ParseTimestamp(s string) (time.Time, error) {
	t, err := time.Parse(timestampLayout, s)
	if err != nil {
		return time.Time{}, fmt.Errorf("timestamp %q is not like %q", s, timestampLayout)
	}
	return t, nil
}

// OffsetTimestamp writes an instant as [Provisioner.AppliedAt] has it: with "+00:00", and with
// microseconds where there are any.
func OffsetTimestamp(t time.Time) string {
	if t = t.UTC().Truncate(time.Microsecond); t.Nanosecond() != 0 {
		return t.Format(fractionLayout)
	}
	return t.Format(offsetLayout)
}

// Start returns the beginning of the window that an instant is in; the instant itself for a window
// that is none of the three.
func (w Window) Start(t time.Time) time.Time {
	t = t.UTC()
	year, month, day := t.Date()
	switch w {
	case Hourly:
		return time.Date(year, month, day, t.Hour(), 0, 0, 0, time.UTC)
	case Daily:
		return time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
	case Monthly:
		return time.Date(year, month, 1, 0, 0, 0, 0, time.UTC)
	}
	return t
}

// End returns the first instant after the window that an instant is in; the instant itself for a
// window that is none of the three.
func (w Window) End(t time.Time) time.Time {
	start := w.Start(t)
	switch w {
	case Hourly:
		return start.Add(time.Hour)
	case Daily:
		return start.AddDate(0, 0, 1)
	case Monthly:
		return start.AddDate(0, 1, 0)
	}
	return start
}

// Key is how keys of usage items name the window that an instant is in: the predecessor's full
// timestamp of the hour, but a day or a month by its date, since an hour, a day and a month that
// begin together must not share one item.
func (w Window) Key(t time.Time) string {
	switch start := w.Start(t); w {
	case Daily:
		return start.Format(dayLayout)
	case Monthly:
		return start.Format(monthLayout)
	default:
		return Timestamp(start)
	}
}
