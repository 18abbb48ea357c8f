package conformance

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
)

// Result is the result of a run on a recorder.
type Result struct {
	// Failed is set if the run failed or panicked.
	Failed bool
	// Skipped is set if the run skipped itself.
	Skipped bool
	// Messages are the run's reports, in order.
	Messages []string
}

// Record runs f on a recorder, which keeps what f reports and does not fail the test. The host is
// the calling test; it provides its context and the place for bubbles.
func Record(host *testing.T, f func(T)) Result {
	n := &sharedResult{}
	r := &recorderT{host: host, ctx: host.Context(), record: n}
	r.run(f)
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.result
}

// sharedResult is shared by a recorder and those in its bubbles.
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

// stopped is the value with which a recorder panics to end a run.
type stopped struct{}

// run runs f until it ends, stops itself or panics. A variant that panics counts as caught.
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

// bubble runs f in a bubble of testing/synctest, whose timers do not wait in real time.
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
