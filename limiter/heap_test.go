package limiter_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/soak"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/memory"
)

// heapLimits returns one limit of each kind, whose units return within an hour.
func heapLimits() *weir.Definitions {
	return &weir.Definitions{System: []weir.Limit{
		{Name: "rpm", Capacity: 600},
		{Name: "recent", Kind: weir.Window, Capacity: 1000, Window: 10 * time.Minute},
		{Name: "parallel", Kind: weir.Concurrency, Capacity: 20, Timeout: 5 * time.Minute},
		{Name: "hourly", Kind: weir.Budget, Capacity: 1000, Every: "hour"},
	}}
}

// The memory for entities that call once and for leases that are never settled is freed in the end,
// at the latest after the lease lifetime and the lease memory: 70 minutes. Some calls a second go
// on meanwhile, because a limiter frees nothing by itself.
func TestHeapIsFreed(t *testing.T) {
	entities, abandoned := soak.Amount(20_000, 10_000_000), soak.Amount(2_000, 1_000_000)
	rate := soak.Amount(5, 100)
	now := &clock{now: time.Date(2026, 3, 1, 12, 30, 0, 0, time.UTC)}
	store, err := memory.Open(&memory.Options{Definitions: heapLimits(), UsageDays: -1}) // usage is kept for days
	if err != nil {
		t.Fatal(err)
	}
	l, err := limiter.New(store, &limiter.Options{Now: now.Now})
	if err != nil {
		t.Fatal(err)
	}
	request := func(entity string) *weir.Request {
		return &weir.Request{Entity: entity, Resource: "gpt-4o",
			Costs: weir.Costs{"rpm": 1, "recent": 1, "hourly": 1}}
	}
	call := func(entity string, settle bool) {
		lease, err := l.Reserve(t.Context(), request(entity))
		if err != nil {
			t.Fatal(err)
		}
		if settle {
			if _, err := lease.Complete(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	// Steady traffic first, so that the memory it needs counts as part of the idle heap: over a
	// thousand entities, for as long as leases are remembered.
	steady := func(d time.Duration) {
		for i := range int(d/time.Second) * rate {
			now.Advance(time.Second / time.Duration(rate))
			call(fmt.Sprintf("steady-%d", i%1000), true)
		}
	}
	steady(11 * time.Minute)
	idle := heap()

	for i := range entities {
		call(fmt.Sprintf("once-%d", i), i >= abandoned)
	}
	full := heap()
	start := now.Now()
	const longest = 70 * time.Minute
	steady(longest)
	then := heap()
	steady(time.Minute / 4 * time.Duration(100/rate)) // leases that expired together are forgotten together
	later := heap()
	for _, m := range []struct {
		what string
		heap int64
	}{{"idle", idle}, {"full", full}, {"after 70 min", then}, {"1,500 calls on", later}} {
		t.Logf("%-14s %11d bytes, %6.1f %% of idle", m.what, m.heap, 100*float64(m.heap)/float64(idle))
	}
	t.Logf("%d entities, %d of them with a lease that was never ended, %v of virtual time",
		entities, abandoned, now.Now().Sub(start))
	t.Logf("%d bytes for each entity with its four limits and its share of the leases",
		(full-idle)/int64(entities))
	slack := idle / 10
	if entities < 1_000_000 {
		slack += 1 << 20 // at this size the growth of maps matters
	}
	if later > idle+slack {
		t.Errorf("the heap has %d bytes, want at most %d more than the %d at idle", later, slack, idle)
	}
	runtime.KeepAlive(l)
}

// heap returns the live bytes on the heap.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
