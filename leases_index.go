package weir

// leaseIndex says where the leases of a shard are. IDs begin with the time of their making, and a
// lease is mostly settled soon and forgotten in the order of its making. So the index is a row of
// small maps, each for the IDs of a span of time: the calls of now touch only the last few, however
// many leases are remembered. The maps have no pointers, so that nobody need look through them.
//
// Leases that are forgotten stay in their map until that goes as a whole, which is soon: whoever gets a
// place asks whether it is still the lease's.
type leaseIndex struct {
	chunks []*leaseChunk // in the order of time; never empty
	spare  map[LeaseID]leasePlace
	len    int // leases that are not forgotten
}

// leaseChunk has the IDs from one millisecond up to the next chunk's; the first also has older ones.
type leaseChunk struct {
	from, newest int64 // milliseconds
	places       map[LeaseID]leasePlace
	left         int // leases that are not forgotten
	peak         int // entries since the map was made
}

// fullChunk is how many IDs a chunk has before the next one begins. Those of one millisecond stay
// together.
const fullChunk = 512

func newLeaseIndex() leaseIndex {
	return leaseIndex{chunks: []*leaseChunk{{places: make(map[LeaseID]leasePlace)}}}
}

// chunk returns the number of the chunk that has the IDs of a millisecond.
func (x *leaseIndex) chunk(ms int64) int {
	low, high := 0, len(x.chunks) // the answer is in [low, high)
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
	place, ok := x.chunks[x.chunk(id.ms())].places[id]
	return place, ok
}

// set makes a place that of a lease, which is new where fresh is true.
func (x *leaseIndex) set(id LeaseID, place leasePlace, fresh bool) {
	ms := id.ms()
	c := x.chunks[x.chunk(ms)]
	if len(c.places) >= fullChunk && ms > c.newest && c == x.chunks[len(x.chunks)-1] {
		c = &leaseChunk{from: ms, places: x.spare}
		if x.spare = nil; c.places == nil {
			c.places = make(map[LeaseID]leasePlace, fullChunk)
		}
		x.chunks = append(x.chunks, c)
	}
	c.places[id] = place
	if fresh {
		c.newest = max(c.newest, ms)
		c.left++
		x.len++
		c.peak = max(c.peak, len(c.places))
	}
}

// leave notes that a lease is forgotten; valid says which others are not. One that came to nothing is
// told apart by nobody, so it is taken out at once.
func (x *leaseIndex) leave(id LeaseID, unborn bool, valid func(LeaseID, leasePlace) bool) {
	at := x.chunk(id.ms())
	c := x.chunks[at]
	if unborn {
		delete(c.places, id)
	}
	c.left--
	x.len--
	if c.left == 0 && at < len(x.chunks)-1 {
		x.remove(at)
		return
	}
	const small = 64
	if c.peak >= small && c.left < c.peak/4 {
		places := make(map[LeaseID]leasePlace, c.left) // a map does not shrink
		for id, place := range c.places {
			if valid(id, place) {
				places[id] = place
			}
		}
		c.places, c.peak = places, len(places)
	}
}

// remove takes a chunk out in which every lease is forgotten.
func (x *leaseIndex) remove(at int) {
	if c := x.chunks[at]; c.peak <= 2*fullChunk {
		clear(c.places)
		x.spare = c.places
	}
	copy(x.chunks[at:], x.chunks[at+1:])
	x.chunks[len(x.chunks)-1] = nil
	x.chunks = x.chunks[:len(x.chunks)-1]
}
