package weir

// endedLease is what is remembered of a lease that has ended, so that its last call can be repeated.
// There may be a million: it has no pointers.
type endedLease struct {
	id          LeaseID // zero once it was forgotten
	at          int64   // when it ended, in milliseconds
	fingerprint uint64  // of what was named then
	as          leaseCondition
	degraded    bool
}

// gone is true once it was forgotten.
func (e *endedLease) gone() bool { return e.id.IsZero() }

// forgetAt is the last instant at which an ended lease is remembered. An ID may be ahead of the
// clock that made it a lease; until its own time is past the horizon it could be used again.
func (e *endedLease) forgetAt(memory int64) int64 { return max(e.at, e.id.ms()) + memory }

// entry hands out what is remembered.
func (e *endedLease) entry() *leaseEntry {
	return &leaseEntry{
		id: e.id, state: e.as, degraded: e.degraded, endedAt: e.at, endedAs: e.fingerprint, alone: true,
	}
}

// endedLeases is a queue in the order in which the leases ended. The place of one stays the same for
// as long as it is in the queue.
type endedLeases struct {
	ring []endedLease // a power of two
	from uint32       // the number of the first
	next uint32       // the number after the last
}

const leastEnded = 16

func (q *endedLeases) len() int { return int(q.next - q.from) }

func (q *endedLeases) push(e endedLease) leasePlace {
	if q.len() == len(q.ring) {
		q.resize(max(leastEnded, 2*len(q.ring)))
	}
	q.ring[int(q.next)&(len(q.ring)-1)] = e
	place := leasePlace(q.next)&^leaseHasEnded | leaseHasEnded
	q.next++
	return place
}

// at returns the one at a place.
func (q *endedLeases) at(p leasePlace) *endedLease {
	return &q.ring[int(p&^leaseHasEnded)&(len(q.ring)-1)]
}

// has reports whether a lease is at a place.
func (q *endedLeases) has(id LeaseID, p leasePlace) bool {
	if len(q.ring) == 0 {
		return false
	}
	behind := (uint32(p) - q.from) &^ uint32(leaseHasEnded) // how far from the first
	return int(behind) < q.len() && q.at(p).id == id
}

func (q *endedLeases) first() *endedLease { return &q.ring[int(q.from)&(len(q.ring)-1)] }

func (q *endedLeases) pop() {
	q.from++
	if len(q.ring) > leastEnded && q.len() < len(q.ring)/4 {
		q.resize(len(q.ring) / 2)
	}
}

// resize moves the queue to a ring of another size, which has room for it.
func (q *endedLeases) resize(n int) {
	ring := make([]endedLease, n)
	for i := q.from; i != q.next; i++ {
		ring[int(i)&(n-1)] = q.ring[int(i)&(len(q.ring)-1)]
	}
	q.ring = ring
}
