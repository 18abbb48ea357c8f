package main

import (
	"errors"
	"sync"
)

// The works that worlds offer.
const (
	workBoth     = "reserve+complete"
	workReserve  = "reserve"
	workComplete = "complete"
	workDenied   = "denied"
	workTake     = "take"
	workEight    = "eight"
)

// work does about n operations and measures them: at least n, and at most a chunk more.
type work func(m *meter, n int) error

// tally is what became of some operations.
type tally struct{ admitted, denied int64 }

// loop does n operations, measured by somebody else.
type loop func(n int) (tally, error)

// time measures a loop.
func (m *meter) time(n int, l loop) error {
	m.start()
	t, err := l(n)
	m.stop(n)
	m.Admitted += t.admitted
	m.Denied += t.denied
	return err
}

// timed makes a work of a loop.
func timed(l loop) work {
	return func(m *meter, n int) error { return m.time(n, l) }
}

// parallel makes one work of loops that run at once and share the operations equally.
func parallel(loops []loop) work {
	if len(loops) == 1 {
		return timed(loops[0])
	}
	return func(m *meter, n int) error {
		share := (n + len(loops) - 1) / len(loops)
		return m.time(share*len(loops), func(int) (tally, error) {
			tallies, errs := make([]tally, len(loops)), make([]error, len(loops))
			var group sync.WaitGroup
			for i, l := range loops {
				group.Go(func() { tallies[i], errs[i] = l(share) })
			}
			group.Wait()
			var sum tally
			for _, t := range tallies {
				sum.admitted += t.admitted
				sum.denied += t.denied
			}
			return sum, errors.Join(errs...)
		})
	}
}
