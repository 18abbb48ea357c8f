package limiter

import (
	"slices"

	"github.com/weir-limiter/weir"
)

// leaseIndex maps the lease IDs of a segment to places.
//
// Lease IDs begin with the time at which they were made, and most leases end soon and are forgotten
// in the order in which they were made. So the index is a sequence of small hash tables, each for
// the IDs of a span of time. Calls touch only the last few tables, which stay in the processor's
// cache however many leases are remembered, and a table is dropped as a whole when its last lease
// is forgotten.
//
// A forgotten lease keeps its cell until its table is dropped or rebuilt. So the place that the
// index returns may have been given to another lease meanwhile; [leaseSegment.find] checks that.
type leaseIndex struct {
	chunks []indexChunk // in the order of time; never empty
	spare  []leaseCell  // cleared memory of a dropped chunk, for the next one
	seed   fingerprint
	len    int // leases that are not forgotten
}

// indexChunk has the IDs from a millisecond up to the next chunk's. The first chunk also has all
// older ones.
type indexChunk struct {
	from, newest int64 // milliseconds
	places       leaseHash
	left         int // leases that are not forgotten
}

// fullChunk is the number of IDs in a chunk after which the next one begins. IDs of one millisecond
// are never divided between chunks.
const fullChunk = 64

func newLeaseIndex(seed fingerprint) leaseIndex {
	return leaseIndex{chunks: make([]indexChunk, 1), seed: seed}
}

// chunk returns the number of the chunk for the IDs of a millisecond.
func (x *leaseIndex) chunk(ms int64) int {
	low, high := 0, len(x.chunks) // the answer is in [low, high)
	if high == 1 || ms < x.chunks[1].from {
		return 0 // the usual case for the lease that is forgotten next
	}
	for near := high - 1; near > 0 && near > high-4; near-- {
		if x.chunks[near].from <= ms {
			return near
		}
	}
	for high-low > 1 {
		if mid := (low + high) / 2; x.chunks[mid].from <= ms {
			low = mid
		} else {
			high = mid
		}
	}
	return low
}

func (x *leaseIndex) get(id weir.LeaseID) (leaseRef, bool) {
	return x.chunks[x.chunk(id.UnixMilli())].places.get(id, x.seed)
}

// move changes the place of a lease that is in the index.
func (x *leaseIndex) move(id weir.LeaseID, place leaseRef) {
	x.chunks[x.chunk(id.UnixMilli())].places.move(id, place, x.seed)
}

// add inserts a new lease. valid reports whether a cell is still that of its lease, so that
// forgotten ones are dropped when a full table is rebuilt.
func (x *leaseIndex) add(id weir.LeaseID, place leaseRef, valid func(weir.LeaseID, leaseRef) bool) {
	ms := id.UnixMilli()
	at := x.chunk(ms)
	c := &x.chunks[at]
	if len(c.places.cells) >= 2*fullChunk && c.places.full() {
		c.rehash(x.seed, valid)
	}
	switch full := c.places.len >= fullChunk && ms > c.newest && at == len(x.chunks)-1; {
	case full && c.left == 0: // forget did not drop it because it was last: reuse it
		clear(c.places.cells)
		c.places.len = 0
	case full:
		if x.spare == nil {
			x.spare = make([]leaseCell, 2*fullChunk)
		}
		x.chunks = append(x.chunks, indexChunk{from: ms, places: leaseHash{cells: x.spare}})
		x.spare = nil
		c = &x.chunks[at+1]
	}
	c.places.set(id, place, x.seed)
	c.newest = max(c.newest, ms)
	c.left++
	x.len++
}

// rehash rebuilds a full table without forgotten leases. It recomputes newest, because an ID far in
// the future would otherwise keep the next chunk from beginning even after that lease is forgotten.
func (c *indexChunk) rehash(seed fingerprint, valid func(weir.LeaseID, leaseRef) bool) {
	c.places.rebuild(c.left, seed, valid)
	c.newest = 0
	for i := range c.places.cells {
		if s := &c.places.cells[i]; !s.id.IsZero() {
			c.newest = max(c.newest, s.id.UnixMilli())
		}
	}
}

// forget records that a lease is forgotten; valid is as in add. The lease's cell stays, with a place
// that is free or another lease's, so valid reports false for it. If the ID is added again, for
// example because its first reservation was denied, add writes the new place into the same cell.
func (x *leaseIndex) forget(id weir.LeaseID, valid func(weir.LeaseID, leaseRef) bool) {
	at := x.chunk(id.UnixMilli())
	c := &x.chunks[at]
	c.left--
	x.len--
	if c.left == 0 && at < len(x.chunks)-1 {
		x.remove(at)
		return
	}
	if c.places.len >= fullChunk && c.left < c.places.len/8 && (at > 0 || c.places.len > 4*fullChunk) {
		// The first chunk is dropped soon, so it is rebuilt only if it is large.
		x.reuse(c.places.rebuild(c.left, x.seed, valid))
	}
}

// remove drops a chunk of which every lease is forgotten.
func (x *leaseIndex) remove(at int) {
	x.reuse(x.chunks[at].places.cells)
	if at == 0 {
		x.chunks[0] = indexChunk{}
		x.chunks = x.chunks[1:]
		return
	}
	x.chunks = slices.Delete(x.chunks, at, at+1)
}

// reuse keeps the cells of a dropped chunk for the next chunk if they are of the usual number.
func (x *leaseIndex) reuse(cells []leaseCell) {
	if len(cells) == 2*fullChunk {
		clear(cells)
		x.spare = cells
	}
}

// leaseHash maps lease IDs to places. It is an open-addressing table with linear probing: the
// number of cells is a power of two, and an ID is in the first free cell at or after its hash.
// Cells are never deleted one by one, so probing needs no marks of deleted cells. Cells have no
// pointers, so the garbage collector does not scan them.
type leaseHash struct {
	cells []leaseCell
	len   int
}

// leaseCell is one cell; empty if the ID is zero, which no lease has.
type leaseCell struct {
	id    weir.LeaseID
	place leaseRef
}

// minCells is the number of cells of the smallest table.
const minCells = 16

// cell returns the number of the cell that has an ID, or that would get it.
func (p *leaseHash) cell(id weir.LeaseID, seed fingerprint) int {
	last := len(p.cells) - 1
	at := int(seed.addLeaseID(id)) & last
	for p.cells[at].id != id && !p.cells[at].id.IsZero() {
		at = (at + 1) & last
	}
	return at
}

func (p *leaseHash) get(id weir.LeaseID, seed fingerprint) (leaseRef, bool) {
	if p.len == 0 {
		return 0, false
	}
	s := &p.cells[p.cell(id, seed)]
	return s.place, !s.id.IsZero()
}

// full reports whether the table has to grow before the next insert: it is at most three quarters
// full, so that probing ends soon.
func (p *leaseHash) full() bool { return p.len >= len(p.cells)/4*3 }

func (p *leaseHash) set(id weir.LeaseID, place leaseRef, seed fingerprint) {
	if p.full() {
		p.resize(max(minCells, 2*len(p.cells)), seed, nil)
	}
	s := &p.cells[p.cell(id, seed)]
	if s.id.IsZero() {
		s.id = id
		p.len++
	}
	s.place = place
}

// move changes the place of an ID that is in the table.
func (p *leaseHash) move(id weir.LeaseID, place leaseRef, seed fingerprint) {
	p.cells[p.cell(id, seed)].place = place
}

// rebuild makes a new table of the valid cells, of which there are n, and returns the old cells.
func (p *leaseHash) rebuild(n int, seed fingerprint, valid func(weir.LeaseID, leaseRef) bool) []leaseCell {
	old := p.cells
	size := minCells
	for size < 2*n {
		size *= 2
	}
	p.resize(size, seed, valid)
	return old
}

// resize copies the valid cells to a table of another size. A nil valid means that all cells are
// valid.
func (p *leaseHash) resize(size int, seed fingerprint, valid func(weir.LeaseID, leaseRef) bool) {
	old := p.cells
	p.cells, p.len = make([]leaseCell, size), 0
	for i := range old {
		if s := &old[i]; !s.id.IsZero() && (valid == nil || valid(s.id, s.place)) {
			p.cells[p.cell(s.id, seed)] = *s
			p.len++
		}
	}
}
