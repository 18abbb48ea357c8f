package memory

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
)

var recordStart = time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)

// recordWorld calls leaseRecords without a store.
type recordWorld struct {
	t *testing.T
	leaseRecords
	now time.Time
}

func newRecordWorld(t *testing.T, most int) *recordWorld {
	w := &recordWorld{t: t, leaseRecords: newRecords(), now: recordStart}
	w.most = most
	return w
}

// live adds a lease with an ID made n seconds after the start, which lives for an hour.
func (w *recordWorld) live(n int) weir.LeaseID {
	id := weir.NewLeaseID(recordStart.Add(time.Duration(n) * time.Second))
	w.add(w.now.UnixMilli(), &leaseRecord{
		LeaseRecord: driver.LeaseRecord{
			ID: id, State: driver.LeaseLive, At: w.now, Expires: w.now.Add(time.Hour),
			Holdings: make([]driver.Holding, 1), Limits: make([]weir.LimitStatus, 1),
		},
		memory: 600_000,
	}, 0)
	return id
}

func (w *recordWorld) settle(id weir.LeaseID, verb weir.Verb) {
	st := &Settlement{
		ID: id, Verb: verb, Fingerprint: 9, Memory: 10 * time.Minute, Lifetime: time.Hour,
	}
	w.leaseRecords.update(w.now.UnixMilli(), st.update(), &driver.Outcome{At: w.now})
}

// consistent checks that every record is in the right heap with the right index.
func (w *recordWorld) consistent() {
	w.t.Helper()
	if len(w.leaseRecords.live)+len(w.ended) != len(w.byID) {
		w.t.Fatalf("got %d live and %d ended of %d", len(w.leaseRecords.live), len(w.ended), len(w.byID))
	}
	for ended, h := range map[bool]recordHeap{false: w.leaseRecords.live, true: w.ended} {
		for i, r := range h {
			if r.heapIndex != i || (r.State != driver.LeaseLive) != ended || i > 0 && h.Less(i, (i-1)/2) {
				w.t.Fatalf("heap: got %+v at %d", r, i)
			}
			if ended && (r.Holdings != nil || r.Limits != nil) {
				w.t.Fatalf("an ended lease stands for something: %+v", r)
			}
		}
	}
}

func TestRecordsForgetTheOldestFirst(t *testing.T) {
	t.Parallel()
	w := newRecordWorld(t, 3)
	var ids []weir.LeaseID
	for i := range 5 {
		ids = append(ids, w.live(i))
	}
	for i, want := range []int64{0, 0, 0, 1, 2} { // the second of the newest lease forgotten
		w.now = w.now.Add(time.Second)
		w.settle(ids[i], weir.VerbCancel)
		w.consistent()
		early := int64(0)
		if i >= 3 {
			early = recordStart.Add(time.Duration(want-1) * time.Second).UnixMilli()
		}
		if w.horizon != early {
			t.Errorf("after %d: got early %d, want %d", i+1, w.horizon, early)
		}
	}
	for i, known := range []bool{false, false, true, true, true} {
		if got := w.find(w.now.UnixMilli(), ids[i]) != nil; got != known {
			t.Errorf("lease %d: got known %v, want %v", i, got, known)
		}
	}
}

func TestRecoverReportsTheNewestForgottenEarly(t *testing.T) {
	t.Parallel()
	s := bareStore(t)
	if got, ok := s.Recovered(); !got.IsZero() || ok {
		t.Errorf("at first: got %v, want zero", got)
	}
	s.records.horizon = recordStart.UnixMilli()
	body, err := s.snapshot(nil)
	if err != nil {
		t.Fatal(err)
	}
	again := bareStore(t)
	if err := again.decode(body, snapshotVersion); err != nil {
		t.Fatal(err)
	}
	if got, _ := again.Recovered(); !got.Equal(recordStart) {
		t.Errorf("after a restart: got %v, want %v", got, recordStart)
	}
}

// A lease that is forgotten in time raises the horizon too: the next process may remember leases
// for longer, or its clock may be behind.
func TestForgottenRecordsRaiseTheHorizon(t *testing.T) {
	t.Parallel()
	w := newRecordWorld(t, 1)
	first, second := w.live(0), w.live(0)
	w.settle(first, weir.VerbComplete)
	w.now = w.now.Add(10*time.Minute + time.Millisecond)
	w.settle(second, weir.VerbComplete)
	if want := recordStart.UnixMilli(); w.horizon != want || len(w.byID) != 1 {
		t.Errorf("got early %d, %d records; want %d, one left", w.horizon, len(w.byID), want)
	}
}

func TestRecordsAreSwept(t *testing.T) {
	t.Parallel()
	w := newRecordWorld(t, 1_000_000)
	const leases = 20_000
	for i := range leases {
		id := w.live(i % 60)
		if i%2 == 0 {
			w.settle(id, weir.VerbComplete)
		}
	}
	w.consistent()
	// The leases are not looked up again. Each call removes more than it adds.
	w.now = w.now.Add(2 * time.Hour)
	for range leases {
		w.live(7200)
	}
	w.consistent()
	w.now = w.now.Add(2 * time.Hour)
	for range leases {
		w.settle(w.live(14400), weir.VerbCancel)
	}
	w.now = w.now.Add(time.Hour)
	for range leases {
		w.settle(weir.LeaseID{}, weir.VerbCancel)
	}
	if got := len(w.byID); got != 0 || w.peak > leases {
		t.Errorf("got %d records, peak %d; want none", got, w.peak)
	}
	w.consistent()
}

func TestRandomRecords(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(3, 4))
	w := newRecordWorld(t, 50)
	var ids []weir.LeaseID
	verbs := []weir.Verb{weir.VerbAdjust, weir.VerbExtend, weir.VerbComplete, weir.VerbCancel}
	for range 20_000 {
		w.now = w.now.Add(time.Duration(rng.IntN(20_000)) * time.Millisecond)
		if len(ids) == 0 || rng.IntN(4) == 0 {
			ids = append(ids, w.live(int(w.now.Sub(recordStart)/time.Second)))
			continue
		}
		id := ids[max(0, len(ids)-1-rng.IntN(100))]
		known := w.find(w.now.UnixMilli(), id)
		if known != nil && known.State == driver.LeaseLive && !w.now.Before(known.Expires) {
			t.Fatalf("got a live lease after its end: %+v", known)
		}
		w.settle(id, verbs[rng.IntN(len(verbs))])
		w.consistent()
	}
}
