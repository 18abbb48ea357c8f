package memory_test

import (
	"math"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/memory"
)

func TestReserveAllOrNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t,
		named("a", bucket(10, 10, time.Minute)), named("b", window(5, time.Minute)),
		named("c", concurrency(2, time.Minute)), named("d", budget(3, "day", "")))
	w.at(0).reserve(charge(weir.Costs{"a": 4, "b": 4, "d": 1}))
	out, err := w.try(w.reservation(charge(weir.Costs{"a": 7, "b": 2, "c": 2, "d": 1})))
	if err != nil || !out.Denied || !out.At.Equal(start) {
		t.Fatalf("got %+v, %v; want a denial at the start", out, err)
	}
	for i, want := range []weir.LimitStatus{
		{Limit: "a", Capacity: 10, Available: 6, Requested: 7, Exceeded: true, RetryAfter: 6 * time.Second},
		{Limit: "b", Capacity: 5, Available: 1, Requested: 2, Exceeded: true, RetryAfter: time.Minute},
		{Limit: "c", Capacity: 2, Available: 1, Requested: 2, Exceeded: true, RetryAfter: time.Minute},
		{Limit: "d", Capacity: 3, Available: 2, Requested: 1},
	} {
		got := out.Limits[i]
		want.Entity, want.Resource, want.Level = subjectEntity, subjectResource, weir.LevelSystem
		want.Kind = got.Kind
		if got != want {
			t.Errorf("status: got %+v, want %+v", got, want)
		}
	}
	for i, want := range []int64{6, 1, 1, 2} {
		if got := w.status()[i].Available; got != want {
			t.Errorf("%s: got %d available after the denial, want %d", out.Limits[i].Limit, got, want)
		}
	}
}

func TestReserveReportsWhatIsLeft(t *testing.T) {
	t.Parallel()
	w := newWorld(t, bucket(10, 10, time.Minute))
	l := w.at(0).take(4)
	if got := l.limits[0]; got.Available != 6 || got.Requested != 4 || got.Exceeded {
		t.Errorf("status: got %+v, want 6 available after 4", got)
	}
}

// families returns definitions in which a child's charges fall on its parents too.
func families(limits ...weir.Limit) *weir.Definitions {
	return &weir.Definitions{
		System: limits,
		Entities: map[string]weir.EntityDefinition{
			"grand": {}, "parent": {Parent: "grand", Cascade: true},
			"a": {Parent: "parent", Cascade: true}, "b": {Parent: "parent", Cascade: true},
		},
	}
}

func TestReserveCascades(t *testing.T) {
	t.Parallel()
	store, err := memory.Open(&memory.Options{Definitions: families(window(10, time.Minute))})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, store: store, now: start}
	of := func(entity string, n int64) weir.Charge {
		return weir.Charge{Entity: entity, Resource: "gpt", Costs: x(n)}
	}
	w.reserve(of("a", 3), of("b", 4))
	out, err := w.try(w.reservation(of("a", 4)))
	if err != nil || !out.Denied || len(out.Limits) != 3 {
		t.Fatalf("got %+v, %v; want a denial by the parents", out, err)
	}
	for i, want := range []int64{7, 3, 3} {
		if got := out.Limits[i].Available; got != want {
			t.Errorf("%s: got %d available, want %d", out.Limits[i].Entity, got, want)
		}
	}
	l := w.reserve(of("b", 3))
	w.cancel(l)
	w.reserve(of("a", 3))
}

func TestReserveShadow(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]weir.Limit{
		"bucket": bucket(10, 10, time.Minute), "window": window(10, time.Minute),
		"concurrency": concurrency(10, time.Minute), "budget": budget(10, "hour", ""),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, shadow(limit))
			w.at(0).take(4)
			over := w.take(7).limits[0]
			if over.Available != -1 || !over.Exceeded || over.RetryAfter <= 0 || !over.Shadow {
				t.Errorf("status: got %+v, want exceeded with a wait", over)
			}
			never := w.take(11).limits[0]
			if never.Available != -12 || !never.Exceeded || never.RetryAfter != 0 {
				t.Errorf("status: got %+v, want exceeded without a wait", never)
			}
		})
	}
}

func TestReserveShadowOverflow(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		limit weir.Limit
		first int64 // fits
		next  int64 // does not fit
	}{
		"bucket":      {bucket(10, 10, time.Minute), math.MaxInt64 / 1000, 11},
		"window":      {window(10, time.Minute), math.MaxInt64 - 1, 2},
		"concurrency": {concurrency(10, time.Minute), math.MaxInt64 - 1, 2},
		"budget":      {budget(10, "hour", ""), math.MaxInt64 - 1, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, shadow(tc.limit), named("y", window(9, time.Minute)))
			w.at(0).reserve(charge(weir.Costs{"x": tc.first, "y": 1}))
			before := w.status()[0].Available
			w.reserve(charge(weir.Costs{"x": tc.next, "y": 1}))
			if got := w.status(); got[0].Available != before || got[1].Available != 7 {
				t.Errorf("got %d and %d available, want %d and 7: x does not count what it cannot hold",
					got[0].Available, got[1].Available, before)
			}
			w.reserve(charge(weir.Costs{"x": tc.next - 1, "y": 1}))
			if got := w.status()[0].Available; got != before-(tc.next-1) {
				t.Errorf("x: got %d available, want %d less: that fits", got, tc.next-1)
			}
		})
	}
}

func TestReserveSumOverflows(t *testing.T) {
	t.Parallel()
	w := newWorld(t, window(math.MaxInt64, time.Minute))
	_, err := w.try(w.reservation(charge(x(math.MaxInt64)), charge(x(1))))
	w.isError(err, weir.NeverSatisfiable, "costs.x")
	w.take(math.MaxInt64)
	w.refuse(1, 60_000)
}

func TestReserveBroughtLimitLowers(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]weir.Limit{
		"bucket": bucket(10, 10, time.Minute), "window": window(10, time.Minute),
		"concurrency": concurrency(10, time.Minute), "budget": budget(10, "hour", ""),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, limit)
			w.at(0).take(3)
			brought := limit
			brought.Capacity = 5
			r := w.reservation(charge(x(3)))
			r.Brought = []weir.Limit{brought}
			out, err := w.try(r)
			if err != nil || !out.Denied {
				t.Fatalf("got %+v, %v; want a denial", out, err)
			}
			s := out.Limits[0]
			if s.Capacity != 5 || s.Available != 2 || s.RetryAfter <= 0 {
				t.Fatalf("status: got %+v, want 2 of 5 available", s)
			}
			w.now = w.now.Add(s.RetryAfter - time.Millisecond)
			if out, _ = w.try(r); !out.Denied {
				t.Error("a millisecond early: got an admission, want a denial")
			}
			w.now = w.now.Add(time.Millisecond)
			if out, _ = w.try(r); out.Denied {
				t.Errorf("after the wait: got a denial %+v, want an admission", out.Limits[0])
			}
		})
	}
}
