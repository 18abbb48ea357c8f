package conformance

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/weir-limiter/weir/conformance/model"
)

// scriptOps is how many operations a script has: enough for leases to be forgotten, few enough to
// begin in many places.
const scriptOps = 2000

// RandomOperations drives a world of the harness and the model with n random operations, compares
// every answer, and says what was met. The seed is printed; the first difference is reduced to a short
// script and printed in a form that [Replay] accepts.
func RandomOperations(t T, h Harness, seed uint64, n int) *Table {
	t.Helper()
	if h.RealTime {
		t.Skipf("random operations need virtual time")
	}
	t.Logf("random operations: seed %d, %d operations", seed, n)
	table := newTable()
	if f := search(t, &h, seed, n, table); f != nil {
		f.report(t, &h)
	}
	return table
}

// FirstDifference is [RandomOperations] for worlds that are known to be wrong: it returns the first
// difference, not reduced, or "" if there was none.
func FirstDifference(t T, h Harness, seed uint64, n int) string {
	t.Helper()
	f := search(t, &h, seed, n, nil)
	if f == nil {
		return ""
	}
	return fmt.Sprintf("seed %d: %v", f.seed, f.first)
}

// finding is a script in which a world and the model disagree.
type finding struct {
	seed   uint64
	script *Script
	first  *difference
}

// search does one script after another until one fails. The table may be nil.
func search(t T, h *Harness, seed uint64, n int, table *Table) *finding {
	t.Helper()
	calendar := model.NewCalendar()
	p := Profile{
		Traits: h.Traits, NoSkew: h.NoSkew || h.OwnClock, Calendar: calendar, Leeway: h.Leeway,
	}
	for done := 0; done < n; done += scriptOps {
		s, err := Generate(seed, min(scriptOps, n-done), p)
		if err != nil {
			t.Fatalf("seed %d: generate: %v", seed, err)
		}
		// What runs is what would be printed, so that a replay meets the same world.
		if s, err = ParseScript(s.String()); err != nil {
			t.Fatalf("seed %d: read back: %v", seed, err)
		}
		if d := lockstepWith(t, h, s, calendar, table); d != nil {
			return &finding{seed, s, d}
		}
		seed++
	}
	return nil
}

// lockstepWith does a script in fresh worlds. The table may be nil.
func lockstepWith(t T, h *Harness, s *Script, c *model.Calendar, table *Table) *difference {
	t.Helper()
	l, err := startLockstep(t, h, s, c)
	if err != nil {
		t.Fatalf("open the model: %v", err)
	}
	defer func() {
		if err := l.world.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}()
	var each func(model.Note)
	if table != nil {
		each = func(n model.Note) { table.Cells[n]++ }
		defer table.merge(l)
	}
	return l.run(t.Context(), each)
}

// Replay does the script that a failing run has printed.
func Replay(t T, h Harness, text string) {
	t.Helper()
	s, err := ParseScript(text)
	if err != nil {
		t.Fatalf("replay: %v", err)
	}
	if d := lockstepWith(t, &h, s, model.NewCalendar(), nil); d != nil {
		t.Errorf("replay: %v", d)
	}
}

// report reduces a script that has failed, and prints what is left of it.
func (f *finding) report(t T, h *Harness) {
	t.Helper()
	short := *f.script
	short.Ops = short.Ops[:f.first.step+1]
	// A test may be ended while it reduces: what was found is on the terminal by then.
	fmt.Fprintf(os.Stderr, "seed %d: %v\nbefore reducing:\n%s\n", f.seed, f.first, &short)
	t.Errorf("seed %d: %v", f.seed, f.first)
	reduced := reduce(t, h, &short)
	if d := lockstepWith(quietly(t), h, reduced, model.NewCalendar(), nil); d != nil {
		t.Errorf("reduced: %v", d)
	}
	text := fmt.Sprintf("# seed %d\n%s", f.seed, reduced)
	t.Errorf("replay it with conformance.Replay:\n%s%s", text, keep(t, f.seed, text))
}

// keep saves a script where the test keeps its artifacts, if it does.
func keep(t T, seed uint64, text string) string {
	place, ok := t.(interface{ ArtifactDir() string })
	if !ok {
		return ""
	}
	file := filepath.Join(place.ArtifactDir(), fmt.Sprintf("seed-%d.txt", seed))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return ""
	}
	return "# saved as " + file + " (go test -artifacts keeps it)"
}
