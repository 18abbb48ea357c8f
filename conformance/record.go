package conformance

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
)

// Result is what became of a run on a recorder.
type Result struct {
	// Failed is true where the run failed or panicked.
	Failed bool
	// Skipped is true where it skipped itself.
	Skipped bool
	// Messages are what it reported, in order.
	Messages []string
}

// Record runs f on a recorder: what f reports is kept and fails nobody. The host is the test that
// asks; it lends its context, and a place for bubbles.
func Record(host *testing.T, f func(T)) Result {
	n := &sharedResult{}
	r := &recorderT{host: host, ctx: host.Context(), record: n}
	r.run(f)
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.result
}

// sharedResult are shared by a recorder and those in its bubbles.
type sharedResult struct {
	mu     sync.Mutex
	result Result
}

func (n *sharedResult) add(failed bool, format string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.result.Failed = n.result.Failed || failed
	n.result.Messages = append(n.result.Messages, fmt.Sprintf(format, args...))
}

// recorderT is a T that keeps what is reported.
type recorderT struct {
	host   *testing.T
	ctx    context.Context
	record *sharedResult
}

// stopped is what a recorder panics with, to end a run.
type stopped struct{}

// run plays f until it ends, stops itself or panics: a variant that panics has been caught too.
func (r *recorderT) run(f func(T)) {
	defer func() {
		switch p := recover().(type) {
		case nil, stopped:
		default:
			r.record.add(true, "panic: %v", p)
		}
	}()
	f(r)
}

func (r *recorderT) Helper() {}

func (r *recorderT) Name() string { return r.host.Name() }

func (r *recorderT) Context() context.Context { return r.ctx }

func (r *recorderT) Logf(format string, args ...any) {}

func (r *recorderT) Errorf(format string, args ...any) { r.record.add(true, format, args...) }

func (r *recorderT) Fatalf(format string, args ...any) {
	r.record.add(true, format, args...)
	panic(stopped{})
}

func (r *recorderT) Skipf(format string, args ...any) {
	r.record.mu.Lock()
	r.record.result.Skipped = true
	r.record.mu.Unlock()
	panic(stopped{})
}

func (r *recorderT) bubble(f func(T)) {
	synctest.Test(r.host, func(t *testing.T) {
		(&recorderT{host: t, ctx: t.Context(), record: r.record}).run(f)
	})
	r.record.mu.Lock()
	over := r.record.result.Failed || r.record.result.Skipped
	r.record.mu.Unlock()
	if over {
		panic(stopped{})
	}
}

// bubble runs f in a bubble of testing/synctest, where timers need no waiting.
func bubble(t T, f func(T)) {
	t.Helper()
	switch t := t.(type) {
	case *testing.T:
		synctest.Test(t, func(t *testing.T) { f(t) })
	case *recorderT:
		t.bubble(f)
	default:
		t.Fatalf("this case needs a *testing.T or a recorder")
	}
}
