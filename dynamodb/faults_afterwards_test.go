package dynamodb

import (
	"errors"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
)

// calmRounds is the number of rounds without faults after a run with faults.
const calmRounds = 5

// afterwards checks that the faults do not cause denials for long. All units that the items hold
// are admitted, and after a refill all units that the limits allow. A request that is denied while
// another call refunds units is admitted a second later, when the denial is forgotten.
func (r *faultRun) afterwards(t *testing.T) {
	t.Helper()
	var ideal, admitted int64
	first := sum(r.drain(t))
	r.quiet()
	r.pass(t, time.Second)
	ideal = first + sum(r.available(t))
	admitted = first + sum(r.drain(t))
	r.compare(t, "what the items held", admitted, ideal)
	r.pass(t, time.Minute) // enough to refill all debts and over-charges
	ideal, admitted = 0, 0
	for round := range calmRounds {
		for entity, units := range r.drain(t) {
			l := r.account.buckets[faultBucketName{entity, "rpm"}].limit
			admitted += units
			if round == 0 {
				ideal += l.Capacity
			} else {
				ideal += l.RefillAmount
			}
		}
		r.pass(t, time.Second)
	}
	r.compare(t, "what the limits allow", admitted, ideal)
	r.quiet()
}

func sum(units map[string]int64) int64 {
	var n int64
	for _, u := range units {
		n += u
	}
	return n
}

func (r *faultRun) compare(t *testing.T, what string, admitted, ideal int64) {
	t.Helper()
	t.Logf("without faults, %d admitted, %s is %d", admitted, what, ideal)
	if admitted*100 < ideal*99 || admitted > ideal {
		t.Errorf("%d admitted, %s is %d", admitted, what, ideal)
	}
}

// drained returns the entities whose buckets are drained. Children are not among them, because
// their parents deny first.
func (r *faultRun) drained() []string {
	var names []string
	for entity := range r.account.entity {
		if r.account.parents[entity] == "" {
			names = append(names, entity)
		}
	}
	return names
}

// available returns the units that the items of each entity hold now.
func (r *faultRun) available(t *testing.T) map[string]int64 {
	t.Helper()
	held := make(map[string]int64)
	now := r.clock.now().UnixMilli()
	for _, entity := range r.drained() {
		for _, m := range r.images(t, entity) {
			if m == nil {
				continue
			}
			c := m.Limit("rpm")
			held[entity] += max(0, c.StoredBalanceAt(m.Item.RefilledMS, now, m.Shards)) / 1000
		}
	}
	return held
}

// drain makes all callers reserve single units until each is denied everywhere. It returns the
// units that each entity admitted.
func (r *faultRun) drain(t *testing.T) map[string]int64 {
	t.Helper()
	before := make(map[string]int64)
	for _, entity := range r.drained() {
		before[entity] = r.account.buckets[faultBucketName{entity, "rpm"}].standing
	}
	r.together(func(c *faultCaller) {
		for entity := range before {
			c.drain(t, entity)
		}
	})
	for entity := range before {
		before[entity] = r.account.buckets[faultBucketName{entity, "rpm"}].standing - before[entity]
	}
	return before
}

// maxDrains bounds the number of reservations by one caller on one entity.
const maxDrains = 1000

// drain reserves until it is denied, and keeps the leases.
func (c *faultCaller) drain(t *testing.T, entity string) {
	t.Helper()
	charge := weir.Charge{Entity: entity, Resource: faultResource, Costs: weir.Costs{"rpm": 1}}
	for range maxDrains {
		lease, err := c.side.limiter.Reserve(t.Context(), &weir.Request{Charges: []weir.Charge{charge}})
		denied, isDenied := errors.AsType[*weir.DeniedError](err)
		switch {
		case err == nil && lease.Degraded, errors.Is(err, weir.Unavailable): // the machine is slow
		case err == nil:
			c.account.admit(c.account.standings([]weir.Charge{charge}), false)
		case isDenied && denied.Contended:
		case isDenied:
			return
		default:
			t.Errorf("reserve: %v", err)
			return
		}
	}
	t.Errorf("%s admits without end", entity)
}
