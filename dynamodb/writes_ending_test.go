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

// writesEnding returns cases of calls during which a store is closed, and of denials without a
// write.
func writesEnding() []neverCase {
	return []neverCase{
		{"ending: Close waits for what is given back", closedUnderDenial},
		{"ending: what comes after Close is unavailable", afterClose},
		{"ending: a denial was asking too", deniedAsked(Options{})},
		{"ending: a denial was asking too, in a transaction", deniedAsked(Options{Transactional: true})},
		{"ending: a chain that is too long is charged nothing, where nobody knows it", coldChain},
	}
}

// closedUnderDenial: the parent denies while the store is being closed. The child's compensation is
// on the table when Close returns.
func closedUnderDenial(w *neverWorld) {
	w.system(still("n", 1000))
	w.limits(weir.Subject{Entity: "parent", Resource: neverResource}, still("n", 10))
	w.family(neverEntity, "parent")
	w.process().admit(neverEntity, weir.Costs{"n": 1})
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
					s := w.stored(neverEntity, 0, "n")
					left, consumed = s.Balance, s.Consumed
				})
				<-p.store.running.Ending
			}
			return err
		}}
		p = w.hooked(how{}, hook)
		p.deny(neverEntity, weir.Costs{"n": 1})
		w.clock.Advance(2 * time.Second) // a denial is remembered for one second
		armed.Store(true)
		_, err := p.Reserve(w.Context(), &weir.Request{
			Entity: neverEntity, Resource: neverResource, Costs: weir.Costs{"n": 5},
		})
		if !isDenial(err) {
			w.Errorf("got %v, want denied", err)
		}
		closing.Wait()
		equal(w, "left when Close returned", left, 999_000)
		equal(w, "consumed when Close returned", consumed, 1000)
	}
}

// isDenial reports whether an error is a denial by a limit.
func isDenial(err error) bool {
	d, ok := errors.AsType[*weir.DeniedError](err)
	return ok && !d.Contended
}

// afterClose: calls after Close neither read nor write.
func afterClose(w *neverWorld) {
	w.system(still("n", 100))
	p := w.process()
	l := p.admit(neverEntity, weir.Costs{"n": 5})
	calls := map[string]func() error{
		"reserve": func() error {
			_, err := p.ask(neverEntity, weir.Costs{"n": 1})
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
			_, err := p.Status(w.Context(), neverEntity, neverResource)
			return err
		},
	}
	for name, call := range calls {
		if err := call(); err != nil {
			w.Errorf("%s before Close: %v", name, err)
		}
	}
	p.quiet()
	consumed := w.stored(neverEntity, 0, "n").Consumed
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
	equal(w, "consumed", w.stored(neverEntity, 0, "n").Consumed, consumed)
}

// deniedAsked: a full limit is forgotten a minute after it was last used; a request that another
// limit denied does not use it.
func deniedAsked(o Options) func(w *neverWorld) {
	return func(w *neverWorld) {
		for _, tc := range []struct {
			entity string
			idle   time.Duration
			want   int64 // the balance after the capacity was raised from 100 to 200
		}{{"remembered", 50 * time.Second, 100}, {"forgotten", 70 * time.Second, 200}} {
			w.system(per("n", 100, 100, time.Second), still("x", 10))
			p := w.process(how{store: o})
			p.admit(tc.entity, weir.Costs{"n": 1, "x": 10})
			w.clock.Advance(30 * time.Second)
			p.deny(tc.entity, weir.Costs{"n": 1, "x": 1})
			w.clock.Advance(tc.idle)
			w.system(still("n", 200), still("x", 10))
			p.reread(tc.entity)
			if tc.want < 200 {
				p.deny(tc.entity, weir.Costs{"n": tc.want + 1})
			}
			p.admit(tc.entity, weir.Costs{"n": tc.want})
			p.deny(tc.entity, weir.Costs{"n": 1})
		}
	}
}

// coldChain: the Python library lets a parent have a parent. A process that goes by the items
// charges one level, like a process that has read the configuration.
func coldChain(w *neverWorld) {
	w.system(still("n", 100))
	chain := []string{"a", "b", "c"}
	for i, e := range slices.Backward(chain) {
		parent := append(chain, "")[i+1]
		if err := w.eye.store.admin.WriteEntity(w.Context(), w.clock.Now(), e, parent, parent != ""); err != nil {
			w.Fatalf("write entity %s: %v", e, err)
		}
		b, err := schema.NewBucket(w.id(e, 0), w.clock.Now().UnixMilli(), []schema.Limit{
			{Name: "n", Capacity: 100, Refill: 1, Seconds: stillPeriod},
		})
		if err != nil {
			w.Fatalf("new bucket: %v", err)
		}
		b.Cascade, b.Parent, b.Limits[0].Balance = parent != "", parent, 50_000
		w.put(b)
	}
	p := w.process()
	for _, how := range []string{"cold", "warm"} {
		if _, err := p.ask("a", weir.Costs{"n": 5}); err == nil || isDenial(err) {
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
