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

// leaseTable has the leases of a limiter: live ones until they end, and ended ones for as long as a
// call may be repeated. Each segment has its own mutex. An entry belongs to one call at a time, and
// the segment's mutex is not locked while the call works on it.
//
// The table starts no goroutine and no timer. Whether a lease has expired is decided when it is
// looked up, and every call sweeps some of the leases that are due in its segment.
type leaseTable struct {
	segments []leaseSegment
	seed     fingerprint // random, so that callers cannot direct all their IDs to one segment
	// memory is how long ended leases are remembered, in milliseconds; memorySize bounds their
	// number.
	memory     int64
	memorySize int
	latestNow  atomic.Int64 // the table's time, in milliseconds; see clock
	horizon    atomic.Int64 // older lease IDs may have been used before the opening
	// callers counts the leases of each caller, and has the horizons of callers whose ended leases
	// were forgotten early.
	callers callerQuotas
	// entries has empty entries for new leases, with memory for holdings. It is used only if reuse
	// is set, that is, if the store is local: a remote store may read the holdings of a lease after
	// it has answered.
	entries sync.Pool
	reuse   bool
}

// leaseSegment is one part of the table. mu guards all of it.
type leaseSegment struct {
	mu      sync.Mutex
	index   leaseIndex
	entries []*leaseEntry // the leases that have not ended
	free    []leaseRef    // the indexes in entries that are nil
	// live has the live leases in lists, each sorted by the time at which its leases are due.
	// Leases with one lifetime are due in the order in which they were renewed, so appending keeps
	// a list sorted, and there is about one list for each lifetime. No heap is needed.
	live     []*leaseList
	sequence int64
	ended    endedLeases
	maxEnded int   // bounds the number of ended leases
	nextDue  int64 // the sweep has nothing to do before this instant, in milliseconds
}

// leaseRef is the place of a lease in its segment: an index in entries or, with the bit
// leaseHasEnded, a number in the queue of ended leases.
type leaseRef uint32

const leaseHasEnded leaseRef = 1 << 31

// A call sweeps at most minSweep due leases of its segment and a sixteenth of all leases in it.
// That is little enough for one call, and enough for a hundred calls a second to sweep a million
// leases that became due at once in about ten seconds.
const (
	minSweep   = 64
	sweepShare = 16
)

// clockReset is how far behind the table's time a call's time may be, in milliseconds. If it is
// further behind, the clock is taken to have been corrected.
const clockReset = 60_000

func newLeaseTable(o *Options, opened time.Time) *leaseTable {
	n := 8 // few, because every sweep walks a segment; enough for concurrent calls
	for n < 4*runtime.GOMAXPROCS(0) {
		n *= 2
	}
	if o.LeaseMemorySize < 4096 {
		n = 1 // a small memory must forget exactly the oldest lease, and segments forget independently
	}
	t := &leaseTable{
		segments: make([]leaseSegment, n), seed: fingerprint(rand.Uint64()),
		memory: o.LeaseMemory.Milliseconds(), memorySize: o.LeaseMemorySize,
	}
	t.callers.open(o)
	for i := range t.segments {
		t.segments[i].index = newLeaseIndex(t.seed)
		t.segments[i].maxEnded = max(1, o.LeaseMemorySize/n)
	}
	t.latestNow.Store(opened.UnixMilli())
	t.horizon.Store(opened.UnixMilli())
	return t
}

// clock returns the table's time: the latest time of any call, so that an expired lease does not
// come back to life. A time more than clockReset behind it means that the clock had been ahead and
// was corrected; the table's time then goes back too.
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

// checkID refuses an ID for a new reservation if its lease may have been forgotten, because then it
// could be charged twice. It also refuses an ID that is more than a minute ahead, because its lease
// would have to be remembered until the horizon has passed that time.
func (t *leaseTable) checkID(id weir.LeaseID, now int64, by *callerQuota) error {
	ms, early := id.UnixMilli(), by.horizon.Load()
	switch {
	case ms < max(now-t.memory, t.horizon.Load()):
		return invalid("lease_id", id, "is too old: whether it was used before is no longer known")
	case ms < early:
		return invalid("lease_id", id, fmt.Sprintf("may have been used before: IDs of this caller from before "+
			"%s were forgotten early, because only %d ended leases are remembered: use an ID made after that time",
			time.UnixMilli(early).UTC().Format(time.RFC3339Nano), t.memorySize))
	case ms > now+clockReset:
		return invalid("lease_id", id, "is more than a minute ahead")
	}
	return nil
}

func (t *leaseTable) segment(id weir.LeaseID) *leaseSegment {
	return &t.segments[uint64(t.seed.addLeaseID(id))>>32&uint64(len(t.segments)-1)]
}

// acquire returns the entry of a lease for the caller's exclusive use until release. While another
// call uses the entry, acquire waits. If the lease is unknown or forgotten, acquire makes a pending
// entry if create is set, and returns nil otherwise.
func (t *leaseTable) acquire(ctx context.Context, id weir.LeaseID, now int64, create bool) (*leaseEntry, error) {
	for {
		e, busy := t.tryAcquire(id, now, create)
		if busy == nil {
			return e, nil
		}
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, &weir.Error{Code: weir.Unavailable,
				Reason: "another call on the lease is in progress",
				Err:    ctx.Err()}
		}
	}
}

// tryAcquire is like acquire, but does not wait: if another call uses the entry, it returns a
// channel that is closed when that call releases it.
func (t *leaseTable) tryAcquire(id weir.LeaseID, now int64, create bool) (e *leaseEntry, busy <-chan struct{}) {
	s := t.segment(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweep(t, now)
	place, known := s.find(id)
	if known && place&leaseHasEnded == 0 {
		e = s.entries[place]
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
		place, known = s.find(id) // moving it to the ended leases may have forgotten it at once
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

// entry returns a pending entry that is in no segment.
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

// insert adds an entry whose ID the caller has just made, so that it cannot be in the table.
func (t *leaseTable) insert(e *leaseEntry, now int64) {
	s := t.segment(e.id)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweep(t, now)
	s.add(e)
	t.countLive(e)
	s.file(e)
}

// countLive makes the count of live leases match the entry's state.
func (t *leaseTable) countLive(e *leaseEntry) {
	switch live := e.state == leaseLive; {
	case live && !e.counted:
		t.callers.count(e.caller)
	case !live && e.counted:
		t.callers.release(e.caller)
	}
	e.counted = e.state == leaseLive
}

// recycle keeps an entry that is in no segment for a later lease, with the memory of its holdings.
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

// release ends the caller's exclusive use of an entry and files the entry by its state: a live
// lease keeps its place, an ended one becomes a small record, and a pending one is removed.
func (t *leaseTable) release(e *leaseEntry) {
	if e.detached {
		return
	}
	s := t.segment(e.id)
	s.mu.Lock()
	e.busy = false
	wait := e.wait
	e.wait = nil
	gone := true
	t.countLive(e)
	switch e.state {
	case leasePending:
		s.remove(e)
		s.index.forget(e.id, s.valid)
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

// find returns the place of a lease, and whether the segment has it.
func (s *leaseSegment) find(id weir.LeaseID) (leaseRef, bool) {
	place, ok := s.index.get(id)
	return place, ok && s.valid(id, place)
}

// valid reports whether a place that the index returned is still that of the lease.
func (s *leaseSegment) valid(id weir.LeaseID, place leaseRef) bool {
	if place&leaseHasEnded != 0 {
		return s.ended.has(id, place)
	}
	return int(place) < len(s.entries) && s.entries[place] != nil && s.entries[place].id == id
}

// add gives an entry a place and puts it into the index.
func (s *leaseSegment) add(e *leaseEntry) {
	if n := len(s.free); n > 0 {
		e.ref = s.free[n-1]
		s.free = s.free[:n-1]
		s.entries[e.ref] = e
	} else {
		e.ref = leaseRef(len(s.entries))
		s.entries = append(s.entries, e)
	}
	s.index.add(e.id, e.ref, s.valid)
}

// remove takes an entry out of its place and its list. The caller updates the index.
func (s *leaseSegment) remove(e *leaseEntry) {
	if e.list != nil {
		e.list.remove(e)
	}
	s.entries[e.ref] = nil
	s.free = append(s.free, e.ref)
	s.compact()
}

// file puts a live lease at the end of the first list that stays sorted by it.
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

// expire ends a live lease that is due and that no call uses. The entry is not recycled: a million
// leases may expire at once, and the pool would keep the memory of all of them.
func (s *leaseSegment) expire(t *leaseTable, e *leaseEntry) {
	e.end(leaseExpired, e.expires)
	t.countLive(e)
	s.moveToEnded(t, e)
}

// moveToEnded replaces an entry with a record in the queue of ended leases. If there are then too
// many, it forgets the oldest lease of the caller that has the most, so that one caller cannot make
// the segment forget the leases of others.
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

// forgetOldest removes the first of the queue of ended leases. From then on its ID, and any older
// ID of the same caller, is refused.
func (s *leaseSegment) forgetOldest() {
	if e := s.ended.first(); !e.forgotten() {
		s.forget(e)
	}
	s.ended.pop()
}

// forget drops an ended lease and raises its caller's horizon above the ID.
func (s *leaseSegment) forget(e *endedLease) {
	id := e.id
	s.ended.drop(e).raiseHorizon(id.UnixMilli() + 1)
	s.index.forget(id, s.valid)
}

// compact shrinks the entries if three quarters of them are free.
func (s *leaseSegment) compact() {
	const small = 256
	if len(s.entries) <= small || len(s.free) < len(s.entries)/4*3 {
		return
	}
	var entries []*leaseEntry
	for _, e := range s.entries {
		if e != nil {
			e.ref = leaseRef(len(entries))
			entries = append(entries, e)
			s.index.move(e.id, e.ref)
		}
	}
	s.entries, s.free = entries, nil
}

// sweep expires live leases that are due and forgets ended ones whose time is over, within a
// budget, and computes when it next has something to do.
func (s *leaseSegment) sweep(t *leaseTable, now int64) {
	if now < s.nextDue {
		return
	}
	const fewLists = 8
	if len(s.live) > fewLists {
		s.live = slices.DeleteFunc(s.live, func(l *leaseList) bool { return l.head == nil })
	}
	quiet := int64(math.MaxInt64)
	budget := minSweep + s.index.len/sweepShare
	for ; budget > 0; budget-- {
		e, busy := s.firstDue()
		if busy {
			quiet = now // it may be due when it is released, so look again then
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

// firstDue returns the live lease that is due first, among the heads of lists that no call uses,
// and reports whether it skipped a head that a call uses. Leases are expired in this order because
// they enter the queue of ended leases in the order in which they expire, and forgetting takes from
// the front.
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
