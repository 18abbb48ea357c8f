package memory_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/memory"
)

var (
	_ driver.UsageReader = (*memory.Store)(nil)
	_ driver.UsageReader = (*memory.SnapshotStore)(nil)
	_ driver.AuditReader = (*memory.Store)(nil)
	_ driver.AuditReader = (*memory.SnapshotStore)(nil)
)

// boundedWorld opens a store with options and one large window.
func boundedWorld(t *testing.T, o memory.Options) *world {
	t.Helper()
	o.Definitions = &weir.Definitions{System: []weir.Limit{named("x", window(math.MaxInt64, time.Second))}}
	store, err := memory.Open(&o)
	if err != nil {
		t.Fatal(err)
	}
	return &world{t: t, store: store, now: start}
}

// used returns the units of the limit x by hour since the start, of an entity or of all of them.
func (w *world) used(entity string) map[int]int64 {
	w.t.Helper()
	q := &weir.UsageQuery{Entity: entity, Resource: subjectResource, Window: weir.Hourly}
	got := map[int]int64{}
	for u, err := range w.store.(driver.UsageReader).ReadUsage(context.Background(), q, nil) {
		if err != nil {
			w.t.Fatal(err)
		}
		got[int(u.Start.Sub(start)/time.Hour)] += u.Units["x"]
	}
	return got
}

// checkUsed checks the units of the limit x by hour.
func (w *world) checkUsed(what string, want map[int]int64) {
	w.t.Helper()
	for _, entity := range []string{subjectEntity, ""} {
		if got := w.used(entity); !maps.Equal(got, want) {
			w.t.Errorf("%s, entity %q: got %v by hour, want %v", what, entity, got, want)
		}
	}
}

// gaps returns the gaps as text, with hours since the start.
func (w *world) gaps() []string {
	w.t.Helper()
	gaps, err := w.store.(driver.UsageReader).UsageGaps(
		context.Background(), w.now, &weir.UsageQuery{Entity: subjectEntity, Window: weir.Hourly})
	if err != nil {
		w.t.Fatal(err)
	}
	var out []string
	for _, g := range gaps {
		from := "-"
		if !g.From.IsZero() {
			from = g.From.Sub(start).String()
		}
		out = append(out, fmt.Sprintf("%s to %s: %s", from, g.To.Sub(start), g.Reason))
	}
	return out
}

func (w *world) checkGaps(what string, want ...string) {
	w.t.Helper()
	if got := w.gaps(); !slices.Equal(got, want) {
		w.t.Errorf("%s: got gaps %q, want %q", what, got, want)
	}
}

const (
	began    = ": the record of usage began at the end of this time"
	dropped  = ": older hours were dropped"
	unsaved  = ": used after the last snapshot of a process that was killed or still runs"
	hourMS   = int64(time.Hour / time.Millisecond)
	minuteMS = int64(time.Minute / time.Millisecond)
)

func TestUsageIsOfTheHourOfTheCall(t *testing.T) {
	t.Parallel()
	w := boundedWorld(t, memory.Options{})
	w.at(30*minuteMS).checkGaps("before the first call", "- to 30m0s"+began)
	l := w.take(5)
	w.take(2)
	w.at(hourMS-1).adjust(l, 6)
	w.at(hourMS).adjust(l, 4)
	w.at(2 * hourMS).cancel(l)
	w.checkUsed("after a cancel", map[int]int64{0: 8, 1: -2, 2: -4})
	w.at(hourMS).take(1) // the clock steps back
	w.at(2 * hourMS).take(1)
	w.checkUsed("a clock that stepped back", map[int]int64{0: 8, 1: -1, 2: -3})
	w.checkGaps("later", "- to 30m0s"+began)
}

func TestUsageDoesNotOverflow(t *testing.T) {
	t.Parallel()
	w := boundedWorld(t, memory.Options{})
	for i := range int64(3) {
		w.at(i * 2000).take(math.MaxInt64)
	}
	w.checkUsed("more than 64 bits", map[int]int64{0: math.MaxInt64})
	w.at(hourMS).take(1)
	l := w.take(2)
	w.at(10_000).adjust(l, 7) // the clock stepped back into an hour that is full
	w.checkUsed("and again", map[int]int64{0: math.MaxInt64, 1: 3})
}

// TestUsageDays checks that hours are dropped once they are too old.
func TestUsageDays(t *testing.T) {
	t.Parallel()
	w := boundedWorld(t, memory.Options{UsageDays: 2})
	want := map[int]int64{}
	for hour := range 60 {
		w.at(int64(hour) * hourMS).take(int64(hour + 1))
		want[hour] = int64(hour + 1)
	}
	// The hour of the latest call is in the state of the limit and drops none yet.
	maps.DeleteFunc(want, func(hour int, _ int64) bool { return hour <= 58-48 })
	w.checkUsed("after 60 hours", want)
	w.checkGaps("after 60 hours", "- to 11h0m0s"+dropped)
}

// TestUsageAfterAClockThatWasAhead checks that one call with a clock far ahead does not keep later
// calls from being counted.
func TestUsageAfterAClockThatWasAhead(t *testing.T) {
	t.Parallel()
	w := boundedWorld(t, memory.Options{UsageDays: 1})
	w.at(0).take(1)
	w.at(10_000 * hourMS).take(1)
	for hour := range int64(4) {
		w.at((hour + 1) * hourMS).take(hour + 1)
	}
	got := w.used(subjectEntity)
	for hour := 2; hour <= 4; hour++ {
		if got[hour] != int64(hour) {
			t.Errorf("hour %d: got %d, want %d (all: %v)", hour, got[hour], hour, got)
		}
	}
}

// TestUsageEntries checks that the oldest hours are dropped if there are too many entries, each of
// them as a whole, and that the memory of what was dropped is freed.
func TestUsageEntries(t *testing.T) {
	t.Parallel()
	const entities = 100
	w := boundedWorld(t, memory.Options{UsageEntries: 3 * entities})
	want := map[int]int64{}
	for hour := range 10 {
		for i := range entities {
			w.at(int64(hour)*hourMS + int64(i)).reserve(weir.Charge{
				Entity: "e" + strconv.Itoa(i), Resource: subjectResource, Costs: x(2),
			})
		}
		want[hour] = 2 * entities
	}
	maps.DeleteFunc(want, func(hour int, _ int64) bool { return hour < 6 }) // hour 9 is no entry yet
	if got := w.used(""); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	w.checkGaps("after ten hours", "- to 6h0m0s"+dropped)
	store := w.store.(*memory.Store)
	for range 2000 { // sweeps what was dropped
		w.at(w.now.Sub(start).Milliseconds() + 1000).reserve(weir.Charge{
			Entity: "e0", Resource: subjectResource, Costs: x(1),
		})
	}
	if got, most := store.UsageEntries(), 3*entities+entities; got > most {
		t.Errorf("got %d entries in memory, want at most %d", got, most)
	}
}

func TestUsageOff(t *testing.T) {
	t.Parallel()
	w := boundedWorld(t, memory.Options{UsageDays: -1, AuditEvents: -1})
	w.take(1)
	s := w.store.(*memory.Store)
	q := &weir.UsageQuery{Entity: subjectEntity, Window: weir.Monthly}
	for _, err := range s.ReadUsage(t.Context(), q, nil) {
		if !errors.Is(err, weir.Unsupported) {
			t.Errorf("usage: got %v, want %q", err, weir.Unsupported)
		}
	}
	for _, err := range s.ReadAudit(t.Context(), &weir.AuditQuery{}) {
		if !errors.Is(err, weir.Unsupported) {
			t.Errorf("audit: got %v, want %q", err, weir.Unsupported)
		}
	}
	if _, err := memory.Open(&memory.Options{UsageEntries: -1}); !errors.Is(err, weir.Invalid) {
		t.Errorf("UsageEntries -1: got %v, want %q", err, weir.Invalid)
	}
}

// TestUsageEndsWithTheContext checks that a reading ends with the context of its caller.
func TestUsageEndsWithTheContext(t *testing.T) {
	t.Parallel()
	w := boundedWorld(t, memory.Options{})
	w.take(1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	q := &weir.UsageQuery{Resource: subjectResource, Window: weir.Hourly}
	for _, err := range w.store.(driver.UsageReader).ReadUsage(ctx, q, nil) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want %v", err, context.Canceled)
		}
	}
}

// TestUsageGapsAfterRestarts checks the gaps of a process that ends properly and of one that is
// killed.
func TestUsageGapsAfterRestarts(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "state")
	limits := []weir.Limit{named("x", window(1000, time.Hour))}
	w := snapshotWorld(t, file, limits...)
	w.at(0).take(1)
	w.at(hourMS).take(2)
	w.restart(t, file, limits...)
	w.at(2*hourMS).checkGaps("closed", "- to 0s"+began)
	w.take(3)
	if err := w.store.(*memory.SnapshotStore).WriteSnapshot(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	w.at(3 * hourMS).take(4)
	w.close()
	killed := filepath.Join(t.TempDir(), "killed")
	if err := os.WriteFile(killed, data, 0o600); err != nil {
		t.Fatal(err)
	}
	w.store = snapshotWorld(t, killed, limits...).store
	gap := "2h0m0s to 4h0m0s" + unsaved
	w.at(4*hourMS).checkGaps("killed, before the first call", "- to 0s"+began, gap)
	w.checkUsed("killed", map[int]int64{0: 1, 1: 2, 2: 3})
	w.restart(t, killed, limits...)
	w.checkGaps("and opened again", "- to 0s"+began, gap)
	w.take(5)
	w.at(5*hourMS).checkGaps("killed, after a call", "- to 0s"+began, gap)
	w.restart(t, killed, limits...)
	w.checkGaps("closed after that", "- to 0s"+began, gap)
	w.checkUsed("in the end", map[int]int64{0: 1, 1: 2, 2: 3, 4: 5})
	w.close()
}

// TestSnapshotOfVersion1 opens a file that was written before usage and audit were in it.
func TestSnapshotOfVersion1(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(filepath.Join("testdata", "version1.snapshot"))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "state")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	limits := []weir.Limit{named("a", window(1000, time.Hour))}
	w := snapshotWorld(t, file, limits...)
	if known := w.recover(weir.LeaseID{15: 0}); known == nil || known.State != driver.LeaseLive {
		t.Errorf("got lease %+v, want a live one", known)
	}
	if got := w.used(""); len(got) > 0 {
		t.Errorf("got usage %v, want none", got)
	}
	w.at(hourMS).checkGaps("opened", "- to 1h0m0s"+began)
	w.reserve(charge(weir.Costs{"a": 3}))
	w.restart(t, file, limits...)
	w.at(2*hourMS).checkGaps("opened again", "- to 1h0m0s"+began)
	w.close()
}

// TestUsageMemory prints what usage costs. It does not judge it, because allocators differ.
func TestUsageMemory(t *testing.T) {
	const entities, hours = 5_000, 10
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	var sizes [2]int64
	for i, days := range []int{-1, 31} {
		before := heap()
		w := boundedWorld(t, memory.Options{UsageDays: days})
		for hour := range int64(hours) {
			for e := range entities {
				w.at(hour*hourMS + int64(e)).reserve(weir.Charge{
					Entity: "e" + strconv.Itoa(e), Resource: subjectResource, Costs: x(1),
				})
			}
		}
		sizes[i] = heap() - before
		runtime.KeepAlive(w)
	}
	t.Logf("%d entities with one limit over %d hours: %d KB, and %d KB without usage: %d bytes for each hour",
		entities, hours, sizes[1]>>10, sizes[0]>>10, (sizes[1]-sizes[0])/(entities*hours))
}
