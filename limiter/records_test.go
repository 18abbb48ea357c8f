package limiter_test

import (
	"context"
	"errors"
	"iter"
	"math"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/limiter"
)

// recordStore is a store with audit events and usage, whose lists end with an error if the test
// sets one.
type recordStore struct {
	*fakeStore
	events []weir.AuditEvent
	usage  []weir.Usage
	fails  error
}

func (r *recordStore) ReadAudit(
	_ context.Context, _ weir.Subject, after string,
) iter.Seq2[weir.AuditEvent, error] {
	return func(yield func(weir.AuditEvent, error) bool) {
		for _, e := range r.events {
			if (after == "" || e.ID < after) && !yield(e, nil) {
				return
			}
		}
		if r.fails != nil {
			yield(weir.AuditEvent{}, r.fails)
		}
	}
}

func (r *recordStore) ReadUsage(context.Context, weir.Usage) iter.Seq2[weir.Usage, error] {
	return func(yield func(weir.Usage, error) bool) {
		for _, u := range r.usage {
			if !yield(u, nil) {
				return
			}
		}
		if r.fails != nil {
			yield(weir.Usage{}, r.fails)
		}
	}
}

func newRecordLimiter(t *testing.T, store driver.Store) *limiter.Limiter {
	t.Helper()
	l, err := limiter.New(store, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func TestAuditOfAPlace(t *testing.T) {
	t.Parallel()
	store := &recordStore{fakeStore: newFakeStore(), events: []weir.AuditEvent{{ID: "03"}, {ID: "02"}, {ID: "01"}}}
	l := newRecordLimiter(t, store)
	var got []string
	for e, err := range l.Audit(t.Context(), weir.Subject{}, "03") {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, e.ID)
		break // stop before the end of the list
	}
	if len(got) != 1 || got[0] != "02" {
		t.Errorf("got %v, want 02 alone", got)
	}
	store.fails = errors.New("cut")
	n := 0
	var last error
	for _, err := range l.Audit(t.Context(), weir.Subject{Entity: "acme"}, "") {
		n, last = n+1, err
	}
	if n != 4 || !errors.Is(last, weir.Unavailable) {
		t.Errorf("got %d entries and %v at the end, want 4 and unavailable", n, last)
	}
}

func TestRecordsRefused(t *testing.T) {
	t.Parallel()
	day := time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC)
	with := newRecordLimiter(t, &recordStore{fakeStore: newFakeStore()})
	without := newRecordLimiter(t, newFakeStore())
	audit := func(l *limiter.Limiter, at weir.Subject) error {
		for _, err := range l.Audit(t.Context(), at, "") {
			return err
		}
		return nil
	}
	usage := func(l *limiter.Limiter, q weir.Usage) error {
		for _, err := range l.Usage(t.Context(), q) {
			return err
		}
		return nil
	}
	for name, c := range map[string]struct {
		err  error
		want error
	}{
		"audit of the system":    {audit(with, weir.Subject{}), nil},
		"audit of an entity":     {audit(with, weir.Subject{Entity: "acme", Resource: weir.DefaultResource}), nil},
		"audit of a bad entity":  {audit(with, weir.Subject{Entity: "a#b"}), weir.Invalid},
		"a store without audit":  {audit(without, weir.Subject{}), weir.Unsupported},
		"usage of an entity":     {usage(with, weir.Usage{Entity: "acme"}), nil},
		"usage of a resource":    {usage(with, weir.Usage{Resource: "gpt-4o", Window: "daily"}), nil},
		"usage of nothing":       {usage(with, weir.Usage{}), weir.Invalid},
		"usage of a bad entity":  {usage(with, weir.Usage{Entity: "a b"}), weir.Invalid},
		"usage of a bad window":  {usage(with, weir.Usage{Entity: "acme", Window: "weekly"}), weir.Invalid},
		"usage of no time":       {usage(with, weir.Usage{Entity: "acme", Start: day, End: day}), weir.Invalid},
		"usage of some time":     {usage(with, weir.Usage{Entity: "acme", Start: day, End: day.Add(1)}), nil},
		"a store without usage":  {usage(without, weir.Usage{Entity: "acme"}), weir.Unsupported},
		"a bad resource's usage": {usage(with, weir.Usage{Resource: "9"}), weir.Invalid},
	} {
		if !errors.Is(c.err, c.want) {
			t.Errorf("%s: got %v, want %v", name, c.err, c.want)
		}
	}
	if _, err := with.UsageTotal(t.Context(), weir.Usage{Entity: "acme"}); !errors.Is(err, weir.Invalid) {
		t.Errorf("a sum over windows of every length: got %v, want invalid", err)
	}
}

func TestUsageTotal(t *testing.T) {
	t.Parallel()
	hour := time.Date(2026, 1, 31, 7, 0, 0, 0, time.UTC)
	record := func(start time.Time, events, units int64) weir.Usage {
		return weir.Usage{
			Entity: "acme", Resource: "gpt-4o", Window: "hourly", Start: start, End: start.Add(time.Hour),
			Events: events, Units: map[string]int64{"rpm": units}, Windows: 1,
		}
	}
	store := &recordStore{fakeStore: newFakeStore(), usage: []weir.Usage{
		record(hour.Add(2*time.Hour), 3, 30), record(hour, 4, -5),
	}}
	l := newRecordLimiter(t, store)
	q := weir.Usage{Entity: "acme", Window: "hourly"}
	got, err := l.UsageTotal(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	if got.Windows != 2 || got.Events != 7 || got.Units["rpm"] != 25 ||
		!got.Start.Equal(hour) || !got.End.Equal(hour.Add(3*time.Hour)) {
		t.Errorf("got %+v", got)
	}
	store.usage = append(store.usage, record(hour, 1, math.MaxInt64))
	if _, err := l.UsageTotal(t.Context(), q); !errors.Is(err, weir.Unsupported) {
		t.Errorf("a sum beyond 64 bits: got %v, want unsupported", err)
	}
}
