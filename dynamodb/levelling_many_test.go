package dynamodb

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/schema"
)

// TestDebtSeenByManyProcesses has eight processes find the same shard in debt at once: each has read
// the shards before another one moves units. Each takes the whole debt from the same shard, which
// is then deeper in debt than the first one was, and so on.
func TestDebtSeenByManyProcesses(t *testing.T) {
	t.Parallel()
	const processes, debt = 8, 500
	inTableWorld(t, madeTable(t), nil, func(w *tableWorld) {
		limits := []weir.Limit{noRefill("n", 4000), noRefill("m", 4000)}
		w.system(limits...)
		full := units{"n": 1000, "m": 500}
		w.putShards(testEntity, 4, limits, full, full, full, full)
		var mu sync.Mutex
		var writes, moved, deepest int64
		var waiting atomic.Int64
		all := make(chan struct{})
		hook := func() *wrong {
			var once sync.Once
			return &wrong{send: func(_ context.Context, u *bucketUpdate, send func() error) error {
				var n int64
				for _, c := range u.adds {
					if u.attribute(c) == schema.BucketAttribute("n", schema.FieldBalance) {
						n = u.value(c)
					}
				}
				if n < 0 {
					once.Do(func() {
						if waiting.Add(1) == processes {
							close(all)
						}
						select {
						case <-all:
						case <-time.After(time.Minute):
						}
					})
				}
				err := send()
				if n != 0 && err == nil {
					mu.Lock()
					defer mu.Unlock()
					writes++
					moved += max(0, -n)
					deepest = min(deepest, w.stored(testEntity, u.id.Shard, "n").Balance)
				}
				return err
			}}
		}
		ps := make([]*process, processes)
		for i := range ps {
			ps[i] = w.hooked(processOptions{}, hook())
			ps[i].admit(testEntity, weir.Costs{"m": 1})
		}
		w.edit(testEntity, 0, balance("n", -debt))
		concurrently(processes, func(i int) {
			for waiting.Load() < processes {
				_, _ = ps[i].Reserve(w.Context(), &weir.Request{
					Entity: testEntity, Resource: testResource, Costs: weir.Costs{"m": 1},
				})
				if w.Context().Err() != nil {
					return
				}
			}
		})
		for _, p := range ps {
			p.quiet()
		}
		for shard := range 4 {
			has := w.stored(testEntity, shard, "n").Balance
			w.Logf("shard %d has %d", shard, has)
			if has <= -1000 {
				w.Errorf("shard %d is left in debt of %d milli-units", shard, -has)
			}
		}
		w.Logf("%d writes took %d milli-units, the deepest debt was %d", writes, moved, deepest)
		if moved > processes*debt*1000 || deepest < -debt*1000 {
			w.Errorf("a debt of %d units moved %d milli-units, and left one of %d", debt, moved, -deepest)
		}
	})
}
