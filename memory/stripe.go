package memory

import (
	"math/bits"
	"sync"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/hash"
)

// stripeCount is the number of stripes: one for each value of the highest byte of a hash.
const stripeCount = 256

// stripe has the states of the entities that hash to it. mu guards all of it.
type stripe struct {
	mu    sync.Mutex
	items stateTable
	// dense has every subject state once, so that the sweep and a snapshot can walk them.
	dense []*subjectState
	// cursor is the index in dense at which the sweep continues.
	cursor int
	// peak is the largest length of dense since it was allocated.
	peak int
	// freezer says which subject states a snapshot has not encoded yet.
	freezer copyOnWrite[*subjectState]
	usage   usageTable
}

// stripeOf returns the index of an entity's stripe. It depends only on the entity, so that a
// request for one entity locks one stripe.
func (s *Store) stripeOf(entity string) int { return stripeAt(s.seed.String(entity)) }

// stripeAt returns the index of the stripe of an entity with a hash.
func stripeAt(entity hash.Hash) int { return int(entity >> 56) }

// hashOf returns the hash of a subject in the table of its stripe.
func (s *Store) hashOf(of weir.Subject) uint64 {
	return uint64(s.seed.String(of.Entity).String(of.Resource))
}

// ensure returns the subject's state, and makes it if there is none.
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

// load adds a subject's state from a snapshot. A store that records no usage forgets that of the
// states.
func (p *stripe) load(of *subjectState, hash uint64) {
	it := p.ensure(of.subject, hash)
	it.states = of.states
	for i := range it.states {
		if p.usage.hours == nil {
			it.states[i].use = hourUse{}
		}
	}
}

// find returns a subject's state, or nil. The caller may change it, because a frozen state is
// preserved first.
func (p *stripe) find(of weir.Subject, hash uint64) *subjectState {
	it := p.items.find(of, hash)
	if it != nil {
		p.preserve(it)
	}
	return it
}

// remove removes a subject state. The last one in dense moves to its index.
func (p *stripe) remove(it *subjectState) {
	last := len(p.dense) - 1
	p.preserve(it)
	p.preserve(p.dense[last]) // a snapshot may have passed the index that it moves to
	p.items.remove(it, it.hash)
	p.dense[it.index] = p.dense[last]
	p.dense[it.index].index = it.index
	p.dense[last] = nil
	p.dense = p.dense[:last]
}

// shrink reallocates the table and dense if they are mostly empty, because neither frees memory by
// itself. Three quarters were removed since they were largest, so the cost is constant for each
// removal.
func (p *stripe) shrink() {
	const small = 64
	if p.peak <= small || len(p.dense) > p.peak/4 {
		return
	}
	p.items.shrink()
	p.dense = append(make([]*subjectState, 0, len(p.dense)), p.dense...)
	p.peak = len(p.dense)
}

// inUse yields the subjects for which of returns true and that have something in use at now. It
// reports whether yield wants more.
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

// stripeSet is a set of stripes as a bit set.
type stripeSet [stripeCount / 64]uint64

func (set *stripeSet) add(stripe int) { set[stripe/64] |= 1 << (stripe % 64) }

// lock locks the stripes of a set in ascending order. Two calls that need the same stripes lock
// them in the same order, so that they cannot deadlock.
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
