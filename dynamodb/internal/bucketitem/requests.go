package bucketitem

import (
	"context"
	"sync/atomic"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
)

// Take is what a reservation takes of one limit on one bucket item.
type Take struct {
	Name  string
	Milli int64
	// BelowCapacity is by how much the request's own ceiling is below the capacity, in milli-units.
	BelowCapacity int64
	// Limit is the definition in force; nil if the configuration was not read.
	Limit *weir.Limit
	// Holding is the position in the outcome.
	Holding int
}

// Needs returns what one of so many shards must have for the whole take. The request's own ceiling
// is divided as the limit is.
func (a *Take) Needs(shards int) int64 {
	n := int64(max(shards, 1))
	return a.Milli + (a.BelowCapacity+n-1)/n
}

// Waiter is a reservation on one bucket item that waits for its answer.
type Waiter struct {
	Now int64
	// Number is the reservation's; a later one has a higher number.
	Number uint64
	Takes  []Take
	// Config is all that applies to the subject; nil if it is not at hand.
	Config *Config
	State  atomic.Int32
	Answer chan Result // has room for it
}

// The states of a waiter.
const (
	waiting  int32 = iota
	Sent           // in a write
	left           // the caller has gone
	answered       // the answer was delivered
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

// Result is the answer to a waiter.
type Result struct {
	Kind ResultKind
	Err  error
	// Found are the limits taken of, as they were before, in the order of the takes.
	Found []LimitImage
	// Others is, for each of them, what the other shards have; nil if there are none.
	Others []int64
	// Shards is how many there are.
	Shards int
}

// deliver gives the waiter its answer. It reports false if the caller has left.
func (m *Waiter) deliver(v Result) bool {
	if !m.State.CompareAndSwap(Sent, answered) && !m.State.CompareAndSwap(waiting, answered) {
		return false
	}
	m.Answer <- v
	return true
}

// abandon notes that the caller leaves. It reports false if the answer was delivered before.
func (m *Waiter) abandon() bool {
	return m.State.CompareAndSwap(waiting, left) || m.State.CompareAndSwap(Sent, left)
}

// Wait returns the answer, or an error if ctx ended first.
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

// Update is charges and refunds on one item that are never denied: of an update of a lease, or of
// a compensation. It goes with the next write of the item.
type Update struct {
	Now    int64
	Deltas []Delta
	// Refill asks for a write that moves the time of the refill. Reread asks for the item to be
	// given the limits of the configuration, which is read again. itemDeleted says that the item
	// was deleted.
	Refill, Reread, itemDeleted bool
	// InDoubt is true after an update that was ended because its refund may or may not have been
	// made.
	InDoubt bool
	// Done is called once, by the queue; nil if nobody waits, and then attempts counts the
	// failures.
	Done     func(err error)
	attempts int
}

// Delta is what an update does to one limit.
type Delta struct {
	Name string
	// Milli is what is charged; below zero it is refunded.
	Milli int64
	Limit *weir.Limit // for an item that must be created again
	// betweenShards is true if units go to another shard: they were not consumed.
	betweenShards bool
	// before is the limit before that was taken which a compensation refunds; nil if that is not
	// known.
	before *LimitImage
}

// Compensation returns the update that refunds takes. found are the limits as they were before
// that, in the order of the takes; nil if that is not known.
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

// finish reports that the update is over.
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
