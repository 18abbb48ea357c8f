package stream_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/aggregator"
	"github.com/weir-limiter/weir/dynamodb"
	"github.com/weir-limiter/weir/dynamodb/internal/stream"
	"github.com/weir-limiter/weir/internal/soak"
	"github.com/weir-limiter/weir/limiter"
)

// background runs a reader in the background until the returned function is called, which returns
// its counts. passed gets a value after each pass.
func (w *world) background(tune ...func(*stream.Options)) (passed <-chan struct{}, end func() aggregator.Summary) {
	w.Helper()
	ctx, cancel := context.WithCancel(w.Context())
	passes, done := make(chan struct{}, 1), make(chan error, 1)
	r := w.reader(append(tune, func(o *stream.Options) {
		o.Once = false
		o.Wait = func(ctx context.Context, _ time.Duration) error {
			select {
			case passes <- struct{}{}:
			default:
			}
			pause := time.NewTimer(20 * time.Millisecond)
			defer pause.Stop()
			select {
			case <-pause.C:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	})...)
	go func() { done <- r.Run(ctx) }()
	return passes, func() aggregator.Summary {
		w.Helper()
		cancel()
		if err := <-done; err != nil {
			w.Error(err)
		}
		return *r.Summary()
	}
}

// exhaust makes each process reserve one unit after the other until it is denied, all at the same
// time, and returns the number that was admitted.
func (w *world) exhaust(processes []*limiter.Limiter, entity string) (admitted int64) {
	w.Helper()
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, l := range processes {
		all.Go(func() {
			n := int64(0)
			for {
				_, err := l.Reserve(w.Context(), &weir.Request{
					Entity: entity, Resource: resource, Costs: weir.Costs{"rpm": 1},
				})
				switch denial, denied := errors.AsType[*weir.DeniedError](err); {
				case err == nil:
					n++
					continue
				case denied && denial.Contended:
					continue
				case !denied:
					w.Error(err)
				}
				break
			}
			mu.Lock()
			defer mu.Unlock()
			admitted += n
		})
	}
	all.Wait()
	return admitted
}

// TestSplitLoad lets three processes use a bucket up, second after second, while the aggregator
// splits it. What is admitted is what the limit defines, from both sides: not more, and at least 99
// in 100. A new shard gains nothing before a process has drawn it, so less than a second's refill
// of the new shards is lost for each doubling.
func TestSplitLoad(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.setLimit(divisible)
	var processes []*limiter.Limiter
	for range 3 {
		processes = append(processes, w.process(func(o *dynamodb.Options) { o.ProcessLeases = true }))
	}
	passed, end := w.background(hotAt(20))
	admitted, rounds, splitAt := int64(0), int64(0), int64(0)
	for phases := []int{}; splitAt == 0 || rounds < splitAt+int64(soak.Amount(30, 120)); rounds++ {
		phases = append(phases, w.at(start.Add(time.Duration(rounds)*time.Second)))
		admitted += w.exhaust(processes, "acme")
		for rounds >= 5 && !w.clock.seen(phases[rounds-5]) { // it stays at most five seconds behind
			<-passed
		}
		if splitAt == 0 && w.shards("acme")[0].Shards >= 4 {
			splitAt = rounds
		}
		if rounds > 500 {
			t.Fatal("the bucket was not split into four")
		}
	}
	s := end()
	for _, l := range processes {
		w.close(l)
	}
	found := w.shards("acme")
	whole := divisible.Capacity + (rounds-1)*divisible.RefillAmount
	t.Logf("%d shards after %d seconds, %d of them exist; in %d seconds admitted %d of %d (%.2f %%); %+v",
		found[0].Shards, splitAt, len(found), rounds, admitted, whole, 100*float64(admitted)/float64(whole), s)
	if s.Splits < 2 || int64(1)<<s.Splits != int64(found[0].Shards) || s.SplitsFailed != 0 {
		t.Errorf("got %d doublings and %d failed, for %d shards", s.Splits, s.SplitsFailed, found[0].Shards)
	}
	for shard, b := range found {
		if b.Shards != found[0].Shards {
			t.Errorf("shard %d has a count of %d, want %d", shard, b.Shards, found[0].Shards)
		}
		l := b.Limit("rpm")
		if l.Capacity != divisible.Capacity*1000 || l.Refill != divisible.RefillAmount*1000 {
			t.Errorf("shard %d divides %+v", shard, l)
		}
	}
	if admitted > whole || admitted*100 < whole*99-100*divisible.RefillAmount/2*s.Splits {
		t.Errorf("admitted %d of %d", admitted, whole)
	}
}
