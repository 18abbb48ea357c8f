package conformance

import (
	"context"
	"errors"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/limiter"
)

// faultyWorld is a world whose store can be made to fail.
type faultyWorld struct {
	*caseWorld
	store   *faultyStore
	limiter *limiter.Limiter
	opens   StoreHarness
}

// onBroken returns a function that plays a case on a store that can be made to fail.
func onBroken(set Setup, play func(s *faultyWorld)) func(T, StoreHarness) {
	return func(t T, h StoreHarness) {
		t.Helper()
		set.Start = begin()
		if set.Definitions == nil {
			set.Definitions = &weir.Definitions{}
		}
		store := newFaulty(t, h.Open(t, set))
		w := h.world(t, set, store.forLimiter())
		s := &faultyWorld{&caseWorld{T: t, World: h.front(w), h: h.Service(t)}, store, w.Limiter, h}
		defer func() {
			store.clearFaults()
			if err := w.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		}()
		play(s)
	}
}

func brokenInBubble(set Setup, play func(s *faultyWorld)) func(T, StoreHarness) {
	return func(t T, h StoreHarness) {
		t.Helper()
		h.virtual = true
		bubble(t, func(t T) { onBroken(set, play)(t, h) })
	}
}

// errGone is an error of a store without a code of weir.
var errGone = errors.New("connection refused")

// unavailableCases returns the cases of section 10, and others that need a store that fails.
func unavailableCases() []storeCase {
	b := only(weir.Bucket)
	bubbled := Needs{Kinds: b.Kinds, Bubble: true}
	ten := []weir.Limit{slowLimit(weir.Bucket, "n", 10)}
	block := Setup{Definitions: systemLimits(ten...)}
	allow := block.under(limiter.Options{OnUnavailable: weir.Allow})
	stored := Setup{Definitions: &weir.Definitions{OnUnavailable: weir.Allow, System: ten}}
	return []storeCase{
		{"a call gets the store timeout", "10.1", bubbled, brokenInBubble(block, timesOut)},
		{"a call gets nine tenths of the deadline", "10.1", bubbled, brokenInBubble(block, deadlines)},
		{"the option is the store timeout", "10.1", bubbled,
			brokenInBubble(block.under(limiter.Options{StoreTimeout: 30 * time.Millisecond}), shortTimeout)},
		{"block returns unavailable", "10.2", b, onBroken(block, blocks)},
		{"an unanswered reserve is repeated", "10.2", b, onBroken(block, repeats)},
		{"allow returns a degraded lease", "10.2", b, onBroken(allow, degrades)},
		{"the store's own policy", "10.2", b, onBroken(stored, storedPolicy)},
		{
			"the option overrides the store's policy",
			"10.2",
			b,
			onBroken(
				Setup{Definitions: stored.Definitions, Options: limiter.Options{OnUnavailable: weir.Block}},
				blocks,
			),
		},
		{
			"H1: errors around on_unavailable, settling under allow",
			"10.2",
			b,
			onBroken(allow, settleFails),
		},
		{
			"H1: errors around on_unavailable, settling under block",
			"10.2",
			b,
			onBroken(block, settleFails),
		},
		{"H1: errors around on_unavailable, reading the configuration", "10.2", b,
			onBroken(block.under(limiter.Options{CacheTTL: -1}), readFails)},
		{"a denial is not hidden", "10.3", b, onBroken(allow, denialShown)},
		{"a refused permission is not hidden", "10.3", b, onBroken(allow, permissionShown)},
		{"superseded limits are not hidden", "10.4", b, onBroken(allow, supersededShown)},
		{"silent per-process counters when the store is gone", "10.2", b, onBroken(block, countsNothing)},
		{"silent per-process counters under allow", "10.2", b, onBroken(allow, countsNothingDegraded)},
		{"a failed complete swallowed by Do", "11.1", b, onBroken(block, doReportsUnavailable)},
		{"a failed complete swallowed", "7.10", b, onBroken(block, completeRepeated)},
		{"X1: no rollback needed of what the store never heard", "10.2", bubbled,
			brokenInBubble(allow, callerGone)},
		{"calls with one ID wait for one another", "6.6", bubbled, brokenInBubble(block, oneAtATime)},
	}
}

// asks makes every call to the store, and checks how long each takes and what it returns.
func (s *faultyWorld) asks(ctx context.Context, l *weir.Lease, want time.Duration) {
	s.Helper()
	for name, call := range map[string]func() error{
		"reserve":  func() error { _, err := s.Reserve(ctx, ask("a", cost(1))); return err },
		"adjust":   func() error { _, err := s.Adjust(ctx, l.ID, 1, []weir.Costs{cost(2)}); return err },
		"complete": func() error { _, err := s.Complete(ctx, l.ID, nil); return err },
		"cancel":   func() error { _, err := s.Cancel(ctx, l.ID); return err },
		"extend":   func() error { _, err := s.Extend(ctx, l.ID); return err },
		"status":   func() error { _, err := s.Status(ctx, "a", resource); return err },
	} {
		began := time.Now()
		s.refused(weir.Unavailable, call())
		if took := time.Since(began); took != want {
			s.Fatalf("%s: answered after %v, want %v", name, took, want)
		}
		if want > 0 && ctx.Err() != nil {
			return // the deadline is over; one call has been measured
		}
	}
}

func (s *faultyWorld) hangs() *weir.Lease {
	l := s.admit(ask("a", cost(1)))
	for _, call := range []string{"reserve", "settle", "status"} {
		s.store.hang(call)
	}
	return l
}

func timesOut(s *faultyWorld) { s.asks(s.Context(), s.hangs(), time.Second) }

func shortTimeout(s *faultyWorld) { s.asks(s.Context(), s.hangs(), 30*time.Millisecond) }

func deadlines(s *faultyWorld) {
	s.hangs()
	for deadline, want := range map[time.Duration]time.Duration{
		500 * time.Millisecond: 450 * time.Millisecond, 10 * time.Second: time.Second,
	} {
		ctx, cancel := context.WithTimeout(s.Context(), deadline)
		began := time.Now()
		_, err := s.Reserve(ctx, ask("a", cost(1)))
		s.refused(weir.Unavailable, err)
		if took := time.Since(began); took != want {
			s.Fatalf("with %v left: answered after %v, want %v", deadline, took, want)
		}
		cancel()
	}
}

func blocks(s *faultyWorld) {
	s.store.fail("reserve", errGone)
	id := weir.NewLeaseID(s.Now())
	l, err := s.Reserve(s.Context(), with(id, ask("a", cost(4))))
	if l != nil {
		s.Fatalf("got a lease %+v under block", l)
	}
	e := s.refused(weir.Unavailable, err)
	if !errors.Is(err, errGone) {
		s.Fatalf("got %v, want its cause too", err)
	}
	s.equal("the lease to repeat with", []string{e.Field, e.Value}, []string{"lease_id", id.String()})
	_, err = s.Reserve(s.Context(), ask("a", cost(4)))
	e = s.refused(weir.Unavailable, err)
	if _, err := weir.ParseLeaseID(e.Value); err != nil || e.Field != "lease_id" {
		s.Fatalf("got %+v, want the ID that the limiter made", e)
	}
	s.store.clearFaults()
	s.expectAvailable("a", cost(10))
}

func repeats(s *faultyWorld) {
	id := weir.NewLeaseID(s.Now())
	for _, err := range []error{errGone, context.DeadlineExceeded, &weir.Error{Code: weir.Unavailable}} {
		s.store.fail("reserve", err)
		s.fail(weir.Unavailable, with(id, ask("a", cost(4))))
	}
	s.store.clearFaults()
	l := s.admit(with(id, ask("a", cost(4))))
	s.expectAvailable("a", cost(6))
	s.store.fail("settle", errGone)
	s.refuses(weir.Unavailable)(s.Cancel(s.Context(), l.ID))
	s.store.clearFaults()
	s.cancel(l)
	s.expectAvailable("a", cost(10))
}

// degrades checks that a degraded lease stands for nothing, and that the store is not called for
// it.
func degrades(s *faultyWorld) {
	s.store.fail("reserve", errGone)
	id := weir.NewLeaseID(s.Now())
	r := with(id, ask("a", cost(4)))
	l := s.admit(r)
	s.equal("degraded", []any{l.Degraded, l.ID}, []any{true, id})
	s.equal("again", s.admit(r).Degraded, true)
	s.store.clearFaults()
	s.store.counted()
	for i, receipt := range []*weir.Receipt{
		s.adjust(l, 1, cost(9)), s.extend(l), s.complete(l, cost(3)), s.complete(l, cost(3)),
	} {
		s.equal("degraded", receipt.Degraded, true)
		s.equal("expires", receipt.Expires.IsZero(), i > 1)
	}
	s.refuses(weir.Conflict)(s.Cancel(s.Context(), id))
	s.fail(weir.Ended, r)
	if calls := s.store.counted(); calls["settle"]+calls["reserve"] > 0 {
		s.Fatalf("the store was asked about a degraded lease: %v", calls)
	}
	s.expectAvailable("a", cost(10))
	s.equal("degraded", s.admit(ask("a", cost(10))).Degraded, false)
}

func storedPolicy(s *faultyWorld) {
	if _, ok := s.store.Store.(driver.ConfigReader); !ok {
		s.Skipf("the store has no configuration")
	}
	s.admit(ask("a", cost(1))) // the policy has been read
	s.store.fail("reserve", errGone)
	s.equal("degraded", s.admit(ask("a", cost(1))).Degraded, true)
	s.configure(systemLimits(slowLimit(weir.Bucket, "n", 10)))
	s.fail(weir.Unavailable, ask("a", cost(1)))
	s.store.clearFaults()
	s.expectAvailable("a", cost(9))
}

// settleFails checks that failing to settle a lease that is in the store is an error under both
// policies.
func settleFails(s *faultyWorld) {
	l := s.admit(ask("a", cost(4)))
	s.store.fail("settle", errGone)
	for name, verb := range verbs(s.caseWorld, l.ID) {
		r, err := verb()
		if err == nil {
			s.Fatalf("%s: got %+v, want unavailable", name, r)
		}
		s.refused(weir.Unavailable, err)
	}
	s.store.clearFaults()
	s.expectAvailable("a", cost(6))
	s.adjust(l, 1, cost(5)) // the sequence number was not used up
	s.expectAvailable("a", cost(5))
	s.complete(l, cost(2))
	s.expectAvailable("a", cost(8))
}

func readFails(s *faultyWorld) {
	if _, ok := s.store.Store.(driver.ConfigReader); !ok {
		s.Skipf("the store has no configuration")
	}
	l := s.admit(ask("a", cost(4)))
	s.store.fail("read", errGone)
	s.fail(weir.Unavailable, ask("a", cost(1))) // what it may have taken is given back
	_, err := s.Status(s.Context(), "a", resource)
	s.refused(weir.Unavailable, err)
	_, err = s.Explain(s.Context(), "a", resource)
	s.refused(weir.Unavailable, err)
	s.complete(l, cost(1)) // settling does not need the policy
	s.store.clearFaults()
	s.expectAvailable("a", cost(9))
}

func denialShown(s *faultyWorld) {
	s.admit(ask("a", cost(8)))
	s.deny(ask("a", cost(3)))
	s.fail(weir.NeverSatisfiable, ask("a", cost(11)))
	s.fail(weir.UnknownLimit, ask("a", weir.Costs{"z": 1}))
	s.store.fail("reserve", errGone)
	s.fail(weir.Invalid, ask("a", cost(-1))) // refused before the store is called
	s.store.clearFaults()
	s.expectAvailable("a", cost(2))
}

func permissionShown(s *faultyWorld) {
	for _, code := range []weir.Code{weir.PermissionDenied, weir.Invalid, weir.Unsupported, weir.NotFound} {
		s.store.fail("reserve", &weir.Error{Code: code})
		s.fail(code, ask("a", cost(1)))
	}
	s.store.clearFaults()
	l := s.admit(ask("a", cost(1)))
	s.store.fail("settle", &weir.Error{Code: weir.PermissionDenied})
	s.refuses(weir.PermissionDenied)(s.Complete(s.Context(), l.ID, nil))
}

// supersededShown checks that no policy admits under limits that are not in force, and that leases
// are still settled.
func supersededShown(s *faultyWorld) {
	l := s.admit(ask("a", cost(4)))
	s.store.fail("reserve", &weir.Error{Code: weir.Superseded})
	for range 30 {
		s.fail(weir.Superseded, ask("a", cost(1)))
	}
	s.done(s.Complete(s.Context(), l.ID, []weir.Costs{cost(2)}))
	s.store.clearFaults()
	s.expectAvailable("a", cost(8))
}

// countsNothing checks that without its store a limiter neither admits nor denies by a count of its
// own.
func countsNothing(s *faultyWorld) {
	s.store.fail("reserve", errGone)
	for range 30 {
		s.fail(weir.Unavailable, ask("a", cost(1)))
	}
	s.store.clearFaults()
	s.expectAvailable("a", cost(10))
	s.exactly(ask("a", cost(1)), 10, 12)
}

func countsNothingDegraded(s *faultyWorld) {
	s.store.fail("reserve", errGone)
	for range 30 { // three times the capacity
		l := s.admit(ask("a", cost(1)))
		s.equal("degraded", l.Degraded, true)
	}
	s.store.clearFaults()
	s.expectAvailable("a", cost(10))
	s.exactly(ask("a", cost(1)), 10, 12)
}

func doReportsUnavailable(s *faultyWorld) {
	var lease *weir.Lease
	err := weir.Do(
		s.Context(),
		s.World,
		ask("a", cost(4)),
		func(_ context.Context, l *weir.Lease) error {
			lease = l
			l.Report(cost(1))
			s.store.fail("settle", errGone)
			return nil
		},
	)
	s.expectDo(err, errGone)
	s.expectDo(err, weir.Unavailable)
	s.store.clearFaults()
	s.expectAvailable("a", cost(6))
	s.complete(lease, cost(1))
	s.expectAvailable("a", cost(9))
}

func completeRepeated(s *faultyWorld) {
	l := s.admit(ask("a", cost(4)))
	s.store.fail("settle", errGone)
	for range 3 {
		s.refuses(weir.Unavailable)(s.Complete(s.Context(), l.ID, []weir.Costs{cost(1)}))
	}
	s.store.clearFaults()
	s.expectAvailable("a", cost(6))
	s.adjust(l, 1, cost(5)) // the lease is live
	s.complete(l, cost(1))
	s.complete(l, cost(1))
	s.expectAvailable("a", cost(9))
}

// callerGone checks that a caller whose context has ended gets no lease, not even a degraded one.
func callerGone(s *faultyWorld) {
	s.store.hang("reserve")
	ctx, cancel := context.WithCancel(s.Context())
	go func() {
		time.Sleep(100 * time.Millisecond) // in a bubble
		cancel()
	}()
	l, err := s.Reserve(ctx, ask("a", cost(4)))
	if l != nil {
		s.Fatalf("got a lease %+v for a caller who has gone", l)
	}
	s.refused(weir.Unavailable, err)
	_, err = s.Reserve(ctx, ask("a", cost(4)))
	s.refused(weir.Unavailable, err)
	s.store.clearFaults()
	s.expectAvailable("a", cost(10))
}

// oneAtATime checks that a call waits for an earlier call on its lease, but no longer than its
// context lasts.
func oneAtATime(s *faultyWorld) {
	r := with(weir.NewLeaseID(s.Now()), ask("a", cost(4)))
	release := make(chan struct{})
	s.store.addFault("reserve", func(context.Context) error {
		<-release
		return nil
	})
	first := make(chan error, 1)
	go func() {
		_, err := s.Reserve(s.Context(), r)
		first <- err
	}()
	time.Sleep(time.Millisecond) // in a bubble: the first call is in the store
	ctx, cancel := context.WithTimeout(s.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := s.Reserve(ctx, r)
	s.refused(weir.Unavailable, err)
	second := make(chan error, 1)
	go func() {
		_, err := s.Cancel(s.Context(), r.LeaseID)
		second <- err
	}()
	time.Sleep(time.Millisecond)
	calls := s.store.counted()
	delete(calls, "read") // reads of the configuration do not count
	s.equal("calls", calls, map[string]int{"reserve": 1})
	close(release)
	if err := errors.Join(<-first, <-second); err != nil {
		s.Fatalf("got %v, want both answered", err)
	}
	s.expectAvailable("a", cost(10))
}

// verbs returns the four calls that update a lease.
func verbs(s *caseWorld, id weir.LeaseID) map[string]func() (*weir.Receipt, error) {
	return map[string]func() (*weir.Receipt, error){
		"adjust": func() (*weir.Receipt, error) {
			return s.Adjust(s.Context(), id, 1, []weir.Costs{cost(1)})
		},
		"complete": func() (*weir.Receipt, error) { return s.Complete(s.Context(), id, nil) },
		"cancel":   func() (*weir.Receipt, error) { return s.Cancel(s.Context(), id) },
		"extend":   func() (*weir.Receipt, error) { return s.Extend(s.Context(), id) },
	}
}
