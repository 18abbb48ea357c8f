package weir

// endedLease is what is remembered of a lease that has ended, so that its last call can be repeated.
// There may be a million: it has no pointers.
type endedLease struct {
	id          LeaseID // zero once it was forgotten
	at          int64   // when it ended, in milliseconds
	fingerprint uint64  // of what was named then
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

// endedLeases is a queue in the order in which the leases ended. The place of one stays the same for
// as long as it is in the queue, and the queue has memory for little more than it holds.
type endedLeases struct {
	blocks []*endedBlock
	spare  *endedBlock
	from   uint32 // the number of the first
	next   uint32 // the number after the last
}

const blockEnded = 256

type endedBlock [blockEnded]endedLease

func (q *endedLeases) len() int { return int(q.next - q.from) }

func (q *endedLeases) push(e endedLease) leasePlace {
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

func (q *endedLeases) pop() {
	if q.from++; q.from%blockEnded == 0 {
		q.spare, q.blocks[0] = q.blocks[0], nil
		q.blocks = q.blocks[1:]
	}
}
