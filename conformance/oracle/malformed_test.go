package oracle_test

import (
	"errors"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/weir-limiter/weir/conformance/oracle"
)

// malformed is a log that cannot be read, and what must be said of it.
type malformed struct {
	name  string
	want  string
	lines []string
}

func malformedLogs() []malformed {
	const (
		limits  = `{"kind":"subject","entity":"t","resource":"llm","limits":[`
		window  = limits + `{"name":"n","kind":"window","capacity":9,"window_ms":1000}]}`
		charge  = `{"entity":"t","resource":"llm","costs":{"n":1}}`
		start   = `{"kind":"reserve","at_ms":1000,"lease":"a","charges":[` + charge + `],`
		reserve = start + `"error":"e"}`
		end     = `{"kind":"end","at_ms":1000}`
	)
	return []malformed{
		{"empty", "line 0: truncated", nil},
		{"no end", "line 2: truncated", []string{header, window}},
		{"no run", "line 1: the first line", []string{end}},
		{"two runs", "line 2: the first line", []string{header, header, end}},
		{"other format", "line 1: format 2", []string{`{"kind":"run","format":2}`, end}},
		{"after the end", "line 3: a line after", []string{header, end, end}},
		{"blank line", "line 2: ", []string{header, "", end}},
		{"no JSON", "line 2: ", []string{header, "reserve", end}},
		{"two values", "line 2: ", []string{header, window + window, end}},
		{"unknown kind", `line 2: unknown kind "take"`, []string{header, `{"kind":"take","at_ms":1}`}},
		{"unknown field", `line 2: json: unknown field "why"`,
			[]string{header, `{"kind":"end","at_ms":1,"why":2}`}},
		{"unknown field of a limit", `unknown field "quota"`,
			[]string{header, limits + `{"name":"n","quota":1}]}`, end}},
		{"unknown field of a status", `unknown field "level"`,
			[]string{header, window, start + `"allowed":true,"limits":[{"level":"x"}]}`, end}},
		{"no time", "line 2: no at_ms", []string{header, `{"kind":"end"}`}},
		{"time goes backwards", "line 4: no at_ms between 1000",
			[]string{header, window, reserve, `{"kind":"end","at_ms":999}`}},
		{"negative time", "line 2: no at_ms", []string{header, `{"kind":"end","at_ms":-1}`}},
		{"subject without entity", "line 2: subject",
			[]string{header, `{"kind":"subject","resource":"llm","limits":[]}`, end}},
		{"subject twice", "line 3: subject", []string{header, window, window, end}},
		{"limit twice", `line 2: limit "n" has no name or is defined twice`, []string{header,
			limits + strings.Repeat(`{"name":"n","kind":"budget","capacity":1,"every":"day"},`, 2) +
				`{}]}`, end}},
		{"no capacity", `limit "n": capacity`,
			[]string{header, limits + `{"name":"n","kind":"window","window_ms":1000}]}`, end}},
		{"no window", `limit "n": capacity or span`,
			[]string{header, limits + `{"name":"n","kind":"window","capacity":1}]}`, end}},
		{"a timeout for a window", `limit "n": capacity or span`,
			[]string{header, limits + `{"name":"n","kind":"window","capacity":1,"timeout_ms":1000}]}`}},
		{"half a second", `limit "n": capacity or span`,
			[]string{header, limits + `{"name":"n","kind":"concurrency","capacity":1,"timeout_ms":500}]}`}},
		{"no refill", `limit "n": capacity or span`,
			[]string{header, limits + `{"name":"n","kind":"bucket","capacity":1,"refill_period_ms":1}]}`}},
		{"unknown kind of limit", `unknown kind "quota"`,
			[]string{header, limits + `{"name":"n","kind":"quota","capacity":1,"window_ms":1000}]}`}},
		{"unknown period", `every "year"`,
			[]string{header, limits + `{"name":"n","kind":"budget","capacity":1,"every":"year"}]}`}},
		{"unknown zone", `unknown time zone Mars`, []string{header,
			limits + `{"name":"n","kind":"budget","capacity":1,"every":"day","zone":"Mars"}]}`}},
		{"no decision", "line 3: a reserve has", []string{header, window, start + `"limits":[]}`}},
		{"decision and error", "line 3: a reserve has",
			[]string{header, window, start + `"allowed":true,"error":"e"}`}},
		{"retry-after of an error", "line 3: a reserve has",
			[]string{header, window, start + `"retry_after_ms":1,"error":"e"}`}},
		{"adjust without seq", "line 2: no lease, or not the fields of adjust",
			[]string{header, `{"kind":"adjust","at_ms":1,"lease":"a","totals":[]}`}},
		{"cancel with actuals", "line 2: no lease, or not the fields of cancel",
			[]string{header, `{"kind":"cancel","at_ms":1,"lease":"a","actuals":[]}`}},
		{"no lease", "line 2: no lease", []string{header, `{"kind":"extend","at_ms":1}`}},
	}
}

func TestMalformedLogs(t *testing.T) {
	t.Parallel()
	for _, c := range malformedLogs() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			report, err := oracle.Check(strings.NewReader(strings.Join(c.lines, "\n")))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
			if report != nil {
				t.Errorf("got a report: %+v", report)
			}
		})
	}
}

func TestReaderFails(t *testing.T) {
	t.Parallel()
	broken := errors.New("disk on fire")
	if _, err := oracle.Check(iotest.ErrReader(broken)); !errors.Is(err, broken) {
		t.Errorf("got %v, want %v", err, broken)
	}
}

// What a log may not ask for is refused with an error, and a decision on it is a disagreement.
func TestRefusals(t *testing.T) {
	t.Parallel()
	const limits = `{"name":"%","kind":"window","capacity":90,"window_ms":1000}`
	subject := `{"kind":"subject","resource":"llm","limits":[` + strings.ReplaceAll(limits, "%", "n") +
		`,` + strings.ReplaceAll(limits, "%", "m") + `,` + strings.ReplaceAll(limits, "%", "o") +
		`],"entity":`
	charge := `{"entity":"t","resource":"llm","costs":{"n":1}},`
	three := `{"entity":"t","resource":"llm","costs":{"n":1,"m":1,"o":1}},`
	for name, c := range map[string]struct {
		subjects, charges string
		refused           bool
	}{
		"no charges":      {subject + `"t"}`, ``, true},
		"16 charges":      {subject + `"t"}`, strings.Repeat(charge, 16), false},
		"17 charges":      {subject + `"t"}`, strings.Repeat(charge, 17), true},
		"30 costs":        {subject + `"t"}`, strings.Repeat(three, 10), false},
		"33 costs":        {subject + `"t"}`, strings.Repeat(three, 11), true},
		"missing parent":  {subject + `"t","parent":"u"}`, charge, true},
		"missing subject": {subject + `"v"}`, charge, true},
		"cycle": {
			subject + `"t","parent":"u"}` + "\n" + subject + `"u","parent":"t"}`, charge, true,
		},
		"own parent": {subject + `"t","parent":"t"}`, charge, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			line := `{"kind":"reserve","at_ms":1,"lease":"a","charges":[` +
				strings.TrimSuffix(c.charges, ",") + `],`
			failed := logOf(1, c.subjects, line+`"error":"refused"}`)
			decided := logOf(1, c.subjects, line+`"allowed":true}`)
			at := 2 + strings.Count(c.subjects, "\n") + 1
			if c.refused {
				agrees(t, failed)
				caught(t, decided, at, "decision")
			} else {
				caught(t, failed, at, "decision")
				caught(t, decided, at, "t/llm n")
			}
		})
	}
}
