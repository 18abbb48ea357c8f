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

	"github.com/weir-limiter/weir/internal/soak"
	"github.com/weir-limiter/weir/internal/testkit"
)

// TestMain makes the test binary a worker if it is started as one.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == workerArgument {
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
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// small reduces a comparison so that its contestants start at once.
func small(c *comparison) {
	for _, by := range c.contestants() {
		for _, s := range []*spec{&by.spec, by.server} {
			if s != nil {
				s.Live, s.Ended = min(s.Live, 12), min(s.Ended, 20)
				s.Entities = s.Entities[:min(len(s.Entities), 64)]
				s.Each = min(s.Each, 1)
			}
		}
	}
}

// TestComparisons runs every comparison for a moment, with its processes. The run itself fails
// unless all operations of a side are admitted, or all are denied if nothing is left. Of the
// comparisons on DynamoDB a plain run makes only the one with a parent, which includes everything
// that the others have.
func TestComparisons(t *testing.T) {
	t.Parallel()
	for _, c := range comparisons([]int{1, 2}) {
		t.Run(c.name, func(t *testing.T) {
			if !c.sameCounts { // the number of events of a lease depends on how busy the cluster is
				t.Parallel()
			}
			small(c)
			s := &settings{
				rounds: 2, slice: time.Millisecond, runs: 1, length: 100 * time.Millisecond, warm: 64, heat: 16,
				profile: filepath.Join(t.TempDir(), "cpu.prof"),
			}
			switch {
			case strings.HasPrefix(c.name, "tigerbeetle/"):
				if os.Getenv(clusterVariable) == "" {
					t.Skip(clusterVariable + " names no TigerBeetle server")
				}
			case strings.HasPrefix(c.name, "dynamodb/"):
				if c.name != "dynamodb/children" && !soak.On() {
					t.Skip("runs with WEIR_SOAK=1")
				}
				s.python = testkit.ZAE(t).Command(t.Context(), "python").Path
				server, err := testkit.StartDynamoDB(t.Context(), nil)
				if err != nil {
					testkit.Require(t, "dynamodb", err.Error())
				}
				server.Stop()
			}
			r, err := compare(testContext(t), c, s)
			if err != nil {
				t.Fatal(err)
			}
			checkReplies(t, r)
			if info, err := os.Stat(s.profile); err != nil || info.Size() == 0 {
				t.Errorf("got %+v, %v, want a profile of weir", info, err)
			}
		})
	}
}

// checkReplies checks what each side reported in each round.
func checkReplies(t *testing.T, r *result) {
	t.Helper()
	for i, side := range r.sides {
		kind := side.by.spec.Kind
		for _, replies := range r.rounds {
			got := &replies[i]
			if got.Ops == 0 || got.NS <= 0 || r.store.open != nil && (got.P50 == 0 || got.P99 < got.P50) {
				t.Errorf("%s: got %+v, want operations that took time", side.label, got)
			}
			if kind != kindParts && got.Admitted+got.Denied != got.Ops {
				t.Errorf("%s: got %+v, want each operation judged", side.label, got)
			}
			counts := map[string][]string{"dynamodb/children": {countWrites, countParents}, "dynamodb/entities": {countWrites}}
			for _, name := range counts[r.name] {
				if (kind != kindPython) != (got.Counts[name] > 0) {
					t.Errorf("%s: got %+v, want its %s counted unless it is Python", side.label, got, name)
				}
			}
		}
	}
	for _, x := range r.ratios {
		if x.of.of(&r.rounds[0][x.over], &r.rounds[0][x.under]) <= 0 {
			t.Errorf("%+v: want a ratio", x)
		}
	}
}

// TestComparisonsAreFair checks that the sides of a ratio have the same entities, callers and
// processors, and are both empty or not.
func TestComparisonsAreFair(t *testing.T) {
	t.Parallel()
	for _, c := range comparisons([]int{1, 2}) {
		for _, x := range c.ratios {
			if max(x.over, x.under) >= len(c.sides) {
				t.Fatalf("%s: got ratio %+v of %d sides", c.name, x, len(c.sides))
			}
			a, b := &c.sides[x.over].by.spec, &c.sides[x.under].by.spec
			if len(a.Entities) != len(b.Entities) || a.Callers != b.Callers || a.Each != b.Each ||
				a.Procs != b.Procs || a.CPUs != b.CPUs || a.Empty != b.Empty || a.Parent != b.Parent {
				t.Errorf("%s: got %+v beside %+v", c.name, a, b)
			}
		}
	}
}

func TestKeep(t *testing.T) {
	t.Parallel()
	c := keys()
	if !c.keep(regexp.MustCompile("complete$|throttled")) || len(c.sides) != 2 || len(c.contestants()) != 2 ||
		c.sides[1].by.spec.Kind != kindThrottled {
		t.Errorf("got %+v, want two sides and their contestants", c.sides)
	}
	if len(c.ratios) != 1 || c.ratios[0].over != 0 || c.ratios[0].under != 1 {
		t.Errorf("got ratios %+v, want the one between them", c.ratios)
	}
	if c.keep(regexp.MustCompile("no such side")) {
		t.Errorf("got %+v, want nothing left", c.sides)
	}
}

func TestRun(t *testing.T) {
	t.Setenv(clusterVariable, "")
	ended, end := context.WithCancel(t.Context())
	end()
	const few = "-run ^denied/live=1000$ -side weir|AllowN -rounds 2 -slice 2ms "
	for _, c := range []struct {
		ctx  context.Context
		args string
		want []string // in the output
		err  string   // in the error
	}{
		{args: few, want: []string{
			"2 rounds of 2ms", "1,000 live leases", "weir, reserve : x/time/rate, AllowN", "quartiles",
		}},
		{args: few + "-output markdown", want: []string{"### The same, denied", "|---|--:|"}},
		{args: "-list", want: []string{"hot/live=1000000 ", "dynamodb/children ", "tigerbeetle/callers=512 "}},
		{args: "-run ^tigerbeetle/", want: []string{"callers=1: left out", "callers=512: left out"}},
		{ctx: ended, args: few, err: "context canceled"},
		{args: "-run nothing-of-that-name", err: "no comparison"},
		{args: "-side no-such-side", err: "no comparison"},
		{args: "-run (", err: `-run "("`},
		{args: "-side [", err: `-side "["`},
		{args: "-cpu 1,x", err: `-cpu "1,x"`},
		{args: "-cpu 0", err: `-cpu "0"`},
		{args: "-rounds 0", err: "-rounds 0"},
		{args: "-slice 1us", err: "-slice 1µs"},
		{args: "-runs 0", err: "-runs 0"},
		{args: "-length 0s", err: "-length 0s"},
		{args: "-warm 3", err: "-warm 3"},
		{args: "-heat -1", err: "-heat -1"},
		{args: "-output xml", err: `-output "xml"`},
		{args: "surplus", err: `"surplus"`},
	} {
		ctx := c.ctx
		if ctx == nil {
			ctx = testContext(t)
		}
		var out bytes.Buffer
		err := run(ctx, strings.Fields(c.args), &out)
		if c.err == "" && err != nil ||
			c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err) || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%s: got error %v, want one line with %q", c.args, err, c.err)
		}
		for _, want := range c.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: got %s, want %q in it", c.args, &out, want)
			}
		}
		if strings.Contains(out.String(), "go-limiter, Take") {
			t.Errorf("%s: got a side that was not asked for: %s", c.args, &out)
		}
	}
}

// TestWorkerFails checks that an error in a worker is returned by the parent, and that the worker
// continues.
func TestWorkerFails(t *testing.T) {
	t.Parallel()
	ctx, e := testContext(t), &environment{}
	for kind, want := range map[string]string{"nonsense": "none of that kind", kindBareSDK: "table"} {
		_, err := startWorker(ctx, &spec{Kind: kind, Callers: 1}, e)
		if err == nil || !strings.Contains(strings.ToLower(err.Error()), want) {
			t.Errorf("%s: got %v, want an error with %q", kind, err, want)
		}
	}
	w, err := startWorker(ctx, &spec{Kind: kindXRate, Callers: 1, Entities: []string{"a"}}, e)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.ask(&command{Work: "nonsense"}); err == nil || !strings.Contains(err.Error(), `"nonsense"`) {
		t.Errorf("got %v, want that there is no such work", err)
	}
	if r, err := w.ask(&command{Work: workTake, Ops: 10}); err != nil || r.Admitted != 10 {
		t.Errorf("after it: got %+v, %v, want 10 admitted", r, err)
	}
	if err := w.stop(); err != nil {
		t.Error(err)
	}
	if _, err := w.ask(&command{Work: workTake, Ops: 10}); err == nil {
		t.Error("after its end: got no error")
	}
	if err := serveOrders(strings.NewReader("no order"), io.Discard); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("no JSON: got %v, want an error", err)
	}
}
