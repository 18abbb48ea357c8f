package dynamodb

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/bucketitem"
	"github.com/weir-limiter/weir/internal/schema"
)

// TestRefundToMissingShardGainsNothing cancels a lease of a shard that was deleted since. The shard
// that is created for the units must not gain the time since 1970.
func TestRefundToMissingShardGainsNothing(t *testing.T) {
	t.Parallel()
	inTableWorld(t, madeTable(t), nil, func(w *tableWorld) {
		limit := []weir.Limit{per("n", 200, 200, time.Hour)}
		w.system(limit...)
		w.putShards(testEntity, 2, limit, units{"n": 0}, units{"n": 20})
		p := w.process()
		l := p.admit(testEntity, weir.Costs{"n": 20}) // all of the second shard
		w.erase(testEntity, 1)
		w.edit(testEntity, 0, balance("n", 100))
		p.must(l.Cancel(w.Context()))
		for shard, b := range w.shards(testEntity) {
			if b.RefilledMS < testStart.UnixMilli() {
				w.Errorf("shard %d: refilled at %d, ttl %d", shard, b.RefilledMS, b.TTL)
			}
		}
		w.process().exactly(testEntity, "n", 200, 120)
	})
}

// TestDebtSeenWhileLevelling leaves a shard in debt after a pass of levelling has read all shards
// and before that pass ends. Another pass must level the new debt.
func TestDebtSeenWhileLevelling(t *testing.T) {
	t.Parallel()
	inTableWorld(t, madeTable(t), nil, func(w *tableWorld) {
		limit := []weir.Limit{per("n", 400, 400, time.Hour)}
		w.system(limit...)
		full := units{"n": 100}
		w.putShards(testEntity, 4, limit, units{"n": 0}, units{"n": 10}, full, full)
		moving, goOn := make(chan struct{}), make(chan struct{})
		var once sync.Once
		p := w.hooked(processOptions{}, &wrong{send: func(
			_ context.Context, u *bucketUpdate, send func() error,
		) error {
			if u.takes(2, 50_000) {
				once.Do(func() {
					close(moving)
					<-goOn
				})
			}
			return send()
		}})
		// Leases of the first and of the second shard.
		w.putShards(testEntity, 4, limit, full, units{}, units{}, units{})
		first := p.admit(testEntity, weir.Costs{"n": 90})
		w.putShards(testEntity, 4, limit, units{}, full, units{}, units{})
		second := p.admit(testEntity, weir.Costs{"n": 90})
		w.putShards(testEntity, 4, limit, units{}, units{"n": 10}, full, full)
		if _, err := first.Complete(w.Context(), weir.Costs{"n": 140}); err != nil {
			w.Fatalf("%v", err)
		}
		select {
		case <-moving:
		case <-time.After(time.Minute):
			w.Fatalf("no move of 50 from shard 2")
		}
		if _, err := second.Complete(w.Context(), weir.Costs{"n": 160}); err != nil {
			w.Fatalf("%v", err)
		}
		close(goOn)
		p.quiet()
		for shard, b := range w.shards(testEntity) {
			w.Logf("shard %d: %d", shard, b.Limit("n").Balance)
			if b.Limit("n").Balance <= -1000 {
				w.Errorf("shard %d is in debt of %d milli-units", shard, -b.Limit("n").Balance)
			}
		}
		w.together(testEntity, "n", 90_000)
	})
}

// TestRefundMovesUnderChangedLimits cancels a lease of more than a share after the capacity was
// raised. The settlement brings its own shard to the new definition; the others still have the old
// one. No part of the refund must be lost because of that.
func TestRefundMovesUnderChangedLimits(t *testing.T) {
	t.Parallel()
	for _, capacity := range []int64{400, 480} {
		inTableWorld(t, madeTable(t), nil, func(w *tableWorld) {
			at := weir.Subject{Resource: testResource}
			w.limits(at, noRefill("n", 400))
			p := w.process()
			l := p.admit(testEntity, weir.Costs{"n": 400})
			w.putShards(testEntity, 4, []weir.Limit{noRefill("n", 400)}, units{}, units{}, units{}, units{})
			w.limits(at, noRefill("n", capacity))
			p.reread(testEntity)
			p.must(l.Cancel(w.Context()))
			for shard, b := range w.shards(testEntity) {
				w.Logf("capacity %d, shard %d: %+v", capacity, shard, *b.Limit("n"))
			}
			w.together(testEntity, "n", 400_000)
		})
	}
}

// TestRefundMovesAfterRefusedRead cancels a lease of more than a share. The read of the shards that
// follows is throttled once.
func TestRefundMovesAfterRefusedRead(t *testing.T) {
	t.Parallel()
	inTableWorld(t, madeTable(t), nil, func(w *tableWorld) {
		limit := []weir.Limit{noRefill("n", 400)}
		w.system(limit...)
		reads := &batchReads{}
		p := w.process(processOptions{store: Options{Client: []func(*ddb.Options){reads.install}}})
		l := p.admit(testEntity, weir.Costs{"n": 400})
		w.putShards(testEntity, 4, limit, units{}, units{}, units{}, units{})
		reads.fail.Store(1)
		r, err := l.Cancel(w.Context())
		p.must(r, err)
		w.Logf("receipt %+v, ambiguous %d", r, p.store.Stats().AmbiguousMilli)
		w.together(testEntity, "n", 400_000)
	})
}

// TestDebtOfLargeLimitIsReadOnce has a process write a shard in debt again and again. It must not
// read all shards after each write, and it must level the debt.
func TestDebtOfLargeLimitIsReadOnce(t *testing.T) {
	t.Parallel()
	for _, capacity := range []int64{400, 1_000_000_000_000_000} {
		inTableWorld(t, madeTable(t), nil, func(w *tableWorld) {
			limits := []weir.Limit{per("n", capacity, 2, time.Hour), per("m", 400, 400, time.Hour)}
			w.system(limits...)
			w.putShards(testEntity, 2, limits, units{"n": -50, "m": 200}, units{"n": capacity / 2, "m": 200})
			reads := &batchReads{}
			p := w.process(processOptions{store: Options{Client: []func(*ddb.Options){reads.install}}})
			p.admit(testEntity, weir.Costs{"m": 1})
			reads.count.Store(0)
			for range 30 {
				p.admit(testEntity, weir.Costs{"m": 1})
			}
			if n := reads.count.Load(); n > 5 {
				w.Errorf("capacity %d: %d reads of all shards for 30 reservations", capacity, n)
			}
			equal(w, "debt", w.stored(testEntity, 0, "n").Balance >= 0, true)
		})
	}
}

// TestRefundMovesOnAtMostFourTimes refunds to a bucket of four shards of which another process
// fills, each time, the shard that the units go to, and empties another one. ADR 37 says that the
// units of one refund move on at most four times.
func TestRefundMovesOnAtMostFourTimes(t *testing.T) {
	t.Parallel()
	inTableWorld(t, madeTable(t), nil, func(w *tableWorld) {
		limit := []weir.Limit{noRefill("n", 200)}
		w.system(limit...)
		var on atomic.Bool
		var moves atomic.Int64
		p := w.hooked(processOptions{}, &wrong{send: func(
			_ context.Context, u *bucketUpdate, send func() error,
		) error {
			gives := slices.ContainsFunc(u.adds, func(c string) bool {
				return u.attribute(c) == schema.BucketAttribute("n", schema.FieldBalance) && u.value(c) > 0
			})
			if on.Load() && gives {
				if n := moves.Add(1); n <= 50 {
					w.edit(testEntity, u.id.Shard, balance("n", 100))
					w.edit(testEntity, 1-u.id.Shard, balance("n", 50))
				}
			}
			return send()
		}})
		w.putShards(testEntity, 2, limit, units{"n": 50}, units{})
		l := p.admit(testEntity, weir.Costs{"n": 50})
		w.putShards(testEntity, 2, limit, units{"n": 100}, units{"n": 50})
		on.Store(true)
		p.must(l.Cancel(w.Context()))
		w.Logf("%d writes that give", moves.Load())
		if n := moves.Load(); n > 5 {
			w.Errorf("the units moved on %d times", n-1)
		}
	})
}

// TestRefundMovesToShardThatLookedFull moves the units of a refund to a shard that the process has
// last seen full, and of which another process has taken since. What that shard has gained must not
// be lost.
func TestRefundMovesToShardThatLookedFull(t *testing.T) {
	t.Parallel()
	inTableWorld(t, madeTable(t), nil, func(w *tableWorld) {
		limit := []weir.Limit{per("n", 240, 240, 2*time.Minute)} // each shard gains a unit a second
		w.system(limit...)
		w.putShards(testEntity, 2, limit, units{"n": 50}, units{})
		p := w.process()
		l := p.admit(testEntity, weir.Costs{"n": 50})
		w.edit(testEntity, 1, balance("n", 120))
		p.must(p.admit(testEntity, weir.Costs{"n": 120}).Cancel(w.Context())) // now it looks full
		w.edit(testEntity, 0, balance("n", 120))
		w.edit(testEntity, 1, balance("n", 20))
		w.clock.Advance(10 * time.Second)
		p.must(l.Cancel(w.Context()))
		p.quiet()
		b := w.shards(testEntity)[1]
		c := bucketitem.NewLimitImage(*b.Limit("n"), b.RefilledMS, b.Shards)
		equal(w, "balance of the second shard", c.Peek(w.clock.Now().UnixMilli(), b.Shards), 80_000)
	})
}

// TestRefundMovesAfterClockWentBack has the clock of a process be an hour ahead for one refund.
func TestRefundMovesAfterClockWentBack(t *testing.T) {
	t.Parallel()
	inTableWorld(t, madeTable(t), nil, func(w *tableWorld) {
		limit := []weir.Limit{per("n", 400, 400, time.Hour)}
		w.system(limit...)
		ahead := time.Duration(0)
		o := processOptions{}
		o.limiter.Now = func() time.Time { return w.clock.Now().Add(ahead) }
		p := w.process(o)
		full := units{"n": 100}
		first := p.admit(testEntity, weir.Costs{"n": 400})
		w.edit(testEntity, 0, balance("n", 400))
		second := p.admit(testEntity, weir.Costs{"n": 400})
		w.putShards(testEntity, 4, limit, full, full, full, full)
		ahead = 50 * time.Minute
		p.must(first.Cancel(w.Context())) // nothing has room
		ahead = 0
		w.putShards(testEntity, 4, limit, units{}, units{}, units{}, units{})
		w.clock.Advance(time.Second)
		p.reread(testEntity)
		p.must(second.Cancel(w.Context()))
		if left, _ := w.sum(testEntity, "n"); left < 399_000 { // a second of the refill may be cut off
			w.Errorf("all shards together have %d milli-units, want 400000", left)
		}
	})
}

// TestRefundMovesOnDisabledBucket cancels a lease of more than a share of a bucket that is
// disabled.
func TestRefundMovesOnDisabledBucket(t *testing.T) {
	t.Parallel()
	inTableWorld(t, madeTable(t), nil, func(w *tableWorld) {
		limit := []weir.Limit{noRefill("n", 400)}
		w.system(limit...)
		p := w.process()
		l := p.admit(testEntity, weir.Costs{"n": 400})
		w.putShards(testEntity, 4, limit, units{}, units{}, units{}, units{})
		for shard := range 4 {
			b := w.bucket(testEntity, shard)
			b.Disabled = true
			w.put(b)
		}
		p.must(l.Cancel(w.Context()))
		w.together(testEntity, "n", 400_000)
	})
}

// TestChargesInDebtReadOnce adjusts leases to more while all shards are in debt. ADR 37 says that a
// process looks at such a bucket again after a second, or after a refund.
func TestChargesInDebtReadOnce(t *testing.T) {
	t.Parallel()
	inTableWorld(t, madeTable(t), nil, func(w *tableWorld) {
		limits := []weir.Limit{per("n", 400, 1, time.Hour), noRefill("m", 1000)}
		w.system(limits...)
		reads := &batchReads{}
		p := w.process(processOptions{store: Options{Client: []func(*ddb.Options){reads.install}}})
		full := units{"n": 100, "m": 250}
		w.putShards(testEntity, 4, limits, full, full, full, full)
		var leases []*weir.Lease
		for range 20 {
			leases = append(leases, p.admit(testEntity, weir.Costs{"m": 1}))
		}
		debt := units{"n": -500, "m": 200}
		w.putShards(testEntity, 4, limits, debt, debt, debt, debt)
		p.must(leases[0].Adjust(w.Context(), weir.Costs{"m": 2}))
		reads.count.Store(0)
		for _, l := range leases[1:] {
			p.must(l.Adjust(w.Context(), weir.Costs{"m": 2}))
		}
		if n := reads.count.Load(); n > 3 {
			w.Errorf("%d reads of all shards for 19 charges within a second", n)
		}
	})
}

// TestMovedUnitsAreNotConsumed has a shard pay for the debt of another one in a process that has
// not seen the paying shard before. The count of consumed units has the units of the lease alone.
func TestMovedUnitsAreNotConsumed(t *testing.T) {
	t.Parallel()
	inTableWorld(t, madeTable(t), nil, func(w *tableWorld) {
		limit := []weir.Limit{noRefill("n", 200)}
		w.system(limit...)
		w.putShards(testEntity, 2, limit, units{"n": 20}, units{"n": 100})
		p := w.process()
		l := p.admit(testEntity, weir.Costs{"n": 20})
		if _, err := l.Complete(w.Context(), weir.Costs{"n": 70}); err != nil {
			w.Fatalf("complete: %v", err)
		}
		p.quiet()
		equal(w, "balance of the paying shard", w.stored(testEntity, 1, "n").Balance, 50_000)
		_, consumed := w.sum(testEntity, "n")
		equal(w, "consumed", consumed, 70_000)
	})
}

// batchReads counts the BatchGetItem calls of a process. As many of the next ones as fail says are
// throttled.
type batchReads struct{ count, fail atomic.Int64 }

func (b *batchReads) install(o *ddb.Options) {
	o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
		return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("test:reads", b.handle), middleware.After)
	})
}

func (b *batchReads) handle(
	ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler,
) (middleware.InitializeOutput, middleware.Metadata, error) {
	if _, ok := in.Parameters.(*ddb.BatchGetItemInput); ok {
		b.count.Add(1)
		if b.fail.Add(-1) >= 0 {
			return middleware.InitializeOutput{}, middleware.Metadata{}, &types.ProvisionedThroughputExceededException{}
		}
	}
	return next.HandleInitialize(ctx, in)
}
