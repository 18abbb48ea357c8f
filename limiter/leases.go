package limiter

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-limiter/weir"
)

// leaseTable remembers the leases of a limiter: live ones until they end, ended ones for as long as
// somebody might repeat a call. Each shard has a lock of its own; an entry is worked on by one call
// at a time, and no lock is held meanwhile.
//
// Nothing here wakes up by itself: expiry is judged when a lease is asked for, and every call
// sweeps a few leases that are due in its shard.
type leaseTable struct {
	shards []leaseSegment
	seed   fingerprint // so that no caller can choose the shard of the IDs that it brings
	// memory is how long ended leases are remembered, in milliseconds, and memorySize how many at
	// most.
	memory     int64
	memorySize int
	latestNow  atomic.Int64 // the latest now, see clock
	horizon    atomic.Int64 // lease IDs older than this may have been used before the table was opened
	// callers have the horizons that lease IDs forgotten early have moved.
	callers callerQuotas
	// entries has entries that were used and are empty now, with room for holdings. It stays empty
	// where a store may still read the holdings of a lease after its answer.
	entries sync.Pool
	reuse   bool
}

// leaseSegment is one part of the table.
type leaseSegment struct {
	mu    sync.Mutex
	index leaseIndex
	slots []*leaseEntry // the leases that have not ended
	free  []leaseRef    // the slots that are empty
	// live has a list for each lifetime: leases of one lifetime end in the order of their renewal,
	// so no heap is needed.
	live     []*leaseList
	sequence int64
	ended    endedLeases
	maxEnded int   // for ended leases
	nextDue  int64 // nothing is due before this instant, in milliseconds
}

// leaseRef says where a lease is: in a slot, or among those that have ended.
type leaseRef uint32

const (
	leaseHasEnded leaseRef = 1 << 31
	leaseNowhere           = leaseHasEnded - 1
)

// A call clears away at most sweepLeast due leases of its shard and a sixteenth of those there are:
// few enough not to be felt, and enough that a hundred calls a second are rid of a million leases
// that came due in one instant within some ten seconds.
const (
	sweepLeast = 64
	sweepShare = 16
)

// clockReset is how far time may step back before the table believes it.
const clockReset = 60_000

func newLeaseTable(o *Options, opened time.Time) *leaseTable {
	n := 8 // few, since each has memory of its own to go through, and enough for calls at once
	for n < 4*runtime.GOMAXPROCS(0) {
		n *= 2
	}
	if o.LeaseMemorySize < 4096 {
		n = 1 // so that a small memory forgets exactly the oldest
	}
	t := &leaseTable{
		shards: make([]leaseSegment, n), seed: fingerprint(rand.Uint64()),
		memory: o.LeaseMemory.Milliseconds(), memorySize: o.LeaseMemorySize,
	}
	t.callers.open(o)
	for i := range t.shards {
		t.shards[i].index = newLeaseIndex(t.seed)
		t.shards[i].maxEnded = max(1, o.LeaseMemorySize/n)
	}
	t.latestNow.Store(opened.UnixMilli())
	t.horizon.Store(opened.UnixMilli())
	return t
}

// clock returns the table's time: the latest that any call has brought. A now more than a minute
// behind it means that the clock had been wrong and was put right.
func (t *leaseTable) clock(now time.Time) int64 {
	ms := now.UnixMilli()
	for {
		high := t.latestNow.Load()
		if ms <= high && high-ms <= clockReset {
			return high
		}
		if t.latestNow.CompareAndSwap(high, ms) {
			return ms
		}
	}
}

// checkID refuses an ID that a caller has brought and that may have been forgotten, or is too far
// ahead.
func (t *leaseTable) checkID(id weir.LeaseID, now int64, by *callerQuota) error {
	ms, early := id.UnixMilli(), by.horizon.Load()
	switch {
	case ms < max(now-t.memory, t.horizon.Load()):
		return invalid("lease_id", id, "is too old to tell whether it was used before")
	case ms < early:
		return invalid("lease_id", id, fmt.Sprintf("may have been used before: IDs of this caller from before "+
			"%s were forgotten early, because only %d ended leases are remembered: bring an ID made later",
			time.UnixMilli(early).UTC().Format(time.RFC3339Nano), t.memorySize))
	case ms > now+clockReset:
		return invalid("lease_id", id, "is more than a minute ahead")
	}
	return nil
}

func (t *leaseTable) shard(id weir.LeaseID) *leaseSegment {
	return &t.shards[uint64(t.seed.addLeaseID(id))>>32&uint64(len(t.shards)-1)]
}

// acquire gives the caller the entry of a lease, waiting for whoever works on it. Without one it
// makes a pending entry if create says so, otherwise it returns nil. What has been forgotten counts
// as absent.
func (t *leaseTable) acquire(ctx context.Context, id weir.LeaseID, now int64, create bool) (*leaseEntry, error) {
	for {
		e, busy := t.tryAcquire(id, now, create)
		if busy == nil {
			return e, nil
		}
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, &weir.Error{Code: weir.Unavailable, Reason: "another call on the lease is under way",
				Err: ctx.Err()}
		}
	}
}

// tryAcquire is acquire without waiting: where somebody works on the entry, it returns a channel
// that is closed when they are done.
func (t *leaseTable) tryAcquire(id weir.LeaseID, now int64, create bool) (e *leaseEntry, busy <-chan struct{}) {
	s := t.shard(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweep(t, now)
	place, known := s.find(id)
	if known && place&leaseHasEnded == 0 {
		e = s.slots[place]
		if e.busy {
			if e.wait == nil {
				e.wait = make(chan struct{})
			}
			return nil, e.wait
		}
		if e.due > now {
			e.busy = true
			return e, nil
		}
		s.expire(t, e)
		place, known = s.find(id) // the memory may have room for none
	}
	if known {
		ended := s.ended.at(place)
		if ended.forgetAt(t.memory) >= now {
			return ended.entry(), nil
		}
		s.forget(ended)
	}
	if !create {
		return nil, nil
	}
	e = t.entry(id)
	e.busy = true
	s.add(e)
	return e, nil
}

// entry returns a new entry, in no shard.
func (t *leaseTable) entry(id weir.LeaseID) *leaseEntry {
	e, ok := t.entries.Get().(*leaseEntry)
	if !ok {
		e = &leaseEntry{}
		e.holdingBuf[0].Parts = e.partBuf[:0]
		e.holdings = e.holdingBuf[:0]
	}
	e.id, e.caller = id, &t.callers.own
	return e
}

// insert takes over an entry that was made outside the table, under an ID that nobody else can know
// yet.
func (t *leaseTable) insert(e *leaseEntry, now int64) {
	s := t.shard(e.id)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweep(t, now)
	s.add(e)
	t.countLive(e)
	s.file(e)
}

// countLive keeps the count of live leases: e was filed as what it is now.
func (t *leaseTable) countLive(e *leaseEntry) {
	switch live := e.state == leaseLive; {
	case live && !e.counted:
		t.callers.count(e.caller)
	case !live && e.counted:
		t.callers.release(e.caller)
	}
	e.counted = e.state == leaseLive
}

// recycle takes back an entry that is in no shard any more. What its holdings point to stays until
// they are used again, or the collector empties the pool.
func (t *leaseTable) recycle(e *leaseEntry) {
	if !t.reuse {
		return
	}
	const most = 16 // holdings; more are not worth keeping
	if n := cap(e.holdings); n == 0 || n > most {
		e.holdings = e.holdingBuf[:0]
	}
	e.state, e.degraded, e.inDoubt, e.keys, e.limits = leasePending, false, false, nil, nil
	e.seq, e.due, e.sequence, e.definitionsUntil, e.caller = 0, 0, 0, 0, nil
	t.entries.Put(e)
}

// release gives an entry back and files it by what became of it.
func (t *leaseTable) release(e *leaseEntry) {
	if e.detached {
		return
	}
	s := t.shard(e.id)
	s.mu.Lock()
	e.busy = false
	wait := e.wait
	e.wait = nil
	gone := true
	t.countLive(e)
	switch e.state {
	case leasePending:
		s.remove(e)
		s.index.forget(e.id, true, s.valid)
	case leaseLive:
		s.file(e)
		gone = false
	default:
		s.moveToEnded(t, e)
	}
	s.mu.Unlock()
	if wait != nil {
		close(wait)
	}
	if gone {
		t.recycle(e)
	}
}

// find returns the place of a lease.
func (s *leaseSegment) find(id weir.LeaseID) (leaseRef, bool) {
	place, ok := s.index.get(id)
	return place, ok && s.valid(id, place)
}

// valid reports whether a place is still that of a lease.
func (s *leaseSegment) valid(id weir.LeaseID, place leaseRef) bool {
	if place&leaseHasEnded != 0 {
		return s.ended.has(id, place)
	}
	return int(place) < len(s.slots) && s.slots[place] != nil && s.slots[place].id == id
}

// add gives an entry a slot.
func (s *leaseSegment) add(e *leaseEntry) {
	if n := len(s.free); n > 0 {
		e.ref = s.free[n-1]
		s.free = s.free[:n-1]
		s.slots[e.ref] = e
	} else {
		e.ref = leaseRef(len(s.slots))
		s.slots = append(s.slots, e)
	}
	s.index.add(e.id, e.ref, s.valid)
}

// remove takes an entry out of its slot and its list. The index still has its place.
func (s *leaseSegment) remove(e *leaseEntry) {
	if e.list != nil {
		e.list.remove(e)
	}
	s.slots[e.ref] = nil
	s.free = append(s.free, e.ref)
	s.compact()
}

// file puts a live lease at the end of the list for its lifetime.
func (s *leaseSegment) file(e *leaseEntry) {
	due := e.expires
	if e.list != nil {
		if e.due == due {
			return
		}
		e.list.remove(e)
	}
	s.sequence++
	e.due, e.sequence = due, s.sequence
	s.nextDue = min(s.nextDue, due)
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

// expire ends a live lease whose time is over and that nobody works on.
func (s *leaseSegment) expire(t *leaseTable, e *leaseEntry) {
	e.end(leaseExpired, e.expires)
	t.countLive(e)
	s.moveToEnded(t, e)
	// It is not used again: a million leases may expire at once, and few come after them.
}

// moveToEnded moves an ended lease to the ended ones. If there are too many, it forgets the oldest
// of the caller that has the most.
func (s *leaseSegment) moveToEnded(t *leaseTable, e *leaseEntry) {
	s.remove(e)
	s.index.move(e.id, s.ended.push(e.caller, endedLease{
		id: e.id, at: e.endedAt, fingerprint: e.endedAs, phase: e.state, degraded: e.degraded,
		inDoubt: e.inDoubt,
	}))
	if s.ended.len() == 1 {
		s.nextDue = min(s.nextDue, s.ended.first().forgetAt(t.memory)+1)
	}
	for s.ended.count > s.maxEnded {
		s.forget(s.ended.most())
	}
	if s.ended.len() > 2*s.ended.count+blockEnded {
		s.ended.compact(func(id weir.LeaseID, at leaseRef) { s.index.move(id, at) })
	}
}

// forgetOldest drops the first of the ended leases. Its ID, and any older one, is refused from now
// on.
func (s *leaseSegment) forgetOldest() {
	if e := s.ended.first(); !e.forgotten() {
		s.forget(e)
	}
	s.ended.pop()
}

// forget drops an ended lease, and moves the horizon of its caller.
func (s *leaseSegment) forget(e *endedLease) {
	id := e.id
	s.ended.drop(e).raiseHorizon(id.UnixMilli() + 1)
	s.index.forget(id, false, s.valid)
}

// compact makes the slots anew where most are empty.
func (s *leaseSegment) compact() {
	const small = 256
	if len(s.slots) <= small || len(s.free) < len(s.slots)/4*3 {
		return
	}
	var slots []*leaseEntry
	for _, e := range s.slots {
		if e != nil {
			e.ref = leaseRef(len(slots))
			slots = append(slots, e)
			s.index.move(e.id, e.ref)
		}
	}
	s.slots, s.free = slots, nil
}

// sweep ends live leases that are due and forgets ended ones that need not be remembered.
func (s *leaseSegment) sweep(t *leaseTable, now int64) {
	if now < s.nextDue {
		return
	}
	const fewLists = 8
	if len(s.live) > fewLists {
		s.live = slices.DeleteFunc(s.live, func(l *leaseList) bool { return l.head == nil })
	}
	quiet := int64(math.MaxInt64)
	budget := sweepLeast + s.index.len/sweepShare
	for ; budget > 0; budget-- {
		e, busy := s.firstDue()
		if busy {
			quiet = now // it may be due when it is given back
		} else if e != nil {
			quiet = e.due
		}
		if e == nil || e.due > now {
			break
		}
		s.expire(t, e)
	}
	for ; budget > 0 && s.ended.len() > 0; budget-- {
		if e := s.ended.first(); !e.forgotten() && e.forgetAt(t.memory) >= now {
			quiet = min(quiet, e.forgetAt(t.memory)+1)
			break
		}
		s.forgetOldest()
	}
	if s.nextDue = quiet; budget == 0 {
		s.nextDue = now
	}
}

// firstDue returns the live lease that ends first, of those that nobody works on, and whether
// somebody works on one that might be earlier. They must be remembered in the order in which they
// end, or the memory would not forget the oldest.
func (s *leaseSegment) firstDue() (first *leaseEntry, busy bool) {
	for _, l := range s.live {
		h := l.head
		if h == nil {
			continue
		}
		if h.busy {
			busy = true
			continue
		}
		if first == nil || h.due < first.due || h.due == first.due && h.sequence < first.sequence {
			first = h
		}
	}
	return first, busy
}
