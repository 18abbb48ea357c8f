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
