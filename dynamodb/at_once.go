package dynamodb

import (
	"sync"
	"sync/atomic"
)

// maxParallel is how many calls of one change or list are under way at once.
const maxParallel = 16

// parallel does something for each of the numbers below n, a few at a time. After an error none is begun
// any more; those under way end, since nobody could say what became of a write that was left.
func parallel(n int, f func(i int) error) error {
	if n == 1 {
		return f(0)
	}
	var next atomic.Int64
	var failed atomic.Pointer[error]
	var all sync.WaitGroup
	for range min(n, maxParallel) {
		all.Go(func() {
			for failed.Load() == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				if err := f(i); err != nil {
					failed.CompareAndSwap(nil, &err)
				}
			}
		})
	}
	all.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}
