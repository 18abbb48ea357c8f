package conformance

import (
	"time"

	"github.com/weir-limiter/weir"
)

// period is a budget's calendar, an instant in it and the end of the period that the instant lies in.
type period struct {
	name, every, zone, at, end string
}

// periods were worked out by hand from the zones' rules.
var periods = []period{
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

// budgetCases are line 2.4.
func budgetCases() []Case {
	var cases []Case
	for _, p := range periods {
		run := scene(system(budgetOf("n", 10, p.every, p.zone)).from(parsed(p.at)), func(s *stage) {
			s.admit(ask("a", cost(10)))
			s.returns(ask("a", cost(1)), parsed(p.end).Sub(s.Now()))
			s.left("a", cost(9))
		})
		cases = append(cases, Case{"a budget of " + p.name, "2.4", timed(weir.Budget), run})
	}
	hours := system(budgetOf("h", 10, "hour", ""), budgetOf("d", 20, "day", ""))
	edge := parsed("2025-06-18T23:59:59.999Z")
	return append(cases,
		Case{"a budget fits up to its capacity", "2.4", only(weir.Budget),
			scene(system(budgetOf("n", 10, "month", "")), fitsFree)},
		Case{"U1: usage of an hour and of a day", "2.4", timed(weir.Budget),
			scene(hours.from(parsed("2025-06-18T00:00:00Z")), hoursAndDays)},
		Case{"U1: usage of entities and resources", "2.4", only(weir.Budget),
			scene(system(budgetOf("n", 10, "month", "")), usageApart)},
		Case{"U2: usage booked to the wrong hour", "2.4", timed(weir.Budget),
			scene(hours.from(parsed("2025-06-18T07:10:00Z")), wrongHour)},
		Case{"U2: usage adjusted in another hour", "2.4", timed(weir.Budget),
			scene(hours.from(edge), adjustedLater)},
		Case{"U2: usage refunded in another hour", "2.4", timed(weir.Budget),
			scene(hours.from(edge), refundedLater)},
	)
}

// parsed reads an instant; the cases' own are well formed.
func parsed(s string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		panic(err)
	}
	return t
}

// hoursAndDays: an hour and a day that begin at one instant do not share what was used.
func hoursAndDays(s *stage) {
	s.admit(ask("a", weir.Costs{"h": 7}))
	s.left("a", weir.Costs{"h": 3, "d": 20})
	s.admit(ask("a", weir.Costs{"d": 5}))
	s.left("a", weir.Costs{"h": 3, "d": 15})
	s.Advance(time.Hour)
	s.left("a", weir.Costs{"h": 10, "d": 15})
	s.admit(ask("a", weir.Costs{"h": 10, "d": 10}))
	s.left("a", weir.Costs{"h": 0, "d": 5})
	s.Advance(23 * time.Hour)
	s.left("a", weir.Costs{"h": 10, "d": 20})
}

func usageApart(s *stage) {
	s.admit(ask("a", cost(7)))
	s.admit(&weir.Request{Entity: "a", Resource: "other", Costs: cost(9)})
	s.admit(ask("b", cost(10)))
	s.left("a", cost(3))
	s.admit(ask("a", cost(3)))
	s.deny(&weir.Request{Entity: "a", Resource: "other", Costs: cost(2)})
	s.left("c", cost(10))
}

func wrongHour(s *stage) {
	s.admit(ask("a", weir.Costs{"h": 1}))
	for range 5 {
		s.Advance(time.Hour)
		s.left("a", weir.Costs{"h": 10})
		s.exactly(ask("a", weir.Costs{"h": 2}), 5, 6)
	}
	s.returns(ask("a", weir.Costs{"h": 1}), 50*time.Minute)
}

// adjustedLater learns a millisecond later, in the next hour and day, what was used in the last.
func adjustedLater(s *stage) {
	l := s.admit(ask("a", weir.Costs{"h": 4, "d": 4}))
	s.Advance(time.Millisecond)
	s.adjust(l, 1, weir.Costs{"h": 9, "d": 9})
	s.left("a", weir.Costs{"h": 10, "d": 20})
	s.exactly(ask("a", weir.Costs{"h": 1, "d": 1}), 10, 12)
	s.complete(l, weir.Costs{"h": 50, "d": 50})
	s.left("a", weir.Costs{"h": 0, "d": 10})
}

// refundedLater gives back what was taken in the last hour: the new hour gains nothing.
func refundedLater(s *stage) {
	l := s.admit(ask("a", weir.Costs{"h": 10, "d": 10}))
	s.Advance(time.Millisecond)
	s.admit(ask("a", weir.Costs{"h": 6, "d": 6}))
	s.cancel(l)
	s.left("a", weir.Costs{"h": 4, "d": 14})
	s.exactly(ask("a", weir.Costs{"h": 1}), 4, 6)
}
