package memory

import (
	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/kernel"
)

// limitRef is where one limit of a subject is counted while a call judges or changes it.
type limitRef struct {
	stripe *stripe
	hash   uint64 // of the subject
	// first is true for the first of the limits of one subject; the others follow it.
	first   bool
	counter kernel.Counter
	// state has the counter; nil if the counter is not in its item yet.
	state *limitState
}

// locate finds the stripe of a subject and adds it to those that the call locks.
func (p *limitRef) locate(s *Store, set *stripeSet, of weir.Subject) {
	entity := s.seed.String(of.Entity)
	at := stripeAt(entity)
	set.add(at)
	p.stripe, p.hash, p.first = &s.stripes[at], uint64(entity.String(of.Resource)), true
}

// sameSubjectAs is locate for another limit of the same subject.
func (p *limitRef) sameSubjectAs(before *limitRef) { p.stripe, p.hash = before.stripe, before.hash }

// load finds the counter of a limit in the subject's item, or makes one by the definition in force.
func (p *limitRef) load(now int64, it *subjectState, l, inForce *weir.Limit) {
	if p.state = it.stateOf(l); p.state != nil {
		p.counter = p.state.counter
	} else {
		p.counter = newCounter(now, inForce)
	}
}

// define makes l the definition that the counter goes by, if it is of the same kind. If the item's
// states have moved since the counter was found, they do not learn of it, and the next call defines
// the counter again.
func (p *limitRef) define(now int64, l *weir.Limit) {
	if p.state != nil && p.state.limit != l && p.state.kind == l.Kind {
		p.state.limit = l
		p.counter.Redefine(now, l.Definition())
	}
}

// store puts a counter that was made into the subject's item.
func (p *limitRef) store(of weir.Subject, l *weir.Limit) {
	if p.state == nil {
		p.counter = p.stripe.ensure(of, p.hash).setCounter(l, p.counter)
	}
}
