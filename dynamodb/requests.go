package dynamodb

import (
	"context"
	"sync/atomic"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
)

// itemTake is what a reservation wants of one limit on one bucket item.
type itemTake struct {
	name  string
	milli int64
	// belowCapacity is by how much the request's own ceiling is below the capacity, in milli-units.
	belowCapacity int64
	// limit is the definition in force; nil where the configuration was not read.
	limit *weir.Limit
	// holding is the position in the outcome.
	holding int
}

// needs is what one of so many shards must have for the whole of it: the request's own ceiling is
// shared as the limit is.
func (a *itemTake) needs(shards int) int64 {
	n := int64(max(shards, 1))
	return a.milli + (a.belowCapacity+n-1)/n
}

// waiter is a reservation on its way into one bucket item.
type waiter struct {
	now int64
	// number is the reservation's; a later one has a higher number.
	number uint64
	asks   []itemTake
	// resolved is all that applies to the subject; nil where it is not at hand.
	resolved *weir.Resolved
	state    atomic.Int32
	answer   chan waiterResult // has room for it
}

// The states of a member.
const (
	waiting  int32 = iota
	sent           // in a write
	left           // the caller has gone
	answered       // the verdict is there
)

// resultKind is what became of a member.
type resultKind int

const (
	taken     resultKind = iota
	denied               // by a limit
	contended            // by other writers
	stale                // what the caller knows of the configuration is not so any more
	missing              // there is no item, and the caller has not read the configuration
	failed
)

// waiterResult is the answer to a member.
type waiterResult struct {
	kind resultKind
	err  error
	// found are the limits asked, as they were before the member, in its order.
	found []limitImage
	// others is, for each of them, what the other shards have; nil where there are none. shards is how
	// many there are.
	others []int64
	shards int
}

// deliver gives the member its answer, and reports false where nobody waits for it any more.
func (m *waiter) deliver(v waiterResult) bool {
	if !m.state.CompareAndSwap(sent, answered) && !m.state.CompareAndSwap(waiting, answered) {
		return false
	}
	m.answer <- v
	return true
}

// abandon is called where the caller goes away. It reports false where the answer is there already.
func (m *waiter) abandon() bool {
	return m.state.CompareAndSwap(waiting, left) || m.state.CompareAndSwap(sent, left)
}

// wait waits for the answer, or for the caller to go.
func (m *waiter) wait(ctx context.Context) waiterResult {
	select {
	case v := <-m.answer:
		return v
	case <-ctx.Done():
	}
	if m.abandon() {
		return waiterResult{kind: failed, err: client.AbandonedError(ctx)}
	}
	return <-m.answer
}

// unplanned reports whether the caller has not read the configuration.
func (m *waiter) unplanned() bool { return len(m.asks) > 0 && m.asks[0].limit == nil }

// itemUpdate is a settlement or compensation that goes along with the next write of an item. It is never
// denied.
type itemUpdate struct {
	now    int64
	deltas []delta
	// refill asks for a write that moves the time of the refill, and reread for the item to be brought
	// to the configuration, read anew. forget says that the item was deleted.
	refill, reread, itemDeleted bool
	// inDoubt is true if the ride is over, but nobody knows whether the write that gave it back
	// was made.
	inDoubt bool
	// done is called once, from the line; nil where nobody waits, and then tries counts how often it
	// failed.
	done     func(err error)
	attempts int
}

// delta is what a ride does to one limit.
type delta struct {
	name string
	// milli is what is charged; below zero it is given back.
	milli int64
	limit *weir.Limit // for an item that must be made anew
	// betweenShards is true where units go to another shard of the bucket: nobody has consumed them.
	betweenShards bool
	// before is what the limit was before that was taken which a compensation gives back; nil if that
	// is not known.
	before *limitImage
}

// compensation gives back what was taken. found are the limits asked, as they were before that,
// in the order of the asks; nil if that is not known.
func compensation(now int64, asks []itemTake, found []limitImage) *itemUpdate {
	r := &itemUpdate{now: now}
	for k := range asks {
		ch := delta{name: asks[k].name, milli: -asks[k].milli}
		if k < len(found) {
			ch.before = &found[k]
		}
		r.deltas = append(r.deltas, ch)
	}
	return r
}

func (r *itemUpdate) finish(err error) {
	if r.done != nil {
		r.done(err)
	}
}

// refundsOnly reports whether nothing is charged.
func (r *itemUpdate) refundsOnly() bool {
	for i := range r.deltas {
		if r.deltas[i].milli > 0 {
			return false
		}
	}
	return true
}

// seenLimit is a limit that was judged or settled without a write.
type seenLimit struct {
	name string
	now  int64
	// limit is the definition in force, if the item may have another one; nil if it has not.
	limit *weir.Limit
	// denied is true if it was judged for a request that was denied.
	denied bool
}
