package weir

import "time"

// The calendar periods of a budget.
const (
	everyHour  = "hour"
	everyDay   = "day"
	everyWeek  = "week"
	everyMonth = "month"
)

// Period returns the calendar period of a budget that holds t: from start, up to but not including
// end. A period starts at the first instant whose local date lies in it; an hour starts whenever
// the local hour begins, so that a repeated hour counts twice (docs/semantics.md, 2.4).
func (l *Limit) Period(t time.Time) (start, end time.Time) {
	zone := l.zone
	if zone == nil {
		loaded, err := time.LoadLocation(l.Zone)
		if err != nil {
			loaded = time.UTC // a limit that was never normalized
		}
		zone = loaded
	}
	t = t.In(zone)
	if l.Every == everyHour {
		return hourStart(t), hourEnd(t)
	}
	return dates(l.Every).around(t)
}

// dates is a calendar of periods that begin at a local date.
type dates string

// around finds the period that holds t. The label of t is only a guess: where clocks go back over
// midnight, an instant may bear yesterday's date although today's period has begun.
func (d dates) around(t time.Time) (start, end time.Time) {
	y, m, day := t.Date()
	first := d.first(time.Date(y, m, day, 0, 0, 0, 0, time.UTC))
	start, end = firstInstant(first, t.Location()), firstInstant(d.next(first), t.Location())
	for !end.After(t) {
		first = d.next(first)
		start, end = end, firstInstant(d.next(first), t.Location())
	}
	return start, end
}

// first returns the first date of the period that a date lies in. Dates are midnights in UTC.
func (d dates) first(date time.Time) time.Time {
	switch string(d) {
	case everyWeek:
		sinceMonday := (int(date.Weekday()) + 6) % 7
		return date.AddDate(0, 0, -sinceMonday)
	case everyMonth:
		return date.AddDate(0, 0, 1-date.Day())
	default:
		return date
	}
}

// next returns the first date of the period after the one that begins at first.
func (d dates) next(first time.Time) time.Time {
	switch string(d) {
	case everyWeek:
		return first.AddDate(0, 0, 7)
	case everyMonth:
		return first.AddDate(0, 1, 0)
	default:
		return first.AddDate(0, 0, 1)
	}
}

// firstInstant returns the first instant at which it is date, or later, in zone. It walks the spans
// of constant offset: midnight may be skipped, or come twice.
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

// offsetEnd returns an instant after t up to which the offset at t holds, zero if it holds for
// ever. On the last day of a leap year [time.Time.ZoneBounds] may answer with that day's start
// (golang/go#81583); what it means is the start of the next.
func offsetEnd(t time.Time) time.Time {
	const day = 24 * time.Hour
	_, end := t.ZoneBounds()
	if !end.IsZero() && !end.After(t) {
		return t.Truncate(day).Add(day) // the next midnight in UTC
	}
	return end
}

// hourStart returns the latest instant up to t at which a local hour began.
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

// hourBegins reports whether a local hour begins at an instant at which the offset changes: the hour
// has another name than before, or the clock went back into it.
func hourBegins(change time.Time) bool {
	before := change.Add(-1)
	_, was := before.Zone()
	_, is := change.Zone()
	return is < was || before.Hour() != change.Hour() || before.YearDay() != change.YearDay()
}
