package dynamodb

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/schema"
)

// writesClose returns cases of calls during which a store is closed, and of denials without a
// write.
func writesClose() []mistakeCase {
	return []mistakeCase{
		{"close: Close waits for refunds", closedUnderDenial},
		{"close: calls after Close are unavailable", afterClose},
		{"forgotten: a minute after the last denial", deniedAsked(Options{})},
		{"forgotten: a minute after the last denial, in a transaction", deniedAsked(Options{Transactional: true})},
		{"unknown items: a chain that is too deep is charged nothing", coldChain},
	}
}

// closedUnderDenial has the parent deny while the store is being closed. The child's compensation
// is on the table when Close returns.
func closedUnderDenial(w *tableWorld) {
	w.system(noRefill("n", 1000))
	w.limits(weir.Subject{Entity: "parent", Resource: testResource}, noRefill("n", 10))
	w.family(testEntity, "parent")
	w.process().admit(testEntity, weir.Costs{"n": 1})
	w.process().admit("parent", weir.Costs{"n": 9})
	for range 10 {
		var armed atomic.Bool
		var p *process
		var closing sync.WaitGroup
		var left, consumed int64
		hook := &wrong{send: func(_ context.Context, u *bucketUpdate, send func() error) error {
			err := send()
			if u.id.Entity == "parent" && armed.CompareAndSwap(true, false) {
				closing.Go(func() {
					_ = p.Close()
					s := w.stored(testEntity, 0, "n")
					left, consumed = s.Balance, s.Consumed
				})
				<-p.store.running.Ending
			}
			return err
		}}
		p = w.hooked(processOptions{}, hook)
		p.deny(testEntity, weir.Costs{"n": 1})
		w.clock.Advance(2 * time.Second) // a denial is remembered for one second
		armed.Store(true)
		_, err := p.Reserve(w.Context(), &weir.Request{
			Entity: testEntity, Resource: testResource, Costs: weir.Costs{"n": 5},
		})
		if !isDenied(err) {
			w.Errorf("got %v, want denied", err)
		}
		closing.Wait()
		equal(w, "left when Close returned", left, 999_000)
		equal(w, "consumed when Close returned", consumed, 1000)
	}
}

// afterClose checks that calls after Close neither read nor write.
func afterClose(w *tableWorld) {
	w.system(noRefill("n", 100))
	p := w.process()
	l := p.admit(testEntity, weir.Costs{"n": 5})
	calls := map[string]func() error{
		"reserve": func() error {
			_, err := p.ask(testEntity, weir.Costs{"n": 1})
			return err
		},
		"adjust": func() error {
			_, err := l.Adjust(w.Context(), weir.Costs{"n": 7})
			return err
		},
		"extend": func() error {
			_, err := l.Extend(w.Context())
			return err
		},
		"status": func() error {
			_, err := p.Status(w.Context(), testEntity, testResource)
			return err
		},
	}
	for name, call := range calls {
		if err := call(); err != nil {
			w.Errorf("%s before Close: %v", name, err)
		}
	}
	p.quiet()
	consumed := w.stored(testEntity, 0, "n").Consumed
	if err := p.Close(); err != nil {
		w.Errorf("close: %v", err)
	}
	p.log.take()
	calls["cancel"] = func() error {
		_, err := l.Cancel(w.Context())
		return err
	}
	for name, call := range calls {
		if err := call(); !errors.Is(err, weir.Unavailable) {
			w.Errorf("%s after Close: got %v, want unavailable", name, err)
		}
	}
	equal(w, "writes after Close", kinds(p.log.take()), "")
	equal(w, "consumed", w.stored(testEntity, 0, "n").Consumed, consumed)
}

// deniedAsked checks that a full limit is forgotten a minute after it was last asked, even if
// another limit denied that request.
func deniedAsked(o Options) func(w *tableWorld) {
	return func(w *tableWorld) {
		for _, tc := range []struct {
			entity string
			idle   time.Duration
			want   int64 // the balance after the capacity was raised from 100 to 200
		}{{"remembered", 50 * time.Second, 100}, {"forgotten", 70 * time.Second, 200}} {
			w.system(per("n", 100, 100, time.Second), noRefill("x", 10))
			p := w.process(processOptions{store: o})
			p.admit(tc.entity, weir.Costs{"n": 1, "x": 10})
			w.clock.Advance(30 * time.Second)
			p.deny(tc.entity, weir.Costs{"n": 1, "x": 1})
			w.clock.Advance(tc.idle)
			w.system(noRefill("n", 200), noRefill("x", 10))
			p.reread(tc.entity)
			if tc.want < 200 {
				p.deny(tc.entity, weir.Costs{"n": tc.want + 1})
			}
			p.admit(tc.entity, weir.Costs{"n": tc.want})
			p.deny(tc.entity, weir.Costs{"n": 1})
		}
	}
}

// coldChain tests a parent that has a parent, which the Python library allows. A request over more
// levels than weir charges is an error and is charged nothing, even in a process that has not seen
// the items.
func coldChain(w *tableWorld) {
	w.system(noRefill("n", 100))
	chain := []string{"a", "b", "c"}
	for i, e := range slices.Backward(chain) {
		parent := append(chain, "")[i+1]
		if err := w.eye.store.admin.WriteEntity(w.Context(), w.clock.Now(), e, parent, parent != ""); err != nil {
			w.Fatalf("write entity %s: %v", e, err)
		}
		b, err := schema.NewBucket(w.id(e, 0), w.clock.Now().UnixMilli(), []schema.Limit{
			{Name: "n", Capacity: 100, Refill: 1, Seconds: noRefillPeriod},
		})
		if err != nil {
			w.Fatalf("new bucket: %v", err)
		}
		b.Cascade, b.Parent, b.Limits[0].Balance = parent != "", parent, 50_000
		w.put(b)
	}
	p := w.process()
	for _, how := range []string{"cold", "warm"} {
		if _, err := p.ask("a", weir.Costs{"n": 5}); err == nil || isDenied(err) {
			w.Errorf("%s: got %v, want an error that says how long a chain may be", how, err)
		}
		for _, e := range chain {
			equal(w, how+": left of "+e, w.stored(e, 0, "n").Balance, 50_000)
		}
	}
	w.process().admit("b", weir.Costs{"n": 5})
	equal(w, "left of b", w.stored("b", 0, "n").Balance, 45_000)
	equal(w, "left of c", w.stored("c", 0, "n").Balance, 45_000)
}
