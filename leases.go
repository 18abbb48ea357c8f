package weir

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
)

// leaseTable remembers the leases of a limiter: live ones until they end, ended ones for as long as
// somebody might repeat a call. Each shard has a lock of its own; an entry is worked on by one call
// at a time, and no lock is held meanwhile.
//
// Nothing here wakes up by itself: expiry is judged when a lease is asked for, and every call
// sweeps a few leases that are due in its shard.
type leaseTable struct {
	shards []leaseShard
	seed   fingerprint // so that no caller can choose the shard of the IDs that it brings
	// memory is how long ended leases are remembered, in milliseconds, and memorySize how many at most.
	memory     int64
	memorySize int
	high       atomic.Int64 // the latest now, see clock
	early      atomic.Int64 // lease IDs older than this may have been used before the table was opened
	// callers have the horizons that lease IDs forgotten early have moved.
	callers leaseCallers
	// blank has entries that were used and are empty now, with room for holdings. It stays empty where
	// a store may still read the holdings of a lease after its answer.
	blank sync.Pool
	reuse bool
}

// leaseShard is one part of the table.
type leaseShard struct {
	mu    sync.Mutex
	index leaseIndex
	slots []*leaseEntry // the leases that have not ended
	free  []leasePlace  // the slots that are empty
	// live has a list for each lifetime: leases of one lifetime end in the order of their renewal, so
	// no heap is needed.
	live    []*leaseList
	filings int64
	ended   endedLeases
	room    int   // for ended leases
	quiet   int64 // nothing is due before this instant, in milliseconds
}

// leasePlace says where a lease is: in a slot, or among those that have ended.
type leasePlace uint32

const (
	leaseHasEnded leasePlace = 1 << 31
	leaseNowhere             = leaseHasEnded - 1
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
		shards: make([]leaseShard, n), seed: fingerprint(rand.Uint64()),
		memory: o.LeaseMemory.Milliseconds(), memorySize: o.LeaseMemorySize,
	}
	t.callers.open(o)
	for i := range t.shards {
		t.shards[i].index = newLeaseIndex(t.seed)
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

// checkID refuses an ID that a caller has brought and that may have been forgotten, or is too far
// ahead.
func (t *leaseTable) checkID(id LeaseID, now int64, by *leaseCaller) error {
	ms, early := id.ms(), by.early.Load()
	switch {
	case ms < max(now-t.memory, t.early.Load()):
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

func (t *leaseTable) shard(id LeaseID) *leaseShard {
	return &t.shards[uint64(t.seed.id(id))>>32&uint64(len(t.shards)-1)]
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
func (t *leaseTable) entry(id LeaseID) *leaseEntry {
	e, ok := t.blank.Get().(*leaseEntry)
	if !ok {
		e = &leaseEntry{}
		e.oneHolding[0].Parts = e.onePart[:0]
		e.holdings = e.oneHolding[:0]
	}
	e.id, e.caller = id, &t.callers.own
	return e
}

// bring takes over an entry that was born outside, under an ID that nobody else can know yet.
func (t *leaseTable) bring(e *leaseEntry, now int64) {
	s := t.shard(e.id)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweep(t, now)
	s.add(e)
	t.tally(e)
	s.file(e)
}

// tally keeps the count of live leases: e was filed as what it is now.
func (t *leaseTable) tally(e *leaseEntry) {
	switch live := e.state == leaseHeld; {
	case live && !e.counted:
		t.callers.count(e.caller)
	case !live && e.counted:
		t.callers.give(e.caller)
	}
	e.counted = e.state == leaseHeld
}

// recycle takes back an entry that is in no shard any more. What its holdings point to stays until
// they are used again, or the collector empties the pool.
func (t *leaseTable) recycle(e *leaseEntry) {
	if !t.reuse {
		return
	}
	const most = 16 // holdings; more are not worth keeping
	if n := cap(e.holdings); n == 0 || n > most {
		e.holdings = e.oneHolding[:0]
	}
	e.state, e.degraded, e.inDoubt, e.keys, e.limits = leaseUnborn, false, false, nil, nil
	e.seq, e.due, e.filing, e.planned, e.caller = 0, 0, 0, 0, nil
	t.blank.Put(e)
}

// release gives an entry back and files it by what became of it.
func (t *leaseTable) release(e *leaseEntry) {
	if e.alone {
		return
	}
	s := t.shard(e.id)
	s.mu.Lock()
	e.busy = false
	wait := e.wait
	e.wait = nil
	gone := true
	t.tally(e)
	switch e.state {
	case leaseUnborn:
		s.remove(e)
		s.index.leave(e.id, true, s.valid)
	case leaseHeld:
		s.file(e)
		gone = false
	default:
		s.remember(t, e)
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
func (s *leaseShard) find(id LeaseID) (leasePlace, bool) {
	place, ok := s.index.get(id)
	return place, ok && s.valid(id, place)
}

// valid reports whether a place is still that of a lease.
func (s *leaseShard) valid(id LeaseID, place leasePlace) bool {
	if place&leaseHasEnded != 0 {
		return s.ended.has(id, place)
	}
	return int(place) < len(s.slots) && s.slots[place] != nil && s.slots[place].id == id
}

// add gives an entry a slot.
func (s *leaseShard) add(e *leaseEntry) {
	if n := len(s.free); n > 0 {
		e.place = s.free[n-1]
		s.free = s.free[:n-1]
		s.slots[e.place] = e
	} else {
		e.place = leasePlace(len(s.slots))
		s.slots = append(s.slots, e)
	}
	s.index.add(e.id, e.place, s.valid)
}

// remove takes an entry out of its slot and its list. The index still has its place.
func (s *leaseShard) remove(e *leaseEntry) {
	if e.list != nil {
		e.list.remove(e)
	}
	s.slots[e.place] = nil
	s.free = append(s.free, e.place)
	s.compact()
}

// file puts a live lease at the end of the list for its lifetime.
func (s *leaseShard) file(e *leaseEntry) {
	due := e.expires
	if e.list != nil {
		if e.due == due {
			return
		}
		e.list.remove(e)
	}
	s.filings++
	e.due, e.filing = due, s.filings
	s.quiet = min(s.quiet, due)
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
func (s *leaseShard) expire(t *leaseTable, e *leaseEntry) {
	e.end(leaseExpired, e.expires)
	t.tally(e)
	s.remember(t, e)
	// It is not used again: a million leases may expire at once, and few come after them.
}

// remember moves an ended lease to the ended ones. If there are too many, it forgets the oldest of
// the caller that has the most.
func (s *leaseShard) remember(t *leaseTable, e *leaseEntry) {
	s.remove(e)
	s.index.move(e.id, s.ended.push(e.caller, endedLease{
		id: e.id, at: e.endedAt, fingerprint: e.endedAs, as: e.state, degraded: e.degraded,
		inDoubt: e.inDoubt,
	}))
	if s.ended.len() == 1 {
		s.quiet = min(s.quiet, s.ended.first().forgetAt(t.memory)+1)
	}
	for s.ended.kept > s.room {
		s.forget(s.ended.most())
	}
	if s.ended.len() > 2*s.ended.kept+blockEnded {
		s.ended.compact(func(id LeaseID, at leasePlace) { s.index.move(id, at) })
	}
}

// forgetOldest drops the first of the ended leases. Its ID, and any older one, is refused from now
// on.
func (s *leaseShard) forgetOldest() {
	if e := s.ended.first(); !e.gone() {
		s.forget(e)
	}
	s.ended.pop()
}

// forget drops an ended lease, and moves the horizon of its caller.
func (s *leaseShard) forget(e *endedLease) {
	id := e.id
	s.ended.drop(e).forgot(id.ms() + 1)
	s.index.leave(id, false, s.valid)
}

// compact makes the slots anew where most are empty.
func (s *leaseShard) compact() {
	const small = 256
	if len(s.slots) <= small || len(s.free) < len(s.slots)/4*3 {
		return
	}
	var slots []*leaseEntry
	for _, e := range s.slots {
		if e != nil {
			e.place = leasePlace(len(slots))
			slots = append(slots, e)
			s.index.move(e.id, e.place)
		}
	}
	s.slots, s.free = slots, nil
}

// sweep ends live leases that are due and forgets ended ones that need not be remembered.
func (s *leaseShard) sweep(t *leaseTable, now int64) {
	if now < s.quiet {
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
		if e := s.ended.first(); !e.gone() && e.forgetAt(t.memory) >= now {
			quiet = min(quiet, e.forgetAt(t.memory)+1)
			break
		}
		s.forgetOldest()
	}
	if s.quiet = quiet; budget == 0 {
		s.quiet = now
	}
}

// firstDue returns the live lease that ends first, of those that nobody works on, and whether
// somebody works on one that might be earlier. They must be remembered in the order in which they
// end, or the memory would not forget the oldest.
func (s *leaseShard) firstDue() (first *leaseEntry, busy bool) {
	for _, l := range s.live {
		h := l.head
		if h == nil {
			continue
		}
		if h.busy {
			busy = true
			continue
		}
		if first == nil || h.due < first.due || h.due == first.due && h.filing < first.filing {
			first = h
		}
	}
	return first, busy
}
