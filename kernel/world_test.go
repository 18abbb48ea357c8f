package kernel_test

import (
	"testing"
	"time"

	"github.com/weir-limiter/weir/kernel"
)

// start is the time at which most tests begin: the start of a minute, hour and day in UTC, on a
// Monday.
var start = time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC).UnixMilli()

// rule is a definition with a counter for it.
type rule struct {
	kernel.Definition
	counter func(now int64, d kernel.Definition) kernel.Counter
}

// bucket returns a rule for a bucket with a capacity, and a refill per period in milliseconds.
func bucket(capacity, refill, period int64) rule {
	d := kernel.Definition{Capacity: capacity, Refill: refill, LengthMS: period}
	return rule{d, func(now int64, d kernel.Definition) kernel.Counter { return kernel.NewBucket(now, d) }}
}

func window(capacity, length int64) rule {
	d := kernel.Definition{Capacity: capacity, LengthMS: length}
	return rule{d, func(now int64, d kernel.Definition) kernel.Counter { return kernel.NewWindow(now, d) }}
}

func concurrency(capacity, timeout int64) rule {
	d := kernel.Definition{Capacity: capacity, LengthMS: timeout}
	return rule{d, func(now int64, d kernel.Definition) kernel.Counter { return kernel.NewConcurrency(now, d) }}
}

func budget(capacity int64, every, zone string) rule {
	in, err := time.LoadLocation(zone)
	if err != nil {
		panic(err)
	}
	d := kernel.Definition{Capacity: capacity, Calendar: kernel.Calendar{Every: every, Zone: in}}
	return rule{d, func(now int64, d kernel.Definition) kernel.Counter { return kernel.NewBudget(now, d) }}
}

// world is a store of one limit. It puts the rule in force before each call that takes or updates.
type world struct {
	t       testing.TB
	rule    rule
	counter kernel.Counter
	now     int64
}

// lease is one take, with its piece.
type lease struct {
	pieces []kernel.Piece
	units  int64
}

func newWorld(t testing.TB, r rule) *world {
	return &world{t: t, rule: r, counter: r.counter(start, r.Definition), now: start}
}

// at sets the time, in milliseconds since the start.
func (w *world) at(ms int64) *world {
	w.now = start + ms
	return w
}

func (w *world) configure(r rule) { w.rule = r }

func (w *world) judge(n int64) (available int64, retryAfter time.Duration, fits bool) {
	w.counter.Redefine(w.now, w.rule.Definition)
	return kernel.Judge(w.counter, w.now, n, w.rule.Capacity, w.rule.Capacity)
}

// take takes n units and fails the test if they do not fit.
func (w *world) take(n int64) *lease {
	w.t.Helper()
	if available, _, fits := w.judge(n); !fits {
		w.t.Fatalf("take %d: got only %d available", n, available)
	}
	l := &lease{units: n}
	if p, ok := w.counter.Take(w.now, n); ok {
		l.pieces = []kernel.Piece{p}
	}
	return l
}

// refuse checks that n units do not fit now, and fit after some milliseconds; 0 means never.
func (w *world) refuse(n, retryMS int64) {
	w.t.Helper()
	_, got, fits := w.judge(n)
	if want := time.Duration(retryMS) * time.Millisecond; fits || got != want {
		w.t.Errorf("%d units: got fits %v, retry after %v; want false, %v", n, fits, got, want)
	}
}

// left checks what is available. It does not modify the counter.
func (w *world) left(want int64) {
	w.t.Helper()
	if got := w.counter.AvailableAt(w.now, w.rule.Definition); got != want {
		w.t.Errorf("available: got %d, want %d", got, want)
	}
}

func (w *world) settle(l *lease, to int64, ends bool) {
	w.t.Helper()
	w.counter.Redefine(w.now, w.rule.Definition)
	c := kernel.Change{Pieces: l.pieces, From: l.units, To: to, Ends: ends}
	if to > l.units && !w.counter.CanCount(w.now, c) {
		w.t.Fatalf("settle %d: does not fit the counter", to)
	}
	l.pieces, l.units = w.counter.Apply(w.now, c), to
}

func (w *world) adjust(l *lease, n int64) { w.t.Helper(); w.settle(l, n, false) }

func (w *world) cancel(l *lease) { w.t.Helper(); w.settle(l, 0, true) }

// complete ends a lease. Slots return, whatever was used of them.
func (w *world) complete(l *lease, n int64) {
	w.t.Helper()
	if _, slots := w.counter.(*kernel.Concurrency); slots {
		n = 0
	}
	w.settle(l, n, true)
}

func (w *world) extend(l *lease) {
	w.counter.Redefine(w.now, w.rule.Definition)
	l.pieces = w.counter.(*kernel.Concurrency).Extend(w.now, l.pieces)
}
