package weir

import (
	"slices"
)

// leaseIndex says where the leases of a shard are. IDs begin with the time of their making, and a
// lease is mostly settled soon and forgotten in the order of its making. So the index is a row of
// small maps, each for the IDs of a span of time: the calls of now touch only the last few, however
// many leases are remembered.
//
// Leases that are forgotten stay in their map until that goes as a whole, which is soon: whoever gets a
// place asks whether it is still the lease's.
type leaseIndex struct {
	chunks []leaseChunk // in the order of time; never empty
	spare  []leaseSlot  // of a chunk that is gone, empty
	seed   fingerprint
	len    int // leases that are not forgotten
}

// leaseChunk has the IDs from one millisecond up to the next chunk's; the first also has older ones.
type leaseChunk struct {
	from, newest int64 // milliseconds
	places       leasePlaces
	left         int // leases that are not forgotten
}

// fullChunk is how many IDs a chunk has before the next one begins. Those of one millisecond stay
// together.
const fullChunk = 64

func newLeaseIndex(seed fingerprint) leaseIndex {
	return leaseIndex{chunks: make([]leaseChunk, 1), seed: seed}
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

func (x *leaseIndex) get(id LeaseID) (leasePlace, bool) {
	return x.chunks[x.chunk(id.ms())].places.get(id, x.seed)
}

// move makes another place that of a lease that is there.
func (x *leaseIndex) move(id LeaseID, place leasePlace) {
	x.chunks[x.chunk(id.ms())].places.move(id, place, x.seed)
}

// add notes the place of a new lease; valid says which others are not forgotten.
func (x *leaseIndex) add(id LeaseID, place leasePlace, valid func(LeaseID, leasePlace) bool) {
	ms := id.ms()
	at := x.chunk(ms)
	c := &x.chunks[at]
	if len(c.places.slots) >= 2*fullChunk && c.places.full() {
		c.renew(x.seed, valid)
	}
	switch full := c.places.len >= fullChunk && ms > c.newest && at == len(x.chunks)-1; {
	case full && c.left == 0: // it would never go
		clear(c.places.slots)
		c.places.len = 0
	case full:
		if x.spare == nil {
			x.spare = make([]leaseSlot, 2*fullChunk)
		}
		x.chunks = append(x.chunks, leaseChunk{from: ms, places: leasePlaces{slots: x.spare}})
		x.spare = nil
		c = &x.chunks[at+1]
	}
	c.places.set(id, place, x.seed)
	c.newest = max(c.newest, ms)
	c.left++
	x.len++
}

// renew gives a full chunk as much room as those need that are not forgotten. One ID that was far ahead
// must not keep the next chunk from beginning for longer.
func (c *leaseChunk) renew(seed fingerprint, valid func(LeaseID, leasePlace) bool) {
	c.places.keep(c.left, seed, valid)
	c.newest = 0
	for i := range c.places.slots {
		if s := &c.places.slots[i]; !s.id.IsZero() {
			c.newest = max(c.newest, s.id.ms())
		}
	}
}

// leave notes that a lease is forgotten; valid says which others are not. One that came to nothing has a
// slot that others will get, so its place is taken from it at once.
func (x *leaseIndex) leave(id LeaseID, unborn bool, valid func(LeaseID, leasePlace) bool) {
	at := x.chunk(id.ms())
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
		x.reuse(c.places.keep(c.left, x.seed, valid))
	}
}

// remove takes a chunk out in which every lease is forgotten.
func (x *leaseIndex) remove(at int) {
	x.reuse(x.chunks[at].places.slots)
	if at == 0 {
		x.chunks[0] = leaseChunk{}
		x.chunks = x.chunks[1:]
		return
	}
	x.chunks = slices.Delete(x.chunks, at, at+1)
}

// reuse keeps the memory of a chunk for the next one, if it is of the usual size.
func (x *leaseIndex) reuse(slots []leaseSlot) {
	if len(slots) == 2*fullChunk {
		clear(slots)
		x.spare = slots
	}
}

// leasePlaces maps lease IDs to places: a table with a power of two of slots, in which an ID stands in
// the first free slot after the one that its hash names. Nothing is taken out singly, and there are no
// pointers for the collector to follow.
type leasePlaces struct {
	slots []leaseSlot
	len   int
}

// leaseSlot is empty where the ID is zero, which is no lease's.
type leaseSlot struct {
	id    LeaseID
	place leasePlace
}

// leastSlots is how many slots the smallest table has.
const leastSlots = 16

// slot returns the number of the slot that an ID has or would get.
func (p *leasePlaces) slot(id LeaseID, seed fingerprint) int {
	last := len(p.slots) - 1
	at := int(seed.id(id)) & last
	for p.slots[at].id != id && !p.slots[at].id.IsZero() {
		at = (at + 1) & last
	}
	return at
}

func (p *leasePlaces) get(id LeaseID, seed fingerprint) (leasePlace, bool) {
	if p.len == 0 {
		return 0, false
	}
	s := &p.slots[p.slot(id, seed)]
	return s.place, !s.id.IsZero()
}

// full is true where the table grows before it takes another.
func (p *leasePlaces) full() bool { return p.len >= len(p.slots)/4*3 }

func (p *leasePlaces) set(id LeaseID, place leasePlace, seed fingerprint) {
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
func (p *leasePlaces) move(id LeaseID, place leasePlace, seed fingerprint) {
	p.slots[p.slot(id, seed)].place = place
}

// keep makes the table anew with those that are valid, of which there are so many, and returns the
// memory of the old one.
func (p *leasePlaces) keep(n int, seed fingerprint, valid func(LeaseID, leasePlace) bool) []leaseSlot {
	old := p.slots
	size := leastSlots
	for size < 2*n {
		size *= 2
	}
	p.resize(size, seed, valid)
	return old
}

// resize moves the places to a table of another size, without those that are not valid; nil means all
// are.
func (p *leasePlaces) resize(size int, seed fingerprint, valid func(LeaseID, leasePlace) bool) {
	old := p.slots
	p.slots, p.len = make([]leaseSlot, size), 0
	for i := range old {
		if s := &old[i]; !s.id.IsZero() && (valid == nil || valid(s.id, s.place)) {
			p.slots[p.slot(s.id, seed)] = *s
			p.len++
		}
	}
}
