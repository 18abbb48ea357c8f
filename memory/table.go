package memory

import "github.com/weir-limiter/weir"

// stateTable finds the items of a stripe. It has a power of two of slots; an item stands in the
// first free one after the slot that its hash names. A look-up reads one slot and the item, where a
// map would read three places: with many entities each is a miss of the processor's cache.
type stateTable struct {
	slots []stateCell
	len   int
}

// stateCell is empty where it has no item.
type stateCell struct {
	hash uint64
	item *subjectState
}

const leastSlots = 4

// find returns a subject's item, or nil.
func (t *stateTable) find(of weir.Subject, hash uint64) *subjectState {
	if t.len == 0 {
		return nil
	}
	last := len(t.slots) - 1
	for at := int(hash) & last; ; at = (at + 1) & last {
		s := &t.slots[at]
		if s.item == nil || s.hash == hash && s.item.subject == of {
			return s.item
		}
	}
}

// insert adds an item that is not there.
func (t *stateTable) insert(it *subjectState, hash uint64) {
	if t.len >= len(t.slots)/4*3 {
		t.resize(max(leastSlots, 2*len(t.slots)))
	}
	t.len++
	t.insertCell(stateCell{hash, it})
}

func (t *stateTable) insertCell(s stateCell) {
	last := len(t.slots) - 1
	at := int(s.hash) & last
	for t.slots[at].item != nil {
		at = (at + 1) & last
	}
	t.slots[at] = s
}

// remove takes out an item that is there. Those after it move up, so that no gap comes between them
// and the slots that their hashes name.
func (t *stateTable) remove(it *subjectState, hash uint64) {
	last := len(t.slots) - 1
	at := int(hash) & last
	for t.slots[at].item != it {
		at = (at + 1) & last
	}
	for next := (at + 1) & last; t.slots[next].item != nil; next = (next + 1) & last {
		home := int(t.slots[next].hash) & last
		if (next-home)&last >= (next-at)&last { // it may stand in the gap
			t.slots[at] = t.slots[next]
			at = next
		}
	}
	t.slots[at] = stateCell{}
	t.len--
}

// shrink makes the table anew with as little room as its items need.
func (t *stateTable) shrink() {
	size := leastSlots
	for t.len >= size/2 {
		size *= 2
	}
	t.resize(size)
}

func (t *stateTable) resize(size int) {
	old := t.slots
	t.slots = make([]stateCell, size)
	for _, s := range old {
		if s.item != nil {
			t.insertCell(s)
		}
	}
}
