package limiter

import "github.com/weir-limiter/weir"

// endedLease is what is remembered of a lease that has ended, so that its last call can be
// repeated. There may be a million: it has no pointers.
type endedLease struct {
	id          weir.LeaseID // zero once it was forgotten
	at          int64        // when it ended, in milliseconds
	fingerprint uint64       // of what was named then
	caller      uint32       // the number of who reserved it
	next        leaseRef     // that of the caller's next one, if there is one
	phase       leasePhase
	degraded    bool
	inDoubt     bool
}

// forgotten is true once it was forgotten.
func (e *endedLease) forgotten() bool { return e.id.IsZero() }

// forgetAt is the last instant at which an ended lease is remembered. An ID may be ahead of the
// clock that made it a lease; until its own time is past the horizon it could be used again.
func (e *endedLease) forgetAt(memory int64) int64 { return max(e.at, e.id.UnixMilli()) + memory }

// entry hands out what is remembered.
func (e *endedLease) entry() *leaseEntry {
	return &leaseEntry{
		id: e.id, state: e.phase, degraded: e.degraded, inDoubt: e.inDoubt,
		endedAt: e.at, endedAs: e.fingerprint, detached: true,
	}
}

// endedLeases is a queue in the order in which the leases ended. The place of one stays the same
// for as long as it is in the queue, and the queue has memory for little more than it holds.
type endedLeases struct {
	blocks []*endedBlock
	spare  *endedBlock
	from   uint32 // the number of the first
	next   uint32 // the number after the last
	count  int    // those that are not gone

	own      callerEnded             // those of the caller with number 0
	byCaller map[uint32]*callerEnded // those of others; nil at first
	largest  *callerEnded            // has had the most
	peak     int                     // how many it had then
}

// callerEnded are the ended leases of one caller in a queue, gone ones included until they are
// passed.
type callerEnded struct {
	caller      *callerQuota
	kept        int // those that are not gone
	len         int
	first, last leaseRef
}

const blockEnded = 256

type endedBlock [blockEnded]endedLease

func (q *endedLeases) len() int { return int(q.next - q.from) }

func (q *endedLeases) push(by *callerQuota, e endedLease) leaseRef {
	e.caller = by.number
	place := q.put(e)
	of := q.partFor(by)
	q.link(of, place)
	of.kept++
	q.count++
	by.ended.Add(1)
	if q.largest == nil || of.kept >= q.largest.kept {
		q.largest, q.peak = of, of.kept
	}
	return place
}

// partFor returns the part of a caller.
func (q *endedLeases) partFor(by *callerQuota) *callerEnded {
	if by.number == 0 {
		q.own.caller = by
		return &q.own
	}
	of := q.byCaller[by.number]
	if of == nil {
		if q.byCaller == nil {
			q.byCaller = make(map[uint32]*callerEnded)
		}
		of = &callerEnded{caller: by}
		q.byCaller[by.number] = of
	}
	return of
}

// partOf returns the part that an entry belongs to.
func (q *endedLeases) partOf(e *endedLease) *callerEnded {
	if e.caller == 0 {
		return &q.own
	}
	return q.byCaller[e.caller]
}

// link puts the entry at a place, which is the newest, behind the others of its caller.
func (q *endedLeases) link(of *callerEnded, place leaseRef) {
	if of.len == 0 {
		of.first = place
	} else {
		q.at(of.last).next = place
	}
	of.last = place
	of.len++
}

// skipFirst takes the first entry of a caller out of its part.
func (q *endedLeases) skipFirst(of *callerEnded) {
	of.first = q.at(of.first).next
	if of.len--; of.len == 0 && of != &q.own {
		delete(q.byCaller, of.caller.number)
		if q.largest == of {
			q.largest = nil
		}
	}
}

// drop makes an entry one that is gone, and returns whose it was.
func (q *endedLeases) drop(e *endedLease) *callerQuota {
	of := q.partOf(e)
	e.id = weir.LeaseID{}
	of.kept--
	q.count--
	of.caller.ended.Add(-1)
	return of.caller
}

// most returns the oldest entry of a caller that has the most, or not less than half of that: all
// callers are only compared when the last known one has lost half. There must be one.
func (q *endedLeases) most() *endedLease {
	if q.largest == nil || q.largest.kept <= q.peak/2 {
		q.largest = &q.own
		for _, of := range q.byCaller {
			if of.kept > q.largest.kept {
				q.largest = of
			}
		}
		q.peak = q.largest.kept
	}
	of := q.largest
	for q.at(of.first).forgotten() {
		q.skipFirst(of)
	}
	return q.at(of.first)
}

// compact makes the queue anew without those that are gone, and tells of the new places.
func (q *endedLeases) compact(moved func(weir.LeaseID, leaseRef)) {
	old := *q
	largest := uint32(0)
	if old.largest != nil && old.largest != &q.own {
		largest = old.largest.caller.number
	}
	*q = endedLeases{from: old.next, next: old.next}
	q.own = callerEnded{caller: old.own.caller}
	for n := old.from; n != old.next; n++ {
		e := old.at(leaseRef(n)&^leaseHasEnded | leaseHasEnded)
		if e.forgotten() {
			continue
		}
		of := &q.own
		if e.caller != 0 {
			of = q.partFor(old.byCaller[e.caller].caller)
		}
		place := q.put(*e)
		q.link(of, place)
		of.kept++
		q.count++
		moved(e.id, place)
	}
	if q.largest = &q.own; largest != 0 {
		q.largest = q.byCaller[largest] // nil makes most compare
	}
	q.peak = old.peak
}

// put appends an entry and returns its place.
func (q *endedLeases) put(e endedLease) leaseRef {
	at := q.from%blockEnded + (q.next - q.from)
	if int(at/blockEnded) == len(q.blocks) {
		if q.spare == nil {
			q.spare = &endedBlock{}
		}
		q.blocks, q.spare = append(q.blocks, q.spare), nil
	}
	q.blocks[at/blockEnded][at%blockEnded] = e
	place := leaseRef(q.next)&^leaseHasEnded | leaseHasEnded
	q.next++
	return place
}

// offset is how far a place is from that of the first.
func (q *endedLeases) offset(p leaseRef) uint32 {
	return (uint32(p) - q.from) &^ uint32(leaseHasEnded)
}

// at returns the one at a place, which is in the queue.
func (q *endedLeases) at(p leaseRef) *endedLease {
	at := q.from%blockEnded + q.offset(p)
	return &q.blocks[at/blockEnded][at%blockEnded]
}

// has reports whether a lease is at a place.
func (q *endedLeases) has(id weir.LeaseID, p leaseRef) bool {
	return q.offset(p) < q.next-q.from && q.at(p).id == id
}

func (q *endedLeases) first() *endedLease { return &q.blocks[0][q.from%blockEnded] }

// pop takes out the first, which is gone.
func (q *endedLeases) pop() {
	first := q.first()
	place := leaseRef(q.from)&^leaseHasEnded | leaseHasEnded
	if of := q.partOf(first); of != nil && of.len > 0 && of.first == place {
		q.skipFirst(of)
	}
	if q.from++; q.from%blockEnded == 0 {
		q.spare, q.blocks[0] = q.blocks[0], nil
		q.blocks = q.blocks[1:]
	}
}
