package limiter_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/memory"
)

// slots returns a limiter with one slot of two seconds for each entity.
func slots(t *testing.T) *limiter.Limiter {
	t.Helper()
	store, err := memory.Open(&memory.Options{Definitions: &weir.Definitions{System: []weir.Limit{
		{Name: "slots", Kind: weir.Concurrency, Capacity: 1, Timeout: 2 * time.Second}}}})
	if err != nil {
		t.Fatal(err)
	}
	l, err := limiter.New(store, nil)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Do keeps the slot of a lease that was reserved some time before.
func TestDoKeepsTheSlotsOfAnOldLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := slots(t)
		request := &weir.Request{LeaseID: weir.NewLeaseID(time.Now()), Entity: "a", Resource: "r"}
		lease, err := l.Reserve(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		busy := func(context.Context, *weir.Lease) error {
			for range 10 {
				<-time.After(time.Second)
				_, err := l.Reserve(t.Context(), &weir.Request{Entity: "a", Resource: "r"})
				if _, denied := errors.AsType[*weir.DeniedError](err); !denied {
					t.Errorf("a second holder: got %v, want a denial", err)
				}
			}
			return nil
		}
		<-time.After(1500 * time.Millisecond)
		if err := lease.Do(t.Context(), busy); err != nil {
			t.Error(err)
		}
		// The same with a repeated reservation.
		request.LeaseID = weir.NewLeaseID(time.Now())
		if _, err := l.Reserve(t.Context(), request); err != nil {
			t.Fatal(err)
		}
		<-time.After(1500 * time.Millisecond)
		if err := weir.Do(t.Context(), l, request, busy); err != nil {
			t.Error(err)
		}
	})
}

func TestDoRefusesALeaseWhoseSlotsTimedOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := slots(t)
		lease, err := l.Reserve(t.Context(), &weir.Request{Entity: "a", Resource: "r"})
		if err != nil {
			t.Fatal(err)
		}
		<-time.After(3 * time.Second)
		err = lease.Do(t.Context(), func(context.Context, *weir.Lease) error {
			t.Error("the call ran")
			return nil
		})
		if !errors.Is(err, weir.Ended) {
			t.Errorf("got %v, want ended", err)
		}
	})
}

// Do returns the slots even if the report is refused.
func TestDoWithARefusedReport(t *testing.T) {
	t.Parallel()
	l := slots(t)
	request := &weir.Request{Entity: "a", Resource: "r"}
	err := weir.Do(t.Context(), l, request, func(_ context.Context, lease *weir.Lease) error {
		lease.Report(weir.Costs{"typo": 3})
		return nil
	})
	if !errors.Is(err, weir.Invalid) {
		t.Errorf("got %v, want invalid", err)
	}
	if _, err := l.Reserve(t.Context(), request); err != nil {
		t.Errorf("the slot is still occupied: %v", err)
	}
}

func TestDoReturnsTheCallsOwnError(t *testing.T) {
	t.Parallel()
	want := errors.New("the call broke")
	got := weir.Do(t.Context(), slots(t), &weir.Request{Entity: "a", Resource: "r"},
		func(context.Context, *weir.Lease) error { return want })
	if got != want { //nolint:errorlint // the identical error
		t.Errorf("got %#v, want the call's own", got)
	}
}

func TestReportIsCopied(t *testing.T) {
	t.Parallel()
	fake, seen := newFakeStore(), &settleRecorder{}
	seen.record(fake)
	l, _ := limiter.New(fake, nil)
	err := weir.Do(t.Context(), l, ask(), func(_ context.Context, lease *weir.Lease) error {
		used := weir.Costs{"rpm": 40}
		lease.Report(used)
		used["rpm"] = 0
		return nil
	})
	if err != nil || len(seen.units) != 1 || seen.units[0] != 40 {
		t.Errorf("got %v, %+v; want 40 units", err, seen)
	}
}

// Explain returns a copy that the caller may change.
func TestExplainCopies(t *testing.T) {
	t.Parallel()
	store, _ := memory.Open(&memory.Options{Definitions: &weir.Definitions{
		System:    []weir.Limit{{Name: "n", Capacity: 10}},
		Resources: map[string][]weir.Limit{"r": {{Name: "n", Capacity: 20}}},
	}})
	l, _ := limiter.New(store, nil)
	for range 2 {
		e, err := l.Explain(t.Context(), "a", "r")
		if err != nil || e.Limits[0].Capacity != 20 || e.Hidden[0].Limits[0].Capacity != 10 {
			t.Fatalf("got %+v, %v; want 20, and 10 hidden", e, err)
		}
		e.Limits[0].Capacity, e.Hidden[0].Limits[0].Capacity = 1000, 1000
		l.DropCache()
	}
}

// A policy that is removed no longer applies.
func TestRemovedPolicy(t *testing.T) {
	t.Parallel()
	fake := newFakeStore()
	fake.config.OnUnavailable = weir.Allow
	fake.reserve = func(context.Context, *driver.Plan) (*driver.Outcome, error) { return nil, errWire }
	l, _ := limiter.New(fake, nil)
	if _, err := l.Reserve(t.Context(), ask()); err != nil {
		t.Fatal(err)
	}
	fake.config = &weir.Config{Levels: fake.config.Levels}
	l.DropCache()
	if _, err := l.Reserve(t.Context(), ask()); !errors.Is(err, weir.Unavailable) {
		t.Errorf("got %v, want unavailable", err)
	}
}

// A resolution that was cached while the clock was a day ahead does not stay fresh for a day.
func TestCacheAfterAClockWasAhead(t *testing.T) {
	t.Parallel()
	now := newClock()
	fake := newFakeStore()
	l, _ := limiter.New(fake, &limiter.Options{Now: now.Now})
	for _, step := range []struct {
		move  time.Duration
		reads int
	}{{24 * time.Hour, 1}, {-24 * time.Hour, 2}} {
		now.Advance(step.move)
		if _, err := l.Explain(t.Context(), "a", "r"); err != nil || fake.reads != step.reads {
			t.Errorf("after %v: got %d reads, %v; want %d", step.move, fake.reads, err, step.reads)
		}
	}
}

func TestNilArguments(t *testing.T) {
	t.Parallel()
	l := slots(t)
	if _, err := l.Reserve(t.Context(), nil); !errors.Is(err, weir.Invalid) {
		t.Errorf("reserve: got %v, want invalid", err)
	}
	if _, err := weir.Wait(t.Context(), l, nil, nil); !errors.Is(err, weir.Invalid) {
		t.Errorf("wait: got %v, want invalid", err)
	}
	if err := l.Configure(t.Context(), nil); !errors.Is(err, weir.Invalid) {
		t.Errorf("configure: got %v, want invalid", err)
	}
}
