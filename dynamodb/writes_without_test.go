package dynamodb

import (
	"context"
	"time"

	"github.com/weir-limiter/weir"
)

// writesWithout is about limiters that keep no resolutions, and limits that no table has.
func writesWithout() []neverCase {
	none, some := weir.Options{CacheTTL: -1}, weir.Options{CacheTTL: time.Minute}
	return []neverCase{
		{"no cache: the limiter's own limits", ownLimits(none)},
		{"no cache: the limiter's own limits, beside one that has a cache", ownLimits(some)},
		{"no cache: brought limits", broughtEachTime(none)},
		{"no cache: brought limits, beside one that has a cache", broughtEachTime(some)},
		{"no cache: a cache that was dropped at the wrong moment is used again", droppedOnce},
	}
}

// tenOf admits up to ten, and not more.
func (p *process) tenOf(ask func(units int64) error) {
	p.w.Helper()
	for _, units := range []int64{1, 1, 1, 7} {
		if err := ask(units); err != nil {
			p.w.Errorf("at %s: %d of ten: %v", p.w.since(), units, err)
		}
		p.quiet()
		p.w.clock.Advance(2 * time.Second)
	}
	if err := ask(1); !isDenial(err) {
		p.w.Errorf("the eleventh: got %v, want denied", err)
	}
}

// ownLimits are stored nowhere: no read of the table finds them.
func ownLimits(o weir.Options) func(w *neverWorld) {
	return func(w *neverWorld) {
		o.Limits = []weir.Limit{still("n", 10)}
		p := w.process(how{limiter: o})
		p.tenOf(func(units int64) error {
			_, err := p.ask(neverEntity, weir.Costs{"n": units})
			return err
		})
	}
}

func broughtEachTime(o weir.Options) func(w *neverWorld) {
	return func(w *neverWorld) {
		p := w.process(how{limiter: o})
		p.tenOf(func(units int64) error {
			_, err := p.Reserve(w.Context(), &weir.Request{
				Entity: neverEntity, Resource: neverResource, Costs: weir.Costs{"n": units},
				Limits: []weir.Limit{still("n", 10)},
			})
			return err
		})
	}
}

// droppedOnce: what is read after a blind reservation may be dropped at once, where limits are set in
// that moment. That does not mean that the limiter keeps nothing.
func droppedOnce(w *neverWorld) {
	w.system(still("n", 1000))
	p := w.process()
	p.admit(neverEntity, weir.Costs{"n": 1})
	spot := p.store.spots.get(p.store, neverSubject())
	defer spot.release()
	dropped := func(_ context.Context, _ weir.Subject, mode weir.ResolveMode) (*weir.Resolved, error) {
		if mode == weir.Cached {
			return nil, nil
		}
		return &weir.Resolved{Level: weir.LevelSystem, Limits: []weir.Limit{still("n", 1000)}}, nil
	}
	p.store.readLater(w.Context(), &journey{errands: []*errand{{spot: spot}}, resolve: dropped})
	p.quiet()
	p.admit(neverEntity, weir.Costs{"n": 1})
	equal(w, "keeps nothing, by what the store believes", p.store.uncached.Load(), false)
	p.admit("stranger", weir.Costs{"n": 1}) // who has no item
	p.log.take()
	w.process().admit("another", weir.Costs{"n": 1})
	p.admit("another", weir.Costs{"n": 1})
	equal(w, "the write on an item that it does not know", kinds(p.log.take()), "cold")

	forgetful := w.process(how{limiter: weir.Options{CacheTTL: -1}})
	for range 3 {
		forgetful.admit(neverEntity, weir.Costs{"n": 1})
	}
	equal(w, "keeps nothing, and does not", forgetful.store.uncached.Load(), true)
}
