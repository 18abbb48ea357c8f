package httpapi

import (
	"container/heap"
	"sync"
	"time"

	"github.com/weir-limiter/weir"
)

const (
	// flatMemory is how long the keys of a lease that has ended are kept, so that a repeated
	// settlement is answered as the first was: as long as a limiter remembers the lease.
	flatMemory = 10 * time.Minute
	// flatRoom bounds the bytes of all keys, about. The leases that end first go first.
	flatRoom = 64 << 20
	// flatEntry is what a lease costs besides its keys, about.
	flatEntry = 256
)

// flatLeases remembers which flat keys a lease was reserved with: the service settles by the
// position of the charge. Time comes from the service's answers. A lease that is not here is
// unknown, but a repeated reserve brings it back.
type flatLeases struct {
	mu    sync.Mutex
	byID  map[weir.LeaseID]*flatLease
	queue flatQueue
	now   int64 // the latest instant of any answer
	bytes int
	room  int
}

type flatLease struct {
	id    weir.LeaseID
	keys  []string
	until int64 // when it may be forgotten, in Unix milliseconds
	bytes int
	place int // in the queue
}

func newFlatLeases(room int) *flatLeases {
	return &flatLeases{byID: make(map[weir.LeaseID]*flatLease), room: room}
}

// reserved remembers the keys of a lease; none is no flat lease.
func (f *flatLeases) reserved(l *weir.Lease, keys []string) {
	if len(keys) == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	lease := f.byID[l.ID]
	if lease == nil {
		lease = &flatLease{id: l.ID, keys: keys, bytes: flatEntry}
		for _, key := range keys {
			lease.bytes += len(key)
		}
		f.byID[l.ID] = lease
		f.bytes += lease.bytes
		heap.Push(&f.queue, lease)
	}
	f.keep(lease, l.Expires)
	f.sweep(l.ReservedAt)
}

// settled renews what is known of a lease by the answer to a verb on it.
func (f *flatLeases) settled(r *weir.Receipt) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if lease := f.byID[r.LeaseID]; lease != nil {
		end := r.Expires
		if end.IsZero() {
			end = r.At
		}
		f.keep(lease, end)
	}
	f.sweep(r.At)
}

// keys returns the keys of a lease; nil where they are not known.
func (f *flatLeases) keys(id weir.LeaseID) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if lease := f.byID[id]; lease != nil {
		return lease.keys
	}
	return nil
}

func (f *flatLeases) keep(lease *flatLease, end time.Time) {
	lease.until = end.Add(flatMemory).UnixMilli()
	heap.Fix(&f.queue, lease.place)
}

// sweep forgets what is over, and what there is no room for.
func (f *flatLeases) sweep(now time.Time) {
	f.now = max(f.now, now.UnixMilli())
	for len(f.queue) > 0 && (f.queue[0].until < f.now || f.bytes > f.room) {
		lease := f.queue[0]
		heap.Pop(&f.queue)
		delete(f.byID, lease.id)
		f.bytes -= lease.bytes
	}
}

// flatQueue orders leases by when they may be forgotten.
type flatQueue []*flatLease

func (q flatQueue) Len() int           { return len(q) }
func (q flatQueue) Less(i, j int) bool { return q[i].until < q[j].until }

func (q flatQueue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].place, q[j].place = i, j
}

// Push and Pop are for container/heap.
func (q *flatQueue) Push(x any) {
	lease := x.(*flatLease)
	lease.place = len(*q)
	*q = append(*q, lease)
}

// Pop takes the last one away.
func (q *flatQueue) Pop() any {
	last := len(*q) - 1
	lease := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	return lease
}
