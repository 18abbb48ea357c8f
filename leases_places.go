package weir

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
