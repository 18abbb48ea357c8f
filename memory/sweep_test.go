package memory

import (
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
)

// sweepLimits returns a limit of each kind, all of them idle within little more than a day.
func sweepLimits(t testing.TB) []weir.Limit {
	t.Helper()
	var limits []weir.Limit
	for _, l := range []weir.Limit{
		{Name: "a", Kind: weir.Bucket, Capacity: 10},
		{Name: "b", Kind: weir.Window, Capacity: 10, Window: time.Minute},
		{Name: "c", Kind: weir.Concurrency, Capacity: 10, Timeout: time.Minute},
		{Name: "d", Kind: weir.Budget, Capacity: 10, Every: "hour"},
	} {
		normal, err := l.Normalize()
		if err != nil {
			t.Fatal(err)
		}
		limits = append(limits, normal)
	}
	return limits
}

// takesOf returns takes of one unit of each limit.
func takesOf(entity string, limits []weir.Limit) []*driver.Take {
	takes := make([]*driver.Take, len(limits))
	for i := range limits {
		takes[i] = &driver.Take{
			Subject: weir.Subject{Entity: entity, Resource: "r"},
			Limit:   &limits[i], Ceiling: limits[i].Capacity, Parts: []driver.Part{{Units: 1}},
		}
	}
	return takes
}

// reserveTakes reserves takes without planning.
func (s *Store) reserveTakes(now time.Time, takes []*driver.Take) (*Answer, error) {
	return Take(s, now, &driver.Plan{Takes: takes})
}

func (s *Store) count() (items int) {
	for i := range s.stripes {
		items += len(s.stripes[i].dense)
		if len(s.stripes[i].dense) != s.stripes[i].items.len {
			panic("a stripe's list and map differ")
		}
	}
	return items
}

func heapMB() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc) >> 20
}

// TestSweepForgetsIdleEntities is not parallel, because it measures the heap.
func TestSweepForgetsIdleEntities(t *testing.T) {
	s, err := Open(&Options{UsageDays: -1})
	if err != nil {
		t.Fatal(err)
	}
	const entities = 200_000
	limits := sweepLimits(t)[:2]
	now := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	before := heapMB()
	for i := range entities {
		if _, err := s.reserveTakes(now, takesOf("e"+strconv.Itoa(i), limits)); err != nil {
			t.Fatal(err)
		}
	}
	used := heapMB()
	if got := s.count(); got != entities {
		t.Fatalf("items: got %d, want %d", got, entities)
	}
	// One entity goes on two minutes later. No call uses the others again.
	now = now.Add(time.Minute + 70*time.Second)
	calls := 0
	for s.count() > 1 && calls < 1000 {
		if _, err := s.reserveTakes(now, takesOf("last", limits)[:1]); err != nil {
			t.Fatal(err)
		}
		now = now.Add(7 * time.Second)
		calls++
	}
	after := heapMB()
	t.Logf("%d calls; heap %d MB before, %d MB used, %d MB after", calls, before, used, after)
	if got := s.count(); got != 1 {
		t.Errorf("items after %d calls: got %d, want 1", calls, got)
	}
	if after-before > (used-before)/20 {
		t.Errorf("heap: %d MB before, %d MB in use, %d MB after: want it back", before, used, after)
	}
	runtime.KeepAlive(s)
}

// sweepAll sweeps every stripe once.
func (s *Store) sweepAll(now time.Time) {
	for i := range s.stripes {
		for done := false; !done; {
			_, done = s.stripes[i].sweep(now.UnixMilli(), maxSweep)
		}
	}
}

func TestSweepKeepsWhatIsInUse(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	for i, tc := range []struct {
		name string
		gone time.Duration // the time from which its state may be removed
	}{
		{"bucket", 6*time.Second + 70*time.Second},
		{"window", time.Minute + 70*time.Second},
		{"concurrency", time.Minute + 70*time.Second},
		{"budget", time.Hour + 70*time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s, err := Open(nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.reserveTakes(now, takesOf("e", sweepLimits(t)[i:i+1])); err != nil {
				t.Fatal(err)
			}
			s.sweepAll(now.Add(tc.gone - time.Millisecond))
			if got := s.count(); got != 1 {
				t.Errorf("a millisecond early: got %d items, want 1", got)
			}
			s.sweepAll(now.Add(tc.gone))
			if got := s.count(); got != 0 {
				t.Errorf("in time: got %d items, want none", got)
			}
		})
	}
}

// TestSweepDropsSingleStates checks that the states of single limits are removed while other limits
// of the subject are in use.
func TestSweepDropsSingleStates(t *testing.T) {
	t.Parallel()
	s, err := Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	takes := takesOf("e", sweepLimits(t))
	if _, err := s.reserveTakes(now, takes); err != nil {
		t.Fatal(err)
	}
	now = now.Add(5 * time.Minute)
	s.sweepAll(now)
	it := s.stripes[s.stripeOf("e")].items.find(takes[0].Subject, s.hashOf(takes[0].Subject))
	if it == nil || len(it.states) != 1 || it.states[0].name != "d" {
		t.Errorf("got %+v, want the budget alone", it)
	}
}

func TestSweepAfterAClockThatWasFarAhead(t *testing.T) {
	t.Parallel()
	s, err := Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	limits := sweepLimits(t)[:1]
	reserve := func(entity string, at time.Time) {
		if _, err := s.reserveTakes(at, takesOf(entity, limits)); err != nil {
			t.Fatal(err)
		}
	}
	reserve("ahead", now.AddDate(10, 0, 0))
	reserve("idle", now)
	for i := range 300 {
		reserve("busy", now.Add(2*time.Minute+time.Duration(i)*time.Second))
	}
	if got := s.count(); got != 2 {
		t.Errorf("items: got %d, want the busy one and the one ahead", got)
	}
}

// BenchmarkStore measures a reservation in the store, from the takes to the outcome.
func BenchmarkStore(b *testing.B) {
	for _, n := range []int{1, 4} {
		b.Run("limits="+strconv.Itoa(n), func(b *testing.B) {
			s, err := Open(nil)
			if err != nil {
				b.Fatal(err)
			}
			limits := sweepLimits(b)[:n]
			for i := range limits {
				limits[i].Capacity, limits[i].RefillAmount = 1<<40, 1<<40
			}
			takes := takesOf("e", limits)
			st := &Settlement{Verb: weir.VerbCancel}
			for i := range takes {
				st.Totals = append(st.Totals, []driver.Part{{Units: 0}})
				st.Limits = append(st.Limits, takes[i].Limit)
			}
			now := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
			b.ReportAllocs()
			for b.Loop() {
				now = now.Add(100 * time.Microsecond)
				out, err := s.reserveTakes(now, takes)
				if err != nil || out.Denied {
					b.Fatal(out, err)
				}
				st.Holdings = out.Holdings
				if _, err := Settle(s, now, st); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
