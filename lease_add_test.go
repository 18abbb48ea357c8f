package weir_test

import (
	"context"
	"errors"
	"maps"
	"math"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
)

// addStep is a call of Add or, if totals is set, of Adjust.
type addStep struct {
	deltas, totals weir.Costs
	faults         []*fault     // of the calls that it makes
	want           error        // nil, or the code of the error
	reason         string       // a part of the error's text
	sent           []weir.Costs // the totals of its adjusts
}

func tpmCosts(n int64) weir.Costs { return weir.Costs{"tpm": n} }

func allTPM(n ...int64) (sets []weir.Costs) {
	for _, units := range n {
		sets = append(sets, tpmCosts(units))
	}
	return sets
}

// addCases returns calls on a lease of 40 units of tpm and one slot of parallel, most of which
// fail on the way.
func addCases() map[string][]addStep {
	tpm, all := tpmCosts, allTPM
	return map[string][]addStep{
		"adds to what was reserved": {{deltas: tpm(5), sent: all(45)}, {deltas: tpm(-20), sent: all(25)}},
		"nothing to add":            {{deltas: nil, sent: []weir.Costs{{}}}},
		"beyond the capacity":       {{deltas: tpm(90), sent: all(130)}},
		"a limit that was not named": {
			{deltas: weir.Costs{"parallel": -1, "tpm": 1}, sent: []weir.Costs{{"parallel": 0, "tpm": 41}}},
		},
		"more slots than it has": {
			{deltas: weir.Costs{"parallel": 1}, want: weir.Invalid, sent: []weir.Costs{{"parallel": 2}}},
			{deltas: tpm(1), sent: all(41)},
		},
		"the answer was lost": {
			{deltas: tpm(5), faults: []*fault{lost}, want: weir.Unavailable, sent: all(45)},
			{deltas: nil, sent: all(45)},
			{deltas: tpm(1), sent: all(46)},
		},
		"kept until they are sent": {
			{deltas: tpm(5), faults: []*fault{dropped}, want: weir.Unavailable, sent: all(45)},
			{deltas: tpm(2), faults: []*fault{full}, want: weir.Overloaded, sent: all(45)},
			{deltas: tpm(1), sent: all(47, 48)},
			{deltas: tpm(1), sent: all(49)},
		},
		"kept after half of it was sent": {
			{deltas: tpm(5), faults: []*fault{dropped}, want: weir.Unavailable, sent: all(45)},
			{deltas: tpm(2), faults: []*fault{nil, dropped}, want: weir.Unavailable, sent: all(45, 47)},
			{deltas: nil, sent: all(47)},
		},
		"refused": {
			{deltas: tpm(5), faults: []*fault{refused}, want: weir.PermissionDenied, sent: all(45)},
			{deltas: tpm(1), sent: all(41)},
		},
		"kept ones are refused": {
			{deltas: tpm(5), faults: []*fault{dropped}, want: weir.Unavailable, sent: all(45)},
			{deltas: tpm(2), faults: []*fault{refused}, want: weir.PermissionDenied, sent: all(45)},
			{deltas: tpm(1), sent: all(41)},
		},
		"an adjust replaces what was kept": {
			{deltas: tpm(5), faults: []*fault{dropped}, want: weir.Unavailable, sent: all(45)},
			{totals: tpm(10), sent: all(10)},
			{deltas: tpm(1), sent: all(11)},
		},
	}
}

// wrongAddCases returns calls on the same lease, most of which are mistakes.
func wrongAddCases() map[string][]addStep {
	tpm, all := tpmCosts, allTPM
	return map[string][]addStep{
		"below zero": {
			{deltas: tpm(-41), want: weir.Invalid, reason: "below zero"},
			{deltas: tpm(math.MinInt64), want: weir.Invalid, reason: "below zero"},
			{deltas: tpm(-40), sent: all(0)},
		},
		"above 64 bits": {
			{deltas: tpm(math.MaxInt64), want: weir.Invalid, reason: "64 bits"},
			{deltas: tpm(math.MaxInt64 - 39), want: weir.Invalid, reason: "64 bits"},
			{deltas: tpm(math.MaxInt64 - 40), want: weir.Invalid, sent: all(math.MaxInt64)}, // of the service
			{deltas: tpm(1), sent: all(41)},
		},
		"one of two is wrong": {
			{deltas: weir.Costs{"tpm": 1, "parallel": -2}, want: weir.Invalid},
			{deltas: tpm(1), sent: all(41)},
		},
		"was not reserved": {{deltas: weir.Costs{"rpm": 1}, want: weir.Invalid}},
		"a full name":      {{deltas: weir.Costs{"acme#gpt-4o#tpm": 1}, want: weir.Invalid}},
		"after an adjust":  {{totals: tpm(10), sent: all(10)}, {deltas: tpm(1), sent: all(11)}},
		"after an adjust that was refused": {
			{totals: tpm(10), faults: []*fault{refused}, want: weir.PermissionDenied, sent: all(10)},
			{deltas: tpm(1), sent: all(41)},
		},
		"after an adjust with an unknown outcome": {
			{totals: tpm(10), faults: []*fault{lost}, want: weir.Unavailable, sent: all(10)},
			{deltas: tpm(1), want: weir.Invalid},
			{totals: tpm(10), sent: all(10)},
			{deltas: tpm(1), sent: all(11)},
		},
	}
}

func TestAdd(t *testing.T) {
	t.Parallel()
	cases := addCases()
	maps.Copy(cases, wrongAddCases())
	for name, steps := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newFaultyService(t)
			lease := s.reserve()
			stands := map[string]int64{"tpm": 40, "parallel": 1} // as far as the service has applied it
			for i, step := range steps {
				s.sent, s.faults = nil, step.faults
				add := lease.Add
				if step.totals != nil {
					add = func(ctx context.Context, c weir.Costs) (*weir.Receipt, error) { return lease.Adjust(ctx, c) }
					step.deltas = step.totals
				}
				receipt, err := add(t.Context(), step.deltas)
				if !errors.Is(err, step.want) || (receipt == nil) != (step.want != nil) {
					t.Fatalf("step %d: got %v, %v, want %v", i, receipt, err, step.want)
				}
				if err != nil && !strings.Contains(err.Error(), step.reason) {
					t.Errorf("step %d: got %v, want it to say %q", i, err, step.reason)
				}
				if !reflect.DeepEqual(s.sent, step.sent) {
					t.Errorf("step %d: sent %v, want %v", i, s.sent, step.sent)
				}
				if step.want == nil {
					maps.Copy(stands, step.sent[len(step.sent)-1])
				}
			}
			if len(s.faults) > 0 {
				t.Errorf("%d calls were not made", len(s.faults))
			}
			s.calls = nil
			s.expect(nil, stands["tpm"], stands["parallel"])
		})
	}
}

// TestAddConcurrently checks that concurrent calls send growing totals, one after the other.
func TestAddConcurrently(t *testing.T) {
	t.Parallel()
	s := newFaultyService(t)
	lease := s.reserve()
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			if _, err := lease.Add(t.Context(), weir.Costs{"tpm": 1}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for i, c := range s.sent {
		if c["tpm"] != int64(41+i) {
			t.Errorf("adjust %d: sent %v, want %d", i, c, 41+i)
		}
	}
	s.calls = nil
	s.expect(nil, 90, 1)
}

// TestCompleteAfterAdd checks that Complete does not lose the deltas that were kept.
func TestCompleteAfterAdd(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		faults  []*fault // of the calls after an Add that was not carried out
		actuals []weir.Costs
		err     error // of Complete
		calls   []string
		units   int64 // after a Cancel
	}{
		"of a limit that is not named": {nil, nil, nil, []string{"adjust", "complete"}, 45},
		"of a limit that is named":     {nil, []weir.Costs{{"tpm": 7}}, nil, []string{"complete"}, 7},
		"named with no answer": {
			[]*fault{dropped}, []weir.Costs{{"tpm": 7}}, weir.Unavailable, []string{"complete", "complete"}, 7,
		},
		"with no answer": {
			[]*fault{dropped}, nil, weir.Unavailable, []string{"adjust", "adjust", "complete"}, 45,
		},
		"refused": {[]*fault{refused}, nil, weir.PermissionDenied, []string{"adjust", "cancel"}, 0},
	} {
		s := newFaultyService(t)
		lease := s.reserve()
		s.faults = []*fault{dropped}
		if _, err := lease.Add(t.Context(), weir.Costs{"tpm": 5}); !errors.Is(err, weir.Unavailable) {
			t.Fatalf("%s: got %v, want unavailable", name, err)
		}
		s.calls, s.faults = nil, test.faults
		if _, err := lease.Complete(t.Context(), test.actuals...); !errors.Is(err, test.err) {
			t.Errorf("%s: got %v, want %v", name, err, test.err)
		}
		if _, err := lease.Cancel(t.Context()); err != nil {
			t.Errorf("%s: cancel: %v", name, err)
		}
		t.Log(name)
		s.expect(test.calls, test.units, 0)
	}
}

// TestAddInDo checks that Do settles with deltas that were kept, and ends the lease even if the
// service refuses them.
func TestAddInDo(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		faults []*fault
		err    error
		calls  []string
		units  int64
	}{
		{[]*fault{dropped}, nil, []string{"adjust", "adjust", "complete"}, 45},
		{
			[]*fault{dropped, {err: &weir.Error{Code: weir.Invalid}}}, weir.Invalid,
			[]string{"adjust", "adjust", "complete"}, 40,
		},
	} {
		s := newFaultyService(t)
		lease := s.reserve()
		err := lease.Do(t.Context(), func(ctx context.Context, l *weir.Lease) error {
			s.faults = test.faults
			if _, err := l.Add(ctx, weir.Costs{"tpm": 5}); !errors.Is(err, weir.Unavailable) {
				t.Errorf("got %v, want unavailable", err)
			}
			return nil
		})
		if !errors.Is(err, test.err) {
			t.Errorf("got %v, want %v", err, test.err)
		}
		s.expect(test.calls, test.units, 0)
	}
}

// TestAddOfCharges checks that the deltas of a lease with several charges need an adjust that names
// the limit if its name is not enough.
func TestAddOfCharges(t *testing.T) {
	t.Parallel()
	s := newFaultyService(t)
	reserve := func(keyed bool) *weir.Lease {
		lease, err := s.Reserve(t.Context(), &weir.Request{Keyed: keyed, Charges: []weir.Charge{
			{Entity: "acme", Resource: "gpt-4o", Costs: weir.Costs{"tpm": 10, "parallel": 0}},
			{Entity: "bob", Resource: "gpt-4o", Costs: weir.Costs{"tpm": 20, "parallel": 0}},
		}})
		if err != nil {
			t.Fatal(err)
		}
		return lease.Bind(s)
	}
	add := func(l *weir.Lease, name string, want error) {
		t.Helper()
		if _, err := l.Add(t.Context(), weir.Costs{name: 1}); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", name, err, want)
		}
	}
	const full = "acme#gpt-4o#tpm"
	lease := reserve(true)
	add(lease, "tpm", weir.Invalid)
	add(lease, full, weir.Invalid)
	if _, err := lease.Adjust(t.Context(), weir.Costs{full: 12}); err != nil {
		t.Fatal(err)
	}
	add(lease, full, nil)
	add(lease, "tpm", weir.Invalid)
	s.calls = nil
	s.expect(nil, 13, 0)

	// A limit is known by the name that was used last.
	request := tpm(20)
	request.Keyed = true
	lease, err := s.Reserve(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"tpm", full} {
		if _, err := lease.Adjust(t.Context(), weir.Costs{name: 1}); err != nil {
			t.Fatal(err)
		}
	}
	add(lease, full, nil)
	add(lease, "tpm", weir.Invalid)
	s.expect(nil, 15, 1)

	lease = reserve(false)
	if _, err := lease.Adjust(t.Context(), weir.Costs{"tpm": 5}, weir.Costs{"tpm": 6}); err != nil {
		t.Fatal(err)
	}
	add(lease, "tpm", weir.Invalid)
	s.calls = nil
	s.expect(nil, 20, 1)
}

// TestAddAfterReplay checks that a lease which another handle has adjusted does not add to what was
// reserved first.
func TestAddAfterReplay(t *testing.T) {
	t.Parallel()
	s := newFaultyService(t)
	request := tpm(40)
	request.LeaseID = weir.NewLeaseID(time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC))
	for i, want := range []error{nil, weir.Invalid} {
		lease, err := s.Reserve(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := lease.Bind(s).Add(t.Context(), weir.Costs{"tpm": 1}); !errors.Is(err, want) {
			t.Errorf("handle %d: got %v, want %v", i, err, want)
		}
	}
	s.expect([]string{"adjust"}, 41, 1)
}

// TestAddToDegradedLease checks that a degraded lease takes any deltas.
func TestAddToDegradedLease(t *testing.T) {
	t.Parallel()
	s := newFaultyService(t)
	lease := s.reserve()
	lease.Degraded = true
	if _, err := lease.Add(t.Context(), weir.Costs{"rpm": -1}); err != nil || len(s.sent) != 0 {
		t.Errorf("sent %v, got %v", s.sent, err)
	}
}
