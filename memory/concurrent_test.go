package memory

import (
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/conformance"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/internal/soak"
	"github.com/weir-limiter/weir/kernel"
)

// overlap returns takes on a random set of entities, each with a window limit and a concurrency
// limit.
func overlap(rng *rand.Rand, limits []weir.Limit) []*driver.Take {
	var takes []*driver.Take
	for _, i := range rng.Perm(6)[:1+rng.IntN(4)] {
		takes = append(takes, takesOf("e"+strconv.Itoa(i), limits)...)
	}
	return takes
}

func overlapLimits(t testing.TB) []weir.Limit {
	t.Helper()
	limits := sweepLimits(t)[1:3]
	limits[0].Capacity, limits[1].Capacity = 500, 20
	return limits
}

// TestConcurrentReserversNeverExceed makes concurrent calls on overlapping sets of entities. No
// limit may ever be above its capacity, the whole capacity must be used in the end, and no call may
// deadlock.
func TestConcurrentReserversNeverExceed(t *testing.T) {
	t.Parallel()
	s, err := Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	limits := overlapLimits(t)
	now := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	var taken [6]atomic.Int64
	var everyone sync.WaitGroup
	for g := range 8 {
		everyone.Go(func() {
			rng := rand.New(rand.NewPCG(1, uint64(g)))
			for range 1500 {
				out, err := s.reserveTakes(now, overlap(rng, limits))
				if err != nil {
					t.Error(err)
					return
				}
				for i := range out.Limits {
					if got := &out.Limits[i]; got.Available < 0 || got.Available > got.Capacity {
						t.Errorf("status: got %+v", *got)
					}
				}
				if out.Denied {
					continue
				}
				for i := range out.Holdings {
					if h := &out.Holdings[i]; h.Limit.Kind == weir.Window {
						taken[h.Entity[1]-'0'].Add(1)
					}
				}
				finish(t, s, now, out, rng.IntN(3) == 0)
				if rng.IntN(10) == 0 {
					s.sweepAll(now.Add(time.Minute))
				}
			}
		})
	}
	everyone.Wait()
	for i := range taken {
		takes := takesOf("e"+strconv.Itoa(i), limits)
		left := s.stripes[s.stripeOf(takes[0].Entity)].items.find(takes[0].Subject, s.hashOf(takes[0].Subject)).states[0].counter
		used := limits[0].Capacity - left.AvailableAt(now.UnixMilli(), limits[0].Definition())
		if used > limits[0].Capacity || used > taken[i].Load() {
			t.Errorf("e%d: got %d used of %d taken, capacity %d", i, used, taken[i].Load(), limits[0].Capacity)
		}
		if used < limits[0].Capacity*99/100 {
			t.Errorf("e%d: got %d used, want nearly all of %d given out", i, used, limits[0].Capacity)
		}
	}
}

// finish completes a lease with what was reserved, or cancels it.
func finish(t *testing.T, b driver.Store, now time.Time, out *Answer, cancel bool) {
	st := &Settlement{Verb: weir.VerbComplete, Holdings: out.Holdings}
	if cancel {
		st.Verb = weir.VerbCancel
	}
	for i := range out.Holdings {
		parts := out.Holdings[i].Parts
		if cancel {
			parts = []driver.Part{{Units: 0}}
		}
		st.Totals = append(st.Totals, parts)
		st.Limits = append(st.Limits, out.Holdings[i].Limit)
	}
	if _, err := Settle(b, now, st); err != nil {
		t.Error(err)
	}
}

// TestConcurrentSnapshotsAreOfOneInstant takes snapshots during concurrent calls. In each snapshot
// the units in use must be those of the leases in it.
func TestConcurrentSnapshotsAreOfOneInstant(t *testing.T) {
	t.Parallel()
	s := bareStore(t)
	limits := overlapLimits(t)[:1]
	limits[0].Capacity = 1 << 40
	now := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	stop := make(chan struct{})
	var everyone sync.WaitGroup
	for g := range 4 {
		everyone.Go(func() {
			rng := rand.New(rand.NewPCG(2, uint64(g)))
			for range uint64(100_000) {
				select {
				case <-stop:
					return
				default:
				}
				useSnapshotStore(t, s, now, rng, limits)
			}
		})
	}
	for range soak.Amount(5, 20) {
		body, err := s.snapshot(nil)
		if err != nil {
			t.Error(err)
			break
		}
		if used, held := snapshotSums(t, body, now); used != held {
			t.Errorf("snapshot: got %d units in use, %d held by leases", used, held)
		}
	}
	close(stop)
	everyone.Wait()
}

// useSnapshotStore reserves one unit on some entities, and adjusts or cancels two of three leases.
func useSnapshotStore(
	t *testing.T, s *SnapshotStore, now time.Time, rng *rand.Rand, limits []weir.Limit,
) {
	r := &conformance.Reservation{
		ID: weir.NewLeaseID(now), Lifetime: time.Hour, Memory: time.Minute,
		Config: freezeConfig(limits),
	}
	for _, i := range rng.Perm(6)[:1+rng.IntN(4)] {
		r.Charges = append(r.Charges, weir.Charge{
			Entity: "e" + strconv.Itoa(i), Resource: "r", Costs: weir.Costs{limits[0].Name: 1},
		})
	}
	out, err := Try(s, now, r)
	if err != nil || out.Denied {
		t.Errorf("got %+v, %v", out, err)
		return
	}
	st := &Settlement{ID: r.ID, Verb: weir.VerbAdjust, Seq: 1, Holdings: out.Holdings, Memory: time.Minute}
	units := int64(rng.IntN(5))
	switch rng.IntN(3) {
	case 0:
		return
	case 1:
		st.Verb, units = weir.VerbCancel, 0
	}
	for i := range out.Holdings {
		st.Totals = append(st.Totals, []driver.Part{{Charge: out.Holdings[i].Parts[0].Charge, Units: units}})
		st.Limits = append(st.Limits, out.Holdings[i].Limit)
	}
	if _, err := Settle(s, now, st); err != nil {
		t.Error(err)
	}
}

// snapshotSums returns the units in use in a snapshot and the units that its live leases stand for.
func snapshotSums(t *testing.T, body []byte, now time.Time) (used, held int64) {
	t.Helper()
	read := bareStore(t)
	if err := read.decode(body, snapshotVersion); err != nil {
		t.Fatal(err)
	}
	for i := range read.store.stripes {
		for _, it := range read.store.stripes[i].dense {
			for _, st := range it.states {
				used += st.counter.(*kernel.Window).Occupied(now.UnixMilli())
			}
		}
	}
	for _, r := range read.records.live {
		for i := range r.Holdings {
			held += r.Holdings[i].Cost()
		}
	}
	return used, held
}
