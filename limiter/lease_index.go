package limiter

import (
	"slices"

	"github.com/weir-limiter/weir"
)

// leaseIndex says where the leases of a shard are. IDs begin with the time of their making, and a
// lease is mostly settled soon and forgotten in the order of its making. So the index is a row of
// small maps, each for the IDs of a span of time: the calls of now touch only the last few, however
// many leases are remembered.
//
// Leases that are forgotten stay in their map until that goes as a whole, which is soon: whoever
// gets a place asks whether it is still the lease's.
type leaseIndex struct {
	chunks []indexChunk // in the order of time; never empty
	spare  []leaseCell  // of a chunk that is gone, empty
	seed   fingerprint
	len    int // leases that are not forgotten
}

// indexChunk has the IDs from one millisecond up to the next chunk's; the first also has older
// ones.
type indexChunk struct {
	from, newest int64 // milliseconds
	places       leaseHash
	left         int // leases that are not forgotten
}

// fullChunk is how many IDs a chunk has before the next one begins. Those of one millisecond stay
// together.
const fullChunk = 64

func newLeaseIndex(seed fingerprint) leaseIndex {
	return leaseIndex{chunks: make([]indexChunk, 1), seed: seed}
}

// chunk returns the number of the chunk that has the IDs of a millisecond.
func (x *leaseIndex) chunk(ms int64) int {
	low, high := 0, len(x.chunks) // the answer is in [low, high)
	if high == 1 || ms < x.chunks[1].from {
		return 0 // as for the leases that are forgotten
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

// move makes another place that of a lease that is there.
func (x *leaseIndex) move(id weir.LeaseID, place leaseRef) {
	x.chunks[x.chunk(id.UnixMilli())].places.move(id, place, x.seed)
}

// add notes the place of a new lease; valid says which others are not forgotten.
func (x *leaseIndex) add(id weir.LeaseID, place leaseRef, valid func(weir.LeaseID, leaseRef) bool) {
	ms := id.UnixMilli()
	at := x.chunk(ms)
	c := &x.chunks[at]
	if len(c.places.slots) >= 2*fullChunk && c.places.full() {
		c.rehash(x.seed, valid)
	}
	switch full := c.places.len >= fullChunk && ms > c.newest && at == len(x.chunks)-1; {
	case full && c.left == 0: // it would never go
		clear(c.places.slots)
		c.places.len = 0
	case full:
		if x.spare == nil {
			x.spare = make([]leaseCell, 2*fullChunk)
		}
		x.chunks = append(x.chunks, indexChunk{from: ms, places: leaseHash{slots: x.spare}})
		x.spare = nil
		c = &x.chunks[at+1]
	}
	c.places.set(id, place, x.seed)
	c.newest = max(c.newest, ms)
	c.left++
	x.len++
}

// rehash gives a full chunk as much room as those need that are not forgotten. One ID that was far
// ahead must not keep the next chunk from beginning for longer.
func (c *indexChunk) rehash(seed fingerprint, valid func(weir.LeaseID, leaseRef) bool) {
	c.places.rebuild(c.left, seed, valid)
	c.newest = 0
	for i := range c.places.slots {
		if s := &c.places.slots[i]; !s.id.IsZero() {
			c.newest = max(c.newest, s.id.UnixMilli())
		}
	}
}

// forget notes that a lease is forgotten; valid says which others are not. One that came to nothing
// has a slot that others will get, so its place is taken from it at once.
func (x *leaseIndex) forget(id weir.LeaseID, unborn bool, valid func(weir.LeaseID, leaseRef) bool) {
	at := x.chunk(id.UnixMilli())
	c := &x.chunks[at]
	if c.left--; unborn {
		c.places.move(id, leaseNowhere, x.seed)
	}
	x.len--
	if c.left == 0 && at < len(x.chunks)-1 {
		x.remove(at)
		return
	}
	// The first is soon gone as a whole, unless it is large.
	if c.places.len >= fullChunk && c.left < c.places.len/8 && (at > 0 || c.places.len > 4*fullChunk) {
		x.reuse(c.places.rebuild(c.left, x.seed, valid))
	}
}

// remove takes a chunk out in which every lease is forgotten.
func (x *leaseIndex) remove(at int) {
	x.reuse(x.chunks[at].places.slots)
	if at == 0 {
		x.chunks[0] = indexChunk{}
		x.chunks = x.chunks[1:]
		return
	}
	x.chunks = slices.Delete(x.chunks, at, at+1)
}

// reuse keeps the memory of a chunk for the next one, if it is of the usual size.
func (x *leaseIndex) reuse(slots []leaseCell) {
	if len(slots) == 2*fullChunk {
		clear(slots)
		x.spare = slots
	}
}

// leaseHash maps lease IDs to places: a table with a power of two of slots, in which an ID stands
// in the first free slot after the one that its hash names. Nothing is taken out singly, and there
// are no pointers for the collector to follow.
type leaseHash struct {
	slots []leaseCell
	len   int
}

// leaseCell is empty where the ID is zero, which is no lease's.
type leaseCell struct {
	id    weir.LeaseID
	place leaseRef
}

// leastSlots is how many slots the smallest table has.
const leastSlots = 16

// slot returns the number of the slot that an ID has or would get.
func (p *leaseHash) slot(id weir.LeaseID, seed fingerprint) int {
	last := len(p.slots) - 1
	at := int(seed.addLeaseID(id)) & last
	for p.slots[at].id != id && !p.slots[at].id.IsZero() {
		at = (at + 1) & last
	}
	return at
}

func (p *leaseHash) get(id weir.LeaseID, seed fingerprint) (leaseRef, bool) {
	if p.len == 0 {
		return 0, false
	}
	s := &p.slots[p.slot(id, seed)]
	return s.place, !s.id.IsZero()
}

// full is true where the table grows before it takes another.
func (p *leaseHash) full() bool { return p.len >= len(p.slots)/4*3 }

func (p *leaseHash) set(id weir.LeaseID, place leaseRef, seed fingerprint) {
	if p.full() {
		p.resize(max(leastSlots, 2*len(p.slots)), seed, nil)
	}
	s := &p.slots[p.slot(id, seed)]
	if s.id.IsZero() {
		s.id = id
		p.len++
	}
	s.place = place
}

// move gives another place to an ID that is there.
func (p *leaseHash) move(id weir.LeaseID, place leaseRef, seed fingerprint) {
	p.slots[p.slot(id, seed)].place = place
}

// rebuild makes the table anew with those that are valid, of which there are so many, and returns
// the memory of the old one.
func (p *leaseHash) rebuild(n int, seed fingerprint, valid func(weir.LeaseID, leaseRef) bool) []leaseCell {
	old := p.slots
	size := leastSlots
	for size < 2*n {
		size *= 2
	}
	p.resize(size, seed, valid)
	return old
}

// resize moves the places to a table of another size, without those that are not valid; nil means
// all are.
func (p *leaseHash) resize(size int, seed fingerprint, valid func(weir.LeaseID, leaseRef) bool) {
	old := p.slots
	p.slots, p.len = make([]leaseCell, size), 0
	for i := range old {
		if s := &old[i]; !s.id.IsZero() && (valid == nil || valid(s.id, s.place)) {
			p.slots[p.slot(s.id, seed)] = *s
			p.len++
		}
	}
}
