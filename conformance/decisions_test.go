package conformance_test

import (
	"errors"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/conformance"
	"github.com/weir-limiter/weir/limiter"
)

// The lines of decision logs.
const (
	logRun     = `{"kind":"run","format":1,"seed":1,"trace":"t","limits":"l"}`
	logLimits  = `{"kind":"subject","entity":"t","resource":"llm","limits":[`
	logWindow  = logLimits + `{"name":"n","kind":"window","capacity":9,"window_ms":1000}]}`
	logAsk     = `{"kind":"reserve","at_ms":1000,"lease":"00000000Z80000000000000000",`
	logCharges = `"charges":[{"entity":"t","resource":"llm","costs":{"n":1}}],`
	logStatus  = `{"entity":"t","resource":"llm","limit":"n","kind":"window","capacity":9,"available":8,` +
		`"requested":1,"exceeded":false,"shadow":false,"retry_after_ms":0}`
	logReserve = logAsk + logCharges + `"allowed":true,"limits":[` + logStatus + `]}`
	logAdjust  = `{"kind":"adjust","at_ms":1000,"lease":"00000000Z80000000000000000","seq":1,"totals":[{"n":2}]}`
	logEnd     = `{"kind":"end","at_ms":1000}`
)

// TestCheckDecisions checks that a log is counted, or refused with the first line that is wrong.
func TestCheckDecisions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		want  string // in the error; empty for a log that is right
		lines []string
	}{
		{"right", "", []string{logRun, logWindow, logReserve, logAdjust, logEnd}},
		{"a wrong answer", "line 3: the log says", []string{logRun, logWindow,
			strings.Replace(logReserve, `"available":8`, `"available":9`, 1), logEnd}},
		{"a status twice", "line 3: the log says", []string{logRun, logWindow,
			strings.Replace(logReserve, logStatus, logStatus+","+logStatus, 1), logEnd}},
		{"an error in place of a decision", "line 3: the log says", []string{logRun, logWindow,
			logAsk + logCharges + `"error":"never satisfiable"}`, logEnd}},
		{"a settlement that fails", "line 4: the log says", []string{logRun, logWindow, logReserve,
			strings.Replace(logAdjust, "}]}", `}],"error":"ended"}`, 1), logEnd}},
		{"a decision about a settlement", "line 4: the log says", []string{logRun, logWindow, logReserve,
			strings.Replace(logAdjust, "}]}", `}],"allowed":true}`, 1), logEnd}},
		{"an unknown subject", "line 3: the log says", []string{logRun, logWindow,
			strings.Replace(logReserve, `"t","resource"`, `"u","resource"`, 1), logEnd}},
		{"empty", "after line 0: truncated", nil},
		{"no end", "after line 2: truncated", []string{logRun, logWindow}},
		{"no run", "line 1: the first line", []string{logEnd}},
		{"two runs", "line 2: the first line", []string{logRun, logRun, logEnd}},
		{"another format", "line 1: the format is 2", []string{`{"kind":"run","format":2}`, logEnd}},
		{"after the end", "line 3: comes after the end", []string{logRun, logEnd, logEnd}},
		{"a blank line", "line 2: ", []string{logRun, "", logEnd}},
		{"two values", "line 2: ", []string{logRun, logWindow + logWindow, logEnd}},
		{"an unknown kind", `line 2: the kind is "take"`, []string{logRun, `{"kind":"take","at_ms":1}`}},
		{"an unknown field", `unknown field "why"`, []string{logRun, `{"kind":"end","at_ms":1,"why":2}`}},
		{"an unknown field of a limit", `unknown field "quota"`,
			[]string{logRun, logLimits + `{"name":"n","quota":1}]}`, logEnd}},
		{"an unknown field of a status", `unknown field "level"`,
			[]string{logRun, logWindow, logAsk + `"allowed":true,"limits":[{"level":"x"}]}`, logEnd}},
		{"no time", "line 2: has no at_ms", []string{logRun, `{"kind":"end"}`}},
		{"time goes back", "line 4: is 1ms before", []string{logRun, logWindow, logReserve,
			`{"kind":"end","at_ms":999}`}},
		{"a subject twice", "line 3: defines t/llm twice", []string{logRun, logWindow, logWindow, logEnd}},
		{"a subject after a call", "line 4: defines a subject after",
			[]string{logRun, logWindow, logReserve, logWindow, logEnd}},
		{"no window", "limits.n.window", []string{logRun,
			logLimits + `{"name":"n","kind":"window","capacity":9}]}`, logReserve, logEnd}},
		{"an unknown parent", "not declared", []string{logRun,
			strings.Replace(logWindow, `"limits"`, `"parent":"u","limits"`, 1), logReserve, logEnd}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := conformance.CheckDecisions(strings.NewReader(strings.Join(c.lines, "\n")), limiter.Options{})
			switch {
			case c.want == "" && (err != nil || got.Admitted != 1 || got.Judged[weir.Window] != 1):
				t.Errorf("got %+v and the error %v, want one admitted reservation on a window", got, err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got the error %v, want one with %q", err, c.want)
			}
		})
	}
}

func TestCheckDecisionsUnreadable(t *testing.T) {
	t.Parallel()
	broken := errors.New("the disk is broken")
	if _, err := conformance.CheckDecisions(iotest.ErrReader(broken), limiter.Options{}); !errors.Is(err, broken) {
		t.Errorf("got %v, want %v", err, broken)
	}
}
