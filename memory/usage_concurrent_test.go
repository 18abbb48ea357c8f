package memory_test

import (
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/memory"
)

// usedIn returns the sum of the units of the limit x in all records of a query.
func usedIn(t *testing.T, s driver.UsageReader, q weir.UsageQuery) (sum int64) {
	t.Helper()
	q.Window = weir.Hourly
	for u, err := range s.ReadUsage(t.Context(), &q, nil) {
		if err != nil {
			t.Error(err)
		}
		sum += u.Units["x"]
	}
	return sum
}

// TestUsageIsReadWhileItMoves reserves from several goroutines whose clocks are in different hours,
// so that usage moves to the tables all the time, while others read it and snapshots are written.
// No reader may see a unit twice or miss one that was reserved before it began.
func TestUsageIsReadWhileItMoves(t *testing.T) {
	t.Parallel()
	const writers, calls, entities = 4, 400, 5
	file := filepath.Join(t.TempDir(), "state")
	definitions := &weir.Definitions{System: []weir.Limit{named("x", bucket(1_000_000, 1, 24*time.Hour))}}
	open := func() *memory.SnapshotStore {
		s, err := memory.OpenSnapshot(file, &memory.SnapshotOptions{Definitions: definitions, Every: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := open()
	var clock atomic.Int64
	l, err := limiter.New(s, &limiter.Options{Now: func() time.Time {
		n := clock.Add(1)
		return start.Add(time.Duration(n)*time.Second + time.Duration(n%3)*time.Hour)
	}})
	if err != nil {
		t.Fatal(err)
	}
	var begun, done [entities]atomic.Int64
	var writing, reading sync.WaitGroup
	for w := range writers {
		writing.Go(func() {
			rng := rand.New(rand.NewPCG(7, uint64(w)))
			for range calls {
				e := rng.IntN(entities)
				begun[e].Add(1)
				_, err := l.Reserve(t.Context(), &weir.Request{
					Entity: "e" + strconv.Itoa(e), Resource: subjectResource, Costs: x(1),
				})
				if err != nil {
					t.Error(err)
				}
				done[e].Add(1)
			}
		})
	}
	stop := make(chan struct{})
	for r := range 2 {
		reading.Go(func() {
			for i := r; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				checkUsedNow(t, s, "e"+strconv.Itoa(i%entities), &begun[i%entities], &done[i%entities])
				if r > 0 {
					continue // one goroutine writes snapshots
				}
				if err := s.WriteSnapshot(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writing.Wait()
	close(stop)
	reading.Wait()
	for range 2 {
		if got := usedIn(t, s, weir.UsageQuery{Resource: subjectResource}); got != writers*calls {
			t.Errorf("in the end: got %d units, want %d", got, writers*calls)
		}
		must(t, s.Close())
		s = open()
	}
	must(t, s.Close())
}

// checkUsedNow checks that the usage of an entity has every unit whose reservation was done before,
// and none that was not begun.
func checkUsedNow(t *testing.T, s *memory.SnapshotStore, entity string, begun, done *atomic.Int64) {
	t.Helper()
	least := done.Load()
	got := usedIn(t, s, weir.UsageQuery{Entity: entity, Resource: subjectResource})
	if most := begun.Load(); got < least || got > most {
		t.Errorf("%s: got %d units, want %d to %d", entity, got, least, most)
	}
}
