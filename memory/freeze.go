package memory

import "slices"

// A snapshot is of one instant and yet stops nobody for long. While the gate is closed the state is
// only frozen, which takes as long as a look at every stripe. After that it is copied a few items
// or leases at a time, each time under their lock alone. A call that comes first to an item or a
// lease that is still to be copied keeps a copy of it as it was; what is new, or was copied, it
// changes as ever.

// pieceSize is how many items or leases are copied under a lock at once.
const pieceSize = 512

// pieceRoom is what a piece mostly takes in a body: the buffer grows before the lock is taken.
const pieceRoom = 1 << 16

// freezer says which elements of a stripe, or of the records, a snapshot has yet to see. The lock
// of what it belongs to guards it.
type freezer[T any] struct {
	// epoch is the number of the latest snapshot, and that of what it has seen or must not see.
	epoch uint32
	// frozen is true until all elements have been copied.
	frozen bool
	// end is the place after those that the snapshot is to see. Newer elements follow it, so that the
	// copying ends however fast they come.
	end int
	// kept are copies of elements that were about to change.
	kept []T
}

func (f *freezer[T]) freeze(end int) {
	f.epoch++
	f.frozen, f.end = true, end
}

// due reports, once for each element and snapshot, whether a snapshot has yet to see an element,
// given the epoch that it has.
func (f *freezer[T]) due(epoch *uint32) bool {
	if !f.frozen || *epoch == f.epoch {
		return false
	}
	*epoch = f.epoch
	return true
}

// thaw ends the copying, and returns what was kept for it.
func (f *freezer[T]) thaw() []T {
	kept := f.kept
	f.frozen, f.kept = false, nil
	return kept
}

// frozen is what a snapshot says before its items and its records.
type frozen struct {
	early          int64
	items, records int
}

// freeze makes this instant that of the next snapshot. The gate must be held for writing, and what
// was frozen before must have been copied.
func (s *SnapshotStore) freeze() *frozen {
	f := &frozen{}
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
	f.early, f.records = t.early, len(t.dense)
	return f
}

// keep copies an item that is about to change or to move, if a snapshot has yet to see it.
func (p *stripe) keep(it *item) {
	if p.freezer.due(&it.epoch) {
		p.freezer.kept = append(p.freezer.kept, it.clone())
	}
}

// write writes the items that were frozen, and returns how many there were.
func (p *stripe) write(c *codec) (n int) {
	for at, more := 0, true; more; {
		c.grow(pieceRoom)
		p.mu.Lock()
		last := min(p.freezer.end, len(p.dense))
		for end := min(at+pieceSize, last); at < end; at++ {
			if it := p.dense[at]; p.freezer.due(&it.epoch) {
				c.item(it)
				n++
			}
		}
		var kept []*item
		if more = at < last; !more {
			kept = p.freezer.thaw()
		}
		p.mu.Unlock()
		for _, it := range kept {
			c.item(it)
			n++
		}
	}
	return n
}

// keep copies a record that is about to change or to move, if a snapshot has yet to see it.
func (t *records) keep(r *record) {
	if t.freezer.due(&r.epoch) {
		t.freezer.kept = append(t.freezer.kept, *r)
	}
}

// write writes the records that were frozen, and returns how many there were. What a record refers
// to is never changed, so a copy of it can be written without the lock.
func (t *records) write(c *codec) (n int) {
	piece := make([]record, 0, pieceSize)
	for at, more := 0, true; more; {
		t.mu.Lock()
		last := min(t.freezer.end, len(t.dense))
		for end := min(at+pieceSize, last); at < end; at++ {
			if r := t.dense[at]; t.freezer.due(&r.epoch) {
				piece = append(piece, *r)
			}
		}
		var kept []record
		if more = at < last; !more {
			kept = t.freezer.thaw()
		}
		t.mu.Unlock()
		for _, some := range [][]record{piece, kept} {
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
func (it *item) clone() *item {
	out := &item{subject: it.subject, states: slices.Clone(it.states)}
	for i := range out.states {
		out.states[i].counter = out.states[i].counter.Clone()
	}
	return out
}
