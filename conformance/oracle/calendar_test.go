package oracle_test

import (
	"fmt"
	"testing"
	"time"
)

// The instants were worked out by hand from the zones' rules.
func TestPeriods(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ zone, every, start, next string }{
		{"", "day", "2024-02-29T00:00Z", "2024-03-01T00:00Z"},
		{"", "week", "2024-12-30T00:00Z", "2025-01-06T00:00Z"},
		{"", "hour", "2024-02-29T23:00Z", "2024-03-01T00:00Z"},
		{"Europe/Berlin", "month", "2023-10-31T23:00Z", "2023-11-30T23:00Z"},
		{"Europe/Berlin", "month", "2024-02-29T23:00Z", "2024-03-31T22:00Z"},
		{"Europe/Berlin", "month", "2023-09-30T22:00Z", "2023-10-31T23:00Z"},
		{"Europe/Berlin", "day", "2024-03-30T23:00Z", "2024-03-31T22:00Z"},
		{"Europe/Berlin", "hour", "2024-03-31T00:00Z", "2024-03-31T01:00Z"},
		{"Europe/Berlin", "hour", "2024-03-31T01:00Z", "2024-03-31T02:00Z"},
		// 01:00 to 02:00 comes twice.
		{"America/New_York", "hour", "2024-11-03T05:00Z", "2024-11-03T06:00Z"},
		{"America/New_York", "hour", "2024-11-03T06:00Z", "2024-11-03T07:00Z"},
		{"Asia/Kolkata", "hour", "2024-01-01T00:30Z", "2024-01-01T01:30Z"},
		// 01:30 to 02:00 comes twice, and there is no 02:00 to 02:30 in spring.
		{"Australia/Lord_Howe", "hour", "2024-04-06T14:00Z", "2024-04-06T15:00Z"},
		{"Australia/Lord_Howe", "hour", "2024-04-06T15:00Z", "2024-04-06T15:30Z"},
		{"Australia/Lord_Howe", "hour", "2024-10-05T15:30Z", "2024-10-05T16:00Z"},
		// There is no midnight, and then 23:00 to 24:00 comes twice.
		{"America/Sao_Paulo", "day", "2018-11-04T03:00Z", "2018-11-05T02:00Z"},
		{"America/Sao_Paulo", "day", "2018-02-17T02:00Z", "2018-02-18T03:00Z"},
		// There is no 30 December 2011.
		{"Pacific/Apia", "day", "2011-12-29T10:00Z", "2011-12-30T10:00Z"},
		{"Pacific/Apia", "day", "2011-12-30T10:00Z", "2011-12-31T10:00Z"},
		{"Pacific/Apia", "week", "2011-12-26T10:00Z", "2012-01-01T10:00Z"},
		// At one minute past midnight clocks go back to the day before.
		{"America/St_Johns", "day", "2010-11-07T02:30Z", "2010-11-08T03:30Z"},
	} {
		t.Run(c.zone+" "+c.every+" "+c.start, func(t *testing.T) {
			t.Parallel()
			start, next := instant(t, c.start), instant(t, c.next)
			rest := fmt.Sprintf(`"every":%q,"zone":%q`, c.every, c.zone)
			agrees(t, logOf(next,
				subjectOf("budget", 10, rest),
				one{"budget", 10, start - 1, 10, "0", 0}.line("before"),
				one{"budget", 10, start - 1, 1, "0", 1}.line("last"),
				one{"budget", 10, start, 10, "0", 0}.line("full"),
				one{"budget", 10, start, 1, "0", next - start}.line("early"),
				one{"budget", 10, (start + next) / 2, 1, "0", next - (start+next)/2}.line("half"),
				one{"budget", 10, next - 1, 1, "0", 1}.line("late"),
				one{"budget", 10, next, 9, "1", 0}.line("next"),
			))
		})
	}
}

func instant(t *testing.T, text string) int64 {
	t.Helper()
	at, err := time.Parse("2006-01-02T15:04Z", text)
	if err != nil {
		t.Fatal(err)
	}
	return at.UnixMilli()
}
