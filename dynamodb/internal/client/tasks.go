package client

import (
	"sync"
	"sync/atomic"

	"github.com/weir-limiter/weir"
)

// Tasks counts the calls and background work of a store, so that closing the store can wait for
// them. Unlike a [sync.WaitGroup] it may begin something while a caller waits.
type Tasks struct {
	Closed atomic.Bool
	Ending chan struct{} // closed with the store

	mu   sync.Mutex
	N    int
	none chan struct{} // closed when nothing is running; nil while nobody waits
}

// NewTasks returns the tasks of an open store.
func NewTasks() *Tasks { return &Tasks{Ending: make(chan struct{})} }

// Enter begins a call, which close waits for: end it with end. After close it refuses.
func (t *Tasks) Enter() error {
	t.Begin()
	if err := t.Refusal(); err != nil {
		t.End()
		return err
	}
	return nil
}

// EnterNested begins a call that a running one may need: after close it is refused only if nothing
// is running any more.
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

// Refusal returns the error for calls that come after close.
func (t *Tasks) Refusal() error {
	if t.Closed.Load() {
		return &weir.Error{Code: weir.Unavailable, Reason: "the store is closed"}
	}
	return nil
}

// Begin counts one more.
func (t *Tasks) Begin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.N++
}

// End counts one less.
func (t *Tasks) End() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.N--; t.N == 0 && t.none != nil {
		close(t.none)
		t.none = nil
	}
}

// Run calls f in a goroutine of its own.
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

// MaxParallel is how many calls of one change or list are in flight at once.
const MaxParallel = 16

// Parallel calls f for each of the numbers below n, a few at a time. After an error no further
// call begins; those in flight are waited for, because the outcome of an abandoned write would not
// be known.
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
