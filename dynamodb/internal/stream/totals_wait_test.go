package stream_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/stream"
)

// TestOnceWaits checks how long a reader that runs once waits at the end of a month. A function runs
// it on a schedule, and docs/aggregator.md gives it 120 s.
func TestOnceWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.limits("rpm")
	l := w.process()
	w.take(l, "acme", weir.Costs{"rpm": 5})
	w.close(l)
	w.count()
	w.at(start.Add(26 * time.Minute)) // the day and the month have ended
	var mu sync.Mutex
	var waited time.Duration
	s := w.count(func(o *stream.Options) {
		o.EmptyReads, o.IndexLag = 0, 0 // the defaults
		o.Now = func() time.Time {
			mu.Lock()
			defer mu.Unlock()
			return w.clock.now().Add(waited)
		}
		o.Wait = func(_ context.Context, d time.Duration) error {
			mu.Lock()
			defer mu.Unlock()
			waited += d
			return nil
		}
	})
	if s.Totals != 2 || waited > 90*time.Second {
		t.Errorf("wrote %d totals, and waited for %v; want 2 in less than 90s", s.Totals, waited)
	}
}
