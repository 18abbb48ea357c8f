package kernel

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// naiveQueue has an entry for each unit.
type naiveQueue []int64

func (q naiveQueue) occupied(now int64) (n int64) {
	for _, until := range q {
		if until > now {
			n++
		}
	}
	return n
}

// freeAt returns when n of the units have returned.
func (q naiveQueue) freeAt(now, n int64) int64 {
	if n <= 0 {
		return now
	}
	if n > int64(len(q)) {
		return math.MaxInt64
	}
	slices.Sort(q)
	return max(now, q[n-1])
}

func (q naiveQueue) remove(from, to, n int64) naiveQueue {
	slices.Sort(q)
	return slices.DeleteFunc(q, func(until int64) bool {
		gone := until >= from && until <= to && n > 0
		if gone {
			n--
		}
		return gone
	})
}

// TestQueueAgainstUnits makes random calls to a queue and to a list of single units.
func TestQueueAgainstUnits(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 2))
		var q Queue
		var naive naiveQueue
		now := int64(0)
		for step := range 500 {
			now += rng.Int64N(20)
			switch rng.IntN(4) {
			case 0, 1:
				until, n := now+1+rng.Int64N(100), rng.Int64N(5)
				q.Add(until, n)
				naive = append(naive, slices.Repeat([]int64{until}, int(n))...)
			case 2:
				from := now + rng.Int64N(100)
				to, n := from+rng.Int64N(3), rng.Int64N(6)
				before := len(naive)
				naive = naive.remove(from, to, n)
				if got, want := q.Remove(from, to, n), int64(before-len(naive)); got != want {
					t.Fatalf("seed %d, step %d: removed %d, want %d", seed, step, got, want)
				}
			default:
				q.Expire(now)
				naive = slices.DeleteFunc(naive, func(until int64) bool { return until <= now })
			}
			q.compare(t, naive, now+rng.Int64N(50), rng.Int64N(20))
			if t.Failed() {
				t.Fatalf("seed %d, step %d", seed, step)
			}
		}
	}
}

// compare compares a queue with the list, and checks that the queue has few useless entries.
func (q *Queue) compare(t *testing.T, naive naiveQueue, at, n int64) {
	t.Helper()
	if got, want := q.Total(), int64(len(naive)); got != want {
		t.Errorf("total: got %d, want %d", got, want)
	}
	if got, want := q.Occupied(at), naive.occupied(at); got != want {
		t.Errorf("occupied at %d: got %d, want %d", at, got, want)
	}
	if got, want := q.FreeAt(0, n), naive.freeAt(0, n); got != want {
		t.Errorf("%d free: got %d, want %d", n, got, want)
	}
	empty := 0
	for _, e := range q.pending() {
		if e.Units == 0 {
			empty++
		}
	}
	if empty != q.empty || empty > len(q.pending())/2 {
		t.Errorf("empty entries: got %d counted, %d found of %d", q.empty, empty, len(q.pending()))
	}
	clone := q.Clone()
	if got := NewQueue(clone.Entries()); got.Total() != q.Total() || got.empty != 0 {
		t.Errorf("a new queue of its entries: got %+v", got)
	}
}

func TestQueueGivesMemoryBack(t *testing.T) {
	t.Parallel()
	w := NewWindow(0, Definition{Capacity: 1 << 40, LengthMS: 60_000})
	var most int
	for now := range int64(300_000) { // five minutes, one unit in each millisecond
		w.Take(now, 1)
		most = max(most, cap(w.Queues[0].ring))
	}
	if most > 4*60_000 {
		t.Errorf("got room for %d entries, want no more than four times the 60,000 in a window", most)
	}
	w.touch(1_000_000)
	if got := cap(w.Queues[0].ring); got > 64 {
		t.Errorf("empty: got room for %d entries", got)
	}
}
