package memory

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
)

// plainLease is a lease in the slow obvious way: units in the order in which they came, each with
// its end; and the end of those that were reserved first.
type plainLease struct {
	ends  []int64
	first int64
}

// used returns the units of some leases that are occupied at now.
func used(leases []*plainLease, now int64) (n int64) {
	for _, l := range leases {
		for _, end := range l.ends {
			if end > now {
				n++
			}
		}
	}
	return n
}

// plainFreeAt returns when no more than most units are occupied: when the last one too many has gone.
func plainFreeAt(leases []*plainLease, now, most int64) int64 {
	var ends []int64
	for _, l := range leases {
		for _, end := range l.ends {
			if end > now {
				ends = append(ends, end)
			}
		}
	}
	over := int64(len(ends)) - most
	if over <= 0 {
		return now
	}
	slices.Sort(ends)
	return ends[over-1]
}

// plainWorld does the same to an occupancy and to single units.
type plainWorld struct {
	occupancy
	leases   []*plainLease
	holdings []*weir.Holding
	now      int64
}

func (w *plainWorld) reserve(n int64, l *weir.Limit) {
	p, ok := w.take(w.now, n, l)
	h := &weir.Holding{Take: weir.Take{Limit: l, Parts: []weir.Part{{Units: n}}}}
	if ok {
		h.Pieces = []weir.Piece{p}
	}
	end := w.now + lengthOf(l)
	w.leases = append(w.leases, &plainLease{slices.Repeat([]int64{end}, int(n)), end})
	w.holdings = append(w.holdings, h)
}

func (w *plainWorld) adjust(i int, to int64, l *weir.Limit) {
	h, lease := w.holdings[i], w.leases[i]
	c := claim{limit: l, pieces: h.Pieces, from: h.Cost(), to: to, lives: true}
	h.Pieces, h.Parts = w.settle(w.now, c), []weir.Part{{Units: to}}
	end := lease.first
	if end <= w.now {
		end = w.now + lengthOf(l)
	}
	for int64(len(lease.ends)) < to {
		lease.ends = append(lease.ends, end)
	}
	lease.ends = lease.ends[:to]
}

func (w *plainWorld) renew(i int, l *weir.Limit) {
	w.holdings[i].Pieces = w.extend(w.now, w.holdings[i].Pieces, l)
	for j, end := range w.leases[i].ends {
		if end > w.now {
			w.leases[i].ends[j] = w.now + lengthOf(l)
		}
	}
}

// TestOccupancyAgainstPlainUnits compares the two at random, under lengths that change.
func TestOccupancyAgainstPlainUnits(t *testing.T) {
	t.Parallel()
	const capacity = 100
	lengths := []time.Duration{time.Second, 3 * time.Second, 10 * time.Second}
	for seed := range uint64(8) {
		rng := rand.New(rand.NewPCG(seed, 1))
		w := &plainWorld{}
		for step := range 500 {
			w.now += int64(rng.IntN(200))
			l := &weir.Limit{Kind: weir.Window, Capacity: capacity, Window: lengths[rng.IntN(3)]}
			slots := seed%2 == 1
			if slots {
				l.Kind, l.Timeout = weir.Concurrency, l.Window
			}
			i := max(0, len(w.leases)-1-rng.IntN(12))
			switch move := rng.IntN(8); {
			case move < 3 || len(w.leases) == 0:
				w.reserve(int64(rng.IntN(12)), l)
			case !slots:
				w.adjust(i, int64(rng.IntN(15)), l)
			case move < 6:
				w.adjust(i, rng.Int64N(w.holdings[i].Cost()+1), l)
			default:
				w.renew(i, l)
			}
			checkOccupancy(t, w, l, int64(rng.IntN(capacity)))
			if t.Failed() {
				t.Fatalf("seed %d, step %d", seed, step)
			}
		}
	}
}

func checkOccupancy(t *testing.T, w *plainWorld, l *weir.Limit, want int64) {
	t.Helper()
	o := &w.occupancy
	for _, at := range []int64{w.now, w.now + 700} {
		if got, want := l.Capacity-o.peek(at, l), used(w.leases, at); got != want {
			t.Errorf("occupied at %d: got %d, want %d", at, got, want)
		}
	}
	if got, want := o.freeAt(w.now, want, l), plainFreeAt(w.leases, w.now, l.Capacity-want); got != want {
		t.Errorf("free at: got %d, want %d", got, want)
	}
	for i := range o.queues {
		q := &o.queues[i]
		empty := 0
		for _, e := range q.entries() {
			if e.units == 0 {
				empty++
			}
		}
		if empty != q.empty || empty > q.len()/2 {
			t.Errorf("empty entries: got %d counted, %d found of %d", q.empty, empty, q.len())
		}
	}
}

func TestQueueGivesMemoryBack(t *testing.T) {
	t.Parallel()
	o := &occupancy{}
	l := &weir.Limit{Kind: weir.Window, Capacity: 1 << 40, Window: time.Minute}
	var most int
	for now := range int64(300_000) { // five minutes, one unit in each millisecond
		o.take(now, 1, l)
		most = max(most, cap(o.queues[0].ring))
	}
	if most > 4*60_000 {
		t.Errorf("got room for %d entries, want no more than four times the 60,000 in a window", most)
	}
	o.touch(1_000_000)
	if got := cap(o.queues[0].ring); got > 64 {
		t.Errorf("empty: got room for %d entries", got)
	}
}
