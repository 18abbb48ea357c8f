package httpapi_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/memory"
)

// countingLimiter is a limiter for the tests of the middleware and the transport. It counts the
// verbs, and can be made to fail.
type countingLimiter struct {
	*limiter.Limiter

	t     *testing.T
	mu    sync.Mutex
	verbs []string
	fail  map[string]error
}

// newCountingLimiter returns a limiter with a limit n of ten in an hour, and two slots that time
// out after a minute.
func newCountingLimiter(t *testing.T) *countingLimiter {
	t.Helper()
	store, err := memory.Open(&memory.Options{Definitions: &weir.Definitions{System: []weir.Limit{
		{Name: "n", Kind: weir.Window, Capacity: 10, Window: time.Hour},
		{Name: "slots", Kind: weir.Concurrency, Capacity: 2, Timeout: time.Minute},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	lim, err := limiter.New(store, nil)
	if err != nil {
		t.Fatal(err)
	}
	return &countingLimiter{Limiter: lim, t: t, fail: map[string]error{}}
}

func (a *countingLimiter) enter(verb string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.verbs = append(a.verbs, verb)
	return a.fail[verb]
}

func (a *countingLimiter) count(verb string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := 0
	for _, v := range a.verbs {
		if v == verb {
			n++
		}
	}
	return n
}

// Reserve and the methods below implement [weir.Service]. Leases settle through a too.
func (a *countingLimiter) Reserve(ctx context.Context, r *weir.Request) (*weir.Lease, error) {
	if err := a.enter("reserve"); err != nil {
		return nil, err
	}
	l, err := a.Limiter.Reserve(ctx, r)
	if err != nil {
		return nil, err
	}
	return l.Bind(a), nil
}

func (a *countingLimiter) Complete(
	ctx context.Context, id weir.LeaseID, actuals []weir.Costs,
) (*weir.Receipt, error) {
	if err := a.enter("complete"); err != nil {
		return nil, err
	}
	return a.Limiter.Complete(ctx, id, actuals)
}

func (a *countingLimiter) Cancel(ctx context.Context, id weir.LeaseID) (*weir.Receipt, error) {
	if err := a.enter("cancel"); err != nil {
		return nil, err
	}
	return a.Limiter.Cancel(ctx, id)
}

func (a *countingLimiter) Extend(ctx context.Context, id weir.LeaseID) (*weir.Receipt, error) {
	if err := a.enter("extend"); err != nil {
		return nil, err
	}
	return a.Limiter.Extend(ctx, id)
}

// used checks the units in use of both limits.
func (a *countingLimiter) used(what string, n, slots int64) {
	a.t.Helper()
	statuses, err := a.Status(context.Background(), "a", "m")
	if err != nil {
		a.t.Fatal(err)
	}
	gotN, gotSlots := 10-statuses[0].Available, 2-statuses[1].Available
	if gotN != n || gotSlots != slots {
		a.t.Errorf("%s: got %d units and %d slots in use, want %d and %d", what, gotN, gotSlots, n, slots)
	}
}

// askFourUnits returns a request for four units and a slot.
func askFourUnits() *weir.Request {
	return &weir.Request{Entity: "a", Resource: "m", Costs: weir.Costs{"n": 4}}
}

var errGone = errors.New("connection refused")
