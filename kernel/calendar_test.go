package kernel_test

import (
	"math/rand/v2"
	"testing"
	"time"
	_ "time/tzdata" // the machine may have no zone files

	"github.com/weir-limiter/weir/kernel"
)

func calendarIn(t *testing.T, every, zone string) kernel.Calendar {
	t.Helper()
	in, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	return kernel.Calendar{Every: every, Zone: in}
}

func instant(t *testing.T, s string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

type periodCase struct{ every, at, start, end string }

func checkPeriods(t *testing.T, zone string, cases []periodCase) {
	t.Helper()
	for _, c := range cases {
		gotStart, gotEnd := calendarIn(t, c.every, zone).Period(instant(t, c.at))
		start, end := instant(t, c.start), instant(t, c.end)
		if !gotStart.Equal(start) || !gotEnd.Equal(end) {
			t.Errorf("%s in %s at %s: got %s to %s, want %s to %s", c.every, zone, c.at,
				gotStart.Format(time.RFC3339Nano), gotEnd.Format(time.RFC3339Nano), c.start, c.end)
		}
	}
}

func TestPeriodWithoutClockChanges(t *testing.T) {
	t.Parallel()
	checkPeriods(t, "UTC", []periodCase{
		{"hour", "2026-05-06T07:08:09.1Z", "2026-05-06T07:00:00Z", "2026-05-06T08:00:00Z"},
		{"hour", "2026-05-06T07:00:00Z", "2026-05-06T07:00:00Z", "2026-05-06T08:00:00Z"},
		{"hour", "2026-05-06T06:59:59.999999999Z", "2026-05-06T06:00:00Z", "2026-05-06T07:00:00Z"},
		{"day", "2026-05-06T07:08:09Z", "2026-05-06T00:00:00Z", "2026-05-07T00:00:00Z"},
		{"day", "2026-12-31T23:59:59.999999999Z", "2026-12-31T00:00:00Z", "2027-01-01T00:00:00Z"},
		{"week", "2026-05-06T07:08:09Z", "2026-05-04T00:00:00Z", "2026-05-11T00:00:00Z"}, // Wednesday
		{"week", "2026-05-04T00:00:00Z", "2026-05-04T00:00:00Z", "2026-05-11T00:00:00Z"}, // Monday
		{"week", "2026-05-10T23:59:59Z", "2026-05-04T00:00:00Z", "2026-05-11T00:00:00Z"}, // Sunday
		{"week", "2027-01-01T00:00:00Z", "2026-12-28T00:00:00Z", "2027-01-04T00:00:00Z"},
		{"month", "2028-02-29T12:00:00Z", "2028-02-01T00:00:00Z", "2028-03-01T00:00:00Z"},
		{"month", "2026-12-31T12:00:00Z", "2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z"},
		{"month", "1969-12-31T12:00:00Z", "1969-12-01T00:00:00Z", "1970-01-01T00:00:00Z"},
	})
	checkPeriods(t, "Asia/Kathmandu", []periodCase{
		{"hour", "2026-01-01T00:00:00Z", "2026-01-01T05:00:00+05:45", "2026-01-01T06:00:00+05:45"},
		{"day", "2026-01-01T18:14:59Z", "2026-01-01T00:00:00+05:45", "2026-01-02T00:00:00+05:45"},
		{"day", "2026-01-01T18:15:00Z", "2026-01-02T00:00:00+05:45", "2026-01-03T00:00:00+05:45"},
		{"month", "2026-01-31T18:15:00Z", "2026-02-01T00:00:00+05:45", "2026-03-01T00:00:00+05:45"},
	})
}

func TestPeriodOverDaylightSaving(t *testing.T) {
	t.Parallel()
	checkPeriods(t, "Europe/Berlin", []periodCase{
		// In spring the hour 02 does not exist and the day has 23 hours.
		{"hour", "2026-03-29T00:59:59Z", "2026-03-29T01:00:00+01:00", "2026-03-29T03:00:00+02:00"},
		{"hour", "2026-03-29T01:00:00Z", "2026-03-29T03:00:00+02:00", "2026-03-29T04:00:00+02:00"},
		{"day", "2026-03-29T12:00:00Z", "2026-03-29T00:00:00+01:00", "2026-03-30T00:00:00+02:00"},
		{"week", "2026-03-29T12:00:00Z", "2026-03-23T00:00:00+01:00", "2026-03-30T00:00:00+02:00"},
		{"month", "2026-03-29T12:00:00Z", "2026-03-01T00:00:00+01:00", "2026-04-01T00:00:00+02:00"},
		{"month", "2026-03-31T22:00:00Z", "2026-04-01T00:00:00+02:00", "2026-05-01T00:00:00+02:00"},
		// In autumn the hour 02 comes twice and counts twice, and the day has 25 hours.
		{"hour", "2026-10-25T00:30:00Z", "2026-10-25T02:00:00+02:00", "2026-10-25T02:00:00+01:00"},
		{"hour", "2026-10-25T01:00:00Z", "2026-10-25T02:00:00+01:00", "2026-10-25T03:00:00+01:00"},
		{"hour", "2026-10-25T01:59:59Z", "2026-10-25T02:00:00+01:00", "2026-10-25T03:00:00+01:00"},
		{"day", "2026-10-25T12:00:00Z", "2026-10-25T00:00:00+02:00", "2026-10-26T00:00:00+01:00"},
		{"week", "2026-10-25T12:00:00Z", "2026-10-19T00:00:00+02:00", "2026-10-26T00:00:00+01:00"},
	})
	checkPeriods(t, "Australia/Lord_Howe", []periodCase{
		// The clock goes back by half an hour: hour 01 begins again at 01:30, and hour 02 at 02:30.
		{"hour", "2025-04-05T14:59:59Z", "2025-04-06T01:00:00+11:00", "2025-04-06T01:30:00+10:30"},
		{"hour", "2025-04-05T15:00:00Z", "2025-04-06T01:30:00+10:30", "2025-04-06T02:00:00+10:30"},
		{"hour", "2025-10-04T15:29:59Z", "2025-10-05T01:00:00+10:30", "2025-10-05T02:30:00+11:00"},
		{"hour", "2025-10-04T15:30:00Z", "2025-10-05T02:30:00+11:00", "2025-10-05T03:00:00+11:00"},
		{"day", "2025-10-04T15:30:00Z", "2025-10-05T00:00:00+10:30", "2025-10-06T00:00:00+11:00"},
	})
}

func TestPeriodWhereMidnightIsSkippedOrRepeated(t *testing.T) {
	t.Parallel()
	checkPeriods(t, "America/Santiago", []periodCase{
		// At 24:00 the clock goes forward to 01:00.
		{"day", "2025-09-07T03:59:59Z", "2025-09-06T00:00:00-04:00", "2025-09-07T01:00:00-03:00"},
		{"day", "2025-09-07T04:00:00Z", "2025-09-07T01:00:00-03:00", "2025-09-08T00:00:00-03:00"},
		{"hour", "2025-09-07T03:59:59Z", "2025-09-06T23:00:00-04:00", "2025-09-07T01:00:00-03:00"},
		// At 24:00 it goes back to 23:00, so the new date has not begun.
		{"day", "2025-04-06T03:30:00Z", "2025-04-05T00:00:00-03:00", "2025-04-06T00:00:00-04:00"},
		{"hour", "2025-04-06T02:30:00Z", "2025-04-05T23:00:00-03:00", "2025-04-05T23:00:00-04:00"},
		{"hour", "2025-04-06T03:30:00Z", "2025-04-05T23:00:00-04:00", "2025-04-06T00:00:00-04:00"},
	})
	checkPeriods(t, "America/Havana", []periodCase{
		{"day", "2025-03-09T05:00:00Z", "2025-03-09T01:00:00-04:00", "2025-03-10T00:00:00-04:00"},
		// At 01:00 it goes back to 00:00: the first of the two midnights starts the day.
		{"day", "2025-11-02T04:30:00Z", "2025-11-02T00:00:00-04:00", "2025-11-03T00:00:00-05:00"},
		{"day", "2025-11-02T05:30:00Z", "2025-11-02T00:00:00-04:00", "2025-11-03T00:00:00-05:00"},
		{"hour", "2025-11-02T04:30:00Z", "2025-11-02T00:00:00-04:00", "2025-11-02T00:00:00-05:00"},
		{"hour", "2025-11-02T05:30:00Z", "2025-11-02T00:00:00-05:00", "2025-11-02T01:00:00-05:00"},
	})
	checkPeriods(t, "America/St_Johns", []periodCase{
		// At 00:01 it goes back to 23:01 of a date that has ended. The new day goes on.
		{"day", "2010-11-07T02:29:59Z", "2010-11-06T00:00:00-02:30", "2010-11-07T00:00:00-02:30"},
		{"day", "2010-11-07T02:30:00Z", "2010-11-07T00:00:00-02:30", "2010-11-08T00:00:00-03:30"},
		{"day", "2010-11-07T02:31:00Z", "2010-11-07T00:00:00-02:30", "2010-11-08T00:00:00-03:30"},
		{"week", "2010-11-07T02:31:00Z", "2010-11-01T00:00:00-02:30", "2010-11-08T00:00:00-03:30"},
		{"hour", "2010-11-07T02:30:59Z", "2010-11-07T00:00:00-02:30", "2010-11-06T23:01:00-03:30"},
		{"hour", "2010-11-07T02:31:00Z", "2010-11-06T23:01:00-03:30", "2010-11-07T00:00:00-03:30"},
		{"hour", "2010-11-07T03:30:00Z", "2010-11-07T00:00:00-03:30", "2010-11-07T01:00:00-03:30"},
		{"hour", "2010-03-14T03:30:30Z", "2010-03-14T00:00:00-03:30", "2010-03-14T01:01:00-02:30"},
		{"hour", "2010-03-14T03:31:00Z", "2010-03-14T01:01:00-02:30", "2010-03-14T02:00:00-02:30"},
	})
	checkPeriods(t, "Asia/Kathmandu", []periodCase{
		// At 24:00 on New Year's Eve of 1985 the clock went forward to 00:15.
		{"day", "1985-12-31T18:30:00Z", "1986-01-01T00:15:00+05:45", "1986-01-02T00:00:00+05:45"},
		{"month", "1985-12-31T18:29:59Z", "1985-12-01T00:00:00+05:30", "1986-01-01T00:15:00+05:45"},
		{"hour", "1985-12-31T18:30:00Z", "1986-01-01T00:15:00+05:45", "1986-01-01T01:00:00+05:45"},
	})
	checkPeriods(t, "Pacific/Apia", []periodCase{
		// 30 December 2011 was skipped.
		{"day", "2011-12-30T09:59:59Z", "2011-12-29T00:00:00-10:00", "2011-12-31T00:00:00+14:00"},
		{"day", "2011-12-30T10:00:00Z", "2011-12-31T00:00:00+14:00", "2012-01-01T00:00:00+14:00"},
		{"hour", "2011-12-30T09:59:59Z", "2011-12-29T23:00:00-10:00", "2011-12-31T00:00:00+14:00"},
		{"week", "2011-12-30T10:00:00Z", "2011-12-26T00:00:00-10:00", "2012-01-02T00:00:00+14:00"},
	})
}

// On these days time.Time.ZoneBounds returns an end of the offset that is too early
// (golang/go#81583).
func TestPeriodOnTheLastDayOfALeapYear(t *testing.T) {
	t.Parallel()
	checkPeriods(t, "Europe/Berlin", []periodCase{
		{"hour", "2040-12-31T12:30:00Z", "2040-12-31T13:00:00+01:00", "2040-12-31T14:00:00+01:00"},
		{"hour", "2040-12-31T23:59:59Z", "2041-01-01T00:00:00+01:00", "2041-01-01T01:00:00+01:00"},
		{"day", "2040-12-31T12:30:00Z", "2040-12-31T00:00:00+01:00", "2041-01-01T00:00:00+01:00"},
		{"week", "2040-12-31T12:30:00Z", "2040-12-31T00:00:00+01:00", "2041-01-07T00:00:00+01:00"},
		{"month", "2040-12-31T12:30:00Z", "2040-12-01T00:00:00+01:00", "2041-01-01T00:00:00+01:00"},
	})
	checkPeriods(t, "America/St_Johns", []periodCase{
		{"hour", "2040-12-31T12:15:00Z", "2040-12-31T08:00:00-03:30", "2040-12-31T09:00:00-03:30"},
		{"hour", "2041-01-01T00:15:00Z", "2040-12-31T20:00:00-03:30", "2040-12-31T21:00:00-03:30"},
		{"day", "2041-01-01T03:29:59Z", "2040-12-31T00:00:00-03:30", "2041-01-01T00:00:00-03:30"},
	})
}

// Periods tile time in every zone: each contains its instants and ends where the next one starts.
func TestPeriodsLeaveNoGap(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(2026, 1))
	first, last := instant(t, "0001-01-01T00:00:00Z").Unix(), instant(t, "9999-12-31T00:00:00Z").Unix()
	for _, zone := range scannedZones {
		for _, every := range []string{"hour", "day", "week", "month"} {
			c := calendarIn(t, every, zone)
			for i := range 30 {
				sec := first + rng.Int64N(last-first)
				if i%2 == 0 {
					sec = -4_000_000_000 + rng.Int64N(8_000_000_000) // most clock changes are in this range
				}
				at := time.Unix(sec, rng.Int64N(1e9))
				start, end := c.Period(at)
				if start.After(at) || !end.After(at) {
					t.Fatalf("%s in %s: %v is not in %v to %v", every, zone, at, start, end)
				}
				if again, _ := c.Period(start); !again.Equal(start) {
					t.Fatalf("%s in %s: the start %v lies in the period of %v", every, zone, start, again)
				}
				if next, _ := c.Period(end); !next.Equal(end) {
					t.Fatalf("%s in %s: %v ends at %v, the next starts at %v", every, zone, at, end, next)
				}
			}
		}
	}
}
