package conformance

import (
	"fmt"
	"os"
	"path/filepath"

	"pgregory.net/rapid"

	"github.com/weir-limiter/weir/conformance/model"
)

// The numbers of operations of a script. Three of four scripts are short, so that a run starts in
// many places and a failure is soon shrunk. One in four is long enough for rare states.
const (
	scriptOps     = 500
	longScriptOps = 2000
)

// nextScript is the distance between the seeds of a run's scripts. It is so large that runs from
// neighboring seeds have no script in common, and it lets opsOf derive a script's length from its
// seed.
const nextScript = 1 << 32

func opsOf(seed uint64) int {
	if seed/nextScript%4 == 3 {
		return longScriptOps
	}
	return scriptOps
}

// RandomOperations drives a world of the harness and the model with n random operations, compares
// every answer, and returns what was met. The seed is printed. At the first difference all
// operations up to it are printed, and then a shrunk script in a form that [Replay] accepts.
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
// difference, not shrunk, or "" if there is none.
func FirstDifference(t T, h Harness, seed uint64, n int) string {
	t.Helper()
	f := search(t, &h, seed, n, nil)
	if f == nil {
		return ""
	}
	return fmt.Sprintf("seed %d: %v", f.seed, f.first)
}

// failingScript is a script at whose last step a world and the model differ.
type failingScript struct {
	seed   uint64
	script *Script
	first  *difference
}

// search plays one script after another until one fails. The table may be nil.
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

// scriptSearch plays a script while rapid draws it.
type scriptSearch struct {
	t        T
	h        *Harness
	calendar *model.Calendar
	table    *Coverage // may be nil
	ops      int       // the number of operations
	// ofInterest, if not nil, reports whether to play a script, of which only the header has been
	// drawn.
	ofInterest func(*Script) bool
	// expired, if not nil, reports whether to end the script early.
	expired func() bool

	machine *machine // what was played last
}

// play draws a script and plays it in fresh worlds.
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

// example plays the script that rapid draws from a seed. Rapid would draw another script after a
// panic. So example recovers panics, with which recorders end a run, and panics again afterwards.
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

// rapidSeed returns a seed that is not 0, because rapid replaces 0 with a random seed.
func rapidSeed(seed uint64) uint64 { return max(1, seed+1) }

// Replay plays the script that a failing run has printed.
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

// report prints a script that has failed, shrinks it, and prints the result.
func (f *failingScript) report(t T, h *Harness) {
	t.Helper()
	// Print before shrinking: the test may be ended while it shrinks.
	fmt.Fprintf(os.Stderr, "seed %d: %v\nbefore shrinking:\n%s\n", f.seed, f.first, f.script)
	t.Errorf("seed %d: %v", f.seed, f.first)
	short, d := f.shrink(t, h)
	t.Errorf("shrunk: %v", d)
	text := fmt.Sprintf("# seed %d\n%s", f.seed, short)
	t.Errorf("replay it with conformance.Replay:\n%s%s", text, saveScript(t, f.seed, text))
}

// saveScript saves a script in the test's artifact directory, if it has one, and returns its path.
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
