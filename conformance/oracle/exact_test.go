package oracle_test

import (
	"fmt"
	"math"
	"testing"
)

// A bucket that gains a milli-unit every 7 ms loses nothing to being looked at, or stamped anew by
// an adjust, at every millisecond.
func TestBucketTelescopes(t *testing.T) {
	t.Parallel()
	const capacity = 100
	fits := (t0/7 + 1000) * 7 // the first millisecond with 1000 milli-units more
	lines := []string{
		subjectOf("bucket", capacity, `"refill_amount":1,"refill_period_ms":7000`),
		one{"bucket", capacity, t0, capacity, "0", 0}.line("all"),
	}
	at := t0
	for ; at < t0+50; at++ {
		total := capacity + (at-t0)%2 // up by one and down again
		lines = append(lines, fmt.Sprintf(`{"kind":"adjust","at_ms":%d,"lease":"all","seq":%d,`+
			`"totals":[{"n":%d}]}`, at, at-t0+1, total))
		left, retry := "0", fits-at
		if total > capacity {
			left, retry = "-1", (t0/7+2000)*7-at
		}
		lines = append(lines, one{"bucket", capacity, at, 1, left, retry}.line(fmt.Sprint(at)))
	}
	lines = append(lines,
		fmt.Sprintf(`{"kind":"adjust","at_ms":%d,"lease":"all","seq":99,"totals":[{"n":100}]}`, at),
		one{"bucket", capacity, fits - 1, 1, "0", 1}.line("early"),
		one{"bucket", capacity, fits, 1, "0", 0}.line("now"))
	agrees(t, logOf(fits, lines...))
}

// The largest int64 neither wraps in milli-units nor in a sum of many.
func TestLargestNumbers(t *testing.T) {
	t.Parallel()
	const most = math.MaxInt64
	overrun := `{"kind":"complete","at_ms":%d,"lease":%q,"actuals":[{"n":%d}]}`
	for kind, rest := range map[string]string{
		"bucket": `"refill_amount":9223372036854775807,"refill_period_ms":1000`,
		"window": `"window_ms":1000`,
		"budget": `"every":"hour"`,
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			agrees(t, logOf(t0,
				subjectOf(kind, most, rest),
				one{kind, most, t0, most - 2, "2", 0}.line("a"),
				one{kind, most, t0, 1, "1", 0}.line("b"),
				one{kind, most, t0, 1, "0", 0}.line("c"),
				fmt.Sprintf(overrun, t0, "b", int64(most)),
				fmt.Sprintf(overrun, t0, "c", int64(most)),
				// 2^63-1 less (2^63-3 and twice 2^63-1)
				one{kind, most, t0, most, "-18446744073709551612", retryOfLargest(kind)}.line("d"),
			))
		})
	}
}

// retryOfLargest is when all of the capacity is free again after TestLargestNumbers.
func retryOfLargest(kind string) int64 {
	switch kind {
	case "window":
		return 1000
	case "budget":
		return 2800_000 // t0 is 13 minutes and 20 seconds past the hour
	}
	return 3000 // from less than two capacities of debt to one capacity
}

// A window that is asked for nothing at first is charged until its original end all the same.
func TestUnnamedThenAdjusted(t *testing.T) {
	t.Parallel()
	const capacity = 10
	adjust := `{"kind":"adjust","at_ms":%d,"lease":"a","seq":%d,"totals":[{"n":%d}]}`
	agrees(t, logOf(t0+71_000,
		subjectOf("window", capacity, `"window_ms":60000`),
		one{"window", capacity, t0, 0, "10", 0}.line("a"),
		fmt.Sprintf(adjust, t0+50_000, 1, 4),
		one{"window", capacity, t0 + 50_000, 7, "6", 10_000}.line("b"),
		fmt.Sprintf(adjust, t0+70_000, 2, 6),
		one{"window", capacity, t0 + 71_000, 9, "8", 59_000}.line("c"),
	))
}

// An hour of a busy window is judged quickly and rightly.
func TestManyLines(t *testing.T) {
	t.Parallel()
	agrees(t, busyLog(2000))
}

func BenchmarkCheckBusyWindow(b *testing.B) {
	log := busyLog(20_000)
	for b.Loop() {
		check(b, log)
	}
}

// busyLog fills a window of an hour in the first quarter of its lines and is denied in the rest.
func busyLog(lines int64) string {
	capacity := lines / 4
	log := []string{subjectOf("window", capacity, `"window_ms":3600000`)}
	for i := range lines {
		at := t0 + i*100
		r := one{"window", capacity, at, 1, fmt.Sprint(max(capacity-i-1, 0)), 0}
		if i >= capacity {
			r.retry = t0 + 3600_000 - at
		}
		log = append(log, r.line(fmt.Sprint(i)))
	}
	return logOf(t0+lines*100, log...)
}
