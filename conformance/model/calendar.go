package model

import (
	"sync"
	"time"

	"github.com/weir-limiter/weir"
)

const minuteMS = 60_000

// Calendar finds the periods of budgets by looking at every minute. No zone has changed its offset
// within a minute since 1972. It caches the periods, and models may share it.
type Calendar struct {
	mu    sync.Mutex
	zones map[string]*time.Location
	known map[calendarKey]periodBounds
}

// calendarKey identifies a minute of a calendar. Periods begin and end with a minute.
type calendarKey struct {
	zone, every string
	minute      int64
}

type periodBounds struct{ start, end int64 } // Unix milliseconds

// NewCalendar returns an empty calendar.
func NewCalendar() *Calendar {
	return &Calendar{zones: make(map[string]*time.Location), known: make(map[calendarKey]periodBounds)}
}

// Period returns the period of a budget that contains ms, from start up to but not including end,
// in Unix milliseconds (2.4).
func (c *Calendar) Period(l *weir.Limit, ms int64) (start, end int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := calendarKey{l.Zone, l.Every, floorDiv(num(ms), num(minuteMS)).Int64()}
	s, ok := c.known[k]
	if !ok {
		s = scan(c.zone(l.Zone), l.Every, k.minute)
		c.known[k] = s
	}
	return s.start, s.end
}

func (c *Calendar) zone(name string) *time.Location {
	if z := c.zones[name]; z != nil {
		return z
	}
	z, err := time.LoadLocation(name)
	if err != nil {
		z = time.UTC // not reached: definitions with such a zone are refused
	}
	c.zones[name] = z
	return z
}

func scan(zone *time.Location, every string, minute int64) periodBounds {
	if every == "hour" {
		return scanHour(zone, minute)
	}
	return scanDates(zone, every, minute)
}

// scanHour finds the minute at which the local hour began, and the minute at which the next one
// begins.
func scanHour(zone *time.Location, minute int64) periodBounds {
	start := minute
	for !hourBegins(zone, start) {
		start--
	}
	end := minute + 1
	for !hourBegins(zone, end) {
		end++
	}
	return periodBounds{start * minuteMS, end * minuteMS}
}

// hourBegins reports whether the local clock shows another hour than a minute ago, or was set back:
// a repeated hour counts twice (2.4).
func hourBegins(zone *time.Location, minute int64) bool {
	was, is := wall(zone, minute-1), wall(zone, minute)
	return is < was || is/60 != was/60
}

// wall returns the local time in minutes, counted from a fixed date.
func wall(zone *time.Location, minute int64) int64 {
	t := local(zone, minute)
	return dayNumber(t)*24*60 + int64(t.Hour())*60 + int64(t.Minute())
}

func local(zone *time.Location, minute int64) time.Time { return timeAt(minute * minuteMS).In(zone) }

// scanDates goes from well before the period to well after it, and finds each minute whose local
// date is the first that lies in a later period than any before: there a period starts (2.4). If
// the clock goes back over midnight, yesterday's date returns, but today has begun.
func scanDates(zone *time.Location, every string, minute int64) periodBounds {
	const day = 24 * 60
	reach := map[string]int64{"day": 3, "week": 9, "month": 33}[every] * day
	from := minute - reach
	latest := label(every, local(zone, from))
	start := from
	for m := from + 1; ; m++ {
		at := label(every, local(zone, m))
		if at <= latest {
			continue
		}
		if m > minute {
			return periodBounds{start * minuteMS, m * minuteMS}
		}
		latest, start = at, m
	}
}

// label returns the number of the period that contains a local date.
func label(every string, t time.Time) int64 {
	switch every {
	case "month":
		return int64(t.Year())*12 + int64(t.Month())
	case "week":
		const firstMonday = 4 // 1970-01-05, counted from 1970-01-01
		return floorDiv(num(dayNumber(t)-firstMonday), num(7)).Int64()
	default:
		return dayNumber(t)
	}
}

// dayNumber returns the number of days from 1970-01-01 to a local date.
func dayNumber(t time.Time) int64 {
	y, m, d := t.Date()
	return time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Unix() / 86400
}
