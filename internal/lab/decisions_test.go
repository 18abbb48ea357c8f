package lab

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/conformance"
	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/internal/lab/replay"
	"github.com/weir-limiter/weir/internal/soak"
	"github.com/weir-limiter/weir/limiter"
)

const azureTrace = "../../examples/azure-llm-2023-code.csv"

// replayLogged replays a trace and returns the report and the decision log.
func replayLogged(t *testing.T, trace string, args ...string) (*replay.Report, []byte) {
	t.Helper()
	log := filepath.Join(t.TempDir(), "decisions.jsonl")
	args = append([]string{"replay", trace, "--output", "json", "--decisions", log}, args...)
	r := runWeir(t, args...)
	if r.code != console.ExitDone || r.err != "" {
		t.Fatalf("got exit code %d, want 0: %s", r.code, r.err)
	}
	report := &replay.Report{}
	if err := json.Unmarshal([]byte(r.out), report); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	return report, data
}

// shortTrace returns a trace of the first calls of an hour of real traffic; 0 means all of them.
func shortTrace(t *testing.T, calls int) string {
	t.Helper()
	if calls == 0 {
		return azureTrace
	}
	data, err := os.ReadFile(azureTrace)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "trace.csv")
	short := bytes.Join(bytes.SplitAfterN(data, []byte("\n"), calls+2)[:calls+1], nil)
	if err := os.WriteFile(name, short, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// replayOptions returns the options of the limiter in a replay.
func replayOptions() limiter.Options {
	return limiter.Options{CascadeDepth: 8, LeaseMemory: time.Second, LeaseMemorySize: 1 << 30}
}

// TestReplayAgainstModel replays up to an hour of real traffic and compares every decision with the
// model's: whether the call was admitted, every figure of every limit, and every retry-after.
func TestReplayAgainstModel(t *testing.T) {
	t.Parallel()
	most := soak.Amount(800, 0)
	for _, c := range []struct {
		name  string
		args  []string
		kinds string
		calls int // of the trace; 0 for all
	}{
		{"buckets", []string{
			"--limits", "../cli/testdata/limits/bucket.yaml", "--entities", "4", "--seed", "1",
			"--latency", "250us+1ms", "--cost", "slow=1",
		}, "bucket", most},
		{"windows and budgets", []string{
			"--limits", "../cli/testdata/limits/window-budget.yaml", "--entities", "3", "--seed", "2",
			"--latency", "1s", "--cost", "hourly=total", "--cost", "indian=total",
			"--cost", "daily=input", "--cost", "weekly=1", "--cost", "burst=1",
		}, "budget window", most},
		{"slots and cascade", []string{
			"--limits", "../cli/testdata/limits/concurrency-cascade.yaml", "--entities", "5", "--seed", "3",
			"--latency", "1s+90ms", "--cost", "batch=2",
		}, "bucket concurrency window", most},
		{"example", []string{
			"--limits", "../../examples/limits.yaml", "--entities", "4", "--seed", "4",
			"--latency", "400ms+15ms",
		}, "bucket budget concurrency window", most},
		{"learned estimates", []string{
			"--limits", "../cli/testdata/limits/bucket.yaml", "--entities", "4", "--seed", "5",
			"--latency", "400ms+15ms", "--cost", "slow=1", "--estimate", "quantile:0.95",
		}, "bucket", most},
		{"fixed estimates and slots", []string{
			"--limits", "../cli/testdata/limits/concurrency-cascade.yaml", "--entities", "5", "--seed", "3",
			"--latency", "1s+90ms", "--cost", "batch=2", "--estimate", "fixed:100",
		}, "bucket concurrency window", most},
		{"calls that come back", []string{
			"--limits", "../cli/testdata/limits/window-budget.yaml", "--entities", "3", "--seed", "2",
			"--latency", "1s", "--cost", "hourly=total", "--cost", "indian=total",
			"--cost", "daily=input", "--cost", "weekly=1", "--cost", "burst=1",
			"--retry", "--patience", "2m",
		}, "budget window", soak.Amount(400, 700)},
		{"calls that come back with estimates", []string{
			"--limits", "../../examples/limits.yaml", "--entities", "4", "--seed", "4",
			"--latency", "400ms+15ms", "--retry", "--patience", "20s", "--estimate", "quantile:0.9",
		}, "bucket budget concurrency window", soak.Amount(1000, 1500)},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			report, log := replayLogged(t, shortTrace(t, c.calls), c.args...)
			judged, err := conformance.CheckDecisions(bytes.NewReader(log), replayOptions())
			if err != nil {
				t.Fatal(err)
			}
			checkJudged(t, report, judged, c.kinds)
			recount(t, report, log)
		})
	}
}

// checkJudged checks that the log has the decisions that the test needs, and enough of them.
func checkJudged(
	t *testing.T, report *replay.Report, judged *conformance.Decisions, kinds string,
) {
	t.Helper()
	totals := report.Totals
	asked := int64(report.Calls)
	if r := report.Retry; r != nil { // the log has each attempt
		totals.Denied, asked = r.Attempts-totals.Admitted-totals.Errors, r.Attempts
	}
	got := [3]int64{int64(judged.Admitted), int64(judged.Denied), int64(judged.Errors)}
	if want := [3]int64{totals.Admitted, totals.Denied, totals.Errors}; got != want {
		t.Errorf("got admitted, denied and errors %d in the log, want %d as reported", got, want)
	}
	if judged.Settled != judged.Admitted {
		t.Errorf("got %d settled, want all %d admitted", judged.Settled, judged.Admitted)
	}
	calls := judged.Admitted + judged.Denied + judged.Errors
	if int64(calls) != asked || 20*judged.Admitted < report.Calls || 20*judged.Denied < report.Calls {
		t.Errorf("got %d attempts, %d admitted and %d denied, want %d, and 5 %% of the calls each",
			calls, judged.Admitted, judged.Denied, asked)
	}
	figures := 0
	for _, n := range judged.Judged {
		figures += n
	}
	for kind := range strings.FieldsSeq(kinds) {
		if judged.Judged[weir.Kind(kind)] < calls/20 {
			t.Errorf("got %d %s limits judged, want some with every 20th call", judged.Judged[weir.Kind(kind)], kind)
		}
	}
	if figures < calls {
		t.Errorf("got %d limits compared in %d attempts, want one or more in each", figures, calls)
	}
	for _, l := range report.Limits {
		if !l.Shadow && report.Estimates == nil && l.Used.Cmp(l.Available) > 0 {
			t.Errorf("%s %s: got %v used of %v available", l.Entity, l.Limit, l.Used, l.Available)
		}
	}
	t.Logf("%d admitted, %d denied, %d limits compared: all agreed",
		judged.Admitted, judged.Denied, figures)
}

// TestWrongDecisionsAreFound changes the answers in a right log one at a time: every figure up and
// down, every flag, every decision. The check must find each change on its line, except that a
// changed actual shows on a later line.
func TestWrongDecisionsAreFound(t *testing.T) {
	t.Parallel()
	_, log := replayLogged(t, shortTrace(t, 80), "--limits", "../../examples/limits.yaml",
		"--entities", "4", "--seed", "4", "--latency", "400ms+15ms", "--cost", "parallel=1")
	lines := bytes.Split(bytes.TrimSpace(log), []byte("\n"))
	found := map[string]int{}
	for i := range lines {
		for what, wrong := range wrongLines(t, lines[i]) {
			if found[what] == 1 { // few calls, because the whole log is checked for each change
				continue
			}
			changed := slices.Clone(lines)
			changed[i] = wrong
			_, err := conformance.CheckDecisions(bytes.NewReader(bytes.Join(changed, []byte("\n"))), replayOptions())
			if err == nil || !strings.HasPrefix(err.Error(), fmt.Sprintf("line %d:", i+1)) {
				t.Errorf("line %d, %s: got %v\n%s", i+1, what, err, wrong)
			}
			found[what]++
		}
	}
	t.Logf("found: %v", found)
	if len(found) != 50 { // eleven changes of a status of each kind, and six others
		t.Errorf("got %d sorts of mistakes, want 50", len(found))
	}
	unused := regexp.MustCompile(`("actuals":.*"input_tokens"):\d+`).ReplaceAll(log, []byte("$1:0"))
	if _, err := conformance.CheckDecisions(bytes.NewReader(unused), replayOptions()); err == nil {
		t.Error("calls that are said to have used nothing of a limit are not found")
	}
}

// wrongLines returns wrong versions of a line of a log, by the kind of mistake.
func wrongLines(t *testing.T, right []byte) map[string][]byte {
	t.Helper()
	wrong := map[string][]byte{}
	change := func(what string, edit func(line map[string]any)) {
		var line map[string]any
		if err := json.Unmarshal(right, &line); err != nil {
			t.Fatal(err)
		}
		edit(line)
		text, err := json.Marshal(line)
		if err != nil {
			t.Fatal(err)
		}
		wrong[what] = text
	}
	add := func(to any, n float64) float64 {
		was, _ := to.(float64)
		return was + n
	}
	var is struct {
		Kind    string
		Allowed *bool
	}
	if err := json.Unmarshal(right, &is); err != nil {
		t.Fatal(err)
	}
	if is.Kind == "complete" {
		change("settled", func(l map[string]any) { l["error"] = "ended" })
	}
	if is.Allowed == nil {
		return wrong
	}
	change("allowed", func(l map[string]any) { l["allowed"] = !*is.Allowed })
	change("an error", func(l map[string]any) {
		delete(l, "allowed")
		delete(l, "limits")
		delete(l, "retry_after_ms")
		l["error"] = "never satisfiable"
	})
	change("retry-after up", func(l map[string]any) { l["retry_after_ms"] = add(l["retry_after_ms"], 1) })
	change("retry-after down", func(l map[string]any) { l["retry_after_ms"] = add(l["retry_after_ms"], -1) })
	var judged struct{ Limits []map[string]any }
	if err := json.Unmarshal(right, &judged); err != nil {
		t.Fatal(err)
	}
	for i, limit := range judged.Limits {
		set := func(field, how string, value any) {
			change(fmt.Sprintf("%v %s %s", limit["kind"], field, how), func(l map[string]any) {
				l["limits"].([]any)[i].(map[string]any)[field] = value
			})
		}
		for _, field := range []string{"available", "requested", "capacity", "retry_after_ms"} {
			set(field, "up", add(limit[field], 1))
			set(field, "down", add(limit[field], -1))
		}
		set("exceeded", "turned", limit["exceeded"] == false)
		set("shadow", "turned", limit["shadow"] == false)
		set("kind", "changed", "quota")
		change("a status left out", func(l map[string]any) {
			all := l["limits"].([]any)
			l["limits"] = slices.Delete(all, i, i+1)
		})
	}
	return wrong
}

// TestReplayIsReproducible checks that the same command writes the same bytes, even if the seed was
// drawn by an earlier run.
func TestReplayIsReproducible(t *testing.T) {
	t.Parallel()
	trace := shortTrace(t, 500)
	args := []string{
		"--limits", "../cli/testdata/limits/concurrency-cascade.yaml", "--entities", "7",
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
	drawn.Speed, again.Speed = replay.Speed{}, replay.Speed{}
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
