package broken

import (
	"context"
	"maps"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/conformance/model"
)

// racingFronts returns variants that are wrong only if calls are concurrent.
func racingFronts() []wrappedVariant {
	return []wrappedVariant{
		{"judging and taking are two steps", "concurrent requests that together pass a limit", twoSteps},
		{"limits are taken one after the other", "3.1", inParts},
		{"calls with one ID do not wait for one another", "6.6", takeWhileInFlight},
	}
}

// twoSteps unlocks the model between judging and taking, until another request has been judged or
// there is none. It waits for a request that another goroutine has begun, even if the operating
// system has stopped that goroutine's thread, so that a busy machine does not hide the mistake.
func twoSteps(w *wrongWorld) {
	var inFlight, judged atomic.Int64
	w.reserve = func(ctx context.Context, r *weir.Request) (*weir.Lease, error) {
		inFlight.Add(1)
		defer inFlight.Add(-1)
		return w.World.Reserve(ctx, r)
	}
	w.points.Taking = func(j *model.JudgedRequest, right []*model.Take) []*model.Take {
		const enough = 100 // yields for callers that are about to begin a request
		mine := judged.Add(1)
		for i := 0; judged.Load() == mine && (i < enough || inFlight.Load() > 1); i++ {
			j.Lock.Unlock()
			runtime.Gosched()
			j.Lock.Lock()
		}
		return right
	}
}

// inParts reserves the cost on m in a second step, after all other costs.
func inParts(w *wrongWorld) {
	w.reserve = func(ctx context.Context, r *weir.Request) (*weir.Lease, error) {
		later := r.Costs["m"]
		if later == 0 || len(r.Charges) > 0 {
			return w.World.Reserve(ctx, r)
		}
		first := *r
		first.Costs = maps.Clone(r.Costs)
		first.Costs["m"] = 0
		l, err := w.World.Reserve(ctx, &first)
		if err == nil {
			runtime.Gosched()
			_, _ = w.World.Adjust(ctx, l.ID, 1, []weir.Costs{{"m": later}})
		}
		return l, err
	}
}

// takeWhileInFlight treats a call that comes while another one on its lease ID is in flight as a
// new reservation.
func takeWhileInFlight(w *wrongWorld) {
	var mu sync.Mutex
	busy := map[weir.LeaseID]bool{}
	w.reserve = func(ctx context.Context, r *weir.Request) (*weir.Lease, error) {
		mu.Lock()
		second := busy[r.LeaseID]
		busy[r.LeaseID] = true
		mu.Unlock()
		if second {
			c := *r
			c.LeaseID = weir.LeaseID{}
			return w.World.Reserve(ctx, &c)
		}
		defer func() {
			mu.Lock()
			delete(busy, r.LeaseID)
			mu.Unlock()
		}()
		runtime.Gosched()
		return w.World.Reserve(ctx, r)
	}
}
