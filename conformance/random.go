package conformance

import (
	"fmt"
	"os"
	"path/filepath"

	"pgregory.net/rapid"

	"github.com/weir-limiter/weir/conformance/model"
)

// How many operations a script has. Most are short, so that a run begins in many places, and a
// failure is soon shrunk. One in four is long enough for states that are rare.
const (
	scriptOps     = 500
	longScriptOps = 2000
)

// nextScript is how far apart the seeds of a run's scripts are. So runs from neighboring seeds have
// no script in common, and a script's seed tells how long it is.
const nextScript = 1 << 32

func opsOf(seed uint64) int {
	if seed/nextScript%4 == 3 {
		return longScriptOps
	}
	return scriptOps
}

// RandomOperations drives a world of the harness and the model with n random operations, compares
// every answer, and says what was met. The seed is printed. The first difference is printed, with
// all operations up to it, then shrunk to a short script, which is printed in a form that [Replay]
// accepts.
func RandomOperations(t T, h Harness, seed uint64, n int) *Coverage {
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
// difference, not shrunk, or "" if there was none.
func FirstDifference(t T, h Harness, seed uint64, n int) string {
	t.Helper()
	f := search(t, &h, seed, n, nil)
	if f == nil {
		return ""
	}
	return fmt.Sprintf("seed %d: %v", f.seed, f.first)
}

// failingScript is a script whose last step a world and the model answer differently.
type failingScript struct {
	seed   uint64
	script *Script
	first  *difference
}

// search does one script after another until one fails. The table may be nil.
func search(t T, h *Harness, seed uint64, n int, table *Coverage) *failingScript {
	t.Helper()
	calendar := model.NewCalendar()
	for done := 0; done < n; seed += nextScript {
		r := scriptSearch{t: t, h: h, calendar: calendar, table: table, ops: min(opsOf(seed), n-done)}
		if d := r.example(seed); d != nil {
			return &failingScript{seed, r.machine.script, d}
		}
		done += r.ops
	}
	return nil
}

// scriptSearch is a script that rapid draws while it is done.
type scriptSearch struct {
	t        T
	h        *Harness
	calendar *model.Calendar
	table    *Coverage // may be nil
	ops      int       // how many operations there are
	// ofInterest is asked before a script is done, which has no operations yet; nil takes all.
	ofInterest func(*Script) bool
	// expired ends a script before its time; nil never does.
	expired func() bool

	machine *machine // what was done last
}

// play draws and does a script in fresh worlds.
func (r *scriptSearch) play(t *rapid.T) *difference {
	r.machine = nil
	s := reread(script(r.h).Draw(t, "script"))
	if r.ofInterest != nil && !r.ofInterest(s) {
		return nil
	}
	r.t.Helper()
	l, err := startLockstep(r.t, r.h, s, r.calendar, r.table)
	if err != nil {
		r.t.Fatalf("open the model: %v", err)
	}
	defer l.finish(r.t)
	r.machine = &machine{
		lockstep: l, ctx: r.t.Context(), h: r.h, most: r.ops, expired: r.expired,
	}
	r.machine.run(t)
	return r.machine.found
}

// example plays the script that rapid draws from a seed. Rapid would draw another one after a
// panic, so panics, which end the tests of recorders, go around it.
func (r *scriptSearch) example(seed uint64) *difference {
	var d *difference
	var thrown any
	rapid.Custom(func(t *rapid.T) bool {
		defer func() { thrown = recover() }()
		d = r.play(t)
		return true
	}).Example(int(rapidSeed(seed)))
	if thrown != nil {
		panic(thrown)
	}
	return d
}

// rapidSeed is never 0, from which rapid would take another one each time.
func rapidSeed(seed uint64) uint64 { return max(1, seed+1) }

// Replay does the script that a failing run has printed.
func Replay(t T, h Harness, text string) {
	t.Helper()
	s, err := ParseScript(text)
	if err != nil {
		t.Fatalf("replay: %v", err)
	}
	if d := replay(t, &h, s); d != nil {
		t.Errorf("replay: %v", d)
	}
}

func replay(t T, h *Harness, s *Script) *difference {
	t.Helper()
	l, err := startLockstep(t, h, s, model.NewCalendar(), nil)
	if err != nil {
		t.Fatalf("open the model: %v", err)
	}
	defer l.finish(t)
	for i := range s.Ops {
		if _, d := l.step(t.Context(), i); d != nil {
			return d
		}
	}
	return nil
}

// report prints a script that has failed, shrinks it, and prints what is left of it.
func (f *failingScript) report(t T, h *Harness) {
	t.Helper()
	// A test may be ended while it shrinks: what was found is on the terminal by then.
	fmt.Fprintf(os.Stderr, "seed %d: %v\nbefore shrinking:\n%s\n", f.seed, f.first, f.script)
	t.Errorf("seed %d: %v", f.seed, f.first)
	short, d := f.shrink(t, h)
	t.Errorf("shrunk: %v", d)
	text := fmt.Sprintf("# seed %d\n%s", f.seed, short)
	t.Errorf("replay it with conformance.Replay:\n%s%s", text, saveScript(t, f.seed, text))
}

// saveScript saves a script where the test keeps its artifacts, if it does.
func saveScript(t T, seed uint64, text string) string {
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
