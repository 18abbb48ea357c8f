package model_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/conformance/model"
)

func TestCalendar(t *testing.T) {
	t.Parallel()
	c := model.NewCalendar()
	for _, p := range []struct {
		name, zone, every, at, start, end string
	}{
		{"a day of 23 hours", "Europe/Berlin", "day", "2026-03-29T12:00:00Z",
			"2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z"},
		{"a day of 25 hours", "Europe/Berlin", "day", "2026-10-25T12:00:00Z",
			"2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z"},
		{"an hour, the first time", "Europe/Berlin", "hour", "2026-10-25T00:59:59Z",
			"2026-10-25T00:00:00Z", "2026-10-25T01:00:00Z"},
		{"the same hour again", "Europe/Berlin", "hour", "2026-10-25T01:00:00Z",
			"2026-10-25T01:00:00Z", "2026-10-25T02:00:00Z"},
		{"a week with a short day", "Europe/Berlin", "week", "2026-03-29T12:00:00Z",
			"2026-03-22T23:00:00Z", "2026-03-29T22:00:00Z"},
		{"a month with a short day", "Europe/Berlin", "month", "2026-03-29T12:00:00Z",
			"2026-02-28T23:00:00Z", "2026-03-31T22:00:00Z"},
		{"midnight is skipped", "America/Santiago", "day", "2026-09-06T04:00:00Z",
			"2026-09-06T04:00:00Z", "2026-09-07T03:00:00Z"},
		{"back to before midnight", "America/Santiago", "day", "2026-04-05T03:30:00Z",
			"2026-04-04T03:00:00Z", "2026-04-05T04:00:00Z"},
		{"midnight comes twice", "America/Havana", "day", "2026-11-01T05:30:00Z",
			"2026-11-01T04:00:00Z", "2026-11-02T05:00:00Z"},
		{"an hour from midnight, again", "America/Havana", "hour", "2026-11-01T05:30:00Z",
			"2026-11-01T05:00:00Z", "2026-11-01T06:00:00Z"},
		{"half an hour again", "Australia/Lord_Howe", "hour", "2026-04-04T15:10:00Z",
			"2026-04-04T15:00:00Z", "2026-04-04T15:30:00Z"},
		{"a day that never was", "Pacific/Apia", "day", "2011-12-30T10:00:00Z",
			"2011-12-30T10:00:00Z", "2011-12-31T10:00:00Z"},
		{"a quarter of an hour off", "Asia/Kathmandu", "hour", "2026-01-01T00:20:00Z",
			"2026-01-01T00:15:00Z", "2026-01-01T01:15:00Z"},
		{"before 1970", "UTC", "week", "1969-12-31T23:59:59Z",
			"1969-12-29T00:00:00Z", "1970-01-05T00:00:00Z"},
	} {
		l := weir.Limit{Zone: p.zone, Every: p.every}
		start, end := c.Period(&l, instant(t, p.at))
		if start != instant(t, p.start) || end != instant(t, p.end) {
			t.Errorf("%s: got %v to %v, want %s to %s", p.name, time.UnixMilli(start).UTC(),
				time.UnixMilli(end).UTC(), p.start, p.end)
		}
	}
}

func instant(t *testing.T, s string) int64 {
	t.Helper()
	at, err := time.Parse(time.RFC3339, s)
	if err != nil {
		t.Fatal(err)
	}
	return at.UnixMilli()
}

// TestCalendarAndPeriod compares two implementations of calendars that share no code.
func TestCalendarAndPeriod(t *testing.T) {
	t.Parallel()
	c := model.NewCalendar()
	rng := rand.New(rand.NewPCG(1, 2))
	from, to := instant(t, "1975-01-01T00:00:00Z"), instant(t, "2035-01-01T00:00:00Z")
	for _, zone := range []string{
		"Europe/Berlin", "America/Santiago", "America/Havana", "Australia/Lord_Howe", "Pacific/Apia",
		"Asia/Kathmandu", "America/St_Johns", "Africa/Cairo", "Asia/Tehran", "Pacific/Chatham",
	} {
		for _, every := range []string{"hour", "day", "week", "month"} {
			l, err := weir.Limit{
				Name: "n", Kind: weir.Budget, Capacity: 1, Every: every, Zone: zone,
			}.Normalize()
			if err != nil {
				t.Fatal(err)
			}
			for range 3 {
				ms := from + rng.Int64N(to-from)
				start, end := c.Period(&l, ms)
				wantStart, wantEnd := l.Period(time.UnixMilli(ms))
				if start != wantStart.UnixMilli() || end != wantEnd.UnixMilli() {
					t.Errorf("%s %s at %v: got %v to %v, want %v to %v", zone, every,
						time.UnixMilli(ms).UTC(), time.UnixMilli(start).UTC(), time.UnixMilli(end).UTC(),
						wantStart.UTC(), wantEnd.UTC())
				}
			}
		}
	}
}
