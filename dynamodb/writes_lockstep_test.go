package dynamodb

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/bucketitem"
	"github.com/weir-limiter/weir/internal/soak"
)

// TestWritesLockstep checks that several processes that know an item and make one call after the
// other get the same answers as one process that has its item to itself and reads it each time: the
// same units, and the same retry-after in milliseconds. The suite compares that one with the model.
func TestWritesLockstep(t *testing.T) {
	t.Parallel()
	table := madeTable(t)
	steps := soak.Amount(80, 1000)
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			inTableWorld(t, table, nil, func(w *tableWorld) { newLockstep(t, w, seed).run(steps) })
		})
	}
}

// lockstep makes the same calls on two items: on one with several processes, on the other with one.
type lockstep struct {
	*tableWorld
	random    *rand.Rand
	limits    []weir.Limit
	alone     *process
	processes []*process
	live      [][]leasePair // of each process
	log       []string
	counts    map[string]int
}

// leasePair are the leases of both sides for one request.
type leasePair struct{ shared, alone *weir.Lease }

// lonely is the entity of the single process.
const lonely = "lonely"

func newLockstep(t *testing.T, w *tableWorld, seed uint64) *lockstep {
	t.Helper()
	t.Attr("seed", fmt.Sprint(seed))
	s := &lockstep{tableWorld: w, random: rand.New(rand.NewPCG(seed, 77)), counts: make(map[string]int)}
	s.limits = []weir.Limit{
		per("a", 50, 20, 7*time.Second), per("b", 10, 3, 11*time.Second), per("c", 1, 1, 40*time.Second),
	}
	w.system(s.limits...)
	s.alone = w.process(processOptions{store: Options{NoSpeculation: true}})
	for range 3 {
		p := w.process()
		for range 2 { // so that the process knows the item
			p.admit(testEntity, weir.Costs{"a": 1})
			s.alone.admit(lonely, weir.Costs{"a": 1})
		}
		s.processes = append(s.processes, p)
	}
	s.live = make([][]leasePair, len(s.processes))
	return s
}

func (s *lockstep) run(steps int) {
	for range steps {
		if s.random.IntN(3) > 0 {
			pauses := []time.Duration{
				time.Millisecond, 30 * time.Millisecond, 300 * time.Millisecond,
				time.Second, 5 * time.Second, 30 * time.Second,
			}
			d := pauses[s.random.IntN(len(pauses))]
			s.clock.Advance(d)
			s.note("+%v", d)
		}
		k := s.random.IntN(len(s.processes))
		p := s.processes[k]
		for _, q := range []*process{p, s.alone} {
			q.store.buckets.Subjects.ForEach(func(of *bucketitem.Subject) { of.ForgetDenials() }) // see refunds at once
		}
		if s.random.IntN(10) < 6 || len(s.live[k]) == 0 {
			s.reserve(k)
		} else {
			s.settle(k)
		}
		p.quiet()
		s.alone.quiet()
		s.compare()
	}
	s.Logf("%v", s.counts)
	for _, what := range []string{"admitted", "denied", "settled"} {
		if s.counts[what] < steps/20 {
			s.Errorf("%d %s in %d steps say little", s.counts[what], what, steps)
		}
	}
}

// note records a call.
func (s *lockstep) note(format string, args ...any) {
	s.log = append(s.log, fmt.Sprintf("%s: ", s.since())+fmt.Sprintf(format, args...))
}

// differ ends the run and prints the last calls.
func (s *lockstep) differ(what string, shared, alone any) {
	s.Helper()
	for _, line := range s.log[max(0, len(s.log)-30):] {
		s.Logf("%s", line)
	}
	s.Fatalf("%s: %v; alone: %v", what, shared, alone)
}

// reserve makes the same request on both sides. Not every request names all limits.
func (s *lockstep) reserve(k int) {
	c := weir.Costs{}
	for _, l := range s.limits {
		if s.random.IntN(2) == 0 {
			c[l.Name] = min(s.random.Int64N(l.Capacity/2+2), l.Capacity)
		}
	}
	if len(c) == 0 {
		return
	}
	of, err := s.processes[k].ask(testEntity, c)
	like, wanted := s.alone.ask(lonely, c)
	s.note("%d reserves %v: %v", k, c, err)
	if (err == nil) != (wanted == nil) {
		s.differ("reserve", err, wanted)
	}
	if err == nil {
		s.counts["admitted"]++
		s.live[k] = append(s.live[k], leasePair{of, like})
		s.sameStatuses("admitted", of.Limits, like.Limits)
		return
	}
	s.counts["denied"]++
	denied, ok := errors.AsType[*weir.DeniedError](err)
	likewise, too := errors.AsType[*weir.DeniedError](wanted)
	if !ok || !too {
		s.differ("not denied", err, wanted)
	}
	s.sameStatuses("denied", denied.Limits, likewise.Limits)
}

// settle ends a lease on both sides: it cancels, or completes with random units.
func (s *lockstep) settle(k int) {
	x := s.random.IntN(len(s.live[k]))
	pair := s.live[k][x]
	s.live[k] = slices.Delete(s.live[k], x, x+1)
	var err, wanted error
	if s.random.IntN(3) == 0 {
		_, err = pair.shared.Cancel(s.Context())
		_, wanted = pair.alone.Cancel(s.Context())
		s.note("%d cancels: %v", k, err)
	} else {
		c := weir.Costs{}
		for _, st := range pair.shared.Limits {
			c[st.Limit] = s.random.Int64N(12)
		}
		_, err = pair.shared.Complete(s.Context(), c)
		_, wanted = pair.alone.Complete(s.Context(), c)
		s.note("%d completes %v: %v", k, c, err)
	}
	if err != nil || wanted != nil {
		s.differ("settle", err, wanted)
	}
	s.counts["settled"]++
}

// compare compares the statuses of both items, as the observer sees them.
func (s *lockstep) compare() {
	shared, err := s.eye.Status(s.Context(), testEntity, testResource)
	like, wanted := s.eye.Status(s.Context(), lonely, testResource)
	if err != nil || wanted != nil {
		s.differ("status", err, wanted)
	}
	s.sameStatuses("status", shared, like)
}

func (s *lockstep) sameStatuses(what string, shared, like []weir.LimitStatus) {
	s.Helper()
	if len(shared) != len(like) {
		s.differ(what, shared, like)
	}
	for i := range shared {
		if shared[i].Limit != like[i].Limit || shared[i].Available != like[i].Available ||
			shared[i].RetryAfter != like[i].RetryAfter {
			s.differ(what, shared[i], like[i])
		}
	}
}
