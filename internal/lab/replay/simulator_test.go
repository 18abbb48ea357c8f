package replay

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/lab/trace"
)

// recordingService is a service that admits everything unless it has other orders, and records its requests.
type recordingService struct {
	weir.Service

	notes []string
	deny  map[int64]error // by the cost of rpm
	// decide, if set, decides instead.
	decide func(cost int64) error
	fail   error // of every Complete
	limit  weir.Limit
}

func (s *recordingService) Reserve(_ context.Context, r *weir.Request) (*weir.Lease, error) {
	s.notes = append(s.notes, fmt.Sprintf("reserve %s %s %v", r.Entity, r.Resource, r.Costs["rpm"]))
	if s.decide != nil {
		if err := s.decide(r.Costs["rpm"]); err != nil {
			return nil, err
		}
	}
	if err := s.deny[r.Costs["rpm"]]; err != nil {
		return nil, err
	}
	return &weir.Lease{ID: r.LeaseID}, nil
}

func (s *recordingService) Complete(
	_ context.Context, id weir.LeaseID, actuals []weir.Costs,
) (*weir.Receipt, error) {
	s.notes = append(s.notes, fmt.Sprintf("complete of %d: %v", id.Time().UnixMilli(), actuals))
	return &weir.Receipt{LeaseID: id}, s.fail
}

func (s *recordingService) Explain(
	_ context.Context, entity, resource string,
) (*weir.Explanation, error) {
	return &weir.Explanation{Entity: entity, Resource: resource, Limits: []weir.Limit{s.limit}}, nil
}

// simulatorOver returns a simulator of calls that cost as many units as they generate tokens.
func simulatorOver(t *testing.T, s *recordingService, latency string, calls ...trace.Call) *simulator {
	t.Helper()
	s.limit = weir.Limit{Name: "rpm", Kind: weir.Bucket, Capacity: 9}
	return &simulator{
		boundWorkload: planOver(t, s, latency, calls...), service: s, ids: newLeaseIDs(1),
		until: func(at int64) { s.notes = append(s.notes, fmt.Sprintf("at %d", at)) },
	}
}

// TestSimulatorOrder checks that events come by their instants and, at one instant, completions
// before reservations, in the order of the calls.
func TestSimulatorOrder(t *testing.T) {
	t.Parallel()
	s := &recordingService{deny: map[int64]error{4: &weir.DeniedError{RetryAfter: time.Second}}}
	e := simulatorOver(t, s, "10ms+10ms",
		callOf(1, 1000, 0, 3), // until 1040
		callOf(2, 1000, 0, 2), // until 1030
		callOf(3, 1020, 0, 1), // until 1040
		callOf(4, 1020, 0, 4), // denied
		callOf(5, 1040, 0, 0), // until 1050
		callOf(6, 1060, 0, 5), // until 1120
	)
	if err := e.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := `at 1000
reserve tenant-1 llm 3
at 1000
reserve tenant-1 llm 2
at 1020
reserve tenant-1 llm 1
at 1020
reserve tenant-1 llm 4
at 1030
complete of 1000: [map[rpm:2]]
at 1040
complete of 1000: [map[rpm:3]]
at 1040
complete of 1020: [map[rpm:1]]
at 1040
reserve tenant-1 llm 0
at 1050
complete of 1040: [map[rpm:0]]
at 1060
reserve tenant-1 llm 5
at 1120
complete of 1060: [map[rpm:5]]`
	if got := strings.Join(s.notes, "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if e.operations != 11 || e.lastMS != 1120 {
		t.Errorf("got %d operations until %d, want 11 until 1120", e.operations, e.lastMS)
	}
}

// TestSimulatorWithoutLatency checks that a call ends in the millisecond in which it begins, before
// the next call.
func TestSimulatorWithoutLatency(t *testing.T) {
	t.Parallel()
	s := &recordingService{}
	if err := simulatorOver(t, s, "0", callOf(1, 5, 0, 1), callOf(2, 5, 0, 2)).run(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"at 5", "reserve tenant-1 llm 1", "at 5", "complete of 5: [map[rpm:1]]",
		"at 5", "reserve tenant-1 llm 2", "at 5", "complete of 5: [map[rpm:2]]",
	}
	if !slices.Equal(s.notes, want) {
		t.Errorf("got %q, want %q", s.notes, want)
	}
}

// failingWatcher is a watcher that fails on request.
type failingWatcher struct {
	reserve, complete error
	seen              []string
}

func (k *failingWatcher) Reserved(a *Attempt, v *Decision) error {
	k.seen = append(k.seen, fmt.Sprintf("%d %v %v", a.seq, v.Denied != nil, v.Err != nil))
	return k.reserve
}

func (k *failingWatcher) Completed(*Attempt) error { return k.complete }

// TestSimulatorErrors checks that an error of a call is a decision, and that all other errors end
// the replay and name the call.
func TestSimulatorErrors(t *testing.T) {
	t.Parallel()
	calls := []trace.Call{callOf(2, 5, 0, 1), callOf(3, 9, 0, 2)}
	never := &weir.Error{Code: weir.NeverSatisfiable}
	s := &recordingService{deny: map[int64]error{1: never, 2: &weir.DeniedError{}}}
	e := simulatorOver(t, s, "0", calls...)
	k := &failingWatcher{}
	e.watchers = []Watcher{k}
	if err := e.run(t.Context()); err != nil {
		t.Errorf("got %v, want no error", err)
	}
	if want := []string{"0 false true", "1 true false"}; !slices.Equal(k.seen, want) {
		t.Errorf("got verdicts %q, want %q", k.seen, want)
	}

	boom := errors.New("boom")
	for want, e := range map[string]*simulator{
		"t.csv:3: reserve: boom":  simulatorOver(t, &recordingService{deny: map[int64]error{2: boom}}, "0", calls...),
		"t.csv:2: complete: boom": simulatorOver(t, &recordingService{fail: boom}, "0", calls...),
	} {
		if err := e.run(t.Context()); !errors.Is(err, boom) || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	for _, k := range []*failingWatcher{{reserve: boom}, {complete: boom}} {
		e := simulatorOver(t, &recordingService{}, "0", calls...)
		e.watchers = []Watcher{k}
		if err := e.run(t.Context()); !errors.Is(err, boom) {
			t.Errorf("got %v, want the watcher's error", err)
		}
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := simulatorOver(t, &recordingService{}, "0", calls...).run(gone); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's end", err)
	}
}
