package weir

import (
	"context"
	"hash/maphash"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// leaseTable remembers the leases of a limiter: live ones until they end, ended ones for as long as
// somebody might repeat a call. Each shard has a lock of its own; an entry is worked on by one call
// at a time, and no lock is held meanwhile.
//
// Nothing here wakes up by itself: expiry is judged when a lease is asked for, and every call sweeps
// a few leases that are due in its shard.
type leaseTable struct {
	shards []leaseShard
	seed   maphash.Seed // so that no caller can choose the shard of the IDs that it brings
	memory int64        // milliseconds
	high   atomic.Int64 // the latest now, see clock
	early  atomic.Int64 // lease IDs older than this may have been forgotten
}

// leaseShard is one part of the table. Its lists are ordered by due time: the live leases of one
// lifetime end in the order of their renewal, so a list for each lifetime needs no heap.
type leaseShard struct {
	mu      sync.Mutex
	entries map[LeaseID]*leaseEntry
	peak    int // entries since the map was made
	live    []*leaseList
	ended   leaseList
	room    int // ended leases
	filings int64
}

// leaseEntry is what the limiter knows of one lease. Between acquire and release it belongs to the
// caller; the list, its pointers and due belong to the shard.
type leaseEntry struct {
	LeaseRecord
	degraded bool

	state      leaseEntryState
	busy       bool
	wait       chan struct{} // closed on release; nil while nobody waits
	list       *leaseList
	prev, next *leaseEntry
	due        int64 // when it expires, as filed in a live list
	filing     int64 // of those due in one millisecond, the one filed last expires last
}

// leaseEntryState is what release does with an entry.
type leaseEntryState int

const (
	leaseUnborn leaseEntryState = iota // nothing was reserved: drop it
	leaseHeld
	leaseRemembered
)

// A call clears away at most sweepLeast due leases of its shard and a sixteenth of those there are:
// few enough not to be felt, and enough that a hundred calls a second are rid of a million leases that
// came due in one instant within some ten seconds.
const (
	sweepLeast = 64
	sweepShare = 16
)

// clockReset is how far time may step back before the table believes it.
const clockReset = 60_000

func newLeaseTable(o *Options, opened time.Time) *leaseTable {
	n := 64
	if o.LeaseMemorySize < 64*64 {
		n = 1 // so that a small memory forgets exactly the oldest
	}
	t := &leaseTable{
		shards: make([]leaseShard, n), seed: maphash.MakeSeed(), memory: o.LeaseMemory.Milliseconds(),
	}
	for i := range t.shards {
		t.shards[i].entries = make(map[LeaseID]*leaseEntry)
		t.shards[i].room = max(1, o.LeaseMemorySize/n)
	}
	t.high.Store(opened.UnixMilli())
	t.early.Store(opened.UnixMilli())
	return t
}

// clock returns the table's time: the latest that any call has brought. A now more than a minute
// behind it means that the clock had been wrong and was put right.
func (t *leaseTable) clock(now time.Time) int64 {
	ms := now.UnixMilli()
	for {
		high := t.high.Load()
		if ms <= high && high-ms <= clockReset {
			return high
		}
		if t.high.CompareAndSwap(high, ms) {
			return ms
		}
	}
}

// checkID refuses a brought ID that may have been forgotten, or is too far ahead.
func (t *leaseTable) checkID(id LeaseID, now int64) error {
	ms := id.ms()
	switch {
	case ms < max(now-t.memory, t.early.Load()):
		return invalid("lease_id", id, "is too old to tell whether it was used before")
	case ms > now+clockReset:
		return invalid("lease_id", id, "is more than a minute ahead")
	}
	return nil
}

func (t *leaseTable) shard(id LeaseID) *leaseShard {
	return &t.shards[maphash.Bytes(t.seed, id[:])%uint64(len(t.shards))]
}

// acquire gives the caller the entry of a lease, waiting for whoever works on it. Without one it
// makes an unborn entry if create says so, otherwise it returns nil. What has been forgotten counts
// as absent.
func (t *leaseTable) acquire(ctx context.Context, id LeaseID, now int64, create bool) (*leaseEntry, error) {
	for {
		e, busy := t.try(id, now, create)
		if busy == nil {
			return e, nil
		}
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, &Error{Code: Unavailable, Reason: "another call on the lease is under way",
				Err: ctx.Err()}
		}
	}
}

// try is acquire without waiting: where somebody works on the entry, it returns a channel that is
// closed when they are done.
func (t *leaseTable) try(id LeaseID, now int64, create bool) (e *leaseEntry, busy <-chan struct{}) {
	s := t.shard(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweep(t, now)
	e = s.entries[id]
	switch {
	case e == nil && !create:
		return nil, nil
	case e == nil:
		e = &leaseEntry{LeaseRecord: LeaseRecord{ID: id}, busy: true}
		s.entries[id] = e
		s.peak = max(s.peak, len(s.entries))
		return e, nil
	case !e.busy:
		e.busy = true
		s.expire(t, e, now)
		return e, nil
	}
	if e.wait == nil {
		e.wait = make(chan struct{})
	}
	return nil, e.wait
}

// release gives an entry back and files it by what became of it.
func (t *leaseTable) release(e *leaseEntry) {
	s := t.shard(e.ID)
	s.mu.Lock()
	e.busy = false
	switch e.state {
	case leaseUnborn:
		s.drop(e)
	case leaseHeld:
		s.file(e)
	case leaseRemembered:
		if e.list != &s.ended {
			s.remember(t, e)
		}
	}
	wait := e.wait
	e.wait = nil
	s.mu.Unlock()
	if wait != nil {
		close(wait)
	}
}

// bear makes an unborn entry a live lease.
func (e *leaseEntry) bear(r LeaseRecord) {
	e.LeaseRecord = r
	e.state = leaseHeld
}

// end makes a lease an ended one, which holds nothing.
func (e *leaseEntry) end(state LeaseState, at time.Time) {
	e.State, e.EndedAt, e.state = state, at, leaseRemembered
	e.Holdings, e.Limits = nil, nil
}

// file puts a live lease at the end of the list for its lifetime.
func (s *leaseShard) file(e *leaseEntry) {
	due := e.Expires.UnixMilli()
	if e.list != nil {
		if e.due == due {
			return
		}
		e.list.remove(e)
	}
	s.filings++
	e.due, e.filing = due, s.filings
	for _, l := range s.live {
		if l.tail == nil || l.tail.due <= due {
			l.push(e)
			return
		}
	}
	l := &leaseList{}
	s.live = append(s.live, l)
	l.push(e)
}

// expire ends a live lease whose time is over.
func (s *leaseShard) expire(t *leaseTable, e *leaseEntry, now int64) {
	if e.state == leaseHeld && e.due <= now {
		e.end(LeaseExpired, e.Expires)
		s.remember(t, e)
	}
}

// remember moves an ended lease to the ended ones, and forgets the oldest if there are too many.
func (s *leaseShard) remember(t *leaseTable, e *leaseEntry) {
	if e.list != nil {
		e.list.remove(e)
	}
	s.ended.push(e)
	for s.ended.len > s.room && !s.ended.head.busy {
		s.forget(t, s.ended.head)
	}
}

// forget drops an ended lease. Its ID, and any older one, is refused from now on.
func (s *leaseShard) forget(t *leaseTable, e *leaseEntry) {
	s.drop(e)
	floor := e.ID.ms() + 1
	for {
		early := t.early.Load()
		if early >= floor || t.early.CompareAndSwap(early, floor) {
			return
		}
	}
}

func (s *leaseShard) drop(e *leaseEntry) {
	if e.list != nil {
		e.list.remove(e)
	}
	delete(s.entries, e.ID)
	if s.peak > 256 && len(s.entries) < s.peak/4*3 {
		// Go maps do not shrink: make a new one.
		entries := make(map[LeaseID]*leaseEntry, len(s.entries))
		maps.Copy(entries, s.entries)
		s.entries, s.peak = entries, len(entries)
	}
}

// sweep ends live leases that are due and forgets ended ones that need not be remembered.
func (s *leaseShard) sweep(t *leaseTable, now int64) {
	const fewLists = 8
	if len(s.live) > fewLists {
		s.live = slices.DeleteFunc(s.live, func(l *leaseList) bool { return l.head == nil })
	}
	budget := sweepLeast + len(s.entries)/sweepShare
	for ; budget > 0; budget-- {
		e := s.firstDue()
		if e == nil || e.due > now {
			break
		}
		s.expire(t, e, now)
	}
	for h := s.ended.head; h != nil && !h.busy && h.forgetAt(t.memory) < now && budget > 0; budget-- {
		s.forget(t, h)
		h = s.ended.head
	}
}

// firstDue returns the live lease that ends first, of those that nobody works on. They must be
// remembered in the order in which they end, or the memory would not forget the oldest.
func (s *leaseShard) firstDue() *leaseEntry {
	var first *leaseEntry
	for _, l := range s.live {
		h := l.head
		if h == nil || h.busy {
			continue
		}
		if first == nil || h.due < first.due || h.due == first.due && h.filing < first.filing {
			first = h
		}
	}
	return first
}

// forgetAt is the last instant at which an ended lease is remembered. An ID may be ahead of the
// clock that made it a lease; until its own time is past the horizon it could be used again.
func (e *leaseEntry) forgetAt(memory int64) int64 {
	return max(e.EndedAt.UnixMilli(), e.ID.ms()) + memory
}

// forgotten reports whether an acquired entry is only still there because no call has swept it.
func (t *leaseTable) forgotten(e *leaseEntry, now int64) bool {
	return e.state == leaseRemembered && e.forgetAt(t.memory) < now
}

// leaseList is an intrusive list of entries in the order in which they are due.
type leaseList struct {
	head, tail *leaseEntry
	len        int
}

func (l *leaseList) push(e *leaseEntry) {
	e.list, e.prev, e.next = l, l.tail, nil
	if l.tail != nil {
		l.tail.next = e
	} else {
		l.head = e
	}
	l.tail = e
	l.len++
}

func (l *leaseList) remove(e *leaseEntry) {
	if e.prev != nil {
		e.prev.next = e.next
	} else {
		l.head = e.next
	}
	if e.next != nil {
		e.next.prev = e.prev
	} else {
		l.tail = e.prev
	}
	e.list, e.prev, e.next = nil, nil, nil
	l.len--
}
