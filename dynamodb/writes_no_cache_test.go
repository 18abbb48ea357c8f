package dynamodb

import (
	"errors"
	"time"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/testkit"
	"github.com/weir-limiter/weir/limiter"
)

// writesNoCache returns cases of limiters without a cache, and of limits that are on no table.
func writesNoCache() []mistakeCase {
	none, some := limiter.Options{CacheTTL: -1}, limiter.Options{CacheTTL: time.Minute}
	return []mistakeCase{
		{"no cache: the limiter's own limits", ownLimits(none)},
		{"no cache: the limiter's own limits, beside one that has a cache", ownLimits(some)},
		{"no cache: brought limits", broughtEachTime(none)},
		{"no cache: brought limits, beside one that has a cache", broughtEachTime(some)},
		{"no cache: each reservation reads once, beside its write", uncachedReads},
	}
}

// tenOf checks that ten units are admitted, and no more.
func (p *process) tenOf(ask func(units int64) error) {
	p.w.Helper()
	for _, units := range []int64{1, 1, 1, 7} {
		if err := ask(units); err != nil {
			p.w.Errorf("at %s: %d of ten: %v", p.w.since(), units, err)
		}
		p.quiet()
		p.w.clock.Advance(2 * time.Second)
	}
	if err := ask(1); !isDenied(err) {
		p.w.Errorf("the eleventh: got %v, want denied", err)
	}
}

// ownLimits checks that the limiter's own limits are not stored, so no read of the table finds
// them.
func ownLimits(o limiter.Options) func(w *tableWorld) {
	return func(w *tableWorld) {
		o.Limits = []weir.Limit{noRefill("n", 10)}
		p := w.process(processOptions{limiter: o})
		p.tenOf(func(units int64) error {
			_, err := p.ask(testEntity, weir.Costs{"n": units})
			return err
		})
	}
}

func broughtEachTime(o limiter.Options) func(w *tableWorld) {
	return func(w *tableWorld) {
		p := w.process(processOptions{limiter: o})
		p.tenOf(func(units int64) error {
			_, err := p.Reserve(w.Context(), &weir.Request{
				Entity: testEntity, Resource: testResource, Costs: weir.Costs{"n": units},
				Limits: []weir.Limit{noRefill("n", 10)},
			})
			return err
		})
	}
}

// uncachedReads checks that a process without a cache reads once for each reservation, at the same
// time as its write, and uses only a configuration that it has just read.
func uncachedReads(w *tableWorld) {
	w.system(noRefill("n", 1000))
	w.process().admit(testEntity, weir.Costs{"n": 1})
	counter := &testkit.Counter{}
	p := w.process(processOptions{
		store:   Options{ProcessLeases: true, Client: []func(*ddb.Options){counter.Install}},
		limiter: limiter.Options{CacheTTL: -1},
	})
	counter.Reset()
	for range 3 {
		p.admit(testEntity, weir.Costs{"n": 1})
	}
	equal(w, "calls of three reservations", inCalls(counter.Snapshot()), "3 BatchGetItem, 3 UpdateItem")
	w.system(noRefill("n", 10))
	if l, err := p.ask(testEntity, weir.Costs{"n": 50}); l != nil || !errors.Is(err, weir.NeverSatisfiable) {
		w.Errorf("50 of 10: got %v, want never satisfiable", err)
	}
}
