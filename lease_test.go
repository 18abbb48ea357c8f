package weir_test

import (
	"context"
	"errors"
	"reflect"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/memory"
)

// faultyService is a limiter of one bucket "tpm" of 100 units and one of 10 slots, whose calls can
// be made to fail. It records the calls.
type faultyService struct {
	*limiter.Limiter

	t     *testing.T
	calls []string
	sent  []weir.Costs // the totals of the adjusts and the actuals of the completes, of one charge
	// faults are the results of the next calls: nil for a call that succeeds.
	faults []*fault
	inside atomic.Int64 // calls under way
}

// fault is a call that fails. If it is done, the limiter gets it first.
type fault struct {
	done bool
	err  error
}

var (
	lost    = &fault{done: true, err: &weir.Error{Code: weir.Unavailable}}
	dropped = &fault{err: &weir.Error{Code: weir.Unavailable}}
	full    = &fault{err: &weir.Error{Code: weir.Overloaded}}
	strange = &fault{err: errors.New("not weir's")}
	refused = &fault{err: &weir.Error{Code: weir.PermissionDenied}}
)

func newFaultyService(t *testing.T) *faultyService {
	t.Helper()
	store, err := memory.Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	l, err := limiter.New(store, &limiter.Options{
		Limits: []weir.Limit{
			{Name: "tpm", Capacity: 100},
			{Name: "parallel", Kind: weir.Concurrency, Capacity: 10, Timeout: time.Minute},
		},
		Now: func() time.Time { return now },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return &faultyService{Limiter: l, t: t}
}

// reserve returns a lease of 40 units and one slot.
func (s *faultyService) reserve() *weir.Lease {
	s.t.Helper()
	lease, err := s.Reserve(s.t.Context(), tpm(40))
	if err != nil {
		s.t.Fatal(err)
	}
	return lease.Bind(s)
}

func tpm(n int64) *weir.Request {
	return &weir.Request{Entity: "acme", Resource: "gpt-4o", Costs: weir.Costs{"tpm": n}}
}

func (s *faultyService) call(
	verb string, sent []weir.Costs, f func() (*weir.Receipt, error),
) (*weir.Receipt, error) {
	if s.inside.Add(1) > 1 {
		s.t.Error("two calls at the same time")
	}
	defer s.inside.Add(-1)
	runtime.Gosched() // lets another call begin, if it does not wait
	s.calls = append(s.calls, verb)
	s.sent = append(s.sent, sent...)
	var now *fault
	if len(s.faults) > 0 {
		now, s.faults = s.faults[0], s.faults[1:]
	}
	if now == nil {
		return f()
	}
	if now.done {
		if _, err := f(); err != nil {
			s.t.Error(err)
		}
	}
	return nil, now.err
}

func (s *faultyService) Adjust(
	ctx context.Context, id weir.LeaseID, seq int64, totals []weir.Costs,
) (*weir.Receipt, error) {
	return s.call("adjust", totals, func() (*weir.Receipt, error) {
		return s.Limiter.Adjust(ctx, id, seq, totals)
	})
}

func (s *faultyService) Complete(
	ctx context.Context, id weir.LeaseID, actuals []weir.Costs,
) (*weir.Receipt, error) {
	return s.call("complete", actuals, func() (*weir.Receipt, error) {
		return s.Limiter.Complete(ctx, id, actuals)
	})
}

func (s *faultyService) Cancel(ctx context.Context, id weir.LeaseID) (*weir.Receipt, error) {
	return s.call("cancel", nil, func() (*weir.Receipt, error) { return s.Limiter.Cancel(ctx, id) })
}

// expect checks the calls since the last check, and what is in use of both limits.
func (s *faultyService) expect(calls []string, units, slots int64) {
	s.t.Helper()
	if !slices.Equal(s.calls, calls) {
		s.t.Errorf("called %v, want %v", s.calls, calls)
	}
	s.calls = nil
	of, err := s.Status(s.t.Context(), "acme", "gpt-4o")
	if err != nil {
		s.t.Fatal(err)
	}
	inUse := map[string]int64{}
	for _, l := range of {
		inUse[l.Limit] = l.Capacity - l.Available
	}
	if want := map[string]int64{"tpm": units, "parallel": slots}; !reflect.DeepEqual(inUse, want) {
		s.t.Errorf("in use: got %v, want %v", inUse, want)
	}
}

// TestCancelAfterComplete checks that a deferred Cancel takes nothing back from what was completed.
func TestCancelAfterComplete(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		faults []*fault
		calls  []string
		units  int64
		err    error // of the Cancel
	}{
		{"it succeeded", nil, []string{"complete"}, 7, nil},
		{"its answer was lost", []*fault{lost}, []string{"complete", "complete"}, 7, nil},
		{"it was lost itself", []*fault{dropped}, []string{"complete", "complete"}, 7, nil},
		{"no capacity for it", []*fault{full}, []string{"complete", "complete"}, 7, nil},
		{"an error that is not weir's", []*fault{strange}, []string{"complete", "complete"}, 7, nil},
		{"it was refused", []*fault{refused}, []string{"complete", "cancel"}, 0, nil},
		{"the answer of the repeat was lost too", []*fault{dropped, lost, nil},
			[]string{"complete", "complete"}, 7, weir.Unavailable},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := newFaultyService(t)
			s.faults = test.faults
			lease := s.reserve()
			actuals := weir.Costs{"tpm": 7}
			first, completeErr := lease.Complete(t.Context(), actuals)
			actuals["tpm"] = 1 // the costs are the caller's again
			receipt, err := lease.Cancel(t.Context())
			if !errors.Is(err, test.err) || (err == nil) != (test.err == nil) {
				t.Fatalf("got %v, want %v", err, test.err)
			}
			if completeErr == nil && (receipt == first || !reflect.DeepEqual(receipt, first)) {
				t.Errorf("got receipt %p %+v, want a copy of %p %+v", receipt, receipt, first, first)
			}
			if err == nil && (receipt.LeaseID != lease.ID || !receipt.Expires.IsZero()) {
				t.Errorf("got receipt %+v, want that of an ended lease", receipt)
			}
			s.expect(test.calls, test.units, 0)
		})
	}
}

// TestCancelAfterCancel checks that only a Complete is remembered.
func TestCancelAfterCancel(t *testing.T) {
	t.Parallel()
	s := newFaultyService(t)
	s.faults = []*fault{dropped}
	lease := s.reserve()
	if _, err := lease.Cancel(t.Context()); !errors.Is(err, weir.Unavailable) {
		t.Errorf("got %v, want unavailable", err)
	}
	for range 2 {
		if _, err := lease.Cancel(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if _, err := lease.Complete(t.Context()); !errors.Is(err, weir.Conflict) {
		t.Errorf("complete after cancel: got %v, want a conflict", err)
	}
	if _, err := lease.Cancel(t.Context()); err != nil {
		t.Errorf("cancel after a complete that was refused: %v", err)
	}
	s.expect([]string{"cancel", "cancel", "cancel", "complete", "cancel"}, 0, 0)
}

// TestCancelByID checks that the service itself still refuses to cancel what was completed.
func TestCancelByID(t *testing.T) {
	t.Parallel()
	s := newFaultyService(t)
	lease := s.reserve()
	if _, err := lease.Complete(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Cancel(t.Context(), lease.ID); !errors.Is(err, weir.Conflict) {
		t.Errorf("got %v, want a conflict", err)
	}
}

func TestGiveBack(t *testing.T) {
	t.Parallel()
	broken := errors.New("the call broke")
	used := weir.Costs{"tpm": 7}
	for _, test := range []struct {
		name  string
		say   func(l *weir.Lease)
		calls []string
		units int64
	}{
		{"alone", func(l *weir.Lease) { l.GiveBack() }, []string{"cancel"}, 0},
		{"after the call was sent", func(l *weir.Lease) { l.Sent(); l.GiveBack() }, []string{"cancel"}, 0},
		{"before the call was sent", func(l *weir.Lease) { l.GiveBack(); l.Sent() }, []string{"cancel"}, 0},
		{"after a report", func(l *weir.Lease) { l.Report(used); l.GiveBack() }, []string{"cancel"}, 0},
		{"before a report", func(l *weir.Lease) { l.GiveBack(); l.Report(used) }, []string{"complete"}, 7},
	} {
		for _, returned := range []error{nil, broken} {
			s := newFaultyService(t)
			err := s.reserve().Do(t.Context(), func(_ context.Context, l *weir.Lease) error {
				test.say(l)
				return returned
			})
			if !errors.Is(err, returned) {
				t.Errorf("%s: got %v, want %v", test.name, err, returned)
			}
			s.expect(test.calls, test.units, 0)
		}
	}
}
