package lab

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"math/big"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/internal/lab/replay"
	"github.com/weir-limiter/weir/internal/lab/report"
	"github.com/weir-limiter/weir/internal/soak"
)

// TestCompareAgainstLogs replays an hour of real traffic against two files. Then it computes the
// comparison again from the two decision logs and the trace: the calls that both, one or none
// admitted, with their tokens, and every limit's figures.
func TestCompareAgainstLogs(t *testing.T) {
	t.Parallel()
	how := []string{"--entities", "4", "--seed", "4", "--latency", "400ms+15ms", "--estimate", "fixed:60"}
	trace := shortTrace(t, soak.Amount(1500, 0))
	files := [2]string{"../../examples/limits.yaml", "../../examples/demo.yaml"}
	var admitted [2][]bool
	var logs [2][]byte
	for i, file := range files {
		_, logs[i] = replayLogged(t, trace, append(how, "--limits", file)...)
		admitted[i] = admissionsOf(t, logs[i])
	}
	for range 2 { // and the other way round
		r := runWeir(t, append([]string{
			"replay", trace, "--output", "json", "--limits", files[0], "--compare", files[1],
		}, how...)...)
		if r.code != console.ExitDone || r.err != "" {
			t.Fatalf("got exit code %d, want 0: %s", r.code, r.err)
		}
		var got report.Result
		if err := json.Unmarshal([]byte(r.out), &got); err != nil {
			t.Fatal(err)
		}
		checkCompared(t, &got.Compare.Calls, countCompared(t, trace, admitted))
		checkRowsCompared(t, got.Compare.Limits, logs)
		recount(t, got.Report, logs[0])
		recount(t, got.Compare.Second, logs[1])
		if got.Compare.Calls.OnlyFirst.Calls == 0 || got.Compare.Calls.OnlySecond.Calls == 0 ||
			got.Compare.Calls.Both.Calls == 0 || got.Compare.Calls.Neither.Calls == 0 {
			t.Errorf("got %+v, want some calls everywhere", got.Compare.Calls)
		}
		change := got.Compare.Second.Totals.Admitted - got.Totals.Admitted
		if got.Compare.Change.Admitted != change || change == 0 || got.Compare.Change.Denied != -change {
			t.Errorf("got the change %+v, want %d admitted", got.Compare.Change, change)
		}
		slices.Reverse(files[:])
		slices.Reverse(admitted[:])
		slices.Reverse(logs[:])
	}
}

// admissionsOf reads from a log which calls were admitted, in their order.
func admissionsOf(t *testing.T, log []byte) []bool {
	t.Helper()
	var out []bool
	lines := bufio.NewScanner(bytes.NewReader(log))
	for lines.Scan() {
		var l struct {
			Kind    string `json:"kind"`
			Allowed bool   `json:"allowed"`
		}
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			t.Fatal(err)
		}
		if l.Kind == "reserve" {
			out = append(out, l.Allowed)
		}
	}
	return out
}

// comparedCount is a number of calls, with their tokens.
type comparedCount struct{ calls, tokens int64 }

// countCompared counts the calls of the trace by the runs that admitted them: the first, then the
// second.
func countCompared(t *testing.T, trace string, admitted [2][]bool) map[[2]bool]comparedCount {
	t.Helper()
	file, err := os.Open(trace)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // It was only read.
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	out := map[[2]bool]comparedCount{}
	for i, row := range rows[1:] {
		in, errIn := strconv.ParseInt(row[1], 10, 64)
		generated, errOut := strconv.ParseInt(row[2], 10, 64)
		if errIn != nil || errOut != nil {
			t.Fatal(errIn, errOut)
		}
		key := [2]bool{admitted[0][i], admitted[1][i]}
		out[key] = comparedCount{out[key].calls + 1, out[key].tokens + in + generated}
	}
	return out
}

func checkCompared(t *testing.T, c *replay.CallsCompared, want map[[2]bool]comparedCount) {
	t.Helper()
	for _, n := range []struct {
		name string
		got  replay.CallCount
		key  [2]bool
	}{
		{"both", c.Both, [2]bool{true, true}}, {"only A", c.OnlyFirst, [2]bool{true, false}},
		{"only B", c.OnlySecond, [2]bool{false, true}}, {"neither", c.Neither, [2]bool{}},
	} {
		w := want[n.key]
		if n.got.Calls != w.calls || n.got.Tokens.Cmp(big.NewInt(w.tokens)) != 0 {
			t.Errorf("%s: got %d calls and %v tokens, want %d and %d",
				n.name, n.got.Calls, n.got.Tokens, w.calls, w.tokens)
		}
	}
}

// checkRowsCompared checks that each row has the figures of its limit in both logs.
func checkRowsCompared(t *testing.T, limits []*replay.LimitCompared, logs [2][]byte) {
	t.Helper()
	for i, log := range logs {
		counts, _ := countLog(t, log)
		for _, l := range limits {
			row := l.First
			if i == 1 {
				row = l.Second
			}
			want := counts[limitKey{l.Entity, l.Limit}]
			if row == nil || want == nil || row.Admitted != want.admitted || row.Denied != want.denied {
				t.Errorf("side %d: %s %s: got %+v, want %+v", i, l.Entity, l.Limit, row, want)
			}
		}
		if len(limits) != len(counts) {
			t.Errorf("side %d: got %d limits, want %d", i, len(limits), len(counts))
		}
	}
}
