package stream_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb"
	"github.com/weir-limiter/weir/dynamodb/internal/stream"
)

// spent returns the write units of the readers' calls since the last call, in thousandths.
func (w *world) spent() (milli, writes int64) {
	s := w.calls.Snapshot()
	w.calls.Reset()
	return s.Total().Capacity.WriteMilli, s.Writes()
}

// TestCostOneBucket checks what it costs to count 100 reservations of one bucket with two limits.
func TestCostOneBucket(t *testing.T) {
	t.Parallel()
	for name, lean := range map[string]bool{"full": false, "lean": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(table *dynamodb.Table) { table.Lean = lean })
			w.limits("rpm", "tpm")
			w.count()
			start, _ := w.spent()
			l := w.process(func(o *dynamodb.Options) { o.ProcessLeases = true })
			for range 100 {
				w.take(l, "acme", weir.Costs{"rpm": 1, "tpm": 500})
			}
			w.close(l)
			w.count()
			milli, writes := w.spent()
			w.judge(hours(w.usage()), hours(w.tally))
			t.Logf("the first start: %d thousandths of a write unit; 100 reservations of one bucket: "+
				"%d thousandths in %d writes", start, milli, writes)
			if milli > 10_000 {
				t.Errorf("got %d thousandths of a write unit, want at most 10 units", milli)
			}
		})
	}
}

// TestCostManyEntities checks what it costs to count a reservation of each of 100 entities: a write
// for each, of two units, or of three if the item is new, because a new item goes into a second
// index.
func TestCostManyEntities(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.limits("rpm", "tpm")
	l := w.process(func(o *dynamodb.Options) { o.ProcessLeases = true })
	const entities = 100
	for round, most := range []int64{3, 2} {
		for i := range entities {
			w.take(l, fmt.Sprintf("e%d", i), weir.Costs{"rpm": 1, "tpm": 500})
		}
		w.calls.Reset()
		s := w.count()
		updates := w.calls.Snapshot()["UpdateItem"]
		milli, writes := w.spent()
		t.Logf("round %d: %d thousandths of a write unit in %d writes; %d updates of usage items",
			round, milli, writes, s.Hours)
		if s.Hours < entities || updates.Capacity.WriteMilli > (s.Hours*most+4)*1000 {
			t.Errorf("got %d thousandths of a write unit for %d updates", updates.Capacity.WriteMilli, s.Hours)
		}
	}
	w.close(l)
	w.judge(hours(w.usage()), hours(w.tally))
}

// TestCostIdle checks that ten idle minutes write nothing, with a read each second.
func TestCostIdle(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.limits("rpm")
	l := w.process()
	w.take(l, "acme", weir.Costs{"rpm": 1})
	w.close(l)
	w.count()
	w.calls.Reset()
	passes, idle := 0, int64(-1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r := w.reader(func(o *stream.Options) {
		o.Once = false
		o.Wait = func(ctx context.Context, _ time.Duration) error {
			if passes++; passes == 600 {
				idle = w.calls.Snapshot().Writes()
				cancel()
			}
			return ctx.Err()
		}
		o.Now = func() time.Time { return w.clock.now().Add(time.Duration(passes) * time.Second) }
	})
	if err := r.Run(ctx); err != nil {
		t.Fatal(err)
	}
	milli, writes := w.spent()
	t.Logf("%d passes: %d writes; and %d when it ends", passes, idle, writes-idle)
	// The last write is of the time up to which the stream was read.
	if idle != 0 || writes > 1 || milli > 1000 {
		t.Errorf("got %d writes, and %d thousandths of a unit in all, want none", idle, milli)
	}
}
