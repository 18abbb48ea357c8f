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

// debtMoves counts what several processes move between the shards of a limit n. The first write of
// each process that takes units waits until all processes are about to make one.
type debtMoves struct {
	w         *tableWorld
	processes int64
	waiting   atomic.Int64
	all       chan struct{} // closed when all processes wait

	mu                     sync.Mutex // guards the fields below
	writes, moved, deepest int64
}

// hook returns the hook of one process.
func (d *debtMoves) hook() *wrong {
	var once sync.Once
	return &wrong{send: func(_ context.Context, u *bucketUpdate, send func() error) error {
		var n int64
		for _, c := range u.adds {
			if u.attribute(c) == schema.BucketAttribute("n", schema.FieldBalance) {
				n = u.value(c)
			}
		}
		if n < 0 {
			once.Do(d.wait)
		}
		err := send()
		if n != 0 && err == nil {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.writes++
			d.moved += max(0, -n)
			d.deepest = min(d.deepest, d.w.stored(testEntity, u.id.Shard, "n").Balance)
		}
		return err
	}}
}

func (d *debtMoves) wait() {
	if d.waiting.Add(1) == d.processes {
		close(d.all)
	}
	select {
	case <-d.all:
	case <-time.After(time.Minute):
	}
}

// TestDebtSeenByManyProcesses has eight processes find the same shard in debt at once: each has read
// the shards before another one moves units. They must not all take the debt from one shard, which
// would then be deeper in debt.
func TestDebtSeenByManyProcesses(t *testing.T) {
	t.Parallel()
	const processes, debt = 8, 500
	inTableWorld(t, madeTable(t), nil, func(w *tableWorld) {
		limits := []weir.Limit{noRefill("n", 4000), noRefill("m", 4000)}
		w.system(limits...)
		full := units{"n": 1000, "m": 500}
		w.putShards(testEntity, 4, limits, full, full, full, full)
		d := &debtMoves{w: w, processes: processes, all: make(chan struct{})}
		ps := make([]*process, processes)
		for i := range ps {
			ps[i] = w.hooked(processOptions{}, d.hook())
			ps[i].admit(testEntity, weir.Costs{"m": 1})
		}
		w.edit(testEntity, 0, balance("n", -debt))
		concurrently(processes, func(i int) {
			for d.waiting.Load() < processes && w.Context().Err() == nil {
				_, _ = ps[i].ask(testEntity, weir.Costs{"m": 1}) // notices the debt
			}
		})
		for _, p := range ps {
			p.quiet()
		}
		for shard := range 4 {
			if has := w.stored(testEntity, shard, "n").Balance; has <= -1000 {
				w.Errorf("shard %d is left in debt of %d milli-units", shard, -has)
			}
		}
		w.Logf("%d writes took %d milli-units, the deepest debt was %d", d.writes, d.moved, d.deepest)
		if d.moved > processes*debt*1000 || d.deepest < -debt*1000 {
			w.Errorf("a debt of %d moved %d milli-units, and left one of %d", debt, d.moved, -d.deepest)
		}
	})
}
