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

// leaseRecord is a lease as a snapshot keeps it, so that another process can go on with it. Its
// holdings are its own: those of an outcome belong to the limiter. Its limits are shared with
// whoever was told of them: nobody changes them.
type leaseRecord struct {
	driver.LeaseRecord
	// memory is how long (ms) it is remembered once it has ended.
	memory int64
	// due is the instant (ms) at which something becomes of the record: a live lease ends by itself
	// at it, an ended one is forgotten after it.
	due int64
	// order is the instant (ms) by which it is filed among its like, and filing tells those of one
	// millisecond apart: live leases by when they end, ended ones by when they did.
	order, sequence int64
	// heapIndex is the record's own in the heap that it is in.
	heapIndex int
	// index is the record's own place among all, and epoch that of the last snapshot that has seen
	// it.
	index int32
	epoch uint32
}

// cloneHoldings copies holdings with all that they have of their own.
func cloneHoldings(holdings []driver.Holding) []driver.Holding {
	out := slices.Clone(holdings)
	for i := range out {
		h := &out[i]
		h.Parts, h.Pieces = slices.Clone(h.Parts), slices.Clone(h.Pieces)
	}
	return out
}

// schedule works out when the record is due. The heap that it is in must be told.
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

// leaseRecords are the leases of a store. No stripe may be locked when their lock is taken.
type leaseRecords struct {
	mu   sync.Mutex
	byID map[weir.LeaseID]*leaseRecord
	// live and ended have every record once, the first in order on top.
	live, ended recordHeap
	sequence    int64
	// dense has all of them, so that a snapshot can walk them. The freezer says which it is to see.
	dense   []*leaseRecord
	freezer copyOnWrite[leaseRecord]
	// most is how many ended ones there may be, as the limiter says with every call. More are
	// forgotten early, the oldest first.
	most int
	// memory is how long (ms) an ended lease is remembered, by the last call that said so.
	memory int64
	// peak is the most records that the map has held since it was made.
	peak int
	// horizon is the newest lease time (ms) of which something was forgotten early; 0 if none.
	horizon int64
}

// memoryByDefault is how long (ms) a voided ID is remembered if no call has said how long leases
// are: as long as the limiter's option says by default.
const memoryByDefault = 600_000

func newRecords() leaseRecords {
	return leaseRecords{byID: make(map[weir.LeaseID]*leaseRecord), most: math.MaxInt, memory: memoryByDefault}
}

// find returns a copy of what is known of a lease at now, or nil.
func (t *leaseRecords) find(now int64, id weir.LeaseID) *driver.LeaseRecord {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sweep(now) // what ended before may leave no room for it
	r := t.current(now, id)
	if r == nil {
		return nil
	}
	known := r.LeaseRecord
	known.Holdings = cloneHoldings(r.Holdings)
	return &known
}

// current returns what is known of a lease at now, or nil. A live lease whose time is over becomes
// an expired one.
func (t *leaseRecords) current(now int64, id weir.LeaseID) *leaseRecord {
	r := t.byID[id]
	if r != nil && r.State == driver.LeaseLive && r.due <= now {
		t.expire(r)
		r = t.byID[id] // it may have been too much
	}
	if r != nil && r.State != driver.LeaseLive && r.due < now {
		t.drop(r)
		return nil
	}
	return r
}

// add keeps a lease that was reserved, and forgets others that are due.
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

// update notes what an update has made of a lease. One that was forgotten stays so.
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

// void keeps the ID of a lease that was cancelled before it was reserved. It returns true, and
// keeps nothing, if there is a lease with that ID.
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

// markEnded makes a live lease an ended one, and forgets the oldest where there are too many.
func (t *leaseRecords) markEnded(r *leaseRecord, state driver.LeaseState, at time.Time) {
	t.preserve(r)
	heap.Remove(&t.live, r.heapIndex)
	r.State, r.EndedAt, r.Keys, r.Holdings, r.Limits = state, at, nil, nil, nil
	t.schedule(r)
	heap.Push(&t.ended, r)
	t.limit(t.most)
}

// limit forgets the oldest ended leases where there are more than most; 0 changes nothing.
func (t *leaseRecords) limit(most int) {
	if most > 0 {
		t.most = most
	}
	for len(t.ended) > t.most {
		t.drop(t.ended[0])
	}
}

// drop forgets a record. IDs as old as that of an ended one cannot be told apart from forgotten
// ones any more: by time they are refused anyhow, unless the clock was wrong or the memory has
// grown since.
func (t *leaseRecords) drop(r *leaseRecord) {
	if r.State != driver.LeaseLive {
		t.horizon = max(t.horizon, r.ID.Time().UnixMilli())
	}
	heap.Remove(t.heapOf(r), r.heapIndex)
	delete(t.byID, r.ID)
	last := t.dense[len(t.dense)-1]
	t.preserve(r)
	t.preserve(last) // a snapshot may have passed the place that it comes to
	last.index = r.index
	t.dense[r.index], t.dense[len(t.dense)-1] = last, nil
	t.dense = t.dense[:len(t.dense)-1]
}

// sweep ends and forgets a few leases that are due: more than one call can add.
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

// shrink makes the map anew where it is mostly empty: it does not give memory back by itself.
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

// recordHeap is a [heap.Interface] whose records know their places.
type recordHeap []*leaseRecord

func (h recordHeap) Len() int { return len(h) }
func (h recordHeap) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(h[i].order, h[j].order), cmp.Compare(h[i].sequence, h[j].sequence)) < 0
}

func (h recordHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].heapIndex, h[j].heapIndex = i, j
}

// Push appends a record; for package heap.
func (h *recordHeap) Push(r any) {
	r.(*leaseRecord).heapIndex = len(*h)
	*h = append(*h, r.(*leaseRecord))
}

// Pop removes the last record; for package heap.
func (h *recordHeap) Pop() any {
	last := len(*h) - 1
	r := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return r
}
