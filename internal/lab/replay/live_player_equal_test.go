package replay

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/lab/trace"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/manifest"
	"github.com/weir-limiter/weir/memory"
)

// replayBoth replays calls at 120 times their speed against a limiter in real time, and again in
// virtual time, and returns both reports.
func replayBoth(t *testing.T, limits string, calls []trace.Call) (live, virtual *Report) {
	t.Helper()
	const speed, entities, seed = 120, 4, 7
	start := time.Now()
	m, err := manifest.Parse("limits.yaml", []byte(limits))
	if err != nil {
		t.Fatal(err)
	}
	workload := func(factor int64) *Workload {
		moved := slices.Clone(calls)
		for i := range moved {
			moved[i].AtMS = start.UnixMilli() + moved[i].AtMS*factor
		}
		return NewWorkload(traceOf(moved...), &WorkloadOptions{
			Entities: entities, Seed: seed,
			Latency: Latency{time.Duration(factor) * 5 * time.Millisecond, 0},
		})
	}
	store, err := memory.Open(&memory.Options{Definitions: m.Definitions})
	if err != nil {
		t.Fatal(err)
	}
	lim, err := limiter.New(store, nil)
	if err != nil {
		t.Fatal(err)
	}
	live, err = Play(t.Context(), lim, workload(speed), &PlayOptions{Speed: speed})
	if err != nil {
		t.Fatal(err)
	}
	if l := live.Live; l.Late != 0 || l.LateMaxMS != 0 || l.Unsettled != 0 {
		t.Errorf("got %+v, want none late and none unsettled", l)
	}
	virtual, err = Run(t.Context(), m.Definitions, workload(1), nil)
	if err != nil {
		t.Fatal(err)
	}
	return live, virtual
}

// TestPlayerEqualsEngine checks that the same calls at the same instants have the same result in
// real time (here that of a synctest bubble) as in virtual time, on every kind of limit. No two
// events are in one millisecond, because the simulator has an order for them and real time has
// none.
func TestPlayerEqualsEngine(t *testing.T) {
	limits, err := os.ReadFile("../../../examples/demo.yaml")
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(azureTrace)
	if err != nil {
		t.Fatal(err)
	}
	trace, err := trace.Read(t.Context(), azureTrace, file, nil)
	if err = errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
	calls := trace.Calls
	// Calls begin at even milliseconds and last five, so they end at odd ones.
	first, last := calls[0].AtMS, int64(-2)
	for i := range calls {
		last = max(last+2, (calls[i].AtMS-first)/120&^1)
		calls[i].AtMS = last
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

// checkEqual compares all counts that the two reports share.
func checkEqual(t *testing.T, live, virtual *Report) {
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
