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
	first   bool
	counter kernel.Counter
	// state has the counter; nil if the counter is new and not in a subject state yet.
	state *limitState
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
	if p.state = it.stateOf(l); p.state != nil {
		p.counter = p.state.counter
	} else {
		p.counter = newCounter(now, inForce)
	}
}

// define gives the counter the definition l, if l is of the same kind. Adding another counter to
// the subject's state may have moved the states since load, and then p.state is a stale copy whose
// limit is lost. That is harmless: the counter itself is shared, and the next call defines it
// again.
func (p *limitRef) define(now int64, l *weir.Limit) {
	if p.state != nil && p.state.limit != l && p.state.kind == l.Kind {
		p.state.limit = l
		p.counter.Redefine(now, l.Definition())
	}
}

// store adds a new counter to the subject's state.
func (p *limitRef) store(of weir.Subject, l *weir.Limit) {
	if p.state == nil {
		p.counter = p.stripe.ensure(of, p.hash).setCounter(l, p.counter)
	}
}
