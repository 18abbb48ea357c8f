package livetest

import (
	"context"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/memory"
)

// TestRun checks the log of a process: the checker passes it for the real capacity, and fails it
// for a slightly lower one.
func TestRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const capacity, refill = 400, 80
		spec := Spec{
			Process: "go-0", Entities: []string{team}, Resource: "gpt-4o", Log: filepath.Join(t.TempDir(), "log"),
			Costs: map[string][]int64{scarceLimit: {5, 10, 15}}, Rate: 20, Seconds: 60, Inflight: 64,
			Mix: map[string]int{Keep: 60, Up: 15, Down: 15, Cancel: 10}, HoldMS: [2]int{20, 300}, AdjustPercent: 40,
			Actions: []Action{{AtMS: 30_000, Do: Changed, Entity: team, Limits: map[string]Limit{
				scarceLimit: {Capacity: capacity / 2, Refill: refill, PeriodS: 1},
			}}},
		}
		lim := inMemory(t, capacity, refill)
		log, err := NewLog(spec.Process, spec.Log)
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now().UnixMicro()
		act := func(ctx context.Context, a *Action, _ *Record) error {
			return lim.SetLimits(ctx, weir.Subject{Entity: a.Entity, Resource: spec.Resource},
				[]weir.Limit{{Name: scarceLimit, Capacity: capacity / 2, RefillAmount: refill, RefillPeriod: time.Second}})
		}
		process := &Process{Spec: &spec, Service: lim, Log: log, Act: act}
		if err := process.Run(t.Context(), start); err != nil {
			t.Fatal(err)
		}
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
		records, err := ReadRecords(spec.Log)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			capacity int64
			wrong    bool
		}{{capacity, false}, {capacity * 98 / 100, true}} {
			h := Histories(&World{
				Resource: spec.Resource, StartUS: start, EndUS: start + int64(spec.Seconds)*second,
				Limits: map[string]map[string]Limit{team: {scarceLimit: {c.capacity, refill, 1}}},
			}, records)[0]
			found := h.Check()
			if wrong := found.ExcessMilli > 0; wrong != c.wrong {
				t.Errorf("capacity %d: %d milli-units too many, want wrong %v", c.capacity, found.ExcessMilli, c.wrong)
			}
			side := h.Sides()[SideGo]
			if side.Admitted == 0 || side.Denied == 0 || side.Failed != 0 {
				t.Errorf("got %+v, want admissions, denials and no failure", side)
			}
			if share := h.Consumed() * 1000 / h.Ideal(); !c.wrong && share < 990 {
				t.Errorf("got %d ‰ of the ideal, want 990", share)
			}
		}
	})
}

// inMemory returns a limiter with one bucket in memory, of which more is asked than it has.
func inMemory(t *testing.T, capacity, refill int64) *limiter.Limiter {
	t.Helper()
	store, err := memory.Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	lim, err := limiter.New(store, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := lim.Close(); err != nil {
			t.Error(err)
		}
	})
	err = lim.SetLimits(t.Context(), weir.Subject{Entity: team, Resource: "gpt-4o"}, []weir.Limit{
		{Name: scarceLimit, Capacity: capacity, RefillAmount: refill, RefillPeriod: time.Second},
	})
	if err != nil {
		t.Fatal(err)
	}
	return lim
}
