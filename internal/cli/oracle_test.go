package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-limiter/weir/conformance/oracle"
)

const azureTrace = "../../testdata/azure-llm-2023-code.csv"

// replayLogged replays a trace and returns the report and the decision log.
func replayLogged(t *testing.T, trace string, args ...string) (*replayReport, []byte) {
	t.Helper()
	log := filepath.Join(t.TempDir(), "decisions.jsonl")
	args = append([]string{"replay", trace, "--output", "json", "--decisions", log}, args...)
	r := runWeir(t, args...)
	if r.code != exitDone || r.err != "" {
		t.Fatalf("got exit code %d, want 0: %s", r.code, r.err)
	}
	report := &replayReport{}
	if err := json.Unmarshal([]byte(r.out), report); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	return report, data
}

// TestReplayAgainstOracle replays an hour of real traffic and has every decision judged by a checker
// that shares no code with the limiter: what was admitted, every figure on every limit, and every
// retry-after.
func TestReplayAgainstOracle(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		args  []string
		kinds string
	}{
		{"buckets", []string{
			"--limits", "testdata/limits/bucket.yaml", "--entities", "4", "--seed", "1",
			"--latency", "250us+1ms", "--cost", "slow=1",
		}, "bucket"},
		{"windows and budgets", []string{
			"--limits", "testdata/limits/window-budget.yaml", "--entities", "3", "--seed", "2",
			"--latency", "1s", "--cost", "hourly=total", "--cost", "indian=total",
			"--cost", "daily=input", "--cost", "weekly=1", "--cost", "burst=1",
		}, "budget window"},
		{"slots and cascade", []string{
			"--limits", "testdata/limits/concurrency-cascade.yaml", "--entities", "5", "--seed", "3",
			"--latency", "1s+90ms", "--cost", "batch=2",
		}, "bucket concurrency window"},
		{"example", []string{
			"--limits", "../../examples/limits.yaml", "--entities", "4", "--seed", "4",
			"--latency", "400ms+15ms",
		}, "bucket budget concurrency window"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			report, log := replayLogged(t, azureTrace, c.args...)
			judged, err := oracle.Check(bytes.NewReader(log))
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range judged.Disagreements {
				t.Error(d)
			}
			if judged.Disagreed != 0 {
				t.Errorf("got %d disagreements, want none", judged.Disagreed)
			}
			checkJudged(t, report, judged, c.kinds)
			recount(t, report, log)
		})
	}
}

// checkJudged makes sure that the oracle has seen what the report is about, and that there was
// something to see.
func checkJudged(t *testing.T, report *replayReport, judged *oracle.Report, kinds string) {
	t.Helper()
	totals := &report.Totals
	got := [3]int64{int64(judged.Admitted), int64(judged.Denied), int64(judged.Errors)}
	if want := [3]int64{totals.Admitted, totals.Denied, totals.Errors}; got != want {
		t.Errorf("got admitted, denied and errors %d in the log, want %d as reported", got, want)
	}
	if judged.Settled != judged.Admitted {
		t.Errorf("got %d settled, want all %d admitted", judged.Settled, judged.Admitted)
	}
	calls := judged.Admitted + judged.Denied + judged.Errors
	if calls != report.Calls || 20*judged.Admitted < calls || 20*judged.Denied < calls {
		t.Errorf("got %d calls, %d admitted and %d denied, want 8819 and 5 %% of each",
			calls, judged.Admitted, judged.Denied)
	}
	for kind := range strings.FieldsSeq(kinds) {
		if judged.Judged[kind] < calls/20 {
			t.Errorf("got %d %s limits judged, want some with every 20th call", judged.Judged[kind], kind)
		}
	}
	if judged.Available < calls || judged.RetryAfter < judged.Denied || judged.Overall != judged.Denied {
		t.Errorf("got %d figures, %d and %d retry-afters compared, want more than %d calls and %d denials",
			judged.Available, judged.RetryAfter, judged.Overall, calls, judged.Denied)
	}
	for _, l := range report.Limits {
		if !l.Shadow && l.Used.Cmp(l.Available) > 0 {
			t.Errorf("%s %s: got %v used of %v available", l.Entity, l.Limit, l.Used, l.Available)
		}
	}
	t.Logf("%d admitted, %d denied, %d figures and %d retry-afters compared: all agreed",
		judged.Admitted, judged.Denied, judged.Available, judged.RetryAfter+judged.Overall)
}

// TestReplayIsReproducible: the same command writes the same bytes, also with the seed that it drew
// itself.
func TestReplayIsReproducible(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(azureTrace)
	if err != nil {
		t.Fatal(err)
	}
	trace := filepath.Join(t.TempDir(), "trace.csv")
	short := bytes.Join(bytes.SplitAfterN(data, []byte("\n"), 502)[:501], nil)
	if err := os.WriteFile(trace, short, 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{
		"--limits", "testdata/limits/concurrency-cascade.yaml", "--entities", "7",
		"--latency", "1s+90ms", "--cost", "batch=2",
	}
	drawn, first := replayLogged(t, trace, args...)
	seed, err := json.Marshal(drawn.Seed)
	if err != nil {
		t.Fatal(err)
	}
	again, second := replayLogged(t, trace, append(args, "--seed", string(seed))...)
	if !bytes.Equal(first, second) {
		t.Errorf("seed %s: got two different logs, want the same bytes", seed)
	}
	drawn.Speed, again.Speed = speedReport{}, speedReport{}
	a, errA := json.Marshal(drawn)
	b, errB := json.Marshal(again)
	if errA != nil || errB != nil || !bytes.Equal(a, b) {
		t.Errorf("seed %s: got reports\n%s\n%s\nwant the same", seed, a, b)
	}
	if again.Calls != 500 {
		t.Errorf("got %d calls, want 500", again.Calls)
	}
	_, other := replayLogged(t, trace, append(args, "--seed", string(seed)+"1")...)
	if bytes.Equal(first, other) {
		t.Errorf("seed %s1: got the log of seed %s, want another", seed, seed)
	}
}
