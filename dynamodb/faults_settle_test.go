package dynamodb

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/internal/testkit"
	"github.com/weir-limiter/weir/limiter"
)

// settleOutcome is the outcome of a settlement that is repeated until it is answered.
type settleOutcome struct {
	taken     int64 // the units taken by the table in the end
	ambiguous int64 // the metric, in units
	repeated  int
}

// TestFaultsSettleRepeated repeats a settlement whose answer is lost until it is answered. Its
// charges are made once or, if the outcome is unknown, twice, and are counted as ambiguous. Its
// refunds are made at most once. A lost answer to the write of the lease's record changes nothing.
func TestFaultsSettleRepeated(t *testing.T) {
	t.Parallel()
	const bucket, record = "/BUCKET#acme#", "/LEASES#"
	for name, tc := range map[string]struct {
		on      string
		fault   testkit.Fault
		total   int64 // of a lease that stood for 4 units
		want    settleOutcome
		inTable *settleOutcome // if it differs
	}{
		"charge, answer lost":  {bucket, testkit.LostAnswer, 7, settleOutcome{10, 3, 1}, nil},
		"charge, request lost": {bucket, testkit.LostRequest, 7, settleOutcome{7, 3, 1}, nil},
		"charge, failed":       {bucket, testkit.Fail, 7, settleOutcome{7, 3, 1}, nil},
		"charge, not sent":     {bucket, testkit.NoConnection, 7, settleOutcome{7, 0, 1}, nil},
		"refund, answer lost":  {bucket, testkit.LostAnswer, 1, settleOutcome{1, 3, 0}, nil},
		"refund, request lost": {bucket, testkit.LostRequest, 1, settleOutcome{4, 3, 0}, nil},
		// The record has the adjust, and the store makes the refund later.
		"refund, not sent":             {bucket, testkit.NoConnection, 1, settleOutcome{1, 0, 1}, &settleOutcome{1, 0, 0}},
		"charge, record: answer lost":  {record, testkit.LostAnswer, 7, settleOutcome{7, 0, 0}, nil},
		"charge, record: request lost": {record, testkit.LostRequest, 7, settleOutcome{7, 0, 0}, nil},
		"charge, record: failed":       {record, testkit.Fail, 7, settleOutcome{7, 0, 0}, nil},
		"charge, record: not sent":     {record, testkit.NoConnection, 7, settleOutcome{7, 0, 1}, nil},
		"refund, record: answer lost":  {record, testkit.LostAnswer, 1, settleOutcome{1, 0, 0}, nil},
		"refund, record: request lost": {record, testkit.LostRequest, 1, settleOutcome{1, 0, 0}, nil},
		"refund, record: not sent":     {record, testkit.NoConnection, 1, settleOutcome{1, 0, 1}, nil},
	} {
		for _, process := range []bool{false, true} {
			if process && tc.on == record {
				continue
			}
			t.Run(name+"/"+leasesIn(process), func(t *testing.T) {
				t.Parallel()
				want := tc.want
				if !process && tc.inTable != nil {
					want = *tc.inTable
				}
				p := &trap{fault: tc.fault, operation: "UpdateItem", text: tc.on}
				settleRepeated(t, p, process, tc.total, want)
			})
		}
	}
}

// settleRepeated adjusts a lease of 4 units to a total while a trap is set.
func settleRepeated(t *testing.T, p *trap, process bool, total int64, want settleOutcome) {
	t.Helper()
	w := newFaultWorld(t)
	w.limits(t, "acme", perSecond("rpm", 20, 1))
	s := w.trappedIn(t, Options{ProcessLeases: process}, limiter.Options{}, p)
	lease := mustTake(t, s, "acme", 4)
	s.store.running.Wait()
	p.set(1)
	if p.fault == testkit.NoConnection {
		p.set(client.CallAttempts)
	}
	repeated := 0
	for range 3 {
		_, err := s.limiter.Adjust(t.Context(), lease.ID, 1, []weir.Costs{{"rpm": total}})
		if err == nil {
			break
		}
		wantCode(t, err, weir.Unavailable)
		repeated++
	}
	if repeated != want.repeated {
		t.Errorf("repeated %d times, want %d", repeated, want.repeated)
	}
	if s.faults.Count(p.fault) == 0 {
		t.Error("nothing went wrong")
	}
	if _, err := s.limiter.Adjust(t.Context(), lease.ID, 1, []weir.Costs{{"rpm": 19}}); err != nil {
		t.Errorf("a replay: %v", err)
	}
	if _, err := lease.Complete(t.Context()); err != nil {
		t.Errorf("complete: %v", err)
	}
	s.store.running.Wait()
	w.wantTaken(t, "acme", "rpm", want.taken)
	if got := s.store.Stats().AmbiguousMilli; got != want.ambiguous*1000 {
		t.Errorf("%d milli-units are said to be ambiguous, want %d", got, want.ambiguous*1000)
	}
}

// TestFaultsReserveRepeated checks what the docs say about a reserve that is repeated under its ID
// after a lost answer: if the write was made, it is charged twice and the lease refunds one of the
// two charges. No charge is made twice without being counted.
func TestFaultsReserveRepeated(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		fault                   testkit.Fault
		taken, settled, inDoubt int64
	}{
		{testkit.LostAnswer, 8, 4, 4},
		{testkit.LostRequest, 4, 0, 4},
		{testkit.NoConnection, 4, 0, 0},
	} {
		t.Run(tc.fault.String(), func(t *testing.T) {
			t.Parallel()
			w := newFaultWorld(t)
			w.limits(t, "acme", perSecond("rpm", 20, 1))
			p := &trap{fault: tc.fault, operation: "UpdateItem"}
			s := w.trapped(t, limiter.Options{}, p)
			_, err := mustTake(t, s, "acme", 1).Cancel(t.Context()) // so that the item is there
			if err != nil {
				t.Fatal(err)
			}
			s.store.running.Wait()
			p.set(1)
			if tc.fault == testkit.NoConnection {
				p.set(client.CallAttempts)
			}
			r := rpmOf("acme", 4)
			r.LeaseID = weir.NewLeaseID(w.clock.now())
			_, err = s.limiter.Reserve(t.Context(), r)
			wantCode(t, err, weir.Unavailable)
			lease, err := s.limiter.Reserve(t.Context(), r)
			if err != nil {
				t.Fatalf("repeated: %v", err)
			}
			s.store.running.Wait()
			w.wantTaken(t, "acme", "rpm", tc.taken)
			receipt, err := lease.Cancel(t.Context())
			if err != nil || receipt.RefundInDoubt {
				t.Errorf("cancel: got %+v, %v, want no doubt", receipt, err)
			}
			w.wantTaken(t, "acme", "rpm", tc.settled)
			if got := s.store.Stats().AmbiguousMilli; got != tc.inDoubt*1000 {
				t.Errorf("%d milli-units are said to be ambiguous, want %d", got, tc.inDoubt*1000)
			}
		})
	}
}

// TestFaultsPartialSettlement makes one half of a settlement on a child and its parent fail. A
// repetition makes only that half, even with another verb. If leases are in the table, a settlement
// whose charges were made is recorded: it is answered, the store makes the rest of its refunds by
// itself, and another verb comes too late.
func TestFaultsPartialSettlement(t *testing.T) {
	t.Parallel()
	complete := func(n int64) func(context.Context, *weir.Lease) error {
		return func(ctx context.Context, l *weir.Lease) error {
			_, err := l.Complete(ctx, weir.Costs{"rpm": n})
			return err
		}
	}
	cancel := func(ctx context.Context, l *weir.Lease) error {
		_, err := l.Cancel(ctx)
		return err
	}
	for name, tc := range map[string]struct {
		broken        string
		first, second func(context.Context, *weir.Lease) error
		half, taken   int64 // taken on the half that works, after the first call; on both, in the end
		// refunds is true if all that is left after the first call is refunds. inTable is then taken
		// in the end, and late the answer to the second call, if leases are in the table.
		refunds bool
		inTable int64
		late    weir.Code
	}{
		"more, the parent fails":  {"top", complete(7), complete(7), 7, 7, false, 0, ""},
		"more, the child fails":   {"acme", complete(7), complete(7), 7, 7, false, 0, ""},
		"less, the parent fails":  {"top", complete(1), complete(1), 1, 1, true, 1, ""},
		"cancel, the child fails": {"acme", cancel, cancel, 0, 0, true, 0, ""},
		"more, and then cancel":   {"top", complete(9), cancel, 9, 0, false, 0, ""},
		"cancel, and then a complete": {
			"acme", cancel, complete(5), 0, 5, true, 0, weir.Conflict,
		},
	} {
		for _, process := range []bool{false, true} {
			t.Run(name+"/"+leasesIn(process), func(t *testing.T) {
				t.Parallel()
				recorded := tc.refunds && !process
				w := newFaultWorld(t)
				w.family(t, 20, 20)
				p := &trap{fault: testkit.NoConnection, operation: "UpdateItem", text: "/BUCKET#" + tc.broken + "#"}
				s := w.trappedIn(t, Options{ProcessLeases: process}, limiter.Options{}, p)
				lease := mustTake(t, s, "acme", 4)
				s.store.running.Wait()
				works := map[string]string{"top": "acme", "acme": "top"}[tc.broken]
				p.set(1 << 20)
				for range 2 {
					if err := tc.first(t.Context(), lease); !recorded {
						wantCode(t, err, weir.Unavailable)
					} else if err != nil {
						t.Errorf("recorded: %v", err)
					}
					w.wantTaken(t, tc.broken, "rpm", 4)
					w.wantTaken(t, works, "rpm", tc.half)
				}
				p.set(0)
				taken := tc.taken
				again := (&weir.Lease{ID: lease.ID}).Bind(s.limiter) // does not know of the first
				if err := tc.second(t.Context(), again); recorded && tc.late != "" {
					wantCode(t, err, tc.late)
				} else if err != nil {
					t.Errorf("the second time: %v", err)
				}
				if recorded {
					taken = tc.inTable
				}
				s.store.running.Wait()
				w.wantTaken(t, "acme", "rpm", taken)
				w.wantTaken(t, "top", "rpm", taken)
			})
		}
	}
}

// TestFaultsTwoSettlements settles two leases on one bucket while its writes fail. Neither settles
// the other, and both succeed in the end.
func TestFaultsTwoSettlements(t *testing.T) {
	t.Parallel()
	w := newFaultWorld(t)
	w.limits(t, "acme", perSecond("rpm", 40, 1))
	p := &trap{fault: testkit.Throttle, operation: "UpdateItem"}
	s := w.trapped(t, limiter.Options{}, p)
	leases := []*weir.Lease{mustTake(t, s, "acme", 4), mustTake(t, s, "acme", 5)}
	s.store.running.Wait()
	p.set(3 * client.CallAttempts) // some fail, in the same write or in two
	var wg sync.WaitGroup
	failed := make([]int, len(leases))
	for i, lease := range leases {
		wg.Go(func() {
			for range 10 {
				_, err := lease.Complete(t.Context(), weir.Costs{"rpm": int64(10 * (i + 1))})
				if err == nil {
					return
				}
				wantCode(t, err, weir.Unavailable)
				failed[i]++
			}
			t.Errorf("lease %d does not get through", i)
		})
	}
	wg.Wait()
	if failed[0]+failed[1] < 3 {
		t.Errorf("failed %v times", failed)
	}
	w.wantTaken(t, "acme", "rpm", 30)
	for _, lease := range leases {
		_, err := s.limiter.Cancel(t.Context(), lease.ID)
		wantCode(t, err, weir.Conflict)
	}
}

// holdingTransport is a transport that can hold requests back.
type holdingTransport struct {
	base http.RoundTripper
	text string

	mu      sync.Mutex
	arrived chan struct{} // closed when the first request is held; nil to hold none
	open    chan struct{} // closed to let them go on
}

func (h *holdingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	h.mu.Lock()
	arrived, open := h.arrived, h.open
	if arrived != nil && r.GetBody != nil && r.Header.Get("X-Amz-Target") == "DynamoDB_20120810.UpdateItem" {
		body, err := r.GetBody()
		if err != nil {
			h.mu.Unlock()
			return nil, err
		}
		var b bytes.Buffer
		_, err = b.ReadFrom(body)
		if err == nil && bytes.Contains(b.Bytes(), []byte(h.text)) {
			close(arrived)
			h.arrived = nil
			h.mu.Unlock()
			<-open
			return h.base.RoundTrip(r)
		}
	}
	h.mu.Unlock()
	return h.base.RoundTrip(r)
}

// hold holds the next write.
func (h *holdingTransport) hold() (arrived <-chan struct{}, release func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.arrived, h.open = make(chan struct{}), make(chan struct{})
	return h.arrived, sync.OnceFunc(func() { close(h.open) })
}

// TestFaultsCallerLeaves checks that a caller that leaves while its write is in flight gets an
// unknown outcome, and that the units are refunded, even if the store is closed in the meantime.
func TestFaultsCallerLeaves(t *testing.T) {
	t.Parallel()
	for _, closes := range []bool{false, true} {
		t.Run(map[bool]string{false: "stays open", true: "closes"}[closes], func(t *testing.T) {
			t.Parallel()
			w := newFaultWorld(t)
			w.family(t, 20, 20)
			h := &holdingTransport{base: http.DefaultTransport.(*http.Transport).Clone(), text: "/BUCKET#acme#"}
			s := w.side(t, "held", Options{}, limiter.Options{}, &testkit.FaultOptions{Base: h})
			mustTake(t, s, "acme", 4)
			s.store.running.Wait()
			arrived, release := h.hold()
			defer release()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			told := make(chan error, 1)
			go func() {
				_, err := s.limiter.Reserve(ctx, rpmOf("acme", 5))
				told <- err
			}()
			<-arrived
			cancel()
			wantCode(t, <-told, weir.Unavailable)
			if closes {
				closed := make(chan error, 1)
				go func() { closed <- s.limiter.Close() }()
				release()
				if err := <-closed; err != nil {
					t.Error(err)
				}
				_, err := s.limiter.Reserve(t.Context(), rpmOf("acme", 1))
				wantCode(t, err, weir.Unavailable)
			}
			release()
			s.store.running.Wait()
			w.wantTaken(t, "acme", "rpm", 4)
			w.wantTaken(t, "top", "rpm", 4)
			if n := s.store.Stats().AmbiguousMilli; n != 0 {
				t.Errorf("%d milli-units are said to be ambiguous", n)
			}
		})
	}
}

// TestFaultsCallerLeavesSettlement checks that a caller that leaves while its settlement is in
// flight can repeat it, and that it counts once.
func TestFaultsCallerLeavesSettlement(t *testing.T) {
	t.Parallel()
	w := newFaultWorld(t)
	w.limits(t, "acme", perSecond("rpm", 20, 1))
	h := &holdingTransport{base: http.DefaultTransport.(*http.Transport).Clone(), text: "/BUCKET#acme#"}
	s := w.side(t, "held", Options{}, limiter.Options{}, &testkit.FaultOptions{Base: h})
	lease := mustTake(t, s, "acme", 4)
	s.store.running.Wait()
	arrived, release := h.hold()
	defer release()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	told := make(chan error, 1)
	go func() {
		_, err := lease.Complete(ctx, weir.Costs{"rpm": 9})
		told <- err
	}()
	<-arrived
	cancel()
	wantCode(t, <-told, weir.Unavailable)
	short, done := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer done()
	if _, err := lease.Complete(short, weir.Costs{"rpm": 9}); !errors.Is(err, weir.Unavailable) {
		t.Errorf("while the settlement is in flight: got %v, want unavailable", err)
	}
	release()
	if _, err := lease.Complete(t.Context(), weir.Costs{"rpm": 9}); err != nil {
		t.Errorf("complete: %v", err)
	}
	w.wantTaken(t, "acme", "rpm", 9)
}
