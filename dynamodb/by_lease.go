package dynamodb

import (
	"maps"
	"sync"
	"time"

	"github.com/weir-limiter/weir"
)

// byLease keeps a value for each of a number of leases. A value is kept at least until the instant
// given with it. mu guards all of it.
type byLease[T any] struct {
	mu    sync.Mutex
	of    map[weir.LeaseID]leaseValue[T]
	sweep int // the number of values at which the next put drops the expired ones
}

type leaseValue[T any] struct {
	value T
	until int64 // Unix ms
}

// minSweep is the number of values below which dropping the expired ones is not worth the time.
const minSweep = 1000

// get returns the value of a lease; zero if there is none.
func (k *byLease[T]) get(id weir.LeaseID) T {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.of[id].value
}

// remove removes and returns the value of a lease; zero if there is none.
func (k *byLease[T]) remove(id weir.LeaseID) T {
	k.mu.Lock()
	defer k.mu.Unlock()
	v := k.of[id].value
	delete(k.of, id)
	return v
}

// put sets the value of a lease, to be kept until the given instant.
func (k *byLease[T]) put(now time.Time, id weir.LeaseID, until time.Time, v T) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.of == nil {
		k.of, k.sweep = make(map[weir.LeaseID]leaseValue[T]), minSweep
	}
	if len(k.of) >= k.sweep {
		maps.DeleteFunc(k.of, func(_ weir.LeaseID, v leaseValue[T]) bool { return v.until < now.UnixMilli() })
		k.sweep = max(minSweep, 2*len(k.of))
	}
	k.of[id] = leaseValue[T]{v, until.UnixMilli()}
}
