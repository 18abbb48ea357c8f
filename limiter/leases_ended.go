package limiter

import "github.com/weir-limiter/weir"

// endedLease is the record of an ended lease, so that its last call can be repeated. It has no
// pointers, because there may be a million of them, which the garbage collector would scan.
type endedLease struct {
	id          weir.LeaseID // zero if it is forgotten
	at          int64        // when it ended, in milliseconds
	fingerprint uint64       // of the actuals of complete
	caller      uint32       // number of the caller's quota
	next        leaseRef     // the caller's next ended lease, if there is one
	phase       leasePhase
	degraded    bool
	inDoubt     bool
}

// forgotten reports whether the lease is forgotten. Its place stays in the queue until it is first.
func (e *endedLease) forgotten() bool { return e.id.IsZero() }

// forgetAt returns the last instant at which the lease is remembered, in milliseconds. The time in
// an ID may be ahead of the clock. The lease is then remembered until the horizon has passed that
// time, because checkID would accept the ID before.
func (e *endedLease) forgetAt(memory int64) int64 { return max(e.at, e.id.UnixMilli()) + memory }

// entry returns an entry with what is remembered, for the caller's exclusive use.
func (e *endedLease) entry() *leaseEntry {
	return &leaseEntry{
		id: e.id, state: e.phase, degraded: e.degraded, inDoubt: e.inDoubt,
		endedAt: e.at, endedAs: e.fingerprint, detached: true,
	}
}

// endedLeases is a queue of the ended leases of a segment, in the order in which they ended. It
// also links the leases of each caller, so that the caller with the most can lose its oldest.
//
// Leases have consecutive numbers, and the place of a lease is its number modulo 2^31, with the bit
// leaseHasEnded. So a place stays the same while the lease is in the queue. The queue is a list of
// fixed blocks: growing copies nothing, and an empty block is dropped or used again.
type endedLeases struct {
	blocks []*endedBlock
	spare  *endedBlock
	from   uint32 // number of the first lease
	next   uint32 // number after the last lease
	count  int    // of leases that are not forgotten

	own      callerEnded             // the part of the caller with number 0
	byCaller map[uint32]*callerEnded // the parts of the others; nil until there is one
	largest  *callerEnded            // had the most leases when they were last compared
	peak     int                     // how many it had then, or more recently
}

// callerEnded is the part of a queue that belongs to one caller: a linked list, in which forgotten
// leases stay until they are skipped.
type callerEnded struct {
	caller      *callerQuota
	kept        int // leases that are not forgotten
	len         int // all leases in the list
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

// partFor returns the part of a caller, which it makes if needed.
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

// partOf returns the part that a lease belongs to.
func (q *endedLeases) partOf(e *endedLease) *callerEnded {
	if e.caller == 0 {
		return &q.own
	}
	return q.byCaller[e.caller]
}

// link appends a lease to the list of its caller.
func (q *endedLeases) link(of *callerEnded, place leaseRef) {
	if of.len == 0 {
		of.first = place
	} else {
		q.at(of.last).next = place
	}
	of.last = place
	of.len++
}

// skipFirst removes the first lease from the list of its caller.
func (q *endedLeases) skipFirst(of *callerEnded) {
	of.first = q.at(of.first).next
	if of.len--; of.len == 0 && of != &q.own {
		delete(q.byCaller, of.caller.number)
		if q.largest == of {
			q.largest = nil
		}
	}
}

// drop makes a lease a forgotten one, and returns the quota of its caller.
func (q *endedLeases) drop(e *endedLease) *callerQuota {
	of := q.partOf(e)
	e.id = weir.LeaseID{}
	of.kept--
	q.count--
	of.caller.ended.Add(-1)
	return of.caller
}

// most returns the oldest lease of the caller that has the most, or at least half of that. All
// callers are compared only when the one found last has lost half of its leases, so that the
// comparison costs little for each lease forgotten. The queue must have a lease that is not
// forgotten.
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

// compact rebuilds the queue without forgotten leases. It calls moved with the new place of each
// lease.
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
		q.largest = q.byCaller[largest] // if nil, most compares all callers
	}
	q.peak = old.peak
}

// put appends a lease and returns its place.
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

// offset returns how far a place is behind the first. Numbers and places wrap around, and the
// difference modulo 2^31 is right as long as the queue is shorter than that.
func (q *endedLeases) offset(p leaseRef) uint32 {
	return (uint32(p) - q.from) &^ uint32(leaseHasEnded)
}

// at returns the lease at a place in the queue.
func (q *endedLeases) at(p leaseRef) *endedLease {
	at := q.from%blockEnded + q.offset(p)
	return &q.blocks[at/blockEnded][at%blockEnded]
}

// has reports whether a lease is at a place.
func (q *endedLeases) has(id weir.LeaseID, p leaseRef) bool {
	return q.offset(p) < q.next-q.from && q.at(p).id == id
}

func (q *endedLeases) first() *endedLease { return &q.blocks[0][q.from%blockEnded] }

// pop removes the first lease, which is forgotten.
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
