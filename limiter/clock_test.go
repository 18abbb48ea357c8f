package limiter_test

import (
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/limiter"
)

// offsetStore is a store whose clock differs from the process's.
type offsetStore struct {
	*fakeStore
	off time.Duration
}

func (c *offsetStore) ClockOffset() time.Duration { return c.off }

// A process whose clock is wrong uses the store's time, for leases and for limits.
func TestClockOffset(t *testing.T) {
	t.Parallel()
	wrong := time.Date(2026, 6, 1, 12, 10, 0, 0, time.UTC)
	for _, off := range []time.Duration{0, -10 * time.Minute, 3 * time.Second} {
		store := &offsetStore{newFakeStore(), off}
		l, err := limiter.New(store, &limiter.Options{Now: func() time.Time { return wrong }})
		if err != nil {
			t.Fatal(err)
		}
		lease, err := l.Reserve(t.Context(), &weir.Request{
			Entity: "a", Resource: "m", Costs: weir.Costs{"rpm": 1},
		})
		if err != nil {
			t.Fatal(err)
		}
		if want := wrong.Add(off); !lease.ReservedAt.Equal(want) || !lease.ID.Time().Equal(want) {
			t.Errorf("offset %v: reserved at %v under the time %v, want %v",
				off, lease.ReservedAt, lease.ID.Time(), want)
		}
	}
}
