package weir

// endedLease is what is remembered of a lease that has ended, so that its last call can be
// repeated. There may be a million: it has no pointers.
type endedLease struct {
	id          LeaseID    // zero once it was forgotten
	at          int64      // when it ended, in milliseconds
	fingerprint uint64     // of what was named then
	caller      uint32     // the number of who reserved it
	next        leasePlace // that of the caller's next one, if there is one
	as          leaseCondition
	degraded    bool
	inDoubt     bool
}

// gone is true once it was forgotten.
func (e *endedLease) gone() bool { return e.id.IsZero() }

// forgetAt is the last instant at which an ended lease is remembered. An ID may be ahead of the
// clock that made it a lease; until its own time is past the horizon it could be used again.
func (e *endedLease) forgetAt(memory int64) int64 { return max(e.at, e.id.ms()) + memory }

// entry hands out what is remembered.
func (e *endedLease) entry() *leaseEntry {
	return &leaseEntry{
		id: e.id, state: e.as, degraded: e.degraded, inDoubt: e.inDoubt,
		endedAt: e.at, endedAs: e.fingerprint, alone: true,
	}
}

// endedLeases is a queue in the order in which the leases ended. The place of one stays the same
// for as long as it is in the queue, and the queue has memory for little more than it holds.
type endedLeases struct {
	blocks []*endedBlock
	spare  *endedBlock
	from   uint32 // the number of the first
	next   uint32 // the number after the last
	kept   int    // those that are not gone

	own     endedOf             // those of the caller with number 0
	of      map[uint32]*endedOf // those of others; nil at first
	largest *endedOf            // has had the most
	peak    int                 // how many it had then
}

// endedOf are the ended leases of one caller in a queue, gone ones included until they are passed.
type endedOf struct {
	caller      *leaseCaller
	kept        int // those that are not gone
	len         int
	first, last leasePlace
}

const blockEnded = 256

type endedBlock [blockEnded]endedLease

func (q *endedLeases) len() int { return int(q.next - q.from) }

func (q *endedLeases) push(by *leaseCaller, e endedLease) leasePlace {
	e.caller = by.number
	place := q.put(e)
	of := q.account(by)
	q.link(of, place)
	of.kept++
	q.kept++
	by.ended.Add(1)
	if q.largest == nil || of.kept >= q.largest.kept {
		q.largest, q.peak = of, of.kept
	}
	return place
}

// account returns the part of a caller.
func (q *endedLeases) account(by *leaseCaller) *endedOf {
	if by.number == 0 {
		q.own.caller = by
		return &q.own
	}
	of := q.of[by.number]
	if of == nil {
		if q.of == nil {
			q.of = make(map[uint32]*endedOf)
		}
		of = &endedOf{caller: by}
		q.of[by.number] = of
	}
	return of
}

// part returns the part that an entry belongs to.
func (q *endedLeases) part(e *endedLease) *endedOf {
	if e.caller == 0 {
		return &q.own
	}
	return q.of[e.caller]
}

// link puts the entry at a place, which is the newest, behind the others of its caller.
func (q *endedLeases) link(of *endedOf, place leasePlace) {
	if of.len == 0 {
		of.first = place
	} else {
		q.at(of.last).next = place
	}
	of.last = place
	of.len++
}

// pass takes the first entry of a caller out of its part.
func (q *endedLeases) pass(of *endedOf) {
	of.first = q.at(of.first).next
	if of.len--; of.len == 0 && of != &q.own {
		delete(q.of, of.caller.number)
		if q.largest == of {
			q.largest = nil
		}
	}
}

// drop makes an entry one that is gone, and returns whose it was.
func (q *endedLeases) drop(e *endedLease) *leaseCaller {
	of := q.part(e)
	e.id = LeaseID{}
	of.kept--
	q.kept--
	of.caller.ended.Add(-1)
	return of.caller
}

// most returns the oldest entry of a caller that has the most, or not less than half of that: all
// callers are only compared when the last known one has lost half. There must be one.
func (q *endedLeases) most() *endedLease {
	if q.largest == nil || q.largest.kept <= q.peak/2 {
		q.largest = &q.own
		for _, of := range q.of {
			if of.kept > q.largest.kept {
				q.largest = of
			}
		}
		q.peak = q.largest.kept
	}
	of := q.largest
	for q.at(of.first).gone() {
		q.pass(of)
	}
	return q.at(of.first)
}

// compact makes the queue anew without those that are gone, and tells of the new places.
func (q *endedLeases) compact(moved func(LeaseID, leasePlace)) {
	old := *q
	largest := uint32(0)
	if old.largest != nil && old.largest != &q.own {
		largest = old.largest.caller.number
	}
	*q = endedLeases{from: old.next, next: old.next}
	q.own = endedOf{caller: old.own.caller}
	for n := old.from; n != old.next; n++ {
		e := old.at(leasePlace(n)&^leaseHasEnded | leaseHasEnded)
		if e.gone() {
			continue
		}
		of := &q.own
		if e.caller != 0 {
			of = q.account(old.of[e.caller].caller)
		}
		place := q.put(*e)
		q.link(of, place)
		of.kept++
		q.kept++
		moved(e.id, place)
	}
	if q.largest = &q.own; largest != 0 {
		q.largest = q.of[largest] // nil makes most compare
	}
	q.peak = old.peak
}

// put appends an entry and returns its place.
func (q *endedLeases) put(e endedLease) leasePlace {
	at := q.from%blockEnded + (q.next - q.from)
	if int(at/blockEnded) == len(q.blocks) {
		if q.spare == nil {
			q.spare = &endedBlock{}
		}
		q.blocks, q.spare = append(q.blocks, q.spare), nil
	}
	q.blocks[at/blockEnded][at%blockEnded] = e
	place := leasePlace(q.next)&^leaseHasEnded | leaseHasEnded
	q.next++
	return place
}

// behind is how far a place is from that of the first.
func (q *endedLeases) behind(p leasePlace) uint32 {
	return (uint32(p) - q.from) &^ uint32(leaseHasEnded)
}

// at returns the one at a place, which is in the queue.
func (q *endedLeases) at(p leasePlace) *endedLease {
	at := q.from%blockEnded + q.behind(p)
	return &q.blocks[at/blockEnded][at%blockEnded]
}

// has reports whether a lease is at a place.
func (q *endedLeases) has(id LeaseID, p leasePlace) bool {
	return q.behind(p) < q.next-q.from && q.at(p).id == id
}

func (q *endedLeases) first() *endedLease { return &q.blocks[0][q.from%blockEnded] }

// pop takes out the first, which is gone.
func (q *endedLeases) pop() {
	first := q.first()
	place := leasePlace(q.from)&^leaseHasEnded | leaseHasEnded
	if of := q.part(first); of != nil && of.len > 0 && of.first == place {
		q.pass(of)
	}
	if q.from++; q.from%blockEnded == 0 {
		q.spare, q.blocks[0] = q.blocks[0], nil
		q.blocks = q.blocks[1:]
	}
}
