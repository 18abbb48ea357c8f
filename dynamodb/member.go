package dynamodb

import (
	"sync/atomic"

	"github.com/weir-limiter/weir"
)

// ask is what a reservation wants of one limit on one bucket item.
type ask struct {
	name  string
	milli int64
	// lowered is by how much the request's own ceiling is below the capacity, in milli-units.
	lowered int64
	// limit is the definition in force; nil where the configuration was not read.
	limit *weir.Limit
	// holding is the position in the outcome.
	holding int
}

// needs is what one of so many shards must have for the whole of it: the request's own ceiling is
// shared as the limit is.
func (a *ask) needs(shards int) int64 {
	n := int64(max(shards, 1))
	return a.milli + (a.lowered+n-1)/n
}

// member is a reservation on its way into one bucket item.
type member struct {
	now int64
	// number is the reservation's; a later one has a higher number.
	number uint64
	asks   []ask
	// resolved is all that applies to the subject; nil where it is not at hand.
	resolved *weir.Resolved
	state    atomic.Int32
	answer   chan verdict // has room for it
}

// The states of a member.
const (
	waiting  int32 = iota
	sent           // in a write
	left           // the caller has gone
	answered       // the verdict is there
)

// ruling is what became of a member.
type ruling int

const (
	taken     ruling = iota
	denied           // by a limit
	contended        // by other writers
	stale            // what the caller knows of the configuration is not so any more
	missing          // there is no item, and the caller has not read the configuration
	failed
)

// verdict is the answer to a member.
type verdict struct {
	ruling ruling
	err    error
	// found are the limits asked, as they were before the member, in its order.
	found []counter
	// others is, for each of them, what the other shards have; nil where there are none. shards is how
	// many there are.
	others []int64
	shards int
}

// member is that of an errand.
func (j *journey) member(e *errand) *member { return j.part(e, e.asks) }

// part is one for a part of an errand.
func (j *journey) part(e *errand, asks []ask) *member {
	return &member{
		now: j.now, number: j.number, asks: asks, resolved: e.resolved, answer: make(chan verdict, 1),
	}
}

// tell gives the member its answer, and reports false where nobody waits for it any more.
func (m *member) tell(v verdict) bool {
	if !m.state.CompareAndSwap(sent, answered) && !m.state.CompareAndSwap(waiting, answered) {
		return false
	}
	m.answer <- v
	return true
}

// leave is called where the caller goes away. It reports false where the answer is there already.
func (m *member) leave() bool {
	return m.state.CompareAndSwap(waiting, left) || m.state.CompareAndSwap(sent, left)
}

// ride is a settlement or compensation that goes along with the next write of an item. It is never
// denied.
type ride struct {
	now     int64
	changes []change
	// refill asks for a write that moves the time of the refill, and reread for the item to be brought
	// to the configuration, read anew. forget says that the item was deleted.
	refill, reread, forget bool
	// inDoubt is true if the ride is over, but nobody knows whether the write that gave it back
	// was made.
	inDoubt bool
	// done is called once, from the line; nil where nobody waits, and then tries counts how often it
	// failed.
	done  func(err error)
	tries int
}

// change is what a ride does to one limit.
type change struct {
	name string
	// milli is what is charged; below zero it is given back.
	milli int64
	limit *weir.Limit // for an item that must be made anew
	// moves is true where units go to another shard of the bucket: nobody has consumed them.
	moves bool
	// from is what the limit was before that was taken which a compensation gives back; nil if that
	// is not known.
	from *counter
}

// blind reports whether the caller has not read the configuration.
func (m *member) blind() bool { return len(m.asks) > 0 && m.asks[0].limit == nil }

// compensation gives back what was taken. found are the limits asked, as they were before that,
// in the order of the asks; nil if that is not known.
func compensation(now int64, asks []ask, found []counter) *ride {
	r := &ride{now: now}
	for k := range asks {
		ch := change{name: asks[k].name, milli: -asks[k].milli}
		if k < len(found) {
			ch.from = &found[k]
		}
		r.changes = append(r.changes, ch)
	}
	return r
}

func (r *ride) finish(err error) {
	if r.done != nil {
		r.done(err)
	}
}

// refunds reports whether nothing is charged.
func (r *ride) refunds() bool {
	for i := range r.changes {
		if r.changes[i].milli > 0 {
			return false
		}
	}
	return true
}
