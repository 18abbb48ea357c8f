package bucketitem

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
)

// Take is the amount that a reservation takes of one limit on one bucket item.
type Take struct {
	Name  string
	Milli int64
	// BelowCapacity is the capacity less the request's own ceiling, in milli-units.
	BelowCapacity int64
	// Limit is the definition in force; nil if the configuration was not read.
	Limit *weir.Limit
	// Holding is the index of the take in the outcome.
	Holding int
	// Leaves is the least balance that the shard may have after the take, in milli-units: below
	// zero if a debt is divided among the shards.
	Leaves int64
}

// Needs returns the balance that one of the given number of shards needs for the whole take. The
// part below the capacity is divided among the shards, as the limit is, and rounded up.
func (a *Take) Needs(shards int) int64 {
	n := int64(max(shards, 1))
	return a.Milli + (a.BelowCapacity+n-1)/n + a.Leaves
}

// Waiter is a reservation on one bucket item that waits for its answer.
type Waiter struct {
	Now int64
	// Number is the number of the reservation; a later one has a higher number.
	Number uint64
	Takes  []Take
	// Config is the configuration of the subject; nil if the caller has not read it.
	Config *Config
	// betweenShards is true if the units move to another shard, so that they are not consumed.
	betweenShards bool
	State         atomic.Int32
	Answer        chan Result // has room for one result, so deliver does not block
}

// The states of a waiter.
const (
	waiting  int32 = iota
	Sent           // in a batch
	left           // its caller has left
	answered       // its answer was delivered
)

// ResultKind is the kind of answer to a waiter.
type ResultKind int

// The kinds of results.
const (
	// Taken means that all takes were charged.
	Taken ResultKind = iota
	// Denied means that a limit had too little.
	Denied
	// Contended means that other writers won every round.
	Contended
	// Stale means that the caller's configuration is out of date.
	Stale
	// NoItem means that the item does not exist and the caller has not read the configuration.
	NoItem
	// Failed means that Err says what went wrong.
	Failed
)

// Result is the answer to a waiter.
type Result struct {
	Kind ResultKind
	Err  error
	// Found are the limits of the takes as they were before, in the order of the takes.
	Found []LimitImage
	// Others are the balances of all other shards together, for each take; nil if there are none.
	Others []int64
	// Shards is the shard count.
	Shards int
}

// deliver gives the waiter its answer. It reports false if the caller has left; the charge is then
// the writer's to refund.
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

// Wait returns the answer, or an error if ctx ends first. The state of the waiter decides between
// the two, so that a charge is either answered or refunded.
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

// Update is charges and refunds on one item that are never denied, of an update of a lease or of a
// compensation. It goes with the next write of the item.
type Update struct {
	Now    int64
	Deltas []Delta
	// Refill asks for a write that moves the time of the refill. Reread asks the commit to read the
	// configuration and to bring the item to it. itemDeleted says that the item was deleted.
	Refill, Reread, itemDeleted bool
	// needsItem makes a refund create the item if it does not exist. moves counts how often the
	// units have moved on from shards that had no room for them.
	needsItem bool
	moves     int
	// InDoubt is true if the update ended although its refund may not have been made.
	InDoubt bool
	// Done is called once, when the update has ended; nil if no caller waits. In that case attempts
	// counts the failures.
	Done     func(err error)
	attempts int
}

// Delta is the effect of an update on one limit.
type Delta struct {
	Name string
	// Milli is the amount to charge; below zero it is refunded.
	Milli int64
	// Limit is the definition in force as the process knows it; nil if it knows none. An item
	// that is created again gets it. Changed says that the units were reserved under another one.
	Limit   *weir.Limit
	Changed bool
	// betweenShards is true if the units move to another shard, so that they are not consumed.
	betweenShards bool
	// before is the limit as it was before the take that a compensation refunds; nil if it is not
	// known.
	before *LimitImage
}

// Compensation returns the update that refunds takes. found are the limits as they were before the
// takes, in their order; nil if they are not known.
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

// finish ends the update.
func (r *Update) finish(err error) {
	if r.Done != nil {
		r.Done(err)
	}
}

// refunds reports whether the update returns units to the bucket.
func (r *Update) refunds() bool {
	return slices.ContainsFunc(r.Deltas, func(d Delta) bool { return d.Milli < 0 && !d.betweenShards })
}

// refundsOnly reports whether the update charges nothing.
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
	// Limit is the definition in force if the item may have another one; otherwise nil.
	Limit *weir.Limit
	// Denied is true if the limit was judged for a request that was denied.
	Denied bool
}
