package bucketitem

import (
	"context"
	"sync/atomic"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
)

// Take is what a reservation wants of one limit on one bucket item.
type Take struct {
	Name  string
	Milli int64
	// BelowCapacity is by how much the request's own ceiling is below the capacity, in milli-units.
	BelowCapacity int64
	// Limit is the definition in force; nil where the configuration was not read.
	Limit *weir.Limit
	// Holding is the position in the outcome.
	Holding int
}

// Needs is what one of so many shards must have for the whole of it: the request's own ceiling is
// shared as the limit is.
func (a *Take) Needs(shards int) int64 {
	n := int64(max(shards, 1))
	return a.Milli + (a.BelowCapacity+n-1)/n
}

// Waiter is a reservation on its way into one bucket item.
type Waiter struct {
	Now int64
	// Number is the reservation's; a later one has a higher number.
	Number uint64
	Takes  []Take
	// Resolved is all that applies to the subject; nil where it is not at hand.
	Resolved *weir.Resolved
	State    atomic.Int32
	Answer   chan Result // has room for it
}

// The states of a member.
const (
	waiting  int32 = iota
	Sent           // in a write
	left           // the caller has gone
	answered       // the verdict is there
)

// ResultKind says what became of a waiter.
type ResultKind int

// The kinds of results.
const (
	// Taken: all that was asked was charged.
	Taken ResultKind = iota
	// Denied: a limit had too little.
	Denied
	// Contended: other writers won every round.
	Contended
	// Stale: the caller's configuration is out of date.
	Stale
	// NoItem: there is no item, and the caller has not read the configuration.
	NoItem
	// Failed: see the error.
	Failed
)

// Result is the answer to a member.
type Result struct {
	Kind ResultKind
	Err  error
	// Found are the limits asked, as they were before the member, in its order.
	Found []LimitImage
	// Others is, for each of them, what the other shards have; nil where there are none. shards is how
	// many there are.
	Others []int64
	Shards int
}

// deliver gives the member its answer, and reports false where nobody waits for it any more.
func (m *Waiter) deliver(v Result) bool {
	if !m.State.CompareAndSwap(Sent, answered) && !m.State.CompareAndSwap(waiting, answered) {
		return false
	}
	m.Answer <- v
	return true
}

// abandon is called where the caller goes away. It reports false where the answer is there already.
func (m *Waiter) abandon() bool {
	return m.State.CompareAndSwap(waiting, left) || m.State.CompareAndSwap(Sent, left)
}

// Wait waits for the answer, or for the caller to go.
func (m *Waiter) Wait(ctx context.Context) Result {
	select {
	case v := <-m.Answer:
		return v
	case <-ctx.Done():
	}
	if m.abandon() {
		return Result{Kind: Failed, Err: client.AbandonedError(ctx)}
	}
	return <-m.Answer
}

// unplanned reports whether the caller has not read the configuration.
func (m *Waiter) unplanned() bool { return len(m.Takes) > 0 && m.Takes[0].Limit == nil }

// Update is a settlement or compensation that goes along with the next write of an item. It is never
// denied.
type Update struct {
	Now    int64
	Deltas []Delta
	// Refill asks for a write that moves the time of the refill, and reread for the item to be brought
	// to the configuration, read anew. forget says that the item was deleted.
	Refill, Reread, itemDeleted bool
	// InDoubt is true if the ride is over, but nobody knows whether the write that gave it back
	// was made.
	InDoubt bool
	// Done is called once, from the line; nil where nobody waits, and then tries counts how often it
	// failed.
	Done     func(err error)
	attempts int
}

// Delta is what a ride does to one limit.
type Delta struct {
	Name string
	// Milli is what is charged; below zero it is given back.
	Milli int64
	Limit *weir.Limit // for an item that must be made anew
	// betweenShards is true where units go to another shard of the bucket: nobody has consumed them.
	betweenShards bool
	// before is what the limit was before that was taken which a compensation gives back; nil if that
	// is not known.
	before *LimitImage
}

// Compensation gives back what was taken. found are the limits asked, as they were before that,
// in the order of the asks; nil if that is not known.
func Compensation(now int64, asks []Take, found []LimitImage) *Update {
	r := &Update{Now: now}
	for k := range asks {
		ch := Delta{Name: asks[k].Name, Milli: -asks[k].Milli}
		if k < len(found) {
			ch.before = &found[k]
		}
		r.Deltas = append(r.Deltas, ch)
	}
	return r
}

func (r *Update) finish(err error) {
	if r.Done != nil {
		r.Done(err)
	}
}

// refundsOnly reports whether nothing is charged.
func (r *Update) refundsOnly() bool {
	for i := range r.Deltas {
		if r.Deltas[i].Milli > 0 {
			return false
		}
	}
	return true
}

// SeenLimit is a limit that was judged or settled without a write.
type SeenLimit struct {
	Name string
	Now  int64
	// Limit is the definition in force, if the item may have another one; nil if it has not.
	Limit *weir.Limit
	// Denied is true if it was judged for a request that was denied.
	Denied bool
}
