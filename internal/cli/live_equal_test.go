package cli

import (
	"errors"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/manifest"
	"github.com/weir-limiter/weir/memory"
)

// replayBoth replays calls at 120 times their speed against a limiter in real time, and again in
// virtual time, and returns both reports.
func replayBoth(t *testing.T, limits string, calls []call) (live, virtual *replayReport) {
	t.Helper()
	const speed, entities, seed = 120, 4, 7
	start := time.Now()
	m, err := manifest.Parse("limits.yaml", []byte(limits))
	if err != nil {
		t.Fatal(err)
	}
	replay := func(factor int64) *workload {
		w := &workload{
			trace: "t.csv", tenants: spreadCalls(len(calls), entities, seed),
			resource: "llm", costs: costFlag{},
			latency: latency{time.Duration(factor) * 5 * time.Millisecond, 0},
		}
		for _, c := range calls {
			c.atMS = start.UnixMilli() + c.atMS*factor
			w.calls = append(w.calls, c)
		}
		return w
	}
	report := func(w *workload, tally *tally) *replayReport {
		return (&replayFlags{entities: entities, seed: seed}).report(tally, w, span{})
	}

	store, err := memory.Open(&memory.Options{Definitions: m.Definitions})
	if err != nil {
		t.Fatal(err)
	}
	limiter, err := weir.New(store, nil)
	if err != nil {
		t.Fatal(err)
	}
	w := replay(speed)
	if err := w.resolve(t.Context(), limiter); err != nil {
		t.Fatal(err)
	}
	p, counts := playerOver(t, limiter, speed, w)
	if err := p.play(t.Context()); err != nil {
		t.Fatal(err)
	}
	if p.count.late != 0 || p.count.lateMax != 0 || p.count.unsettled != 0 {
		t.Errorf("got %+v, want none late and none unsettled", p.count)
	}
	live = report(w, counts)

	w = replay(1)
	clock := &virtualClock{atMS: w.calls[0].atMS}
	if limiter, err = openReplayed(m, clock); err != nil {
		t.Fatal(err)
	}
	if err := w.resolve(t.Context(), limiter); err != nil {
		t.Fatal(err)
	}
	counts = newTally(w.subjects)
	e := &engine{
		service: limiter, workload: w, ids: newLeaseIDs(seed), until: clock.until,
		watchers: []watcher{counts},
	}
	if err := e.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	return live, report(w, counts)
}

// TestPlayerEqualsEngine: the same calls at the same instants have the same outcome in real time,
// here a bubble's, as in virtual time, on every kind of limit. No two events meet in one
// millisecond: there the engine has an order, and real time has none.
func TestPlayerEqualsEngine(t *testing.T) {
	limits, err := os.ReadFile("../../examples/demo.yaml")
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(azureTrace)
	if err != nil {
		t.Fatal(err)
	}
	calls, err := readTrace(t.Context(), azureTrace, file)
	if err = errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
	// Calls begin at even milliseconds and last five, so they end at odd ones.
	first, last := calls[0].atMS, int64(-2)
	for i := range calls {
		last = max(last+2, (calls[i].atMS-first)/120&^1)
		calls[i].atMS = last
	}
	denying := map[weir.Kind]bool{}
	for _, slots := range []string{"32", "2"} {
		limits := strings.ReplaceAll(string(limits),
			"concurrency, capacity: 32", "concurrency, capacity: "+slots)
		synctest.Test(t, func(t *testing.T) {
			live, virtual := replayBoth(t, limits, calls)
			checkEqual(t, live, virtual)
			for _, l := range live.Limits {
				denying[l.Kind] = denying[l.Kind] || l.DeniedOnly > 0
				t.Logf("%s %s: %d admitted, %d denied", l.Entity, l.Limit, l.Admitted, l.Denied)
			}
		})
	}
	for _, kind := range []weir.Kind{weir.Bucket, weir.Window, weir.Concurrency, weir.Budget} {
		if !denying[kind] {
			t.Errorf("got no denial by a %s alone, want every kind to have its say", kind)
		}
	}
}

// checkEqual compares all that two reports count.
func checkEqual(t *testing.T, live, virtual *replayReport) {
	t.Helper()
	got, want := live.Totals, virtual.Totals
	if got.Admitted != want.Admitted || got.Denied != want.Denied || got.Errors != want.Errors ||
		got.TokensAdmitted.Cmp(want.TokensAdmitted) != 0 ||
		*got.RetryAfterP95MS != *want.RetryAfterP95MS {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	if 2*got.Admitted < got.Calls || 20*got.Denied < got.Calls || got.Errors > 0 {
		t.Errorf("got %d admitted and %d denied of %d, want most admitted and many denied",
			got.Admitted, got.Denied, got.Calls)
	}
	for i, l := range live.Limits {
		v := virtual.Limits[i]
		if l.Entity != v.Entity || l.Limit != v.Limit || l.Admitted != v.Admitted ||
			l.Denied != v.Denied || l.DeniedOnly != v.DeniedOnly || l.Used.Cmp(v.Used) != 0 {
			t.Errorf("got %+v\nwant %+v", l, v)
		}
	}
}
