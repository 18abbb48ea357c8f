package memory

import "github.com/weir-limiter/weir"

// spot is where one limit of a subject is counted, while a call judges or settles it.
type spot struct {
	stripe *stripe
	hash   uint64 // of the subject
	// first is true for the first of the limits of one subject; the others follow it.
	first   bool
	counter counter
	// fresh is true where the counter is not in its item yet: what is taken or settled puts it there.
	fresh bool
}

// locate finds the stripe of a subject and adds it to those that the call locks.
func (p *spot) locate(s *Store, set *stripeSet, of weir.Subject) {
	entity := hash(s.seed, of.Entity)
	at := stripeAt(entity)
	set.add(at)
	p.stripe, p.hash, p.first = &s.stripes[at], hash(entity, of.Resource), true
}

// follow is locate for another limit of the same subject.
func (p *spot) follow(before *spot) { p.stripe, p.hash = before.stripe, before.hash }

// open finds the counter of a limit in the subject's item, or makes one by the definition in force.
func (p *spot) open(now int64, it *item, l, inForce *weir.Limit) {
	if p.counter = it.find(l); p.counter == nil {
		p.counter, p.fresh = newCounter(now, inForce), true
	}
}

// keep puts a counter that was made into the subject's item.
func (p *spot) keep(of weir.Subject, l *weir.Limit) {
	if p.fresh {
		p.counter = p.stripe.ensure(of, p.hash).put(l, p.counter)
	}
}
