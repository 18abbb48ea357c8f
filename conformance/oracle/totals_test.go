package oracle_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

// Totals that no lease can stand for are refused, and nothing of them is applied.
func TestWrongTotals(t *testing.T) {
	t.Parallel()
	const capacity = 10
	for name, totals := range map[string]string{
		"negative":     `[{"n":-1}]`,
		"unknown name": `[{"n":9,"m":1}]`,
		"too many":     `[{"n":9},{}]`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, verb := range []string{`"adjust","seq":1,"totals"`, `"complete","actuals"`} {
				line := fmt.Sprintf(`{"at_ms":%d,"lease":"a","kind":%s:%s`, t0, verb, totals)
				before := []string{
					subjectOf("window", capacity, `"window_ms":1000`),
					one{"window", capacity, t0, 4, "6", 0}.line("a"),
				}
				text := `,"error":"wrong totals"}`
				if name == "unknown name" {
					text = `,"error":"unknown limit: m"}`
				}
				agrees(t, logOf(t0, append(before, line+text,
					one{"window", capacity, t0, 1, "5", 0}.line("b"))...))
				about := strings.Split(verb, `"`)[1]
				caught(t, logOf(t0, append(before, line+`}`)...), 4, about)
				caught(t, logOf(t0, append(before, line+`,"error":"ended"}`)...), 4, about)
			}
		})
	}
}

// Two charges whose sum is no int64 are refused, also where a shadow limit would deny nothing.
func TestSumBeyondInt64(t *testing.T) {
	t.Parallel()
	charge := fmt.Sprintf(`{"entity":"t","resource":"llm","costs":{"n":%d}}`, int64(math.MaxInt64))
	line := fmt.Sprintf(`{"kind":"reserve","at_ms":%d,"lease":"a","charges":[%s,%s],`,
		t0, charge, charge)
	subject := subjectOf("window", 10, `"shadow":true,"window_ms":1000`)
	agrees(t, logOf(t0, subject, line+`"error":"out of range"}`))
	caught(t, logOf(t0, subject, line+`"allowed":true}`), 3, "decision")
}

// A retry-after beyond the largest int64 is none.
func TestRetryBeyondInt64(t *testing.T) {
	t.Parallel()
	const most = math.MaxInt64
	slow := `"refill_amount":1,"refill_period_ms":100000000000000`
	line := one{"bucket", most, t0, most, "0", 0}.line("b")
	line = strings.Replace(line, `"allowed":true`, `"allowed":false`, 1)
	line = strings.Replace(line, `"exceeded":false`, `"exceeded":true`, 1)
	agrees(t, logOf(t0,
		subjectOf("bucket", most, slow), one{"bucket", most, t0, most, "0", 0}.line("a"), line))
}

// A shadow budget is asked for more than any month holds: exceeded, and no time will do.
func TestShadowBudgetBeyondCapacity(t *testing.T) {
	t.Parallel()
	line := strings.Replace(one{"budget", 10, t0, 11, "-1", 0}.line("a"),
		`"exceeded":false,"shadow":false`, `"exceeded":true,"shadow":true`, 1)
	agrees(t, logOf(t0, subjectOf("budget", 10, `"shadow":true,"every":"month"`), line))
}

// Units added to an older reservation end before those of a younger one.
func TestGrowthEndsWithItsReservation(t *testing.T) {
	t.Parallel()
	const capacity = 10
	agrees(t, logOf(t0+70_000,
		subjectOf("window", capacity, `"window_ms":60000`),
		one{"window", capacity, t0, 1, "9", 0}.line("a"),
		one{"window", capacity, t0 + 10_000, 2, "7", 0}.line("b"),
		fmt.Sprintf(`{"kind":"adjust","at_ms":%d,"lease":"a","seq":1,"totals":[{"n":5}]}`, t0+20_000),
		one{"window", capacity, t0 + 20_000, 8, "3", 40_000}.line("c"),
		one{"window", capacity, t0 + 20_000, 9, "3", 50_000}.line("d"),
		one{"window", capacity, t0 + 60_000, 8, "0", 0}.line("e"),
		one{"window", capacity, t0 + 70_000, 2, "0", 0}.line("f"),
	))
}

// A hold that ran out just now is not taken back by an extend; one about to run out is renewed.
func TestExtendComesTooLate(t *testing.T) {
	t.Parallel()
	const capacity = 3
	extend := `{"kind":"extend","at_ms":%d,"lease":"a"}`
	for late, free := range map[int64]string{9999: "1", 10_000: "3"} {
		line := one{"concurrency", capacity, t0 + 10_000, 3, free, 9999}.line("b")
		if free == "3" {
			line = one{"concurrency", capacity, t0 + 10_000, 3, "0", 0}.line("b")
		}
		agrees(t, logOf(t0+10_000,
			subjectOf("concurrency", capacity, `"timeout_ms":10000`),
			one{"concurrency", capacity, t0, 2, "1", 0}.line("a"),
			fmt.Sprintf(extend, t0+late), line))
	}
}

// A limit that is reported twice, or that nobody asked for, is caught.
func TestStatusesTooMany(t *testing.T) {
	t.Parallel()
	subject := subjectOf("window", 10, `"window_ms":1000`)
	right := one{"window", 10, t0, 1, "9", 0}.line("a")
	at := strings.Index(right, `"limits":[`) + len(`"limits":[`)
	status := strings.TrimSuffix(right[at:], "]}")
	agrees(t, logOf(t0, subject, right))
	twice := right[:at] + status + "," + status + "]}"
	caught(t, logOf(t0, subject, twice), 3, "t/llm n")
	other := right[:at] + status + "," + strings.Replace(status, `"n"`, `"m"`, 1) + "]}"
	caught(t, logOf(t0, subject, other), 3, "t/llm m")
}
