package memory

import (
	"cmp"
	"container/heap"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
)

// leaseRecord is a lease as a snapshot has it, so that another process can continue it. Its
// holdings are copies, because those of an outcome belong to the limiter. Its limits are shared
// with the answer to the caller, and are not changed.
type leaseRecord struct {
	driver.LeaseRecord
	// memory is how long the lease is remembered after its end, in milliseconds.
	memory int64
	// due is the instant at which the record changes by itself, in milliseconds: a live lease
	// expires at it, an ended one is forgotten after it.
	due int64
	// order and sequence sort the records of a heap: live leases by when they end, ended ones by
	// when they ended, in milliseconds. sequence decides within a millisecond.
	order, sequence int64
	// heapIndex is the record's index in its heap.
	heapIndex int
	// index is the record's index in dense. epoch is the last snapshot that need not preserve it.
	index int32
	epoch uint32
}

// cloneHoldings returns a copy of holdings with copies of their parts and pieces.
func cloneHoldings(holdings []driver.Holding) []driver.Holding {
	out := slices.Clone(holdings)
	for i := range out {
		h := &out[i]
		h.Parts, h.Pieces = slices.Clone(h.Parts), slices.Clone(h.Pieces)
	}
	return out
}

// schedule computes when the record is due and its order. The caller then fixes the heap.
func (t *leaseRecords) schedule(r *leaseRecord) {
	t.sequence++
	r.sequence = t.sequence
	r.due = r.Expires.UnixMilli()
	r.order = r.due
	if r.State != driver.LeaseLive {
		r.order = r.EndedAt.UnixMilli()
		r.due = max(r.order, r.ID.Time().UnixMilli()) + r.memory
	}
}

// leaseRecords are the leases of a SnapshotStore. mu guards all of it, and must not be locked while
// a stripe is locked.
type leaseRecords struct {
	mu   sync.Mutex
	byID map[weir.LeaseID]*leaseRecord
	// live and ended have every record once. The first in order is on top.
	live, ended recordHeap
	sequence    int64
	// dense has all records, so that a snapshot can walk them. freezer says which of them a
	// snapshot has not encoded yet.
	dense   []*leaseRecord
	freezer copyOnWrite[leaseRecord]
	// most bounds the number of ended leases. Every call of the limiter has the bound; above it the
	// oldest is forgotten early.
	most int
	// memory is how long an ended lease is remembered, in milliseconds, as of the last call that
	// said so.
	memory int64
	// peak is the largest number of records since the map was made.
	peak int
	// horizon is the newest time in the ID of an ended lease that was dropped, in milliseconds; 0
	// if there is none.
	horizon int64
}

// memoryByDefault is how long a voided ID is remembered if no call has set the lease memory, in
// milliseconds. It is the default of the limiter's option.
const memoryByDefault = 600_000

func newRecords() leaseRecords {
	return leaseRecords{byID: make(map[weir.LeaseID]*leaseRecord), most: math.MaxInt, memory: memoryByDefault}
}

// find returns a copy of what is known of a lease at now, or nil.
func (t *leaseRecords) find(now int64, id weir.LeaseID) *driver.LeaseRecord {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sweep(now) // leases that ended before this one count for the bound first
	r := t.current(now, id)
	if r == nil {
		return nil
	}
	known := r.LeaseRecord
	known.Holdings = cloneHoldings(r.Holdings)
	return &known
}

// current returns the record of a lease at now, or nil. A live lease that is due becomes an expired
// one.
func (t *leaseRecords) current(now int64, id weir.LeaseID) *leaseRecord {
	r := t.byID[id]
	if r != nil && r.State == driver.LeaseLive && r.due <= now {
		t.expire(r)
		r = t.byID[id] // nil if the bound of ended leases made expire forget it
	}
	if r != nil && r.State != driver.LeaseLive && r.due < now {
		t.drop(r)
		return nil
	}
	return r
}

// add records a lease that was reserved, and forgets a few others that are due.
func (t *leaseRecords) add(now int64, r *leaseRecord, most int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.limit(most)
	t.memory = r.memory
	if old := t.byID[r.ID]; old != nil {
		t.drop(old)
	}
	t.insert(r)
	t.sweep(now)
}

func (t *leaseRecords) insert(r *leaseRecord) {
	t.byID[r.ID] = r
	r.index, r.epoch = int32(len(t.dense)), t.freezer.epoch
	t.dense = append(t.dense, r)
	t.peak = max(t.peak, len(t.byID))
	t.schedule(r)
	heap.Push(t.heapOf(r), r)
}

func (t *leaseRecords) heapOf(r *leaseRecord) *recordHeap {
	if r.State == driver.LeaseLive {
		return &t.live
	}
	return &t.ended
}

// update records the outcome of an update. A lease that was forgotten stays forgotten.
func (t *leaseRecords) update(now int64, u *driver.Update, out *driver.Outcome) {
	t.mu.Lock()
	defer t.mu.Unlock()
	defer t.sweep(now)
	t.limit(u.MemorySize)
	r := t.byID[u.ID]
	if r == nil || r.State != driver.LeaseLive {
		return
	}
	t.preserve(r)
	switch u.Verb {
	case weir.VerbAdjust:
		r.Seq, r.SeqAt, r.Holdings = u.Seq, out.At, cloneHoldings(u.Holdings(out))
	case weir.VerbExtend:
		r.Expires, r.Holdings = u.Expires(out.At), cloneHoldings(u.Holdings(out))
		t.schedule(r)
		heap.Fix(&t.live, r.heapIndex)
	case weir.VerbComplete:
		t.memory = u.Memory.Milliseconds()
		r.memory, r.EndFingerprint = t.memory, u.Fingerprint
		t.markEnded(r, driver.LeaseCompleted, out.At)
	case weir.VerbCancel:
		t.memory = u.Memory.Milliseconds()
		r.memory, r.EndFingerprint = t.memory, u.Fingerprint
		t.markEnded(r, driver.LeaseCancelled, out.At)
	}
}

// void records an ID that was cancelled before it was reserved. If there is a lease with the ID, it
// returns true and records nothing.
func (t *leaseRecords) void(now int64, id weir.LeaseID) (exists bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	defer t.sweep(now)
	if r := t.current(now, id); r != nil {
		return r.State != driver.LeaseVoided
	}
	t.insert(&leaseRecord{LeaseRecord: driver.LeaseRecord{
		ID: id, State: driver.LeaseVoided, EndedAt: time.UnixMilli(now),
	}, memory: t.memory})
	t.limit(t.most)
	return false
}

func (t *leaseRecords) expire(r *leaseRecord) { t.markEnded(r, driver.LeaseExpired, r.Expires) }

// markEnded makes a live lease an ended one, and forgets the oldest ended ones if there are too
// many.
func (t *leaseRecords) markEnded(r *leaseRecord, state driver.LeaseState, at time.Time) {
	t.preserve(r)
	heap.Remove(&t.live, r.heapIndex)
	r.State, r.EndedAt, r.Keys, r.Holdings, r.Limits = state, at, nil, nil, nil
	t.schedule(r)
	heap.Push(&t.ended, r)
	t.limit(t.most)
}

// limit sets the bound of ended leases unless most is 0, and forgets the oldest above the bound.
func (t *leaseRecords) limit(most int) {
	if most > 0 {
		t.most = most
	}
	for len(t.ended) > t.most {
		t.drop(t.ended[0])
	}
}

// drop removes a record. The horizon rises to the ID of an ended lease, so that the next process
// refuses IDs up to it: it could not tell them from IDs that were used. Mostly they are too old
// anyway, but not if the clock was wrong or the lease memory has become longer.
func (t *leaseRecords) drop(r *leaseRecord) {
	if r.State != driver.LeaseLive {
		t.horizon = max(t.horizon, r.ID.Time().UnixMilli())
	}
	heap.Remove(t.heapOf(r), r.heapIndex)
	delete(t.byID, r.ID)
	last := t.dense[len(t.dense)-1]
	t.preserve(r)
	t.preserve(last) // a snapshot may have passed the index that it moves to
	last.index = r.index
	t.dense[r.index], t.dense[len(t.dense)-1] = last, nil
	t.dense = t.dense[:len(t.dense)-1]
}

// sweep expires and forgets a few leases that are due: more than one call can add, so that the
// records shrink.
func (t *leaseRecords) sweep(now int64) {
	for range 8 {
		switch {
		case len(t.live) > 0 && t.live[0].due <= now:
			t.expire(t.live[0])
		case len(t.ended) > 0 && t.ended[0].due < now:
			t.drop(t.ended[0])
		default:
			t.shrink()
			return
		}
	}
}

// shrink reallocates everything if it is mostly empty, because a map frees no memory by itself.
func (t *leaseRecords) shrink() {
	const small = 1024
	if t.peak <= small || len(t.byID) > t.peak/4 {
		return
	}
	byID := make(map[weir.LeaseID]*leaseRecord, len(t.byID))
	maps.Copy(byID, t.byID)
	t.byID, t.peak = byID, len(byID)
	t.live = append(make(recordHeap, 0, len(t.live)), t.live...)
	t.ended = append(make(recordHeap, 0, len(t.ended)), t.ended...)
	t.dense = append(make([]*leaseRecord, 0, len(t.dense)), t.dense...)
}

// recordHeap implements [heap.Interface]. Each record knows its index in the heap.
type recordHeap []*leaseRecord

func (h recordHeap) Len() int { return len(h) }
func (h recordHeap) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(h[i].order, h[j].order), cmp.Compare(h[i].sequence, h[j].sequence)) < 0
}

func (h recordHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].heapIndex, h[j].heapIndex = i, j
}

// Push implements [heap.Interface].
func (h *recordHeap) Push(r any) {
	r.(*leaseRecord).heapIndex = len(*h)
	*h = append(*h, r.(*leaseRecord))
}

// Pop implements [heap.Interface].
func (h *recordHeap) Pop() any {
	last := len(*h) - 1
	r := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return r
}
