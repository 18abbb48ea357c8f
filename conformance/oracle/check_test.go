package oracle_test

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/weir-limiter/weir/conformance/oracle"
)

const (
	header = `{"kind":"run","format":1,"seed":1,"trace":"t","limits":"l","anything":"goes"}`
	t0     = int64(1700000000000)
)

// logOf is a log of the given lines, with a first and a last one.
func logOf(at int64, lines ...string) string {
	end := fmt.Sprintf(`{"kind":"end","at_ms":%d}`, at)
	return header + "\n" + strings.Join(append(lines, end), "\n")
}

// subjectOf is the subject line of entity t and resource llm with one limit n.
func subjectOf(kind string, capacity int64, rest string) string {
	return fmt.Sprintf(`{"kind":"subject","entity":"t","resource":"llm","limits":[`+
		`{"name":"n","kind":%q,"capacity":%d,%s}]}`, kind, capacity, rest)
}

// one is a reservation on the limit of subjectOf.
type one struct {
	kind      string
	capacity  int64
	at        int64
	cost      int64
	available string
	retry     int64 // 0 if admitted
}

func (o one) line(lease string) string {
	return fmt.Sprintf(`{"kind":"reserve","at_ms":%d,"lease":%q,"charges":[{"entity":"t",`+
		`"resource":"llm","costs":{"n":%d}}],"allowed":%t,"retry_after_ms":%d,"limits":[`+
		`{"entity":"t","resource":"llm","limit":"n","kind":%q,"capacity":%d,"available":%s,`+
		`"requested":%d,"exceeded":%t,"shadow":false,"retry_after_ms":%d}]}`,
		o.at, lease, o.cost, o.retry == 0, o.retry,
		o.kind, o.capacity, o.available, o.cost, o.retry != 0, o.retry)
}

// check judges a log that is well formed.
func check(t testing.TB, log string) *oracle.Report {
	t.Helper()
	report, err := oracle.Check(strings.NewReader(log))
	if err != nil {
		t.Fatalf("Check: %v", err)
	}
	return report
}

// agrees judges a log and wants no disagreement.
func agrees(t *testing.T, log string) *oracle.Report {
	t.Helper()
	report := check(t, log)
	for _, d := range report.Disagreements {
		t.Error(d)
	}
	return report
}

// rightLogs reads testdata/right, by name.
func rightLogs(t testing.TB) map[string]string {
	t.Helper()
	paths, err := filepath.Glob("testdata/right/*.jsonl")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no logs: %v", err)
	}
	logs := map[string]string{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		logs[strings.TrimSuffix(filepath.Base(path), ".jsonl")] = string(text)
	}
	return logs
}

func TestRightLogsAgree(t *testing.T) {
	t.Parallel()
	for name, log := range rightLogs(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := agrees(t, log); got.Available == 0 {
				t.Error("nothing was compared")
			}
		})
	}
}

func TestReportCounts(t *testing.T) {
	t.Parallel()
	got := agrees(t, rightLogs(t)["cascade"])
	want := &oracle.Report{
		Lines: 23, Admitted: 4, Denied: 4, Errors: 5, Settled: 3,
		Judged:    map[string]int{"window": 17, "concurrency": 8},
		Available: 25, RetryAfter: 4, Overall: 4,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestReportListsTwenty(t *testing.T) {
	t.Parallel()
	lines := []string{subjectOf("window", 100, `"window_ms":1000`)}
	for i := range 30 {
		lines = append(lines, one{"window", 100, t0, 1, "0", 0}.line(fmt.Sprint(i)))
	}
	got := check(t, logOf(t0, lines...))
	if got.Disagreed != 30 || len(got.Disagreements) != 20 {
		t.Errorf("got %d, %d listed; want 30, 20 listed", got.Disagreed, len(got.Disagreements))
	}
	first := got.Disagreements[0]
	if first.Line != 3 || first.Log != "0" || first.Law != "99" {
		t.Errorf("got %+v, want line 3, 0 instead of 99", first)
	}
	for _, part := range []string{"line 3", "t/llm n: available", "says 0", "say 99", "1 of n"} {
		if !strings.Contains(first.String(), part) {
			t.Errorf("got %q, want it to contain %q", first, part)
		}
	}
}
