package conformance

import (
	"time"

	"github.com/weir-limiter/weir"
)

// periodCase is the calendar of a budget, an instant, and the end of the period that contains it.
type periodCase struct {
	name, every, zone, at, end string
}

// periods were worked out by hand from the rules of the zones.
var periods = []periodCase{
	{"an hour in UTC", "hour", "", "2025-06-18T12:34:56.789Z", "2025-06-18T13:00:00Z"},
	{"a day in UTC", "day", "", "2025-06-18T00:00:00Z", "2025-06-19T00:00:00Z"},
	{"a week from Monday", "week", "", "2025-06-18T12:00:00Z", "2025-06-23T00:00:00Z"},
	{"a week on its Sunday", "week", "", "2025-06-22T23:59:59.999Z", "2025-06-23T00:00:00Z"},
	{"a leap February", "month", "", "2024-02-29T12:00:00Z", "2024-03-01T00:00:00Z"},
	{"a December", "month", "", "2025-12-31T23:59:59.999Z", "2026-01-01T00:00:00Z"},
	{"a day of 23 hours", "day", "Europe/Berlin", "2025-03-29T23:00:00Z", "2025-03-30T22:00:00Z"},
	{"a day of 25 hours", "day", "Europe/Berlin", "2025-10-25T22:00:00Z", "2025-10-26T23:00:00Z"},
	{"a month across daylight saving", "month", "Europe/Berlin", "2025-10-01T00:00:00Z",
		"2025-10-31T23:00:00Z"},
	{"an hour for the first time", "hour", "Europe/Berlin", "2025-10-26T00:30:00Z",
		"2025-10-26T01:00:00Z"},
	{"the same hour again", "hour", "Europe/Berlin", "2025-10-26T01:30:00Z", "2025-10-26T02:00:00Z"},
	{"a day at a half hour", "day", "Asia/Kolkata", "2025-06-18T18:29:59.999Z",
		"2025-06-18T18:30:00Z"},
	{"an hour at a half hour", "hour", "Asia/Kolkata", "2025-06-18T18:00:00Z", "2025-06-18T18:30:00Z"},
	{"an hour of which half comes twice", "hour", "Australia/Lord_Howe", "2025-04-05T14:30:00Z",
		"2025-04-05T15:00:00Z"},
	{"the half that came again", "hour", "Australia/Lord_Howe", "2025-04-05T15:10:00Z",
		"2025-04-05T15:30:00Z"},
	{"a day before a skipped midnight", "day", "Africa/Cairo", "2025-04-24T12:00:00Z",
		"2025-04-24T22:00:00Z"},
	{"a day without a midnight", "day", "Africa/Cairo", "2025-04-24T22:00:00Z",
		"2025-04-25T21:00:00Z"},
	{"a day with two midnights", "day", "America/Havana", "2025-11-02T04:30:00Z",
		"2025-11-03T05:00:00Z"},
	{"yesterday's date again", "day", "America/St_Johns", "2010-11-07T02:45:00Z",
		"2010-11-08T03:30:00Z"},
	{"a day before one that was skipped", "day", "Pacific/Apia", "2011-12-29T10:00:00Z",
		"2011-12-30T10:00:00Z"},
}

// periodCases returns the cases of line 2.4, for every kind of calendar.
func periodCases() []Case {
	var cases []Case
	for _, p := range periods {
		run := onWorld(system(budgetOf("n", 10, p.every, p.zone)).from(parsed(p.at)), func(s *caseWorld) {
			s.admit(ask("a", cost(10)))
			s.expectRetryAfter(ask("a", cost(1)), parsed(p.end).Sub(s.Now()))
			s.expectAvailable("a", cost(9))
		})
		cases = append(cases, Case{"a budget of " + p.name, "2.4", timed(weir.Budget), run})
	}
	return cases
}

// parsed parses an instant of a case, which is well formed.
func parsed(s string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		panic(err)
	}
	return t
}
