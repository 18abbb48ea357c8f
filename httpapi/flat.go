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
	// flatRoom bounds the bytes of all keys, about.
	flatRoom = 64 << 20
	// flatEntry is what a lease costs besides its keys, and flatKey what a key costs besides its
	// bytes, about.
	flatEntry = 256
	flatKey   = 32
	// flatLongest is how long an entity's name may be. A longer key is never reserved.
	flatLongest = 256
	// flatReset is how far time may step back before it is believed, as in a limiter's lease table.
	flatReset = time.Minute
)

// flatLeases remembers which flat keys a lease was reserved with: the service settles by the
// position of the charge. A lease that is not here is unknown, but a repeated reserve brings it back.
//
// Where there is no room, the leases that have ended go first; those that live stay, and no more are
// let in. Time comes from the service's answers.
type flatLeases struct {
	mu    sync.Mutex
	byID  map[weir.LeaseID]*flatLease
	queue flatQueue
	bytes int // of the leases, and of the claims on behalf of reservations under way
	room  int

	now   int64     // the latest instant of any answer
	heard time.Time // when that was, by the handler's clock
	clock func() time.Time
}

type flatLease struct {
	id    weir.LeaseID
	keys  []string
	end   int64 // when it ended, or will, in Unix milliseconds
	bytes int
	place int // in the queue
}

func newFlatLeases(room int, clock func() time.Time) *flatLeases {
	return &flatLeases{byID: make(map[weir.LeaseID]*flatLease), room: room, clock: clock}
}

// flatSize is how many bytes a lease with these keys takes, about.
func flatSize(keys []string) int {
	size := flatEntry
	for _, key := range keys {
		size += flatKey + min(len(key), flatLongest)
	}
	return size
}

// claim sets room aside for the keys of a lease that is about to be reserved, none where it is known
// already. It is false where all the room is taken by leases that live. What was claimed is given to
// reserved, whatever comes of the reservation.
func (f *flatLeases) claim(id weir.LeaseID, keys []string) (claimed int, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.byID[id] != nil {
		return 0, true
	}
	size := flatSize(keys)
	// The answers tell no time while there are none but refusals.
	now := f.now + max(0, f.clock().Sub(f.heard).Milliseconds())
	// A lease that lives is behind every one that has ended.
	for f.bytes+size > f.room && len(f.queue) > 0 && f.queue[0].end <= now {
		f.forget(f.queue[0])
	}
	if f.bytes+size > f.room {
		return 0, false
	}
	f.bytes += size
	return size, true
}

// reserved remembers the keys of a lease, nil where nothing was reserved, and gives back what was
// claimed for it.
func (f *flatLeases) reserved(l *weir.Lease, keys []string, claimed int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.bytes -= claimed
	if l == nil {
		return
	}
	f.hear(l.ReservedAt, !l.Replay)
	lease := f.byID[l.ID]
	if lease != nil && l.Replay {
		return // it may have been settled meanwhile: what is known of its end is not older
	}
	if lease == nil {
		size := flatSize(keys)
		if f.bytes+size > f.room {
			return // it was known when room should have been claimed, and has been forgotten since
		}
		lease = &flatLease{id: l.ID, keys: keys, bytes: size}
		f.byID[l.ID] = lease
		f.bytes += size
		heap.Push(&f.queue, lease)
	}
	f.keep(lease, l.Expires)
	f.sweep()
}

// settled renews what is known of a lease by the answer to a verb on it.
func (f *flatLeases) settled(r *weir.Receipt) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hear(r.At, false)
	if lease := f.byID[r.LeaseID]; lease != nil {
		end := r.Expires
		if end.IsZero() {
			end = r.At
		}
		f.keep(lease, end)
	}
	f.sweep()
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

// hear takes the time from an answer. Only what happened just now can tell that the clock had been
// wrong and was put right: a repeated answer has the time of the first.
func (f *flatLeases) hear(at time.Time, justNow bool) {
	ms := at.UnixMilli()
	if ms > f.now || justNow && f.now-ms > flatReset.Milliseconds() {
		f.now, f.heard = ms, f.clock()
	}
}

func (f *flatLeases) keep(lease *flatLease, end time.Time) {
	lease.end = end.UnixMilli()
	heap.Fix(&f.queue, lease.place)
}

// sweep forgets what is over.
func (f *flatLeases) sweep() {
	for len(f.queue) > 0 && f.queue[0].end+flatMemory.Milliseconds() < f.now {
		f.forget(f.queue[0])
	}
}

func (f *flatLeases) forget(lease *flatLease) {
	heap.Remove(&f.queue, lease.place)
	delete(f.byID, lease.id)
	f.bytes -= lease.bytes
}
