package dynamodb

import (
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/internal/schema"
	"github.com/weir-limiter/weir/limiter"
)

// leaseCall is a call about a lease.
type leaseCall func(p *process, id weir.LeaseID) error

// leaseCalls returns the calls about a lease of 10 units.
func leaseCalls() map[string]leaseCall {
	ten, other := weir.Costs{"n": 10}, weir.Costs{"n": 11}
	return map[string]leaseCall{
		"reserve": func(p *process, id weir.LeaseID) error { return p.reserve(id, ten) },
		"other":   func(p *process, id weir.LeaseID) error { return p.reserve(id, other) },
		"adjust": func(p *process, id weir.LeaseID) error {
			_, err := p.Adjust(p.w.Context(), id, 2, []weir.Costs{{"n": 30}})
			return err
		},
		"replay": func(p *process, id weir.LeaseID) error { // of the adjust of the lease
			_, err := p.Adjust(p.w.Context(), id, 1, []weir.Costs{{"n": 99}})
			return err
		},
		"complete": func(p *process, id weir.LeaseID) error {
			_, err := p.Complete(p.w.Context(), id, []weir.Costs{{"n": 3}})
			return err
		},
		"less": func(p *process, id weir.LeaseID) error {
			_, err := p.Complete(p.w.Context(), id, []weir.Costs{{"n": 2}})
			return err
		},
		"cancel": func(p *process, id weir.LeaseID) error {
			_, err := p.Cancel(p.w.Context(), id)
			return err
		},
		"extend": func(p *process, id weir.LeaseID) error {
			_, err := p.Extend(p.w.Context(), id)
			return err
		},
	}
}

// leaseCase is a state of a lease, and the answers to the calls of another server.
type leaseCase struct {
	name    string
	prepare leaseCall
	left    int64 // of 100
	answers map[string]weir.Code
	after   map[string]int64 // what a call that is done leaves, if it changes that
}

// leaseCases returns the states, as in the table of docs/semantics.md.
func leaseCases() []leaseCase {
	const done = weir.Code("")
	call := leaseCalls()
	ended := func(complete, less, cancel weir.Code) map[string]weir.Code {
		return map[string]weir.Code{
			"reserve": weir.Ended, "other": weir.Ended, "adjust": weir.Ended, "replay": weir.Ended,
			"complete": complete, "less": less, "cancel": cancel, "extend": weir.Ended,
		}
	}
	unknown := func(reserve weir.Code) map[string]weir.Code {
		const no = weir.UnknownLease
		return map[string]weir.Code{
			"reserve": reserve, "other": reserve, "adjust": no, "replay": no,
			"complete": no, "less": no, "cancel": no, "extend": no,
		}
	}
	return []leaseCase{
		{
			name: "live",
			prepare: func(p *process, id weir.LeaseID) error {
				if err := call["reserve"](p, id); err != nil {
					return err
				}
				_, err := p.Adjust(p.w.Context(), id, 1, []weir.Costs{{"n": 20}})
				return err
			},
			left: 80,
			answers: map[string]weir.Code{
				"reserve": done, "other": weir.Conflict, "adjust": done, "replay": done, "complete": done,
				"less": done, "cancel": done, "extend": done,
			},
			after: map[string]int64{"adjust": 70, "complete": 97, "less": 98, "cancel": 100},
		},
		{
			name: "completed",
			prepare: func(p *process, id weir.LeaseID) error {
				return errors.Join(call["reserve"](p, id), call["complete"](p, id))
			},
			left: 97, answers: ended(done, weir.Conflict, weir.Conflict),
		},
		{
			name: "cancelled",
			prepare: func(p *process, id weir.LeaseID) error {
				return errors.Join(call["reserve"](p, id), call["cancel"](p, id))
			},
			left: 100, answers: ended(weir.Conflict, weir.Conflict, done),
		},
		{
			name: "expired",
			prepare: func(p *process, id weir.LeaseID) error {
				err := call["reserve"](p, id)
				p.w.clock.Advance(time.Minute)
				return err
			},
			left: 90, answers: ended(weir.Ended, weir.Ended, weir.Ended),
		},
		{
			name: "cancelled before it was reserved",
			prepare: func(p *process, id weir.LeaseID) error {
				_ = call["cancel"](p, id) // the answer is for an unknown lease
				return nil
			},
			left: 100, answers: unknown(weir.Ended),
		},
		{
			name: "unknown", prepare: func(*process, weir.LeaseID) error { return nil },
			left: 100, answers: unknown(done), after: map[string]int64{"reserve": 90, "other": 89},
		},
	}
}

// TestLeaseOnAnotherServer makes each call on one server about a lease that another one has
// reserved, and perhaps ended. Then both servers repeat it: the answer is the same everywhere.
func TestLeaseOnAnotherServer(t *testing.T) {
	t.Parallel()
	table := madeTable(t)
	for _, s := range leaseCases() {
		for verb, call := range leaseCalls() {
			t.Run(s.name+"/"+verb, func(t *testing.T) {
				t.Parallel()
				inTableWorld(t, table, nil, func(w *tableWorld) {
					w.system(noRefill("n", 100))
					o := processOptions{limiter: limiter.Options{LeaseLifetime: time.Minute}}
					here, there := w.process(o), w.process(o)
					id := weir.NewLeaseID(w.clock.Now())
					if err := s.prepare(here, id); err != nil {
						t.Fatalf("prepare: %v", err)
					}
					equal(w, "left before", here.left("a"), s.left)
					left := s.left
					if n, ok := s.after[verb]; ok {
						left = n
					}
					for _, p := range []*process{there, here, there} {
						if err := call(p, id); codeOf(err) != s.answers[verb] {
							t.Fatalf("got %v, want %q", err, s.answers[verb])
						}
						equal(w, "left", p.left("a"), left)
					}
				})
			})
		}
	}
}

// reserve reserves costs of entity a under an ID.
func (p *process) reserve(id weir.LeaseID, c weir.Costs) error {
	l, err := p.Reserve(p.w.Context(), &weir.Request{
		LeaseID: id, Entity: "a", Resource: testResource, Costs: c,
	})
	if err == nil && (len(l.Limits) != 1 || l.Limits[0].Requested != c["n"]) {
		p.w.Errorf("reserve %v: got the limits %v", c, l.Limits)
	}
	return err
}

// left returns what an entity has left of the limit n.
func (p *process) left(entity string) int64 {
	p.w.Helper()
	statuses, err := p.Status(p.w.Context(), entity, testResource)
	if err != nil {
		p.w.Fatalf("status: %v", err)
	}
	for _, s := range statuses {
		if s.Limit == "n" {
			return s.Available
		}
	}
	return 0
}

// meeting is a transport that holds the write of a bucket item until the write of a lease record has
// come, or the other way round.
type meeting struct {
	mu   sync.Mutex
	open chan struct{}
	came int
}

// RoundTrip holds a write until two have come.
func (m *meeting) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Header.Get("X-Amz-Target") == "DynamoDB_20120810.UpdateItem" {
		m.mu.Lock()
		open := m.open
		if m.came++; m.came == 2 && open != nil {
			close(open)
			m.open = nil
		}
		m.mu.Unlock()
		if open != nil {
			select {
			case <-open:
			case <-time.After(patience):
			}
		}
	}
	return http.DefaultTransport.RoundTrip(r)
}

// TestRecordEarly checks that the slot of an ID that the limiter has made is written at the same
// time as the bucket, and that a denial leaves it empty.
func TestRecordEarly(t *testing.T) {
	t.Parallel()
	inTableWorld(t, madeTable(t), nil, func(w *tableWorld) {
		w.system(noRefill("n", 100))
		gate := &meeting{}
		p := w.process(processOptions{store: Options{HTTP: &http.Client{Transport: gate}}})
		p.admit("a", weir.Costs{"n": 1})
		gate.mu.Lock()
		gate.open, gate.came = make(chan struct{}), 0
		gate.mu.Unlock()
		began := time.Now()
		lease := p.admit("a", weir.Costs{"n": 1})
		if time.Since(began) >= patience {
			t.Error("the two writes were not sent together")
		}
		if l, err := p.store.leases.Read(t.Context(), lease.ID); err != nil || l == nil || l.State != schema.LeaseLive {
			t.Errorf("the slot: got %+v, %v", l, err)
		}

		// Another process takes the rest, so that this one is mistaken in what it expects.
		w.process().admit("a", weir.Costs{"n": 98})
		_, err := p.Reserve(t.Context(), &weir.Request{Entity: "a", Resource: testResource, Costs: weir.Costs{"n": 1}})
		denied, ok := errors.AsType[*weir.DeniedError](err)
		if !ok {
			t.Fatalf("got %v, want a denial", err)
		}
		if l, err := p.store.leases.Read(t.Context(), denied.LeaseID); err != nil || l != nil {
			t.Errorf("the slot of the denied ID: got %+v, %v, want none", l, err)
		}
		w.process().must(w.process().Cancel(t.Context(), lease.ID))
		if err := w.process().reserve(denied.LeaseID, weir.Costs{"n": 1}); err != nil {
			t.Errorf("the denied ID once more: %v", err)
		}
		equal(w, "left", p.left("a"), 0)
	})
}

// TestLeaseSlices checks that the registry of slices has those with leases, and forgets old ones.
func TestLeaseSlices(t *testing.T) {
	t.Parallel()
	inTableWorld(t, madeTable(t), nil, func(w *tableWorld) {
		w.system(noRefill("n", 100))
		key := schema.LeaseSlicesKey(w.eye.store.config.Namespace)
		registry := func() []string {
			s, err := client.Get(t.Context(), w.eye.store.client, key, true, schema.ParseLeaseSlices)
			if err != nil || s == nil {
				t.Fatalf("registry: got %v, %v", s, err)
			}
			return s.Names
		}
		first := schema.LeaseSliceAt(testStart)
		w.process().admit("a", weir.Costs{"n": 1})
		w.process().admit("a", weir.Costs{"n": 1})
		equal(w, "slices", strings.Join(registry(), " "), first)
		w.clock.Advance(10 * time.Hour)
		second := schema.LeaseSliceAt(w.clock.Now())
		p := w.process()
		if _, ok := p.store.Recovered(); !ok {
			t.Error("the store does not know that the namespace has leases")
		}
		p.admit("a", weir.Costs{"n": 1})
		equal(w, "slices", strings.Join(registry(), " "), first+" "+second)
		w.clock.Advance(60 * 24 * time.Hour)
		third := schema.LeaseSliceAt(w.clock.Now())
		w.process().admit("a", weir.Costs{"n": 1})
		equal(w, "slices", strings.Join(registry(), " "), second+" "+third)
	})
}
