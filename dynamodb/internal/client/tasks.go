package client

import (
	"sync"
	"sync/atomic"

	"github.com/weir-limiter/weir"
)

// Tasks counts the calls and the background work of a store, so that closing the store can wait for
// them. Unlike with a [sync.WaitGroup], a task may begin while another goroutine waits and the
// count is 0.
type Tasks struct {
	Closed atomic.Bool
	Ending chan struct{} // closed with the store

	mu   sync.Mutex // guards the fields below
	N    int
	none chan struct{} // closed when nothing is running; nil while no goroutine waits
}

// NewTasks returns the tasks of an open store.
func NewTasks() *Tasks { return &Tasks{Ending: make(chan struct{})} }

// Enter begins a call, which ends with End. After Close it returns an error.
func (t *Tasks) Enter() error {
	t.Begin()
	if err := t.Refusal(); err != nil {
		t.End()
		return err
	}
	return nil
}

// EnterNested begins a call that a running call may depend on. After Close it returns an error only
// if nothing is running any more: otherwise Close would make the running call fail.
func (t *Tasks) EnterNested() error {
	t.mu.Lock()
	running := t.N > 0
	if running {
		t.N++
	}
	t.mu.Unlock()
	if running {
		return nil
	}
	return t.Enter()
}

// Refusal returns the error for a call after Close; nil before.
func (t *Tasks) Refusal() error {
	if t.Closed.Load() {
		return &weir.Error{Code: weir.Unavailable, Reason: "the store is closed"}
	}
	return nil
}

// Begin counts a task, even after Close.
func (t *Tasks) Begin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.N++
}

// End ends a task.
func (t *Tasks) End() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.N--; t.N == 0 && t.none != nil {
		close(t.none)
		t.none = nil
	}
}

// Run calls f in a goroutine and counts it as a task.
func (t *Tasks) Run(f func()) {
	t.Begin()
	go func() {
		defer t.End()
		f()
	}()
}

// Close refuses further calls and waits until nothing is running.
func (t *Tasks) Close() {
	if t.Closed.CompareAndSwap(false, true) {
		close(t.Ending)
	}
	t.Wait()
}

// Wait waits until nothing is running.
func (t *Tasks) Wait() {
	t.mu.Lock()
	if t.N == 0 {
		t.mu.Unlock()
		return
	}
	if t.none == nil {
		t.none = make(chan struct{})
	}
	none := t.none
	t.mu.Unlock()
	<-none
}

// MaxParallel is the largest number of calls that one change or list has in flight.
const MaxParallel = 16

// Parallel calls f for each number below n, up to [MaxParallel] at a time. After an error it starts
// no further call. It waits for those in flight, because the outcome of an abandoned write would be
// unknown.
func Parallel(n int, f func(i int) error) error {
	if n == 1 {
		return f(0)
	}
	var next atomic.Int64
	var failed atomic.Pointer[error]
	var all sync.WaitGroup
	for range min(n, MaxParallel) {
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
