package memory

import (
	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/kernel"
)

// limitRef refers to the counter of one limit of a subject during a call.
type limitRef struct {
	stripe *stripe
	hash   uint64 // of the subject
	// first reports whether this is the first of the limits of one subject; the others follow it.
	first bool
	// index is that of the limit's state in item, which has the counter; -1 if the counter is new and
	// not in a subject state yet. It stays valid while the stripe is locked.
	index   int32
	item    *subjectState
	counter kernel.Counter
}

// locate finds the stripe of a subject and adds it to the stripes that the call will lock.
func (p *limitRef) locate(s *Store, set *stripeSet, of weir.Subject) {
	entity := s.seed.String(of.Entity)
	at := stripeAt(entity)
	set.add(at)
	p.stripe, p.hash, p.first = &s.stripes[at], uint64(entity.String(of.Resource)), true
}

// sameSubjectAs is locate for another limit of the same subject.
func (p *limitRef) sameSubjectAs(before *limitRef) { p.stripe, p.hash = before.stripe, before.hash }

// load finds the counter of a limit in the subject's state, or makes a new one with the definition
// in force.
func (p *limitRef) load(now int64, it *subjectState, l, inForce *weir.Limit) {
	if p.item, p.index = it, it.stateOf(l); p.index >= 0 {
		p.counter = it.states[p.index].counter
	} else {
		p.counter = newCounter(now, inForce)
	}
}

// define gives the counter the definition l, if l is of the same kind.
func (p *limitRef) define(now int64, l *weir.Limit) {
	if p.index < 0 {
		return
	}
	if s := &p.item.states[p.index]; s.limit != l && s.kind == l.Kind {
		s.limit = l
		p.counter.Redefine(now, l.Definition())
	}
}

// store adds a new counter to the subject's state.
func (p *limitRef) store(of weir.Subject, l *weir.Limit) {
	if p.index < 0 {
		p.item = p.stripe.ensure(of, p.hash)
		p.index = int32(len(p.item.states))
		p.counter = p.item.setCounter(l, p.counter)
	}
}
