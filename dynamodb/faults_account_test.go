package dynamodb

import (
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
)

// faultAccount adds up the answers that callers got, independently of weir's state. The clock
// stands still within a round, so that the balance that a bucket can have between rounds is exact.
type faultAccount struct {
	mu      sync.Mutex
	buckets map[faultBucketName]*faultBucket
	parents map[string]string
	rounds  int
	entity  map[string][]weir.Limit
}

// faultBucketName identifies one limit of one entity.
type faultBucketName struct{ entity, limit string }

// faultBucket sums the answers about one limit. All amounts are in units except used.
type faultBucket struct {
	limit weir.Limit
	// used is the least that can be in use, in milli-units: the units admitted, less everything
	// that may have been refunded, less the gain. Units that may have been taken before the round in
	// which the caller got the answer do not count, because the gain of that time is not known.
	used int64
	// takes, refunds and grown are the sums of the current round.
	takes, refunds, grown int64
	// standing is the number of units for which live and completed leases stand.
	standing int64
	// admitted and denied count calls; highest is the largest use after an admission.
	admitted, denied, highest int64
}

func newFaultAccount(limits map[string][]weir.Limit, parents map[string]string) *faultAccount {
	a := &faultAccount{
		buckets: make(map[faultBucketName]*faultBucket), parents: parents, entity: limits,
	}
	for entity, own := range limits {
		for _, l := range own {
			a.buckets[faultBucketName{entity, l.Name}] = &faultBucket{limit: l}
		}
	}
	return a
}

// standings returns the units that charges take of each limit that they reach.
func (a *faultAccount) standings(charges []weir.Charge) map[faultBucketName]int64 {
	out := make(map[faultBucketName]int64)
	for _, c := range charges {
		for _, entity := range []string{c.Entity, a.parents[c.Entity]} {
			for name, n := range c.Costs {
				at := faultBucketName{entity, name}
				if a.buckets[at] != nil {
					out[at] += n
				}
			}
		}
	}
	return out
}

// admit notes a reservation whose caller got the answer. early says that it was made before this
// round, by a call whose answer was lost.
func (a *faultAccount) admit(of map[faultBucketName]int64, early bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for at, n := range of {
		b := a.buckets[at]
		if !early {
			b.takes += n
		}
		b.standing += n
		b.admitted++
	}
}

func (a *faultAccount) deny(of map[faultBucketName]int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for at := range of {
		a.buckets[at].denied++
	}
}

// ask notes that an update of a lease is sent: units that it returns may be free from now on.
func (a *faultAccount) ask(l *faultLease, want map[faultBucketName]int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !l.asked {
		l.asked, l.askedIn = true, a.rounds
	}
	for at, n := range want {
		if n < l.least[at] {
			a.buckets[at].refunds += l.least[at] - n
			l.least[at] = n
		}
	}
}

// settle notes that a lease stands for other units.
func (a *faultAccount) settle(l *faultLease, now map[faultBucketName]int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	early := l.askedIn < a.rounds
	l.asked = false
	for at, n := range now {
		b := a.buckets[at]
		if !early {
			b.grown += n - l.least[at] // ask has lowered it to n or less
		}
		b.standing += n - l.stands[at]
		l.least[at], l.stands[at] = n, n
	}
}

// endRound checks that the units in use cannot exceed the limits, in whatever order the round's
// calls were made, and then advances the clock.
func (a *faultAccount) endRound(t *testing.T, d time.Duration) {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.rounds++
	for at, b := range a.buckets {
		used := b.used + (b.takes-b.refunds)*1000
		if b.takes > 0 {
			b.highest = max(b.highest, used)
			if used > b.limit.Capacity*1000 {
				t.Errorf("round %d: %s %s: over-admitted: %d milli-units are in use at least, of %d units",
					a.rounds, at.entity, at.limit, used, b.limit.Capacity)
			}
		}
		b.used = max(0, used+b.grown*1000)
		gained := d.Milliseconds() * b.limit.RefillAmount * 1000 / b.limit.RefillPeriod.Milliseconds()
		b.used = max(0, b.used-gained)
		b.takes, b.refunds, b.grown = 0, 0, 0
	}
}

// names returns the account's buckets in order.
func (a *faultAccount) names() []faultBucketName {
	return slices.SortedFunc(maps.Keys(a.buckets), func(x, y faultBucketName) int {
		return slices.Compare([]string{x.entity, x.limit}, []string{y.entity, y.limit})
	})
}

// checkTaken compares the units taken by the table with the units that callers hold, and returns
// the sum that is over-charged. A bucket with fewer units taken than held was given a refund twice.
func (a *faultAccount) checkTaken(t *testing.T, w *faultWorld) (overMilli int64) {
	t.Helper()
	for _, at := range a.names() {
		b := a.buckets[at]
		consumed, _ := w.taken(t, at.entity, at.limit)
		over := consumed - b.standing*1000
		if over < 0 {
			t.Errorf("%s %s: callers hold %d units, and the table has %d milli-units: given back twice",
				at.entity, at.limit, b.standing, consumed)
		}
		overMilli += over
	}
	return overMilli
}

// checkBalances checks that no item holds more than its share, and that each write moved both sums.
func (a *faultAccount) checkBalances(t *testing.T, w *faultWorld) {
	t.Helper()
	for _, at := range a.names() {
		for shard, m := range w.images(t, at.entity) {
			if m == nil {
				continue
			}
			c := m.Limit(at.limit)
			if c == nil || c.Incomplete {
				t.Errorf("%s %s: shard %d has lost the limit", at.entity, at.limit, shard)
				continue
			}
			if share := c.Capacity / int64(m.Shards); c.Balance > share {
				t.Errorf("%s %s: shard %d holds %d milli-units, its share is %d", at.entity, at.limit, shard,
					c.Balance, share)
			}
		}
	}
}

// faultLease is a lease as its caller knows it.
type faultLease struct {
	id      weir.LeaseID
	charges []weir.Charge
	// stands is the number of units by the last definite answer, and least the smallest number that
	// it may stand for.
	stands, least map[faultBucketName]int64
	seq           int64
	degraded      bool
	// asked is true from an update on that was sent until one is answered. askedIn is the round of the
	// first one.
	asked   bool
	askedIn int
	// again is a verb whose answer was lost; nil if there is none. unanswered are all such verbs.
	again      *faultVerb
	unanswered []*faultVerb
	nobody     bool // the lease has ended, and none of the unanswered verbs has ended it
}

// faultVerb is an update of a lease.
type faultVerb struct {
	verb   weir.Verb
	seq    int64
	totals []weir.Costs
}

// after returns the units for which the lease stands after a verb.
func (l *faultLease) after(a *faultAccount, v *faultVerb) map[faultBucketName]int64 {
	charges := make([]weir.Charge, len(l.charges))
	for i, c := range l.charges {
		charges[i] = weir.Charge{Entity: c.Entity, Resource: c.Resource, Costs: maps.Clone(c.Costs)}
		for name := range c.Costs {
			if v.verb == weir.VerbCancel {
				charges[i].Costs[name] = 0
			} else if n, named := v.totals[i][name]; named {
				charges[i].Costs[name] = n
			}
		}
	}
	return a.standings(charges)
}

// settled takes over the result of a verb.
func (l *faultLease) settled(v *faultVerb) {
	for i := range v.totals {
		maps.Copy(l.charges[i].Costs, v.totals[i])
	}
}
