package dynamodb

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/leaserecord"
	"github.com/weir-limiter/weir/internal/soak"
	"github.com/weir-limiter/weir/internal/testkit"
	"github.com/weir-limiter/weir/limiter"
)

// recordCall is a call that writes the record of a lease of 4 units, with the units that the lease
// stands for afterwards.
type recordCall struct {
	call  func(ctx context.Context, l *limiter.Limiter) error
	taken int64
}

// recordCalls returns each call on a lease.
func recordCalls(id weir.LeaseID) map[string]recordCall {
	adjust := func(units int64) func(context.Context, *limiter.Limiter) error {
		return func(ctx context.Context, l *limiter.Limiter) error {
			_, err := l.Adjust(ctx, id, 1, []weir.Costs{{"rpm": units}})
			return err
		}
	}
	complete := func(units int64) func(context.Context, *limiter.Limiter) error {
		return func(ctx context.Context, l *limiter.Limiter) error {
			_, err := l.Complete(ctx, id, []weir.Costs{{"rpm": units}})
			return err
		}
	}
	return map[string]recordCall{
		"adjust to more":     {adjust(7), 7},
		"adjust to less":     {adjust(1), 1},
		"complete with more": {complete(7), 7},
		"complete with less": {complete(1), 1},
		"cancel": {func(ctx context.Context, l *limiter.Limiter) error {
			_, err := l.Cancel(ctx, id)
			return err
		}, 0},
		"extend": {func(ctx context.Context, l *limiter.Limiter) error {
			_, err := l.Extend(ctx, id)
			return err
		}, 4},
		"reserve": {func(ctx context.Context, l *limiter.Limiter) error { return reserveAs(ctx, l, id, 4) }, 4},
	}
}

// reserveAs reserves units of rpm under an ID.
func reserveAs(ctx context.Context, l *limiter.Limiter, id weir.LeaseID, units int64) error {
	r := rpmOf("acme", units)
	r.LeaseID = id
	_, err := l.Reserve(ctx, r)
	return err
}

// TestRecordWithoutAnswer loses the answer to the write of a lease's record, or the write, once or
// until the store gives up. The call is repeated on the same server or on another one, until it is
// answered. The units are then charged and refunded once.
func TestRecordWithoutAnswer(t *testing.T) {
	t.Parallel()
	for name := range recordCalls(weir.LeaseID{}) {
		for _, tc := range []struct {
			fault testkit.Fault
			times int64
			again string // the server of the repeat
		}{
			{testkit.LostAnswer, 1, "here"}, {testkit.LostRequest, 1, "here"},
			{testkit.LostAnswer, 1, "elsewhere"}, {testkit.LostRequest, 1, "elsewhere"},
			{testkit.LateRequest, 1, "elsewhere"}, {testkit.Throttle, 12, "here"},
			{testkit.LostAnswer, 1 << 20, "here"}, {testkit.LostRequest, 1 << 20, "here"},
		} {
			if name == "reserve" && tc.times > 12 { // its units stay charged: see below
				continue
			}
			// The store gives up after some twelve seconds.
			if tc.times > 12 && !strings.HasPrefix(name, "complete") && !soak.On() {
				continue
			}
			of := tc.fault.String() + " once, again " + tc.again
			if tc.times > 1 {
				of = tc.fault.String() + " for long, again " + tc.again
			}
			t.Run(name+"/"+of, func(t *testing.T) {
				t.Parallel()
				w := newFaultWorld(t)
				w.limits(t, "acme", perSecond("rpm", 100, 1))
				p := &trap{fault: tc.fault, operation: "UpdateItem", text: "/LEASES#"}
				here, elsewhere := w.trapped(t, limiter.Options{}, p), w.trapped(t, limiter.Options{})
				if tc.fault == testkit.LateRequest {
					s := here.store // gives up waiting for the answer to the late write soon
					s.leases = leaserecord.New(s.client, s.config.Namespace, s.running, 2*time.Second)
				}
				id := weir.NewLeaseID(w.clock.now())
				call := recordCalls(id)[name]
				mustTake(t, here, "acme", 1) // the slice of time is registered, and the item exists
				if name != "reserve" {
					if err := reserveAs(t.Context(), here.limiter, id, 4); err != nil {
						t.Fatal(err)
					}
				}
				here.store.running.Wait()
				p.set(tc.times)
				err := call.call(t.Context(), here.limiter)
				if here.faults.Count(tc.fault) == 0 {
					t.Fatal("nothing went wrong")
				}
				if tc.times > 12 {
					wantCode(t, err, weir.Unavailable)
				} else if err != nil {
					t.Errorf("%v: the store sends the write again by itself", err)
				}
				p.set(0)
				here.faults.Wait()
				again := here
				if tc.again == "elsewhere" {
					again = elsewhere
				}
				if err := call.call(t.Context(), again.limiter); err != nil {
					t.Errorf("the repeat: %v", err)
				}
				here.store.running.Wait()
				elsewhere.store.running.Wait()
				w.wantTaken(t, "acme", "rpm", 1+call.taken)
			})
		}
	}
}

// TestReservedWithoutRecord makes the record of a reserve fail until the store gives up. The units
// of that one call stay charged, and are counted; a repeat is charged once more and settled in full.
func TestReservedWithoutRecord(t *testing.T) {
	t.Parallel()
	w := newFaultWorld(t)
	w.limits(t, "acme", perSecond("rpm", 100, 1))
	p := &trap{fault: testkit.LostRequest, operation: "UpdateItem", text: "/LEASES#"}
	s := w.trapped(t, limiter.Options{}, p)
	mustTake(t, s, "acme", 1)
	s.store.running.Wait()
	id := weir.NewLeaseID(w.clock.now())
	p.set(1 << 20)
	wantCode(t, reserveAs(t.Context(), s.limiter, id, 4), weir.Unavailable)
	p.set(0)
	w.wantTaken(t, "acme", "rpm", 5)
	if n := s.store.Stats().AmbiguousMilli; n != 4000 {
		t.Errorf("%d milli-units are said to be ambiguous, want 4000", n)
	}
	other := w.trapped(t, limiter.Options{})
	if err := reserveAs(t.Context(), other.limiter, id, 4); err != nil {
		t.Fatal(err)
	}
	if _, err := other.limiter.Cancel(t.Context(), id); err != nil {
		t.Error(err)
	}
	other.store.running.Wait()
	w.wantTaken(t, "acme", "rpm", 5)
}

// TestTombstoneWithoutAnswer loses the answer to the write of a tombstone. A reserve that arrives
// later, on any server, is refused and charges nothing.
func TestTombstoneWithoutAnswer(t *testing.T) {
	t.Parallel()
	for _, f := range []testkit.Fault{testkit.LostAnswer, testkit.LostRequest} {
		t.Run(f.String(), func(t *testing.T) {
			t.Parallel()
			w := newFaultWorld(t)
			w.limits(t, "acme", perSecond("rpm", 100, 1))
			p := &trap{fault: f, operation: "UpdateItem", text: "/LEASES#"}
			here, elsewhere := w.trapped(t, limiter.Options{}, p), w.trapped(t, limiter.Options{})
			mustTake(t, here, "acme", 1)
			here.store.running.Wait()
			id := weir.NewLeaseID(w.clock.now())
			p.set(1)
			_, err := here.limiter.Cancel(t.Context(), id)
			wantCode(t, err, weir.UnknownLease)
			for _, s := range []*faultSide{elsewhere, here} {
				wantCode(t, reserveAs(t.Context(), s.limiter, id, 4), weir.Ended)
				s.store.running.Wait()
			}
			w.wantTaken(t, "acme", "rpm", 1)
		})
	}
}

// TestSameIDOnTwoServers reserves with one ID and different contents on two servers at the same
// time. One is admitted, the other one is a conflict, and only the first one is charged.
func TestSameIDOnTwoServers(t *testing.T) {
	t.Parallel()
	w := newFaultWorld(t)
	w.limits(t, "acme", perSecond("rpm", 1000, 1))
	sides := []*faultSide{w.trapped(t, limiter.Options{}), w.trapped(t, limiter.Options{})}
	var taken int64
	for range 20 {
		id := weir.NewLeaseID(w.clock.now())
		answers := make([]chan error, len(sides))
		for i, s := range sides {
			answers[i] = make(chan error, 1)
			go func() { answers[i] <- reserveAs(t.Context(), s.limiter, id, int64(4+i)) }()
		}
		admitted := 0
		for i := range sides {
			if err := <-answers[i]; err == nil {
				admitted++
				taken += int64(4 + i)
			} else if !errors.Is(err, weir.Conflict) {
				t.Errorf("got %v, want a conflict", err)
			}
		}
		if admitted != 1 {
			t.Errorf("%d of two contents are admitted", admitted)
		}
	}
	for _, s := range sides {
		s.store.running.Wait()
	}
	w.wantTaken(t, "acme", "rpm", taken)
}

// TestCallerLeavesBeforeRecord makes the caller of a reserve leave while the record is written. The
// lease of a caller's own ID is kept, so that a repeat on any server gets it. A lease whose ID the
// library made is cancelled, because no caller knows the ID. Close waits for either.
func TestCallerLeavesBeforeRecord(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ own, closes bool }{
		"the caller's ID": {own: true}, "a new ID": {},
		"the caller's ID, and close": {own: true, closes: true}, "a new ID, and close": {closes: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFaultWorld(t)
			w.limits(t, "acme", perSecond("rpm", 100, 1))
			h := &holdingTransport{base: http.DefaultTransport.(*http.Transport).Clone(), text: "/LEASES#"}
			s := w.side(t, "held", Options{}, limiter.Options{}, &testkit.FaultOptions{Base: h})
			mustTake(t, s, "acme", 1)
			s.store.running.Wait()
			r := rpmOf("acme", 4)
			if tc.own {
				r.LeaseID = weir.NewLeaseID(w.clock.now())
			}
			arrived, release := h.hold()
			defer release()
			ctx, leave := context.WithCancel(t.Context())
			told := make(chan error, 1)
			go func() {
				_, err := s.limiter.Reserve(ctx, r)
				told <- err
			}()
			<-arrived
			leave()
			wantCode(t, <-told, weir.Unavailable)
			if tc.closes {
				closed := make(chan error, 1)
				go func() { closed <- s.limiter.Close() }()
				release()
				if err := <-closed; err != nil {
					t.Error(err)
				}
			}
			release()
			s.store.running.Wait()
			if !tc.own {
				w.wantTaken(t, "acme", "rpm", 1)
				return
			}
			w.wantTaken(t, "acme", "rpm", 5)
			other := w.trapped(t, limiter.Options{})
			lease, err := other.limiter.Reserve(t.Context(), r)
			if err != nil || !lease.Replay {
				t.Fatalf("the repeat: got %+v, %v, want the lease", lease, err)
			}
			if _, err := lease.Cancel(t.Context()); err != nil {
				t.Error(err)
			}
			other.store.running.Wait()
			w.wantTaken(t, "acme", "rpm", 1)
		})
	}
}

// TestClocksApart settles and repeats on a server whose clock is a minute ahead, or behind.
func TestClocksApart(t *testing.T) {
	t.Parallel()
	for name, off := range map[string]time.Duration{"ahead": time.Minute, "behind": -time.Minute} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFaultWorld(t)
			w.limits(t, "acme", weir.Limit{
				Name: "rpm", Kind: weir.Bucket, Capacity: 100, RefillAmount: 1, RefillPeriod: 24 * time.Hour,
			})
			here := w.trapped(t, limiter.Options{})
			there := &faultWorld{table: w.table, clock: newFaultClock(), eye: w.eye}
			there.clock.ms.Store(w.clock.ms.Load() + off.Milliseconds())
			other := there.trapped(t, limiter.Options{})
			for units, settle := range map[int64]func(id weir.LeaseID) error{
				9: func(id weir.LeaseID) error {
					_, err := other.limiter.Complete(t.Context(), id, []weir.Costs{{"rpm": 9}})
					return err
				},
				0: func(id weir.LeaseID) error {
					_, err := other.limiter.Cancel(t.Context(), id)
					return err
				},
			} {
				before, _ := w.taken(t, "acme", "rpm")
				id := weir.NewLeaseID(w.clock.now())
				for _, s := range []*faultSide{here, other, here} {
					if err := reserveAs(t.Context(), s.limiter, id, 4); err != nil {
						t.Fatalf("reserve or repeat: %v", err)
					}
				}
				for range 2 {
					if err := settle(id); err != nil {
						t.Errorf("settle: %v", err)
					}
				}
				wantCode(t, reserveAs(t.Context(), here.limiter, id, 4), weir.Ended)
				here.store.running.Wait()
				other.store.running.Wait()
				w.wantTaken(t, "acme", "rpm", before/1000+units)
			}
		})
	}
}
