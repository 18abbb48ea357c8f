package dynamodb

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/soak"
	"github.com/weir-limiter/weir/internal/testkit"
	"github.com/weir-limiter/weir/limiter"
)

// faultLoad is the size of a run under faults.
type faultLoad struct {
	seed       uint64
	operations int
	perFault   int64 // the least number of each fault
	rounds     int   // at most
	process    bool  // leases are kept in the process
}

// TestFaults makes thousands of calls in three processes on one table while faults of every kind
// are injected between them and DynamoDB.
//
// It does not depend on the speed of the machine: no write has a deadline, the delays end on their
// own, and most callers wait.
func TestFaults(t *testing.T) {
	for _, process := range []bool{false, true} {
		t.Run(leasesIn(process), func(t *testing.T) {
			faultLoad{seed: 20261121, operations: 2_000, perFault: 25, rounds: 200, process: process}.run(t)
		})
	}
}

// TestSoakFaults is TestFaults in full size.
func TestSoakFaults(t *testing.T) {
	soak.Only(t)
	t.Parallel()
	for _, process := range []bool{false, true} {
		t.Run(leasesIn(process), func(t *testing.T) {
			t.Parallel()
			faultLoad{seed: 6, operations: 100_000, perFault: 1000, rounds: 2000, process: process}.run(t)
		})
	}
}

// faultHold is the length of a delay.
const faultHold = 500 * time.Millisecond

// The size of a round.
const (
	faultCallers = 12 // of each process
	faultCalls   = 11 // of each caller in a round
)

// faultRates returns all faults that are injected.
func faultRates() []testkit.Fault {
	return []testkit.Fault{
		testkit.LostAnswer, testkit.LostRequest, testkit.NoConnection, testkit.Cut,
		testkit.DelayedAnswer, testkit.DelayedRequest, testkit.LateRequest, testkit.Throttle,
		testkit.Fail, testkit.FailAfter, testkit.Conflict, testkit.Cancel, testkit.Unprocessed,
		testkit.ShortPage,
	}
}

// faultLimits returns the limits of each entity. Those of the children are the resource's.
func faultLimits() (limits map[string][]weir.Limit, parents map[string]string, callable []string) {
	limits, parents = make(map[string][]weir.Limit), make(map[string]string)
	add := func(entity string, own ...weir.Limit) { limits[entity] = own }
	for i := range 3 {
		e := fmt.Sprintf("flat-%d", i)
		add(e, perSecond("rpm", 20, 10), perSecond("tok.in-1", 1500, 750))
		callable = append(callable, e)
	}
	for i := range 2 {
		e := fmt.Sprintf("split-%d", i)
		add(e, perSecond("rpm", 40, 20), perSecond("tok.in-1", 4000, 2000))
		callable = append(callable, e)
	}
	add("parent-0", perSecond("rpm", 40, 20), perSecond("tok.in-1", 4000, 2000))
	add("parent-1", perSecond("rpm", 40, 20)) // lacks a limit of its children
	for i := range 6 {
		e := fmt.Sprintf("child-%d", i)
		add(e, perSecond("rpm", 20, 10), perSecond("tok.in-1", 1500, 750))
		parents[e] = fmt.Sprintf("parent-%d", i%2)
		callable = append(callable, e)
	}
	return limits, parents, callable
}

// faultRun is one run.
type faultRun struct {
	faultLoad
	*faultWorld
	account *faultAccount
	sides   []*faultSide
	callers []*faultCaller
	on      atomic.Bool
	calls   atomic.Int64
}

func (s faultLoad) run(t *testing.T) {
	t.Helper()
	began := time.Now()
	r := s.prepare(t)
	r.on.Store(true)
	rounds := 0
	for ; rounds < s.rounds && !r.enough(); rounds++ {
		r.round(t)
	}
	r.calm(t)
	r.report(t, rounds, time.Since(began))
	r.judge(t)
	r.afterwards(t)
	r.judge(t)
	r.account.checkBalances(t, r.faultWorld)
}

// prepare creates the table, its limits, and the processes.
func (s faultLoad) prepare(t *testing.T) *faultRun {
	t.Helper()
	t.Logf("seed %d", s.seed)
	t.Attr("seed", fmt.Sprint(s.seed))
	limits, parents, callable := faultLimits()
	r := &faultRun{faultLoad: s, faultWorld: newFaultWorld(t), account: newFaultAccount(limits, parents)}
	for _, entity := range slices.Sorted(maps.Keys(limits)) {
		switch {
		case parents[entity] != "":
			r.eye.mustEntity(t, parents[entity], "", false)
			r.eye.mustEntity(t, entity, parents[entity], true)
			r.limits(t, "", limits[entity]...)
		default:
			r.limits(t, entity, limits[entity]...)
		}
	}
	r.split(t)
	for i, name := range []string{"first", "second", "transactional"} {
		o := Options{
			Transactional: name == "transactional", ProcessLeases: s.process,
		}
		l := limiter.Options{CacheTTL: 5 * time.Second}
		if name == "second" {
			l.OnUnavailable = weir.Allow
		}
		side := r.side(t, name, o, l, &testkit.FaultOptions{
			Seed: s.seed + uint64(i), Rules: r.rules(), Hold: faultHold,
		})
		r.sides = append(r.sides, side)
		for k := range faultCallers {
			r.callers = append(r.callers, &faultCaller{
				side: side, account: r.account, clock: r.clock, entities: callable,
				random: rand.New(rand.NewPCG(s.seed, uint64(i*faultCallers+k))),
				counts: make(map[string]int), inTable: !s.process,
			})
		}
	}
	return r
}

// split splits buckets into four shards, which begin empty, because a shard would keep a balance
// above its share.
func (r *faultRun) split(t *testing.T) {
	t.Helper()
	side := r.side(t, "splitting", Options{}, limiter.Options{}, nil)
	for entity, limits := range r.account.entity {
		if !strings.HasPrefix(entity, "split") {
			continue
		}
		costs := make(weir.Costs)
		for _, l := range limits {
			costs[l.Name] = l.Capacity
			r.account.buckets[faultBucketName{entity, l.Name}].standing = l.Capacity
			r.account.buckets[faultBucketName{entity, l.Name}].used = l.Capacity * 1000
		}
		request := &weir.Request{Entity: entity, Resource: faultResource, Costs: costs}
		if _, err := side.limiter.Reserve(t.Context(), request); err != nil {
			t.Fatal(err)
		}
		p := side.store.buckets.Subject(weir.Subject{Entity: entity, Resource: faultResource})
		for _, shards := range []int{1, 2} {
			p.DoubleShards(t.Context(), shards)
			side.store.running.Wait()
		}
		if p.Release(); p.ShardCount() != 4 {
			t.Fatalf("%s has %d shards", entity, p.ShardCount())
		}
	}
}

// rules returns the fault rules of the run.
func (r *faultRun) rules() []testkit.FaultRule {
	on := func(match func(*testkit.FaultRequest) bool) func(*testkit.FaultRequest) bool {
		return func(q *testkit.FaultRequest) bool { return r.on.Load() && (match == nil || match(q)) }
	}
	// The SDK repeats a transaction, and a late one could be applied after the repeat was refused. A
	// request whose caller has left is late too.
	single := func(q *testkit.FaultRequest) bool { return q.Operation != "TransactWriteItems" }
	burst, count := []byte("flat-0"), 0
	return []testkit.FaultRule{
		{Fault: testkit.ShortPage, PerMille: 300, Match: on(nil)},
		{Fault: testkit.Unprocessed, PerMille: 60, Match: on(nil)},
		{Fault: testkit.Cancel, PerMille: 250, Match: on(nil)},
		// Throttle a bucket for a while, not only single requests.
		{Fault: testkit.Throttle, PerMille: 1000, Match: on(func(q *testkit.FaultRequest) bool {
			if q.Operation != "UpdateItem" || !bytes.Contains(q.Body, burst) {
				return false
			}
			count++
			return count%36 < 8
		})},
		// Cut the connection between the write on a child and the one on its parent.
		{Fault: testkit.Cut, PerMille: 10, Match: on(func(q *testkit.FaultRequest) bool {
			return q.Operation == "UpdateItem" && bytes.Contains(q.Body, []byte("parent-"))
		})},
		{Fault: testkit.LostAnswer, PerMille: 14, Match: on(nil)},
		{Fault: testkit.LostRequest, PerMille: 14, Match: on(nil)},
		{Fault: testkit.NoConnection, PerMille: 14, Match: on(nil)},
		{Fault: testkit.DelayedAnswer, PerMille: 14, Match: on(nil)},
		{Fault: testkit.DelayedRequest, PerMille: 14, Match: on(nil)},
		{Fault: testkit.LateRequest, PerMille: 14, Match: on(single)},
		{Fault: testkit.Fail, PerMille: 14, Match: on(nil)},
		{Fault: testkit.FailAfter, PerMille: 14, Match: on(nil)},
		{Fault: testkit.Conflict, PerMille: 25, Match: on(nil)},
	}
}

// count returns the number of times that a fault was injected.
func (r *faultRun) count(f testkit.Fault) int64 {
	var n int64
	for _, s := range r.sides {
		n += s.faults.Count(f)
	}
	return n
}

// enough reports whether the run has made enough calls and injected enough faults.
func (r *faultRun) enough() bool {
	if r.calls.Load() < int64(r.operations) {
		return false
	}
	return !slices.ContainsFunc(faultRates(), func(f testkit.Fault) bool { return r.count(f) < r.perFault })
}

// round makes all callers call at one instant of the clock, and then advances it.
func (r *faultRun) round(t *testing.T) {
	t.Helper()
	r.together(func(c *faultCaller) {
		for range faultCalls {
			c.step(t)
			if r.calls.Add(1)%24 == 0 {
				for _, s := range r.sides {
					s.faults.Heal()
				}
			}
		}
	})
	r.pass(t, time.Second)
}

// together calls f for all callers at the same time.
func (r *faultRun) together(f func(c *faultCaller)) {
	var wg sync.WaitGroup
	for _, c := range r.callers {
		wg.Go(func() { f(c) })
	}
	wg.Wait()
}

// pass ends a round.
func (r *faultRun) pass(t *testing.T, d time.Duration) {
	t.Helper()
	r.account.endRound(t, d)
	r.clock.advance(d)
}

// calm ends the faults, and repeats the calls whose answers were lost until they are answered.
func (r *faultRun) calm(t *testing.T) {
	t.Helper()
	r.on.Store(false)
	for _, s := range r.sides {
		s.faults.Heal()
	}
	r.quiet()
	r.together(func(c *faultCaller) { c.resolve(t) })
	r.quiet()
	if !r.process {
		r.forsake(t)
		r.quiet()
	}
	r.pass(t, time.Second)
}

// forsake cancels, on a process without faults, the leases that callers do not hold although the
// table may: their reserve had no answer or a degraded lease, and no repeat was admitted.
func (r *faultRun) forsake(t *testing.T) {
	t.Helper()
	s := r.side(t, "cancelling", Options{}, limiter.Options{}, nil)
	for _, c := range r.callers {
		for _, id := range c.forsaken {
			_, err := s.limiter.Cancel(t.Context(), id)
			if err != nil && !errors.Is(err, weir.UnknownLease) {
				t.Errorf("cancel of the forsaken lease %s: %v", id, err)
			}
		}
	}
	s.store.running.Wait()
}

// quiet waits until no request is in flight, late ones included.
func (r *faultRun) quiet() {
	for _, s := range r.sides {
		s.store.running.Wait()
		s.faults.Wait()
		s.wire.going.Wait()
	}
}

// ambiguousMilli returns the sum of the processes' counts of ambiguous milli-units, without those
// that were to move between shards: they are not in the counts of consumed units. recorded is the
// part of it that is in doubt only because the record of a lease is.
func (r *faultRun) ambiguousMilli() (all, recorded int64) {
	for _, s := range r.sides {
		n := &s.store.buckets.Counts
		all += s.store.Stats().AmbiguousMilli - n.AmbiguousMovedMilli.Load()
		recorded += n.AmbiguousRecordMilli.Load()
	}
	return all, recorded
}

// judge compares the table with the callers' leases: no refund was made twice, and every
// over-charged milli-unit is explained. The metric sums the charges and the refunds of ambiguous
// writes, and the wire has their difference, so the refunds among them are known. The over-charge
// is the ambiguous charges that the server applied plus the ambiguous refunds that it did not
// apply.
//
// If leases are in the table, that and the units whose lease may have no record are a bound, and
// not the sum. A repeat of a transaction may find that the lease was recorded, and most records
// that were in doubt turn out to be there.
func (r *faultRun) judge(t *testing.T) {
	t.Helper()
	over := r.account.checkTaken(t, r.faultWorld)
	ambiguous, recorded := r.ambiguousMilli()
	var all, applied int64
	for _, s := range r.sides {
		some, done := s.wire.ambiguous()
		all, applied = all+some, applied+done
		if s.wire.err != nil {
			t.Error(s.wire.err)
		}
	}
	refunds := (ambiguous - recorded - all) / 2
	explained := applied + refunds + recorded
	t.Logf("over-charged: %d milli-units; by the metric %d at most; by the wire %d", over, ambiguous,
		explained)
	if over > ambiguous {
		t.Errorf("%d milli-units are over-charged, and the metric says %d at most", over, ambiguous)
	}
	if over > explained || r.process && over < explained {
		t.Errorf("%d milli-units are over-charged, and lost answers explain %d", over, explained)
	}
}

// report prints what happened.
func (r *faultRun) report(t *testing.T, rounds int, took time.Duration) {
	t.Helper()
	outcomes := make(map[string]int)
	for _, c := range r.callers {
		for what, n := range c.counts {
			outcomes[what] += n
		}
	}
	var asked int64
	for _, s := range r.sides {
		asked += s.faults.Asked()
	}
	t.Logf("%d operations in %d rounds, %.1f s, %d requests", r.calls.Load(), rounds, took.Seconds(), asked)
	for _, what := range slices.Sorted(maps.Keys(outcomes)) {
		t.Logf("outcome %-22s %d", what, outcomes[what])
	}
	for _, f := range faultRates() {
		t.Logf("fault   %-22s %d", f, r.count(f))
		if r.count(f) < r.perFault {
			t.Errorf("%s happened %d times, want %d", f, r.count(f), r.perFault)
		}
	}
	admitted, denied := outcomes["admitted"], outcomes["denied"]
	if all := admitted + denied; admitted*20 < all || denied*20 < all {
		t.Errorf("%d admitted, %d denied: want one in twenty of each", admitted, denied)
	}
	if n := r.calls.Load(); n < int64(r.operations) {
		t.Errorf("%d operations, want %d", n, r.operations)
	}
}
