package dynamodb

import (
	"errors"
	"math"
	"slices"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/dynamodb/internal/bucketitem"
	"github.com/weir-limiter/weir/dynamodb/internal/leaserecord"
	"github.com/weir-limiter/weir/internal/schema"
	"github.com/weir-limiter/weir/internal/sharding"
	"github.com/weir-limiter/weir/kernel"
)

// reserveOp is one attempt of a reservation, with a charge for each subject.
type reserveOp struct {
	now int64
	at  time.Time
	// number is the number of the reservation. It stays the same when the reservation is planned
	// again.
	number  uint64
	charges []*itemCharge
	// plan and out are made after the take if the reservation is unplanned.
	plan *driver.Plan
	out  *driver.Outcome
	// unplanned is the request of an unplanned reservation; nil if there is a plan.
	unplanned *driver.Unplanned
	// recorded is true if the lease was recorded together with the charges.
	recorded bool
	// slot is the part of the transaction that records the lease; nil if the charges are not made in
	// a transaction, or if the lease is not recorded. slotTaken is the lease that the transaction has
	// found in the slot.
	slot      *leaserecord.Transacted
	slotTaken *schema.Lease
	// early is the write of the slot at the same time as the charges; nil if there is none.
	early *earlyRecord
}

// retain retains the subjects once more, for work after the call.
func (op *reserveOp) retain(s *Store) {
	for _, ic := range op.charges {
		ic.state = s.buckets.Subject(ic.state.Subject)
	}
}

// release releases the subjects.
func (op *reserveOp) release() {
	for _, ic := range op.charges {
		ic.state.Release()
	}
}

// chargeFor returns the charge on a subject, creating it if needed.
func (op *reserveOp) chargeFor(s *Store, of weir.Subject) *itemCharge {
	for _, ic := range op.charges {
		if ic.state.Subject == of {
			return ic
		}
	}
	ic := &itemCharge{
		state: s.buckets.Subject(of), now: op.now, number: op.number, unplanned: op.unplanned != nil,
	}
	op.charges = append(op.charges, ic)
	return ic
}

// sharded reports whether a bucket of the reservation is known to have several shards.
func (op *reserveOp) sharded() bool {
	return slices.ContainsFunc(op.charges, func(ic *itemCharge) bool { return ic.state.ShardCount() > 1 })
}

// isUnavailable reports whether an error says that the table did not answer.
func isUnavailable(err error) bool { return errors.Is(err, weir.Unavailable) }

// fillAdmitted fills in the outcome of an admitted reservation.
func (op *reserveOp) fillAdmitted() {
	for _, ic := range op.charges {
		for k := range ic.takes {
			a := &ic.takes[k]
			taken := &op.out.Taken[a.Holding]
			op.fillStatus(ic, k)
			op.out.Limits[a.Holding].Available -= a.Milli / 1000
			taken.Pieces = taken.Pieces[:0]
			for _, d := range ic.shardTakes {
				for i := range d.takes {
					if d.takes[i].Name == a.Name && (d.shard != 0 || len(ic.shardTakes) > 1) {
						taken.Pieces = append(taken.Pieces, shardPiece{d.takes[i].Milli, d.shard}.toSeam())
					}
				}
			}
		}
	}
}

// fillDenied fills in the outcome of a denied reservation.
func (op *reserveOp) fillDenied() {
	op.out.Denied = true
	for _, ic := range op.charges {
		op.out.Contended = op.out.Contended || ic.found.Kind == bucketitem.Contended
		for k := range ic.takes {
			op.fillStatus(ic, k)
		}
	}
}

// fillStatus fills in the status of one take by the limit that it found.
func (op *reserveOp) fillStatus(ic *itemCharge, k int) {
	a := &ic.takes[k]
	t := op.plan.Takes[a.Holding]
	st := &op.out.Limits[a.Holding]
	st.Entity, st.Resource, st.Limit = t.Entity, t.Resource, t.Limit.Name
	st.Kind, st.Level = t.Limit.Kind, t.Level
	st.Capacity, st.Requested = t.Ceiling, a.Milli/1000
	if k >= len(ic.found.Found) { // other writers won every round, and the item is not known
		st.AtLeast = true
		return
	}
	c := &ic.found.Found[k]
	balance, others := c.BalanceMilli, ic.found.Others
	if others != nil {
		balance += others[k]
	}
	if others != nil { // a shard may have more than its share after a split
		balance = min(balance, c.Capacity)
	}
	st.Available = kernel.Units(balance) - a.BelowCapacity/1000
	st.Exceeded = ic.found.Kind == bucketitem.Denied && balance < a.Milli+a.BelowCapacity
	if ic.found.Kind == bucketitem.Denied && others != nil && !ic.exceeded() &&
		c.BalanceMilli < a.Milli+a.BelowCapacity {
		st.Exceeded = true // all shards together have enough, but no single one
	}
	if st.Exceeded {
		st.AtLeast = ic.found.Shards > 1
		if st.AtLeast {
			all := *c
			all.BalanceMilli, all.Rate = balance, sharding.Share(&c.BucketLimit, 1)
			c = &all
		}
		st.RetryAfter = waitFor(c, op.now, a.Milli+a.BelowCapacity)
		if st.AtLeast {
			st.RetryAfter = max(st.RetryAfter, time.Millisecond)
		}
	}
}

// waitFor returns the time until a limit has the given balance.
func waitFor(c *bucketitem.LimitImage, now, milli int64) time.Duration {
	return kernel.Duration(c.Wait(now, milli))
}

// rememberDenials remembers the limits that denied the reservation. Of a bucket with several shards
// it also remembers the balances of the limits that did not deny, because no image has their sum.
func (op *reserveOp) rememberDenials() {
	for _, ic := range op.charges {
		if ic.found.Kind != bucketitem.Denied || len(ic.found.Found) < len(ic.takes) {
			continue
		}
		for k := range ic.takes {
			st := &op.out.Limits[ic.takes[k].Holding]
			r := bucketitem.Denial{Milli: math.MaxInt64, Since: op.now, Total: ic.found.Found[k].BalanceMilli}
			switch {
			case st.Exceeded && st.RetryAfter > 0:
				r.Milli = ic.takes[k].Milli + ic.takes[k].BelowCapacity
				r.Until = op.now + min(st.RetryAfter.Milliseconds(), bucketitem.MaxDenialMS)
			case ic.found.Others != nil:
				r.Until = op.now + bucketitem.MaxDenialMS
			default:
				continue
			}
			if ic.found.Others != nil {
				r.Total += ic.found.Others[k]
			}
			ic.state.RememberDenial(ic.takes[k].Name, r)
		}
	}
}

// deniedFromMemory denies a reservation by remembered denials, without a write. It does so only if
// all its items are known, so that the outcome can report the balance of each limit.
func (op *reserveOp) deniedFromMemory() bool {
	refuses := func(ic *itemCharge) bool { return ic.state.HasDenials() }
	if !slices.ContainsFunc(op.charges, refuses) {
		return false // the usual case
	}
	denies := false
	for _, ic := range op.charges {
		denied, known := ic.judgeFromMemory()
		if !known {
			return false
		}
		denies = denies || denied
	}
	for _, ic := range op.charges {
		if denies {
			for k := range ic.takes {
				ic.state.Queue(0).NoteSeen(bucketitem.SeenLimit{
					Name: ic.takes[k].Name, Now: op.now, Denied: true,
				})
			}
		} else {
			ic.found = bucketitem.Result{}
		}
	}
	return denies
}

// noteSeen notes that the limits were judged although nothing is written, including the limits that
// have enough if another one denied.
func (op *reserveOp) noteSeen() {
	for _, ic := range op.charges {
		if ic.found.Kind != bucketitem.Taken && ic.found.Kind != bucketitem.Denied {
			return // the reservation is planned again, or has failed
		}
	}
	for _, ic := range op.charges {
		for k := range ic.takes {
			a := &ic.takes[k]
			ic.state.Queue(ic.shard).NoteSeen(bucketitem.SeenLimit{
				Name: a.Name, Now: op.now, Limit: a.Limit, Denied: true,
			})
		}
	}
}
