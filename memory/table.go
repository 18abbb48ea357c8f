package memory

import "github.com/weir-limiter/weir"

// stateTable finds the subject states of a stripe by hash. It is an open-addressing table with
// linear probing: the number of cells is a power of two, and an item is in the first free cell at
// or after its hash. A lookup reads one cell and the item, where a map would read three places.
// With many entities each of them is a miss of the processor's cache.
type stateTable struct {
	cells []stateCell
	len   int
}

// stateCell is one cell; empty if it has no item.
type stateCell struct {
	hash uint64
	item *subjectState
}

// minCells is the number of cells of the smallest table.
const minCells = 4

// find returns a subject's item, or nil.
func (t *stateTable) find(of weir.Subject, hash uint64) *subjectState {
	if t.len == 0 {
		return nil
	}
	last := len(t.cells) - 1
	for at := int(hash) & last; ; at = (at + 1) & last {
		s := &t.cells[at]
		if s.item == nil || s.hash == hash && s.item.subject == of {
			return s.item
		}
	}
}

// insert adds an item that is not in the table.
func (t *stateTable) insert(it *subjectState, hash uint64) {
	if t.len >= len(t.cells)/4*3 {
		t.resize(max(minCells, 2*len(t.cells)))
	}
	t.len++
	t.insertCell(stateCell{hash, it})
}

func (t *stateTable) insertCell(s stateCell) {
	last := len(t.cells) - 1
	at := int(s.hash) & last
	for t.cells[at].item != nil {
		at = (at + 1) & last
	}
	t.cells[at] = s
}

// remove removes an item that is in the table. It moves later items back over the gap, because find
// stops at an empty cell.
func (t *stateTable) remove(it *subjectState, hash uint64) {
	last := len(t.cells) - 1
	at := int(hash) & last
	for t.cells[at].item != it {
		at = (at + 1) & last
	}
	for next := (at + 1) & last; t.cells[next].item != nil; next = (next + 1) & last {
		home := int(t.cells[next].hash) & last
		if (next-home)&last >= (next-at)&last { // it is still at or after its hash there
			t.cells[at] = t.cells[next]
			at = next
		}
	}
	t.cells[at] = stateCell{}
	t.len--
}

// shrink reallocates the table with as few cells as its items need.
func (t *stateTable) shrink() {
	size := minCells
	for t.len >= size/2 {
		size *= 2
	}
	t.resize(size)
}

func (t *stateTable) resize(size int) {
	old := t.cells
	t.cells = make([]stateCell, size)
	for _, s := range old {
		if s.item != nil {
			t.insertCell(s)
		}
	}
}
