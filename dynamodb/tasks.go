package dynamodb

import (
	"sync"
	"sync/atomic"

	"github.com/weir-limiter/weir"
)

// tasks counts the calls and background work of a store, so that closing the store can wait for
// them. Unlike a [sync.WaitGroup] it may begin something while a caller waits.
type tasks struct {
	closed atomic.Bool
	ending chan struct{} // closed with the store

	mu   sync.Mutex
	n    int
	none chan struct{} // closed when nothing is running; nil while nobody waits
}

func newTasks() *tasks { return &tasks{ending: make(chan struct{})} }

// enter begins a call, which close waits for: end it with end. After close it refuses.
func (t *tasks) enter() error {
	t.begin()
	if err := t.refusal(); err != nil {
		t.end()
		return err
	}
	return nil
}

// enterNested begins a call that a running one may need: after close it is refused only if nothing
// is running any more.
func (t *tasks) enterNested() error {
	t.mu.Lock()
	running := t.n > 0
	if running {
		t.n++
	}
	t.mu.Unlock()
	if running {
		return nil
	}
	return t.enter()
}

// refusal returns the error for calls that come after close.
func (t *tasks) refusal() error {
	if t.closed.Load() {
		return &weir.Error{Code: weir.Unavailable, Reason: "the store is closed"}
	}
	return nil
}

// begin counts one more.
func (t *tasks) begin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.n++
}

// end counts one less.
func (t *tasks) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.n--; t.n == 0 && t.none != nil {
		close(t.none)
		t.none = nil
	}
}

// run calls f in a goroutine of its own.
func (t *tasks) run(f func()) {
	t.begin()
	go func() {
		defer t.end()
		f()
	}()
}

// close refuses further calls and waits until nothing is running.
func (t *tasks) close() {
	if t.closed.CompareAndSwap(false, true) {
		close(t.ending)
	}
	t.wait()
}

// wait waits until nothing is running.
func (t *tasks) wait() {
	t.mu.Lock()
	if t.n == 0 {
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
