package memory

import (
	"math/bits"
	"sync"

	"github.com/weir-limiter/weir"
)

// stripeCount is a power of two, so that a hash picks a stripe by its low bits.
const stripeCount = 256

// stripe holds the items of the entities that hash to it.
type stripe struct {
	mu    sync.Mutex
	items map[weir.Subject]*item
	// dense has every item once, so that the sweep can walk them.
	dense []*item
	// cursor is where in dense the sweep goes on.
	cursor int
	// peak is the most items that the map has held since it was made.
	peak int
}

// stripeOf returns the position of an entity's stripe. It depends on the entity alone, so that a
// request about one entity takes one lock. The hash is a quick one: who finds entities that share a
// stripe makes them wait for each other, no more.
func (s *Store) stripeOf(entity string) int {
	h := s.seed + uint64(len(entity))
	for ; len(entity) >= 8; entity = entity[8:] {
		h = fold(h ^ (uint64(entity[0]) | uint64(entity[1])<<8 | uint64(entity[2])<<16 |
			uint64(entity[3])<<24 | uint64(entity[4])<<32 | uint64(entity[5])<<40 |
			uint64(entity[6])<<48 | uint64(entity[7])<<56))
	}
	var last uint64
	for i := range len(entity) {
		last |= uint64(entity[i]) << (8 * i)
	}
	return int(fold(h^last) % stripeCount)
}

// fold multiplies and folds the product of 128 bits.
func fold(x uint64) uint64 {
	high, low := bits.Mul64(x, 0xd6e8feb86659fd93)
	return high ^ low
}

// ensure returns the subject's item, made if there was none.
func (p *stripe) ensure(of weir.Subject) *item {
	if it := p.items[of]; it != nil {
		return it
	}
	if p.items == nil {
		p.items = make(map[weir.Subject]*item)
	}
	it := &item{subject: of, at: len(p.dense)}
	p.items[of] = it
	p.dense = append(p.dense, it)
	p.peak = max(p.peak, len(p.dense))
	return it
}

// remove forgets an item; the last one takes its place.
func (p *stripe) remove(it *item) {
	delete(p.items, it.subject)
	last := len(p.dense) - 1
	p.dense[it.at] = p.dense[last]
	p.dense[it.at].at = it.at
	p.dense[last] = nil
	p.dense = p.dense[:last]
}

// shrink makes the map and the list anew where they are mostly empty: neither gives memory back by
// itself. The copy is paid for by the removals that led to it.
func (p *stripe) shrink() {
	const small = 64
	if p.peak <= small || len(p.dense) > p.peak/4 {
		return
	}
	p.items = make(map[weir.Subject]*item, len(p.dense))
	p.dense = append(make([]*item, 0, len(p.dense)), p.dense...)
	for _, it := range p.dense {
		p.items[it.subject] = it
	}
	p.peak = len(p.dense)
}

// stripeSet is a set of stripes, one bit for each.
type stripeSet [stripeCount / 64]uint64

func (set *stripeSet) add(stripe int) { set[stripe/64] |= 1 << (stripe % 64) }

// lock takes the locks of a set in ascending order, which is how no two calls wait for each other.
func (s *Store) lock(set *stripeSet) {
	for i, word := range set {
		for ; word != 0; word &= word - 1 {
			s.stripes[i*64+bits.TrailingZeros64(word)].mu.Lock()
		}
	}
}

func (s *Store) unlock(set *stripeSet) {
	for i, word := range set {
		for ; word != 0; word &= word - 1 {
			s.stripes[i*64+bits.TrailingZeros64(word)].mu.Unlock()
		}
	}
}
