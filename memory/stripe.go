package memory

import (
	"math/bits"
	"sync"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/hash"
)

// stripeCount is how many stripes there are: one for each value of a hash's highest byte.
const stripeCount = 256

// stripe holds the items of the entities that hash to it.
type stripe struct {
	mu    sync.Mutex
	items stateTable
	// dense has every item once, so that the sweep can walk them.
	dense []*subjectState
	// cursor is where in dense the sweep goes on.
	cursor int
	// peak is the most items that there have been since the table was made.
	peak int
	// copyOnWrite has what a snapshot is to see of the items.
	freezer copyOnWrite[*subjectState]
}

// stripeOf returns the position of an entity's stripe. It depends on the entity alone, so that a
// request about one entity takes one lock.
func (s *Store) stripeOf(entity string) int { return stripeAt(s.seed.String(entity)) }

// stripeAt is the stripe of an entity with that hash.
func stripeAt(entity hash.Hash) int { return int(entity >> 56) }

// hashOf returns the hash by which a subject's item is found.
func (s *Store) hashOf(of weir.Subject) uint64 {
	return uint64(s.seed.String(of.Entity).String(of.Resource))
}

// ensure returns the subject's item, made if there was none.
func (p *stripe) ensure(of weir.Subject, hash uint64) *subjectState {
	if it := p.items.find(of, hash); it != nil {
		return it
	}
	it := &subjectState{subject: of, hash: hash, index: int32(len(p.dense)), epoch: p.freezer.epoch}
	p.items.insert(it, hash)
	p.dense = append(p.dense, it)
	p.peak = max(p.peak, len(p.dense))
	return it
}

// find returns a subject's item, which may then be changed, or nil.
func (p *stripe) find(of weir.Subject, hash uint64) *subjectState {
	it := p.items.find(of, hash)
	if it != nil {
		p.preserve(it)
	}
	return it
}

// remove forgets an item; the last one takes its place.
func (p *stripe) remove(it *subjectState) {
	last := len(p.dense) - 1
	p.preserve(it)
	p.preserve(p.dense[last]) // a snapshot may have passed the place that it comes to
	p.items.remove(it, it.hash)
	p.dense[it.index] = p.dense[last]
	p.dense[it.index].index = it.index
	p.dense[last] = nil
	p.dense = p.dense[:last]
}

// shrink makes the table and the list anew where they are mostly empty: neither gives memory back
// by itself. The copy is paid for by the removals that led to it.
func (p *stripe) shrink() {
	const small = 64
	if p.peak <= small || len(p.dense) > p.peak/4 {
		return
	}
	p.items.shrink()
	p.dense = append(make([]*subjectState, 0, len(p.dense)), p.dense...)
	p.peak = len(p.dense)
}

// inUse yields the subjects that are of interest and have something in use at now. It reports
// whether yield wants more.
func (p *stripe) inUse(now int64, of, yield func(weir.Subject) bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, it := range p.dense {
		if of(it.subject) && it.inUse(now) && !yield(it.subject) {
			return false
		}
	}
	return true
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
