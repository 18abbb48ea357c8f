package conformance

import (
	"context"
	"errors"
	"testing/synctest"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/limiter"
)

// doCases returns the cases of line 11.1.
func doCases() []Case {
	b := only(weir.Bucket)
	stored := system(slowLimit(weir.Bucket, "n", 10), slowLimit(weir.Bucket, "m", 10))
	bubbled := Needs{Kinds: []weir.Kind{weir.Concurrency}, Virtual: true, Bubble: true}
	half := system(slotsOf("n", 10, 30*time.Second))
	brief := system(slowLimit(weir.Bucket, "n", 10)).under(limiter.Options{LeaseLifetime: 20 * time.Second})
	return []Case{
		{"Do settles with what was reported", "11.1", b, onWorld(stored, doReports)},
		{"Do without a report", "11.1", b, onWorld(stored, doUnreported)},
		{"aborted streams losing usage", "11.1", b, onWorld(stored, doSent)},
		{"X1: rollback on cancellation", "11.1", b, onWorld(stored, doCancelled)},
		{"Do settles after a panic", "11.1", b, onWorld(stored, doPanics)},
		{"Do does not run what was denied", "11.1", b, onWorld(stored, doDenied)},
		{"a failed complete swallowed", "11.1", b, onWorld(stored, doFailsToSettle)},
		{"Do with several charges", "11.1", b, onWorld(stored, doSeveral)},
		{"leaked slots after Do", "11.1", only(weir.Concurrency), onWorld(half, doReturnsSlots)},
		{"Do extends the holds while it runs", "11.1", bubbled, inBubble(half, doExtends)},
		{"Do extends the lease while it runs", "11.1",
			Needs{Kinds: b.Kinds, Virtual: true, Bubble: true}, inBubble(brief, doExtendsLease)},
	}
}

// inBubble returns a function that plays a case in a bubble of testing/synctest.
func inBubble(set Setup, play func(s *caseWorld)) func(T, Harness) {
	return func(t T, h Harness) {
		t.Helper()
		bubble(t, func(t T) { onWorld(set, play)(t, h) })
	}
}

// doFunc is a function that Do calls.
type doFunc func(context.Context, *weir.Lease) error

// runDo calls Do with a cost of 4 on n for an entity, and expects left units to be available
// afterwards.
func (s *caseWorld) runDo(entity string, left int64, f doFunc) error {
	s.Helper()
	err := weir.Do(s.Context(), s.World, ask(entity, cost(4)), f)
	s.expectAvailable(entity, cost(left))
	return err
}

// expectDo expects Do to return a certain error, or nil.
func (s *caseWorld) expectDo(got, want error) {
	s.Helper()
	if !errors.Is(got, want) {
		s.Fatalf("Do: got %v, want %v", got, want)
	}
}

// errCall is the error that calls under Do return.
var errCall = errors.New("the call failed")

func doReports(s *caseWorld) {
	report := func(err error, reports ...int64) doFunc {
		return func(_ context.Context, l *weir.Lease) error {
			for _, n := range reports {
				l.Report(cost(n))
			}
			return err
		}
	}
	s.expectDo(s.runDo("a", 9, report(nil, 1)), nil)
	s.expectDo(s.runDo("b", 8, report(nil, 7, 2)), nil) // the last report counts
	s.expectDo(s.runDo("c", 7, report(errCall, 3)), errCall)
	s.expectDo(s.runDo("d", -5, report(nil, 15)), nil)
	s.expectDo(s.runDo("e", 10, report(nil, 0)), nil)
}

func doUnreported(s *caseWorld) {
	var lease *weir.Lease
	s.expectDo(s.runDo("a", 6, func(_ context.Context, l *weir.Lease) error {
		s.expectAvailable("a", cost(6))
		lease = l
		return nil
	}), nil)
	s.refuses(weir.Conflict)(s.Cancel(s.Context(), lease.ID))
	s.expectDo(s.runDo("b", 10, func(_ context.Context, l *weir.Lease) error {
		lease = l
		return errCall
	}), errCall)
	s.refuses(weir.Conflict)(lease.Complete(s.Context()))
}

// doSent checks that a call that was sent is charged, however it ends.
func doSent(s *caseWorld) {
	s.expectDo(s.runDo("a", 6, func(_ context.Context, l *weir.Lease) error {
		l.Sent()
		return errCall
	}), errCall)
	ctx, cancel := context.WithCancel(s.Context())
	err := weir.Do(ctx, s.World, ask("b", cost(4)), func(ctx context.Context, l *weir.Lease) error {
		l.Sent()
		cancel()
		return ctx.Err()
	})
	s.expectDo(err, context.Canceled)
	s.expectAvailable("b", cost(6))
	s.expectDo(s.runDo("c", 8, func(_ context.Context, l *weir.Lease) error {
		l.Sent()
		l.Report(cost(2))
		return errCall
	}), errCall)
	s.panics(func() {
		_ = s.runDo("d", 6, func(_ context.Context, l *weir.Lease) error {
			l.Sent()
			panic("aborted")
		})
	})
	s.expectAvailable("d", cost(6))
	s.exactly(ask("a", cost(1)), 6, 8)
}

func doCancelled(s *caseWorld) {
	for _, returned := range []error{nil, context.Canceled} {
		ctx, cancel := context.WithCancel(s.Context())
		err := weir.Do(ctx, s.World, ask("a", cost(4)), func(context.Context, *weir.Lease) error {
			s.expectAvailable("a", cost(6))
			cancel()
			return returned
		})
		s.expectDo(err, returned)
		s.expectAvailable("a", cost(10))
	}
	ctx, cancel := context.WithCancel(s.Context())
	err := weir.Do(ctx, s.World, ask("a", cost(4)), func(_ context.Context, l *weir.Lease) error {
		l.Report(cost(3))
		cancel()
		return ctx.Err()
	})
	s.expectDo(err, context.Canceled)
	s.expectAvailable("a", cost(7)) // the report is settled although the context has ended
	ran := false
	err = weir.Do(ctx, s.World, ask("a", cost(1)), func(context.Context, *weir.Lease) error {
		ran = true
		return errCall
	})
	if err == nil || isDenial(err) || ran && !errors.Is(err, errCall) {
		s.Fatalf("under a cancelled context: got %v, want an error", err)
	}
	s.expectAvailable("a", cost(7))
}

// panics expects f to panic with "aborted".
func (s *caseWorld) panics(f func()) {
	s.Helper()
	defer func() {
		s.Helper()
		if p := recover(); p != "aborted" {
			if _, over := p.(stopped); over {
				panic(p)
			}
			s.Fatalf("got a panic of %v, want the call's own", p)
		}
	}()
	f()
}

func doPanics(s *caseWorld) {
	var lease *weir.Lease
	s.panics(func() {
		_ = s.runDo("a", 10, func(_ context.Context, l *weir.Lease) error {
			lease = l
			panic("aborted")
		})
	})
	s.expectAvailable("a", cost(10))
	s.refuses(weir.Conflict)(lease.Complete(s.Context()))
	s.panics(func() {
		_ = s.runDo("a", 10, func(_ context.Context, l *weir.Lease) error {
			l.Report(cost(3))
			panic("aborted")
		})
	})
	s.expectAvailable("a", cost(7))
}

func doDenied(s *caseWorld) {
	s.admit(ask("a", cost(7)))
	never := func(context.Context, *weir.Lease) error {
		s.Errorf("a call ran that was denied")
		return nil
	}
	if err := s.runDo("a", 3, never); !isDenial(err) {
		s.Fatalf("Do: got %v, want denied", err)
	}
	s.refused(weir.NeverSatisfiable, weir.Do(s.Context(), s.World, ask("a", cost(11)), never))
}

// doFailsToSettle checks that Do returns an error if a report cannot be settled, whatever the call
// returned, and that the reservation stays charged.
func doFailsToSettle(s *caseWorld) {
	for _, returned := range []error{nil, errCall} {
		err := weir.Do(s.Context(), s.World, ask("a", cost(4)),
			func(_ context.Context, l *weir.Lease) error {
				l.Report(weir.Costs{"m": 1})
				return returned
			})
		s.expectDo(err, weir.Invalid)
		if returned != nil {
			s.expectDo(err, returned)
		}
	}
	s.expectAvailable("a", cost(2))
}

func doSeveral(s *caseWorld) {
	r := several(charge("a", cost(4)), charge("b", cost(4)))
	err := weir.Do(s.Context(), s.World, r, func(_ context.Context, l *weir.Lease) error {
		l.Report(cost(1), cost(2))
		return nil
	})
	s.expectDo(err, nil)
	s.expectAvailable("a", cost(9))
	s.expectAvailable("b", cost(8))
}

func doReturnsSlots(s *caseWorld) {
	for i := range 30 {
		err := weir.Do(s.Context(), s.World, ask("a", cost(10)),
			func(_ context.Context, l *weir.Lease) error {
				s.deny(ask("a", cost(1)))
				if i%3 == 1 {
					l.Sent()
				}
				if i%2 == 1 {
					return errCall
				}
				return nil
			})
		if i%2 == 1 {
			s.expectDo(err, errCall)
		} else {
			s.expectDo(err, nil)
		}
		s.expectAvailable("a", cost(10))
	}
}

// advanceBoth advances the bubble's time and the world's time together.
func (s *caseWorld) advanceBoth(d time.Duration) {
	const step = time.Second
	for ; d > 0; d -= step {
		s.Advance(min(d, step))
		time.Sleep(min(d, step)) // in a bubble
		synctest.Wait()
	}
}

// doExtends runs a call that takes five times as long as a slot's timeout.
func doExtends(s *caseWorld) {
	err := weir.Do(s.Context(), s.World, ask("a", cost(10)), func(context.Context, *weir.Lease) error {
		for range 15 {
			s.advanceBoth(10 * time.Second)
			s.deny(ask("a", cost(1)))
		}
		return nil
	})
	s.expectDo(err, nil)
	s.expectAvailable("a", cost(10))
	l := s.admit(ask("a", cost(10)))
	s.advanceBoth(29 * time.Second) // Do does not extend after it has returned
	s.expectAvailable("a", cost(0))
	s.advanceBoth(time.Second)
	s.expectAvailable("a", cost(10))
	s.cancel(l)
}

func doExtendsLease(s *caseWorld) {
	err := s.runDo("a", 9, func(_ context.Context, l *weir.Lease) error {
		s.advanceBoth(2 * time.Minute)
		l.Report(cost(1))
		return nil
	})
	s.expectDo(err, nil)
}
