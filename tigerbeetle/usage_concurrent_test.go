//go:build cgo

package tigerbeetle

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	tb "github.com/tigerbeetle/tigerbeetle-go"

	"github.com/weir-limiter/weir"
)

// lossyLedger carries calls out and loses the answer to every seventh.
type lossyLedger struct {
	Ledger

	calls, lost atomic.Int64
}

func (l *lossyLedger) CreateTransfers(
	ctx context.Context, all []tb.Transfer,
) ([]tb.CreateTransferResult, error) {
	results, err := l.Ledger.CreateTransfers(ctx, all)
	if l.calls.Add(1)%7 == 0 {
		l.lost.Add(1)
		return nil, errors.New("the answer was lost")
	}
	return results, err
}

// until makes a call until it has an answer.
func until(call func() error) error {
	err := call()
	for errors.Is(err, weir.Unavailable) {
		err = call()
	}
	return err
}

// reserveAndSettle reserves 100+i units, and cancels every third lease and completes the others
// with i units. It returns what was used.
func reserveAndSettle(t *testing.T, m *tallied, i int64) (used int64) {
	t.Helper()
	r := unit("b", 100+i)
	r.LeaseID = weir.NewLeaseID(m.store.options.Now())
	if err := until(func() error { _, err := m.Reserve(t.Context(), r); return err }); err != nil {
		if !errors.Is(err, weir.Ended) { // the caller was too slow, and it was given back
			t.Error(err)
		}
		return 0
	}
	settle := func() error { _, err := m.Cancel(t.Context(), r.LeaseID); return err }
	if i%3 > 0 {
		used = i
		settle = func() error {
			_, err := m.Complete(t.Context(), r.LeaseID, []weir.Costs{{"b": i}})
			return err
		}
	}
	if err := until(settle); err != nil {
		t.Error(err)
	}
	return used
}

// TestUsageConcurrent checks that usage is what callers on two servers used at the same time,
// while both write all the time and every seventh answer is lost.
func TestUsageConcurrent(t *testing.T) {
	t.Parallel()
	u := newUsageScene(t, 1)
	u.d = fourLimits(1 << 40)
	lossy := &lossyLedger{Ledger: u.ledger}
	u.ledger = lossy
	servers := []*tallied{u.open(-1), u.open(-1)}
	var used atomic.Int64
	var callers, writers sync.WaitGroup
	done := make(chan struct{})
	for _, m := range servers {
		for range 4 {
			callers.Go(func() {
				for i := range int64(60) {
					used.Add(reserveAndSettle(t, m, i))
				}
			})
		}
		writers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					_ = m.store.writeUsage(t.Context()) // an answer may be lost
				}
			}
		})
	}
	callers.Wait()
	close(done)
	writers.Wait()
	for _, m := range servers {
		m.store.abandoned.watchers.Wait()
		if err := until(func() error { return m.store.writeUsage(t.Context()) }); err != nil {
			t.Error(err)
		}
	}
	page, err := servers[0].Usage(t.Context(), &weir.UsageQuery{Entity: "e", Limit: "b"})
	if err != nil || len(page.Usage) != 1 {
		t.Fatalf("got %+v, %v", page, err)
	}
	if got := page.Usage[0].Units["b"]; got != used.Load() {
		t.Errorf("got %d units, want %d", got, used.Load())
	}
	t.Logf("%d units, %d of %d answers lost", used.Load(), lossy.lost.Load(), lossy.calls.Load())
}
