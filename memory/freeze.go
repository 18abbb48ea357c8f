package memory

import "slices"

// A snapshot is of one instant and yet stops nobody for long. While the gate is closed the state is
// only frozen, which takes as long as a look at every stripe. After that it is copied a few items
// or leases at a time, each time under their lock alone. A call that comes first to an item or a
// lease that is still to be copied keeps a copy of it as it was; what is new, or was copied, it
// changes as ever.

// chunkSize is how many items or leases are copied under a lock at once.
const chunkSize = 512

// chunkBytes is what a chunk mostly takes in a body: the buffer grows before the lock is taken.
const chunkBytes = 1 << 16

// copyOnWrite says which elements of a stripe, or of the records, a snapshot has yet to see. The
// lock of what it belongs to guards it.
type copyOnWrite[T any] struct {
	// epoch is the number of the latest snapshot, and that of what it has seen or must not see.
	epoch uint32
	// frozen is true until all elements have been copied.
	frozen bool
	// end is the place after those that the snapshot is to see. Newer elements follow it, so that
	// the copying ends however fast they come.
	end int
	// preserved are copies of elements that were about to change.
	preserved []T
}

func (f *copyOnWrite[T]) freeze(end int) {
	f.epoch++
	f.frozen, f.end = true, end
}

// due reports, once for each element and snapshot, whether a snapshot has yet to see an element,
// given the epoch that it has.
func (f *copyOnWrite[T]) due(epoch *uint32) bool {
	if !f.frozen || *epoch == f.epoch {
		return false
	}
	*epoch = f.epoch
	return true
}

// finish ends the copying, and returns what was kept for it.
func (f *copyOnWrite[T]) finish() []T {
	kept := f.preserved
	f.frozen, f.preserved = false, nil
	return kept
}

// snapshotHeader is what a snapshot says before its items and its records.
type snapshotHeader struct {
	early          int64
	items, records int
}

// freeze makes this instant that of the next snapshot. The gate must be held for writing, and what
// was frozen before must have been copied.
func (s *SnapshotStore) freeze() *snapshotHeader {
	f := &snapshotHeader{}
	for i := range s.store.stripes {
		p := &s.store.stripes[i]
		p.mu.Lock()
		p.freezer.freeze(len(p.dense))
		f.items += len(p.dense)
		p.mu.Unlock()
	}
	t := &s.records
	t.mu.Lock()
	defer t.mu.Unlock()
	t.freezer.freeze(len(t.dense))
	f.early, f.records = t.horizon, len(t.dense)
	return f
}

// preserve copies an item that is about to change or to move, if a snapshot has yet to see it.
func (p *stripe) preserve(it *subjectState) {
	if p.freezer.due(&it.epoch) {
		p.freezer.preserved = append(p.freezer.preserved, it.clone())
	}
}

// write writes the items that were frozen, and returns how many there were.
func (p *stripe) write(c *codec) (n int) {
	for at, more := 0, true; more; {
		c.grow(chunkBytes)
		p.mu.Lock()
		last := min(p.freezer.end, len(p.dense))
		for end := min(at+chunkSize, last); at < end; at++ {
			if it := p.dense[at]; p.freezer.due(&it.epoch) {
				c.subjectState(it)
				n++
			}
		}
		var kept []*subjectState
		if more = at < last; !more {
			kept = p.freezer.finish()
		}
		p.mu.Unlock()
		for _, it := range kept {
			c.subjectState(it)
			n++
		}
	}
	return n
}

// preserve copies a record that is about to change or to move, if a snapshot has yet to see it.
func (t *leaseRecords) preserve(r *leaseRecord) {
	if t.freezer.due(&r.epoch) {
		t.freezer.preserved = append(t.freezer.preserved, *r)
	}
}

// write writes the records that were frozen, and returns how many there were. What a record refers
// to is never changed, so a copy of it can be written without the lock.
func (t *leaseRecords) write(c *codec) (n int) {
	piece := make([]leaseRecord, 0, chunkSize)
	for at, more := 0, true; more; {
		t.mu.Lock()
		last := min(t.freezer.end, len(t.dense))
		for end := min(at+chunkSize, last); at < end; at++ {
			if r := t.dense[at]; t.freezer.due(&r.epoch) {
				piece = append(piece, *r)
			}
		}
		var kept []leaseRecord
		if more = at < last; !more {
			kept = t.freezer.finish()
		}
		t.mu.Unlock()
		for _, some := range [][]leaseRecord{piece, kept} {
			for i := range some {
				c.record(&some[i])
			}
			n += len(some)
		}
		piece = piece[:0]
	}
	return n
}

// clone returns a copy of all that a snapshot says of an item.
func (it *subjectState) clone() *subjectState {
	out := &subjectState{subject: it.subject, states: slices.Clone(it.states)}
	for i := range out.states {
		out.states[i].counter = out.states[i].counter.Clone()
	}
	return out
}
