package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestMain makes the test binary a child where the program would be one.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == childArgument || len(os.Args) == 3 && os.Args[1] == contestArgument {
		main()
		return
	}
	// Under the race detector a process would linger for a second at its end.
	if err := os.Setenv("GORACE", "atexit_sleep_ms=0"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// small makes an item's worlds so small that they are set up in no time.
func small(it item) item {
	for i := range it.worlds {
		w := &it.worlds[i]
		w.Live, w.Remembered, w.Keys = min(w.Live, 12), min(w.Remembered, 20), min(w.Keys, 60)
	}
	return it
}

// TestItems runs every comparison in its processes, and counts what became of each operation.
func TestItems(t *testing.T) {
	t.Parallel()
	for _, it := range items([]int{1, 2}) {
		t.Run(it.name, func(t *testing.T) {
			t.Parallel()
			it := small(it)
			s := &settings{rounds: 2, slice: time.Millisecond}
			r, err := runItem(testContext(t), &it, s)
			if err != nil {
				t.Fatal(err)
			}
			for i, m := range r.totals {
				want := measure{Admitted: m.Ops}
				switch {
				case it.worlds[it.sides[i].world].Empty:
					want = measure{Denied: m.Ops}
				case it.worlds[it.sides[i].world].Name == worldParts:
					want = measure{}
				}
				if m.Ops == 0 || m.NS <= 0 || m.Admitted != want.Admitted || m.Denied != want.Denied {
					t.Errorf("%s: got %+v, want all of its operations admitted %d, denied %d",
						it.sides[i].label, m, want.Admitted, want.Denied)
				}
			}
			for _, x := range it.ratios {
				if got := len(r.ratios(x)); got != s.rounds {
					t.Errorf("%s: got %d ratios, want one for each of %d rounds", x.name(it.sides), got, s.rounds)
				}
			}
		})
	}
}

// TestItemsAreFair holds the items to their own sentences: rivals have the same keys, processors and
// emptiness as weir, and every position exists.
func TestItemsAreFair(t *testing.T) {
	t.Parallel()
	for _, it := range items([]int{1, 2}) {
		for _, s := range it.sides {
			if s.world >= len(it.worlds) {
				t.Fatalf("%s: %s: has world %d of %d", it.name, s.label, s.world, len(it.worlds))
			}
		}
		for _, x := range it.ratios {
			over, under := it.worlds[it.sides[x.over].world], it.worlds[it.sides[x.under].world]
			if over.Keys != under.Keys || over.Procs != under.Procs || over.Empty != under.Empty ||
				over.CPUs != under.CPUs {
				t.Errorf("%s: %s: got %+v beside %+v", it.name, x.name(it.sides), over, under)
			}
		}
	}
}

func TestRunPrints(t *testing.T) {
	t.Parallel()
	for _, output := range []string{"table", "markdown"} {
		var out bytes.Buffer
		err := run(testContext(t), []string{
			"-run", "^denied/live=1000$", "-side", "weir|AllowN", "-rounds", "2", "-slice", "2ms",
			"-output", output,
		}, &out)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			"2 rounds of 2ms", "1,000 live leases", "weir, reserve : x/time/rate, AllowN", "quartiles",
		} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: got %s, want %q in it", output, &out, want)
			}
		}
		if strings.Contains(out.String(), "go-limiter, Take") {
			t.Errorf("%s: got a side that was not asked for: %s", output, &out)
		}
	}
}

func TestRunLists(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := run(testContext(t), []string{"-list"}, &out); err != nil {
		t.Fatal(err)
	}
	want := len(items([]int{1})) + len(contests()) + len(ledgerContests())
	if got := strings.Count(out.String(), "\n"); got != want {
		t.Errorf("got %d lines, want %d: %s", got, want, &out)
	}
}

func TestRunRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args string
		want string
	}{
		{"-run nothing-of-that-name", "no item"},
		{"-run (", `-run "("`},
		{"-side [", `-side "["`},
		{"-side nobody", "no item"},
		{"-cpu 1,x", `-cpu "1,x"`},
		{"-cpu 0", `-cpu "0"`},
		{"-rounds 0", "-rounds 0"},
		{"-slice 1us", "-slice 1µs"},
		{"-runs 0", "-runs 0"},
		{"-length 0s", "-length 0s"},
		{"-warm 3", "-warm 3"},
		{"-output xml", `-output "xml"`},
		{"surplus", `"surplus"`},
	} {
		var out bytes.Buffer
		err := run(testContext(t), strings.Fields(c.args), &out)
		if err == nil || !strings.Contains(err.Error(), c.want) || out.Len() > 0 {
			t.Errorf("%s: got %v and %q, want an error with %q and nothing else", c.args, err, &out, c.want)
		}
	}
}

// TestChildFails shows that what goes wrong in a child is an error of the parent, and that the
// child ends.
func TestChildFails(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	if _, err := startProcess(ctx, &worldSpec{Name: "nonsense", Keys: 1}); err == nil ||
		!strings.Contains(err.Error(), `"nonsense"`) {
		t.Errorf("got %v, want that there is no such world", err)
	}
	p, err := startProcess(ctx, &worldSpec{Name: worldXRate, Keys: 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.run("nonsense", 1); err == nil || !strings.Contains(err.Error(), `"nonsense"`) {
		t.Errorf("got %v, want that there is no such work", err)
	}
	if m, err := p.run(workTake, 10); err != nil || m.Admitted != 10 {
		t.Errorf("after it: got %+v, %v, want 10 admitted", m, err)
	}
	if err := p.close(); err != nil {
		t.Error(err)
	}
	if _, err := p.run(workTake, 10); err == nil {
		t.Error("after its end: got no error")
	}
}

func TestKeep(t *testing.T) {
	t.Parallel()
	it := keysItem()
	if !it.keep(regexp.MustCompile("complete$|throttled")) {
		t.Fatal("got nothing left")
	}
	if len(it.sides) != 2 || len(it.worlds) != 2 || it.worlds[it.sides[1].world].Name != worldThrottled {
		t.Errorf("got %+v on %+v, want two sides on their worlds", it.sides, it.worlds)
	}
	if len(it.ratios) != 1 || it.ratios[0].over != 0 || it.ratios[0].under != 1 {
		t.Errorf("got ratios %+v, want the one between them", it.ratios)
	}
	if it.keep(regexp.MustCompile("nobody")) {
		t.Errorf("got %+v, want nothing left", it.sides)
	}
}

func TestProfile(t *testing.T) {
	t.Parallel()
	it := small(hotItem("few", 10, 8_000))
	s := &settings{rounds: 2, slice: time.Millisecond, profile: filepath.Join(t.TempDir(), "cpu.prof")}
	if _, err := runItem(testContext(t), &it, s); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(s.profile); err != nil || info.Size() == 0 {
		t.Errorf("got %+v, %v, want a profile once the child has ended", info, err)
	}
}

// TestRunIsInterrupted ends in the middle, and says only that.
func TestRunIsInterrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(testContext(t))
	cancel()
	err := run(ctx, []string{"-run", "^denied/live=1000$"}, io.Discard)
	if !errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v, want one line with %v", err, context.Canceled)
	}
}
