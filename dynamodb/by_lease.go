package dynamodb

import (
	"maps"
	"sync"
	"time"

	"github.com/weir-limiter/weir"
)

// byLease keeps something of leases, each until an instant of its own at least.
type byLease[T any] struct {
	mu    sync.Mutex
	of    map[weir.LeaseID]kept[T]
	sweep int // how many there are when the ended ones are dropped next
}

type kept[T any] struct {
	value T
	until int64 // Unix ms
}

// leastSweep is below how many the ended ones are not worth looking for.
const leastSweep = 1000

// get returns what is kept of a lease; zero if nothing is.
func (k *byLease[T]) get(id weir.LeaseID) T {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.of[id].value
}

// remove returns what was kept of a lease; zero if nothing was.
func (k *byLease[T]) remove(id weir.LeaseID) T {
	k.mu.Lock()
	defer k.mu.Unlock()
	v := k.of[id].value
	delete(k.of, id)
	return v
}

func (k *byLease[T]) put(now time.Time, id weir.LeaseID, until time.Time, v T) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.of == nil {
		k.of, k.sweep = make(map[weir.LeaseID]kept[T]), leastSweep
	}
	if len(k.of) >= k.sweep {
		maps.DeleteFunc(k.of, func(_ weir.LeaseID, v kept[T]) bool { return v.until < now.UnixMilli() })
		k.sweep = max(leastSweep, 2*len(k.of))
	}
	k.of[id] = kept[T]{v, until.UnixMilli()}
}
