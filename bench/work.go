package main

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-limiter/weir"
)

// opResult is the outcome of an operation.
type opResult int

const (
	done opResult = iota // there was nothing to admit
	admitted
	denied
	outcomes
)

// judged returns the outcome of a reservation by its error. An error other than a denial is
// returned.
func judged(err error) (opResult, error) {
	if err == nil {
		return admitted, nil
	}
	if _, ok := errors.AsType[*weir.DeniedError](err); ok {
		return denied, nil
	}
	return done, err
}

// operation is one step of a caller, such as reserving and completing a lease.
type operation func(ctx context.Context) (opResult, error)

// work is a set of callers that repeat their operations, each in a goroutine of its own.
type work struct {
	callers []operation
	// chunk is the number of operations after which the measurement pauses. before and after run
	// around each chunk, and are not measured. Default: no pause.
	chunk         int
	before, after func(ctx context.Context) error
}

// run does at least ops operations or, if length is above 0, as many as it can in that time.
func (w *work) run(ctx context.Context, ops int, length time.Duration) (reply, error) {
	if w.chunk == 0 {
		return measure(ctx, w.callers, ops, length)
	}
	var sum reply
	for sum.Ops < int64(ops) {
		if err := w.before(ctx); err != nil {
			return sum, err
		}
		r, err := measure(ctx, w.callers, w.chunk, 0)
		if err != nil {
			return sum, err
		}
		sum.add(&r)
		if err := w.after(ctx); err != nil {
			return sum, err
		}
	}
	return sum, nil
}

// measure runs the callers' operations, and returns the first error. Its own costs are not part of
// the result.
func measure(
	ctx context.Context, callers []operation, ops int, length time.Duration,
) (r reply, err error) {
	var failed atomic.Bool
	loops, errs := make([]loop, len(callers)), make([]error, len(callers))
	share := (ops + len(callers) - 1) / len(callers)
	memory, cpu, begun := memoryUsage(), processorTime(), time.Now()
	end := begun.Add(length)
	operate := func(i int) {
		if length > 0 {
			errs[i] = loops[i].until(ctx, callers[i], end, &failed)
		} else {
			errs[i] = loops[i].times(ctx, callers[i], share)
		}
		if errs[i] != nil {
			failed.Store(true)
		}
	}
	var group sync.WaitGroup
	for i := 1; i < len(callers); i++ {
		group.Go(func() { operate(i) })
	}
	operate(0)
	group.Wait()
	r.NS = time.Since(begun).Nanoseconds()
	r.CPU = processorTime() - cpu
	now := memoryUsage()
	r.Mallocs, r.Bytes = now.Mallocs-memory.Mallocs, now.Bytes-memory.Bytes
	var took []int64
	for i := range loops {
		l := &loops[i]
		r.Ops += l.counts[done] + l.counts[admitted] + l.counts[denied]
		r.Admitted += l.counts[admitted]
		r.Denied += l.counts[denied]
		took = append(took, l.took...)
	}
	if len(took) > 0 {
		slices.Sort(took)
		r.P50, r.P99 = took[(len(took)-1)/2], took[(len(took)-1)*99/100]
	}
	return r, cmp.Or(errs...)
}

// loop counts the outcomes of one caller.
type loop struct {
	counts [outcomes]int64
	took   []int64 // nanoseconds of each operation, if the order limits the time
}

func (l *loop) times(ctx context.Context, operate operation, n int) error {
	for range n {
		o, err := operate(ctx)
		if err != nil {
			return err
		}
		l.counts[o]++
	}
	return nil
}

func (l *loop) until(ctx context.Context, operate operation, end time.Time, failed *atomic.Bool) error {
	for begun := time.Now(); begun.Before(end) && !failed.Load(); {
		o, err := operate(ctx)
		if err != nil {
			return err
		}
		now := time.Now()
		l.counts[o]++
		l.took = append(l.took, now.Sub(begun).Nanoseconds())
		begun = now
	}
	return nil
}

// memoryUsage returns the allocations of this process so far.
func memoryUsage() reply {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return reply{Mallocs: int64(m.Mallocs), Bytes: int64(m.TotalAlloc)}
}
