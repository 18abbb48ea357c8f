package oracle_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// mutation is one way to change the decisions of a log: what is changed and how.
type mutation struct{ about, how string }

// Every figure of every right log, a unit or a millisecond up and down, every flag, turned, and
// every status, left out, must be caught on its line and by its name, and nothing else with it.
func TestEveryFigureIsCompared(t *testing.T) {
	t.Parallel()
	for name, log := range rightLogs(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			right := strings.Split(strings.TrimSpace(log), "\n")
			changed := map[mutation]map[int]string{}
			for i, line := range right {
				for m, wrong := range mutants(t, i, line) {
					if changed[m] == nil {
						changed[m] = map[int]string{}
					}
					changed[m][i] = wrong
				}
			}
			if len(changed) < 10 {
				t.Errorf("got only %d mutations", len(changed))
			}
			for m, wrong := range changed {
				lines := append([]string(nil), right...)
				for i, line := range wrong {
					lines[i] = line
				}
				caughtAll(t, lines, m, wrong)
			}
		})
	}
}

// caughtAll wants the changed lines to be caught. A turned decision changes the books, so later
// lines may disagree too.
func caughtAll(t *testing.T, lines []string, m mutation, changed map[int]string) {
	t.Helper()
	caught := map[int]bool{}
	for _, d := range check(t, strings.Join(lines, "\n")).Disagreements {
		if changed[d.Line-1] == "" && m.about != "decision" {
			t.Errorf("%s: a disagreement elsewhere: %s", m, d)
		}
		if strings.Contains(d.About, m.about) {
			caught[d.Line-1] = true
		}
	}
	for i := range changed {
		if !caught[i] {
			t.Errorf("line %d, %s: not caught", i+1, m)
		}
	}
}

// caught wants a disagreement on a line about something, and none before that line.
func caught(t *testing.T, log string, line int, about string) {
	t.Helper()
	found := false
	for _, d := range check(t, log).Disagreements {
		if d.Line < line {
			t.Errorf("line %d, %s: an earlier disagreement: %s", line, about, d)
		}
		found = found || d.Line == line && strings.Contains(d.About, about)
	}
	if !found {
		t.Errorf("line %d, %s: not caught", line, about)
	}
}

// mutants returns the wrong versions of a decision.
func mutants(t *testing.T, at int, line string) map[mutation]string {
	t.Helper()
	right := decode(t, line)
	wrong := map[mutation]string{}
	if right["allowed"] == nil {
		return wrong
	}
	change := func(about, how string, edit func(decision map[string]any)) {
		decision := decode(t, line)
		edit(decision)
		text, err := json.Marshal(decision)
		if err != nil {
			t.Fatal(err)
		}
		wrong[mutation{about, how}] = string(text)
	}
	change("decision", fmt.Sprint("line ", at), func(d map[string]any) {
		d["allowed"] = d["allowed"] == false
	})
	for _, by := range []int64{-1, 1} {
		change("retry-after", fmt.Sprint("by ", by), func(d map[string]any) {
			d["retry_after_ms"] = number(d["retry_after_ms"]) + by
		})
	}
	for i, status := range right["limits"].([]any) {
		s := status.(map[string]any)
		id := s["entity"].(string) + "/" + s["resource"].(string) + " " + s["limit"].(string)
		set := func(field, how string, value any) {
			about := strings.Replace(field, "retry_after_ms", "retry-after", 1)
			change(id+": "+about, how, func(d map[string]any) {
				d["limits"].([]any)[i].(map[string]any)[field] = value
			})
		}
		for _, field := range []string{"available", "requested", "capacity", "retry_after_ms"} {
			set(field, "up", number(s[field])+1)
			set(field, "down", number(s[field])-1)
		}
		set("exceeded", "turned", s["exceeded"] == false)
		set("shadow", "turned", s["shadow"] == false)
		set("kind", "changed", "quota")
		change(id, "left out", func(d map[string]any) {
			all := d["limits"].([]any)
			d["limits"] = append(all[:i:i], all[i+1:]...)
		})
	}
	return wrong
}

func decode(t *testing.T, line string) map[string]any {
	t.Helper()
	var fields map[string]any
	if err := json.Unmarshal([]byte(line), &fields); err != nil {
		t.Fatal(err)
	}
	return fields
}

// number reads a number of a log; all of them here are small. A missing one is 0.
func number(value any) int64 {
	f, _ := value.(float64)
	return int64(f)
}
