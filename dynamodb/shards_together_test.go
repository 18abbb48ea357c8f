package dynamodb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/internal/schema"
	"github.com/weir-limiter/weir/internal/sharding"
)

// severalShardCases returns cases of requests that several shards answer together. They admit what
// one bucket would.
func severalShardCases() []mistakeCase {
	return []mistakeCase{
		{"several shards: transactions use all of them", transactionsSpread},
		{"several shards: transactions take more than a share", transactionsLarge},
		{"several shards: transactions take from child and parent, or from neither", transactionsFamily},
		{"several shards: share the ceiling of a request", broughtCeiling},
		{"several shards: share the ceiling of a large request", broughtLarge},
		{"several shards: nothing is taken from a limit in debt", zeroCostInDebt},
		{"several shards: a part without an answer is not a denial", partUnknown},
		{"several shards: a denied part refunds the others", partDenied},
		{"several shards: a part with some of the limits is refunded", partOfSome},
		{"several shards: are read by the count that an item has meanwhile", shardCountLearnedLate},
		{"several shards: what one has above its share is available to all", refundKeptAboveShare},
		{"several shards: a refund goes to the shards that have room", refundMoves(0, 100, 0, 100)},
		{"several shards: a refund makes the shard that has room", refundMoves(0, -1, -1, -1)},
		{"several shards: a refund on a full bucket is lost", refundMoves(100, 100, 100, 100)},
		{"several shards: all pay for a debt", debtShared},
		{"several shards: a debt above what all have is divided", debtDivided},
	}
}

// transactional opens a process that writes several items in one transaction.
func (w *tableWorld) transactional() *process {
	w.Helper()
	return w.process(processOptions{store: Options{Transactional: true}})
}

// transactionsSpread checks that all shards are used. A shard that no request picks would not gain,
// and its share would be denied to all.
func transactionsSpread(w *tableWorld) {
	const shards = 8
	w.system(per("n", 1000, 1000, time.Minute))
	p := w.transactional()
	p.admit(testEntity, weir.Costs{"n": 1})
	for range maxPicks {
		if w.count(testEntity) >= shards {
			break
		}
		w.crowded(testEntity, 0)
		p.admit(testEntity, weir.Costs{"n": 0})
		w.clock.Advance(sharding.SpreadMS * time.Millisecond)
	}
	p.createShards(testEntity, "n", shards)
	w.clock.Advance(time.Minute)
	p.exactly(testEntity, "n", 1000, 1000)
	for range 5 {
		w.clock.Advance(3 * time.Second)
		p.exactly(testEntity, "n", 1000, 50)
	}
}

// transactionsLarge checks that a cost is admitted if all shards together have it, though no single
// one does.
func transactionsLarge(w *tableWorld) {
	limit := []weir.Limit{noRefill("n", 100)}
	w.system(limit...)
	w.putShards(testEntity, 2, limit, units{"n": 50}, units{"n": 50})
	p := w.transactional()
	p.admit(testEntity, weir.Costs{"n": 0})
	p.admit(testEntity, weir.Costs{"n": 60})
	w.together(testEntity, "n", 40_000)
	p.deny(testEntity, weir.Costs{"n": 41})
	p.admit(testEntity, weir.Costs{"n": 40})
	w.together(testEntity, "n", 0)
}

// transactionsFamily checks that no units stay taken on a child if its parent's shards deny.
func transactionsFamily(w *tableWorld) {
	limit := []weir.Limit{noRefill("n", 100)}
	w.system(limit...)
	w.family(testEntity, "parent")
	w.putShards("parent", 2, limit, units{"n": 40}, units{"n": 40})
	p := w.transactional()
	p.admit(testEntity, weir.Costs{"n": 0})
	l := p.admit(testEntity, weir.Costs{"n": 60})
	w.together(testEntity, "n", 40_000)
	w.together("parent", "n", 20_000)
	p.deny(testEntity, weir.Costs{"n": 21})
	w.together(testEntity, "n", 40_000)
	w.together("parent", "n", 20_000)
	p.must(l.Cancel(w.Context()))
	w.together(testEntity, "n", 100_000)
	w.together("parent", "n", 80_000)
}

// bring makes a request with a limit of its own.
func (p *process) bring(l weir.Limit, cost int64) error {
	_, err := p.Reserve(p.w.Context(), &weir.Request{
		Entity: testEntity, Resource: testResource, Costs: weir.Costs{l.Name: cost},
		Limits: []weir.Limit{l},
	})
	p.quiet()
	return err
}

// broughtCeiling checks that a request with a ceiling of fifty of a hundred gets fifty units, one
// by one, from shards of twenty-five.
func broughtCeiling(w *tableWorld) {
	limit := []weir.Limit{noRefill("n", 100)}
	share := units{"n": 25}
	w.system(limit...)
	w.putShards(testEntity, 4, limit, share, share, share, share)
	p := w.process()
	for n := range 50 {
		if err := p.bring(noRefill("n", 50), 1); err != nil {
			w.Fatalf("the %d. of 50: %v", n+1, err)
		}
	}
	if err := p.bring(noRefill("n", 50), 1); !isDenied(err) {
		w.Errorf("the 51st of 50: got %v, want denied", err)
	}
	w.clock.Advance(2 * time.Second) // a denial is remembered for one second
	if err := p.bring(noRefill("n", 60), 10); err != nil {
		w.Errorf("ten more with sixty: %v", err)
	}
	w.together(testEntity, "n", 40_000)
	w.clock.Advance(2 * time.Second)
	p.exactly(testEntity, "n", 100, 40) // the capacity of the limit is a hundred
}

// broughtLarge checks the same for a request that is taken in parts.
func broughtLarge(w *tableWorld) {
	limit := []weir.Limit{noRefill("n", 100)}
	share := units{"n": 25}
	w.system(limit...)
	w.putShards(testEntity, 4, limit, share, share, share, share)
	p := w.process()
	p.admit(testEntity, weir.Costs{"n": 0})
	if err := p.bring(noRefill("n", 50), 40); err != nil {
		w.Errorf("forty of fifty: %v", err)
	}
	if err := p.bring(noRefill("n", 50), 11); !isDenied(err) {
		w.Errorf("eleven of ten: got %v, want denied", err)
	}
	w.clock.Advance(2 * time.Second)
	if err := p.bring(noRefill("n", 50), 10); err != nil {
		w.Errorf("ten of ten: %v", err)
	}
	w.together(testEntity, "n", 50_000)
}

// zeroCostInDebt checks that a cost of 0 is judged like any other (docs/semantics.md, 3.6), even if
// another limit is taken in parts.
func zeroCostInDebt(w *tableWorld) {
	limits := []weir.Limit{noRefill("a", 100), noRefill("b", 100)}
	w.system(limits...)
	p := w.process()
	for n, c := range []struct {
		owed   [2]int64
		admits bool
	}{
		{[2]int64{-5, -5}, false},
		{[2]int64{-5, 4}, false},
		{[2]int64{-5, 5}, true},
		{[2]int64{0, 0}, true},
	} {
		w.putShards(trial(n), 2, limits, units{"a": 30, "b": c.owed[0]}, units{"a": 30, "b": c.owed[1]})
		p.admit(trial(n), weir.Costs{"a": 0}) // shows the process the shard count
		_, err := p.ask(trial(n), weir.Costs{"a": 40, "b": 0})
		if c.admits && err != nil || !c.admits && !isDenied(err) {
			w.Errorf("%d owed on the shards: got %v, want admitted: %t", c.owed, err, c.admits)
		}
		left := int64(60_000)
		if c.admits {
			left = 20_000
		}
		w.together(trial(n), "a", left)
		w.together(trial(n), "b", (c.owed[0]+c.owed[1])*1000)
	}
}

// takes reports whether an update takes the given milli-units of the limit n from a shard.
func (u *bucketUpdate) takes(shard int, milli int64) bool {
	add := fmt.Sprintf("%s %d", schema.BucketAttribute("n", schema.FieldBalance), -milli)
	is := func(c string) bool { return u.spell(c) == add }
	return u.id.Shard == shard && slices.ContainsFunc(u.adds, is)
}

// parted takes fifty units from two shards of thirty, in parts. first sends the part on the first
// shard. Another process empties the second shard before its part is sent. parted returns the
// process and the error of the reservation.
func parted(w *tableWorld, first func(send func() error) error) (*process, error) {
	w.Helper()
	limit := []weir.Limit{noRefill("n", 100)}
	w.system(limit...)
	w.putShards(testEntity, 2, limit, units{"n": 30}, units{"n": 30})
	var parts atomic.Int32 // they are sent at the same time
	hook := func(_ context.Context, u *bucketUpdate, send func() error) error {
		switch {
		case u.takes(0, 30_000):
			parts.Add(1)
			return first(send)
		case u.takes(1, 20_000): // another process takes it first
			parts.Add(1)
			w.edit(testEntity, 1, balance("n", 0))
		}
		return send()
	}
	p := w.hooked(processOptions{}, &wrong{send: hook})
	p.admit(testEntity, weir.Costs{"n": 0})
	p.admit(testEntity, weir.Costs{"n": 0})
	_, err := p.ask(testEntity, weir.Costs{"n": 50})
	if n := parts.Load(); n < 2 {
		w.Fatalf("%d parts were sent, want 2", n)
	}
	return p, err
}

// partUnknown checks that a part whose answer is lost is not reported as a denial, because a caller
// relies on a denial to mean that nothing is charged.
func partUnknown(w *tableWorld) {
	p, err := parted(w, func(send func() error) error {
		if err := send(); err != nil {
			return err
		}
		return &client.UnknownError{Err: errors.New("the answer is lost")}
	})
	if !errors.Is(err, weir.Unavailable) || isDenied(err) {
		w.Errorf("got %v, want unavailable", err)
	}
	equal(w, "what may be charged", p.store.Stats().AmbiguousMilli, 30_000)
	w.together(testEntity, "n", 0)
}

func partDenied(w *tableWorld) {
	p, err := parted(w, func(send func() error) error { return send() })
	if !isDenied(err) {
		w.Errorf("got %v, want denied", err)
	}
	equal(w, "what may be charged", p.store.Stats().AmbiguousMilli, 0)
	w.together(testEntity, "n", 30_000)
	w.clock.Advance(2 * time.Second)
	p.exactly(testEntity, "n", 100, 30)
}

// partOfSome tests a request for which one shard gives all of a and a part of n, and the other
// shard the rest of n. The first part is denied, so the rest of n is refunded. The amount of the
// refund depends on what that shard had of n, not on what the first shard had of a when the whole
// request was tried.
func partOfSome(w *tableWorld) {
	limits := []weir.Limit{noRefill("a", 1000), noRefill("n", 100)}
	w.system(limits...)
	w.putShards(testEntity, 2, limits, units{"a": 500, "n": 30}, units{"a": 500, "n": 30})
	var rest atomic.Bool
	p := w.hooked(processOptions{}, &wrong{send: func(_ context.Context, u *bucketUpdate, send func() error) error {
		switch {
		case u.takes(0, 30_000): // another process takes it first
			w.edit(testEntity, 0, balance("n", 0))
		case u.takes(1, 20_000):
			rest.Store(true)
		}
		return send()
	}})
	p.admit(testEntity, weir.Costs{"n": 0})
	p.admit(testEntity, weir.Costs{"n": 0})
	if _, err := p.ask(testEntity, weir.Costs{"a": 10, "n": 50}); !isDenied(err) {
		w.Errorf("got %v, want denied", err)
	}
	equal(w, "the rest of n was taken from the other shard", rest.Load(), true)
	w.together(testEntity, "a", 1_000_000)
	w.together(testEntity, "n", 30_000)
	w.clock.Advance(2 * time.Second)
	p.exactly(testEntity, "n", 100, 30)
}

// shardCountLearnedLate tests a process that knows two shards and learns of four shards only from
// the second read.
func shardCountLearnedLate(w *tableWorld) {
	limit := []weir.Limit{noRefill("n", 100)}
	w.system(limit...)
	p := w.process()
	for n := range 16 { // half of them pick the shard that still has the count of two
		w.putShards(trial(n), 2, limit, units{"n": 25}, units{"n": 25})
		p.admit(trial(n), weir.Costs{"n": 0})
		w.putShards(trial(n), 4, limit, units{}, nil, units{"n": 25}, units{"n": 25})
		w.edit(trial(n), 1, balance("n", 0))
		p.admit(trial(n), weir.Costs{"n": 5})
		p.deny(trial(n), weir.Costs{"n": 46})
		p.admit(trial(n), weir.Costs{"n": 45})
		w.together(trial(n), "n", 0)
	}
}

// refundKeptAboveShare tests a process that first learns of a new shard count, and then of a refund
// that another process made before that count. The whole refund counts: the shard keeps its balance
// above its share.
func refundKeptAboveShare(w *tableWorld) {
	limit := []weir.Limit{noRefill("n", 100)}
	w.system(limit...)
	p := w.process()
	for n := range 12 { // half of them pick shards that exist
		w.putShards(trial(n), 2, limit, units{"n": 10}, units{})
		p.admit(trial(n), weir.Costs{"n": 0}) // shows the process ten
		w.edit(trial(n), 1, map[string]int64{schema.AttrShardCount: 4})
		s := p.store.buckets.Subject(weir.Subject{Entity: trial(n), Resource: testResource})
		for draws := 0; s.ShardCount() < 4 && draws < maxPicks; draws++ {
			p.admit(trial(n), weir.Costs{"n": 0})
		}
		s.Release()
		w.edit(trial(n), 0, balance("n", 40))
		w.edit(trial(n), 0, map[string]int64{schema.AttrShardCount: 4})
		p.admit(trial(n), weir.Costs{"n": 30})
		w.together(trial(n), "n", 10_000)
		p.deny(trial(n), weir.Costs{"n": 11})
		p.admit(trial(n), weir.Costs{"n": 10})
	}
}

// refundMoves gives back everything that was taken before the bucket was split. balances are
// those of the shards meanwhile, in units; -1 if a shard does not exist.
func refundMoves(balances ...int64) func(w *tableWorld) {
	return func(w *tableWorld) {
		limit := []weir.Limit{noRefill("n", 400)}
		w.system(limit...)
		p := w.process()
		l := p.admit(testEntity, weir.Costs{"n": 400})
		var left int64
		shards := make([]units, len(balances))
		for i, has := range balances {
			if has >= 0 {
				shards[i] = units{"n": has}
				left += has
			}
		}
		w.putShards(testEntity, len(shards), limit, shards...)
		p.must(l.Cancel(w.Context()))
		w.together(testEntity, "n", min(left+400, 400)*1000)
		for shard, b := range w.shards(testEntity) {
			if has := b.Limit("n").Balance; has > 100_000 {
				w.Errorf("shard %d has %d milli-units, more than its share", shard, has)
			}
		}
	}
}

// debtShared uses more than one shard has, where all together have enough. No more is admitted than
// what is left of all.
func debtShared(w *tableWorld) {
	w.overrun(100, 250)
	w.together(testEntity, "n", 150_000)
	for shard, b := range w.shards(testEntity) {
		if has := b.Limit("n").Balance; has < 0 {
			w.Errorf("shard %d is in debt of %d milli-units", shard, -has)
		}
	}
	w.process().exactly(testEntity, "n", 400, 150)
}

// debtDivided uses more than all shards have. Nothing is admitted until the whole debt is repaid.
func debtDivided(w *tableWorld) {
	w.overrun(100, 600)
	w.together(testEntity, "n", -200_000)
	p := w.process()
	w.clock.Advance(29 * time.Second) // 400 a minute
	p.deny(testEntity, weir.Costs{"n": 1})
	w.clock.Advance(2 * time.Second)
	p.admit(testEntity, weir.Costs{"n": 1})
}

// overrun completes a lease of one of four full shards with what was used.
func (w *tableWorld) overrun(reserved, used int64) {
	w.Helper()
	limit := []weir.Limit{per("n", 400, 400, time.Minute)}
	w.system(limit...)
	full := units{"n": 100}
	w.putShards(testEntity, 4, limit, full, full, full, full)
	p := w.process()
	l := p.admit(testEntity, weir.Costs{"n": reserved})
	p.must(l.Complete(w.Context(), weir.Costs{"n": used}))
}
