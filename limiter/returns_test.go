package limiter_test

import (
	"errors"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/memory"
)

// slotsWorld is a limiter with four slots that time out after five minutes.
type slotsWorld struct {
	*limiter.Limiter

	t   *testing.T
	now time.Time
}

func newSlotsWorld(t *testing.T) *slotsWorld {
	t.Helper()
	w := &slotsWorld{t: t, now: time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)}
	slots := func(n int64) []weir.Limit {
		return []weir.Limit{{Name: "slots", Kind: weir.Concurrency, Capacity: n, Timeout: 5 * time.Minute}}
	}
	store, err := memory.Open(&memory.Options{Definitions: &weir.Definitions{
		System: slots(4), Resources: map[string][]weir.Limit{"other": slots(2)},
	}})
	if err != nil {
		t.Fatal(err)
	}
	w.Limiter, err = limiter.New(store, &limiter.Options{Now: func() time.Time { return w.now }})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// take takes slots.
func (w *slotsWorld) take(resource string, n int64) *weir.Lease {
	w.t.Helper()
	l, err := w.Reserve(w.t.Context(), slotsRequest(resource, n))
	if err != nil {
		w.t.Fatal(err)
	}
	return l
}

// denied returns the denial of a request for slots.
func (w *slotsWorld) denied(resource string, n int64) *weir.DeniedError {
	w.t.Helper()
	_, err := w.Reserve(w.t.Context(), slotsRequest(resource, n))
	d, ok := errors.AsType[*weir.DeniedError](err)
	if !ok {
		w.t.Fatalf("got %v, want a denial", err)
	}
	return d
}

func slotsRequest(resource string, n int64) *weir.Request {
	return &weir.Request{Entity: "acme", Resource: resource, Costs: weir.Costs{"slots": n}}
}

// TestLikelyReturns checks when denied calls for slots are told to come again.
func TestLikelyReturns(t *testing.T) {
	t.Parallel()
	w := newSlotsWorld(t)
	check := func(when string, d *weir.DeniedError, atMost, likely time.Duration) {
		t.Helper()
		s := d.Limits[0]
		overall := likely
		if likely == 0 {
			overall = atMost
		}
		if s.RetryAfter != atMost || s.RetryLikely != likely || d.RetryAfter != overall || !s.AtMost() {
			t.Errorf("%s: got at most %v, likely %v, overall %v, want %v, %v, %v",
				when, s.RetryAfter, s.RetryLikely, d.RetryAfter, atMost, likely, overall)
		}
	}
	var leases []*weir.Lease
	for range 4 {
		leases = append(leases, w.take("llm", 1))
	}
	check("nothing has returned", w.denied("llm", 1), 5*time.Minute, 0)
	w.now = w.now.Add(8 * time.Second)
	if _, err := w.Complete(t.Context(), leases[0].ID, nil); err != nil {
		t.Fatal(err)
	}
	w.take("llm", 1)
	// One of four slots returns every two seconds. Callers come twice as often.
	left := 4*time.Minute + 52*time.Second
	check("first", w.denied("llm", 1), left, time.Second)
	check("second", w.denied("llm", 1), left, 2*time.Second)
	check("two slots", w.denied("llm", 2), left, 4*time.Second)
	w.now = w.now.Add(3 * time.Second)
	check("later", w.denied("llm", 1), left-3*time.Second, 2*time.Second)
	w.now = w.now.Add(time.Minute)
	check("much later", w.denied("llm", 1), left-63*time.Second, time.Second)
	for range 1000 {
		_ = w.denied("llm", 1)
	}
	check("never above the timeout", w.denied("llm", 1), left-63*time.Second, left-63*time.Second)
	w.take("other", 2)
	check("another limit", w.denied("other", 1), 5*time.Minute, 0)
}

// TestLikelyReturnsAverage checks that the estimate follows how long leases hold slots.
func TestLikelyReturnsAverage(t *testing.T) {
	t.Parallel()
	w := newSlotsWorld(t)
	hold := func(d time.Duration) {
		l := w.take("llm", 4)
		w.now = w.now.Add(d)
		if _, err := w.Cancel(t.Context(), l.ID); err != nil {
			t.Fatal(err)
		}
	}
	likely := func() time.Duration {
		l := w.take("llm", 4)
		d := w.denied("llm", 1).RetryAfter
		w.now = w.now.Add(time.Hour) // the holds time out, which is not counted
		_, _ = w.Cancel(t.Context(), l.ID)
		return d
	}
	hold(8 * time.Second)
	if got := likely(); got != time.Second {
		t.Errorf("at first: got %v, want 1s", got)
	}
	for range 100 {
		hold(16 * time.Second)
	}
	if got := likely(); got < 1990*time.Millisecond || got > 2*time.Second {
		t.Errorf("after calls that took twice as long: got %v, want about 2s", got)
	}
}
