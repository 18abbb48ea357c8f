package memory

import "slices"

// A snapshot shows the state of one instant, but calls are stopped only for a moment: while
// callLock is held for writing, freeze marks every stripe and the lease records as frozen, which
// takes the same time however large they are. After that they are encoded in chunks, each under
// the mutex of its stripe or of the records, while calls go on.
//
// A call that is about to change an element (a subject state, the usage of a subject or a lease
// record) that is frozen and not encoded yet first preserves a copy of it, which is encoded at
// the end instead. An element that has been encoded, or that was added after the freeze, has the
// epoch of the snapshot and is changed without a copy.
//
// Elements are encoded in the order of a dense slice. Removing an element moves the last one into
// its place, which the encoding may have passed, so a removal preserves both.

// chunkSize is the number of elements that are encoded or copied under one lock at a time.
const chunkSize = 512

// chunkBytes is more than what most chunks need. The buffer grows by it before the lock is taken,
// so that it need not grow under the lock.
const chunkBytes = 1 << 16

// copyOnWrite says which elements of a stripe, of its usage or of the lease records a snapshot
// has not encoded yet. It is guarded by the mutex of the stripe or the records.
type copyOnWrite[T any] struct {
	// epoch is the number of the latest snapshot. Elements that it has encoded or preserved, or
	// that are newer, have the same number.
	epoch uint32
	// frozen reports that some elements are not encoded yet.
	frozen bool
	// end is the length of the dense slice at the freeze. Newer elements follow it and are not
	// encoded, so that encoding ends however many are added meanwhile.
	end int
	// preserved has copies of elements that were about to change.
	preserved []T
}

// freeze begins a snapshot of the first end elements.
func (f *copyOnWrite[T]) freeze(end int) {
	f.epoch++
	f.frozen, f.end = true, end
}

// due reports whether the snapshot needs an element now, given the element's epoch, and sets the
// epoch. So it returns true once for each element and snapshot.
func (f *copyOnWrite[T]) due(epoch *uint32) bool {
	if !f.frozen || *epoch == f.epoch {
		return false
	}
	*epoch = f.epoch
	return true
}

// finish ends the snapshot and returns the preserved copies, which are still to be encoded.
func (f *copyOnWrite[T]) finish() []T {
	kept := f.preserved
	f.frozen, f.preserved = false, nil
	return kept
}

// chunkEntries is about the number of entries of usage that are encoded under one lock at a time.
const chunkEntries = 4096

// snapshotHeader has what a snapshot needs to know of the instant of the freeze.
type snapshotHeader struct {
	early int64
	// items, records and subjects are the numbers of subject states, of lease records and of
	// subjects with usage.
	items, records, subjects int
	usage                    usageHeader
}

// freeze makes this the instant of the next snapshot. callLock must be held for writing, and the
// snapshot before must be complete. ended reports that no call will follow.
func (s *SnapshotStore) freeze(ended bool) *snapshotHeader {
	f := &snapshotHeader{usage: s.store.usage.header(ended)}
	for i := range s.store.stripes {
		p := &s.store.stripes[i]
		p.mu.Lock()
		p.freezer.freeze(len(p.dense))
		p.usage.freezer.freeze(len(p.usage.dense))
		f.items += len(p.dense)
		f.subjects += len(p.usage.dense)
		p.mu.Unlock()
	}
	t := &s.records
	t.mu.Lock()
	defer t.mu.Unlock()
	t.freezer.freeze(len(t.dense))
	f.early, f.records = t.horizon, len(t.dense)
	return f
}

// preserve copies a subject state that is about to change or to move, if the snapshot still needs
// it.
func (p *stripe) preserve(it *subjectState) {
	if p.freezer.due(&it.epoch) {
		p.freezer.preserved = append(p.freezer.preserved, it.clone())
	}
}

// write encodes the frozen subject states of the stripe and returns their number.
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

// preserve copies a record that is about to change or to move, if the snapshot still needs it.
func (t *leaseRecords) preserve(r *leaseRecord) {
	if t.freezer.due(&r.epoch) {
		t.freezer.preserved = append(t.freezer.preserved, *r)
	}
}

// write encodes the frozen records and returns their number. It copies the records of a chunk
// under the lock and encodes the copies without it. That is safe because what a record points to
// is never modified, only replaced.
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

// clone returns a copy of what a snapshot has of a subject state.
func (it *subjectState) clone() *subjectState {
	out := &subjectState{subject: it.subject, states: slices.Clone(it.states)}
	for i := range out.states {
		out.states[i].counter = out.states[i].counter.Clone()
	}
	return out
}
