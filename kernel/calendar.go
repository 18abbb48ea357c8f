package kernel

import "time"

// Calendar divides time into the periods of a budget.
type Calendar struct {
	// Every is the length of a period: [Hour], [Day], [Week] (from Monday) or [Month].
	Every string
	// Zone is the time zone in which the periods begin at midnight, or on the hour. Default: UTC.
	Zone *time.Location
}

// The lengths of a calendar's periods.
const (
	Hour  = "hour"
	Day   = "day"
	Week  = "week"
	Month = "month"
)

// Period returns the period that contains t: from start, up to but not including end. A day, week
// or month starts at the first instant whose local date is in it. An hour starts whenever the local
// clock begins an hour, so that an hour that the clock repeats counts twice (docs/semantics.md,
// 2.4).
func (c Calendar) Period(t time.Time) (start, end time.Time) {
	if c.Zone == nil {
		c.Zone = time.UTC
	}
	t = t.In(c.Zone)
	if c.Every == Hour {
		return hourStart(t), hourEnd(t)
	}
	return c.around(t)
}

// PeriodMS is [Calendar.Period] in Unix milliseconds.
func (c Calendar) PeriodMS(nowMS int64) (startMS, endMS int64) {
	start, end := c.Period(time.UnixMilli(nowMS))
	return start.UnixMilli(), end.UnixMilli()
}

// around returns the period of dates that contains t. The local date of t is only a first guess: if
// the clock goes back over midnight, t may have yesterday's date although today's period has begun.
func (c Calendar) around(t time.Time) (start, end time.Time) {
	y, m, day := t.Date()
	first := c.first(time.Date(y, m, day, 0, 0, 0, 0, time.UTC))
	start, end = firstInstant(first, t.Location()), firstInstant(c.next(first), t.Location())
	for !end.After(t) {
		first = c.next(first)
		start, end = end, firstInstant(c.next(first), t.Location())
	}
	return start, end
}

// first returns the first date of the period that contains a date. Dates are midnights in UTC.
func (c Calendar) first(date time.Time) time.Time {
	switch c.Every {
	case Week:
		sinceMonday := (int(date.Weekday()) + 6) % 7
		return date.AddDate(0, 0, -sinceMonday)
	case Month:
		return date.AddDate(0, 0, 1-date.Day())
	default:
		return date
	}
}

// next returns the first date of the period after the one that begins at first.
func (c Calendar) next(first time.Time) time.Time {
	switch c.Every {
	case Week:
		return first.AddDate(0, 0, 7)
	case Month:
		return first.AddDate(0, 1, 0)
	default:
		return first.AddDate(0, 0, 1)
	}
}

// firstInstant returns the first instant in zone at which the local date is date or later. It walks
// the spans of constant UTC offset, because a change of the offset may skip midnight or repeat it.
func firstInstant(date time.Time, zone *time.Location) time.Time {
	const widest = 26 * time.Hour // no zone was ever that far from UTC
	at := date.Add(-widest).In(zone)
	for {
		_, offset := at.Zone()
		spanEnd := offsetEnd(at)
		midnight := date.Add(-time.Duration(offset) * time.Second)
		if midnight.Before(at) {
			midnight = at // the offset changed from before midnight to after it
		}
		if spanEnd.IsZero() || midnight.Before(spanEnd) {
			return midnight.In(zone)
		}
		at = spanEnd
	}
}

// offsetEnd returns an instant after t until which the UTC offset at t stays; zero if it never
// changes. On the last day of a leap year [time.Time.ZoneBounds] may return the start of that day
// instead of the start of the next (golang/go#81583); the end is then not after t, and offsetEnd
// returns the next midnight in UTC.
func offsetEnd(t time.Time) time.Time {
	const day = 24 * time.Hour
	_, end := t.ZoneBounds()
	if !end.IsZero() && !end.After(t) {
		return t.Truncate(day).Add(day) // the next midnight in UTC
	}
	return end
}

// hourStart returns the latest instant, not after t, at which a local hour began.
func hourStart(t time.Time) time.Time {
	for {
		start := t.Add(-sinceFullHour(t))
		spanStart, _ := t.ZoneBounds()
		if spanStart.IsZero() || !start.Before(spanStart) {
			return start
		}
		if hourBegins(spanStart) {
			return spanStart
		}
		t = spanStart.Add(-1)
	}
}

// hourEnd returns the first instant after t at which a local hour begins.
func hourEnd(t time.Time) time.Time {
	for {
		end := t.Add(time.Hour - sinceFullHour(t))
		spanEnd := offsetEnd(t)
		if spanEnd.IsZero() || end.Before(spanEnd) {
			return end
		}
		if hourBegins(spanEnd) {
			return spanEnd
		}
		t = spanEnd
	}
}

func sinceFullHour(t time.Time) time.Duration {
	return time.Duration(t.Minute())*time.Minute + time.Duration(t.Second())*time.Second +
		time.Duration(t.Nanosecond())
}

// hourBegins reports whether a local hour begins at a change of the UTC offset: the hour is another
// one than before, or the clock goes back into it.
func hourBegins(change time.Time) bool {
	before := change.Add(-1)
	_, was := before.Zone()
	_, is := change.Zone()
	return is < was || before.Hour() != change.Hour() || before.YearDay() != change.YearDay()
}
