package conformance

import (
	"context"
	"errors"
	"testing/synctest"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/limiter"
)

// doCases are line 11.1.
func doCases() []Case {
	b := only(weir.Bucket)
	stored := system(slow(weir.Bucket, "n", 10), slow(weir.Bucket, "m", 10))
	bubbled := Needs{Kinds: []weir.Kind{weir.Concurrency}, Virtual: true, Bubble: true}
	half := system(slotsOf("n", 10, 30*time.Second))
	brief := system(slow(weir.Bucket, "n", 10)).under(limiter.Options{LeaseLifetime: 20 * time.Second})
	return []Case{
		{"Do settles with what was reported", "11.1", b, scene(stored, doReports)},
		{"Do without a report", "11.1", b, scene(stored, doUnreported)},
		{"aborted streams losing usage", "11.1", b, scene(stored, doSent)},
		{"X1: rollback on cancellation", "11.1", b, scene(stored, doCancelled)},
		{"Do settles after a panic", "11.1", b, scene(stored, doPanics)},
		{"Do does not run what was denied", "11.1", b, scene(stored, doDenied)},
		{"a failed complete swallowed", "11.1", b, scene(stored, doFailsToSettle)},
		{"Do with several charges", "11.1", b, scene(stored, doSeveral)},
		{"leaked slots after Do", "11.1", only(weir.Concurrency), scene(half, doReturnsSlots)},
		{"Do extends the holds while it runs", "11.1", bubbled, inBubble(half, doExtends)},
		{"Do extends the lease while it runs", "11.1",
			Needs{Kinds: b.Kinds, Virtual: true, Bubble: true}, inBubble(brief, doExtendsLease)},
	}
}

// inBubble plays a scene in a bubble of testing/synctest.
func inBubble(set Setup, play func(s *stage)) func(T, Harness) {
	return func(t T, h Harness) {
		t.Helper()
		bubble(t, func(t T) { scene(set, play)(t, h) })
	}
}

// call is what Do runs.
type call func(context.Context, *weir.Lease) error

// does runs a call that costs so much on n, for an entity, and expects what is left afterwards.
func (s *stage) does(entity string, left int64, f call) error {
	s.Helper()
	err := weir.Do(s.Context(), s.World, ask(entity, cost(4)), f)
	s.left(entity, cost(left))
	return err
}

// works expects Do to return a certain error, or none.
func (s *stage) works(got, want error) {
	s.Helper()
	if !errors.Is(got, want) {
		s.Fatalf("Do: got %v, want %v", got, want)
	}
}

// errCall is what calls of Do fail with.
var errCall = errors.New("the call failed")

func doReports(s *stage) {
	report := func(err error, reports ...int64) call {
		return func(_ context.Context, l *weir.Lease) error {
			for _, n := range reports {
				l.Report(cost(n))
			}
			return err
		}
	}
	s.works(s.does("a", 9, report(nil, 1)), nil)
	s.works(s.does("b", 8, report(nil, 7, 2)), nil) // the last report counts
	s.works(s.does("c", 7, report(errCall, 3)), errCall)
	s.works(s.does("d", -5, report(nil, 15)), nil)
	s.works(s.does("e", 10, report(nil, 0)), nil)
}

func doUnreported(s *stage) {
	var lease *weir.Lease
	s.works(s.does("a", 6, func(_ context.Context, l *weir.Lease) error {
		s.left("a", cost(6))
		lease = l
		return nil
	}), nil)
	s.refuses(weir.Conflict)(lease.Cancel(s.Context()))
	s.works(s.does("b", 10, func(_ context.Context, l *weir.Lease) error {
		lease = l
		return errCall
	}), errCall)
	s.refuses(weir.Conflict)(lease.Complete(s.Context()))
}

// doSent: whoever has sent its call pays for it, however it ends.
func doSent(s *stage) {
	s.works(s.does("a", 6, func(_ context.Context, l *weir.Lease) error {
		l.Sent()
		return errCall
	}), errCall)
	ctx, cancel := context.WithCancel(s.Context())
	err := weir.Do(ctx, s.World, ask("b", cost(4)), func(ctx context.Context, l *weir.Lease) error {
		l.Sent()
		cancel()
		return ctx.Err()
	})
	s.works(err, context.Canceled)
	s.left("b", cost(6))
	s.works(s.does("c", 8, func(_ context.Context, l *weir.Lease) error {
		l.Sent()
		l.Report(cost(2))
		return errCall
	}), errCall)
	s.panics(func() {
		_ = s.does("d", 6, func(_ context.Context, l *weir.Lease) error {
			l.Sent()
			panic("aborted")
		})
	})
	s.left("d", cost(6))
	s.exactly(ask("a", cost(1)), 6, 8)
}

func doCancelled(s *stage) {
	for _, returned := range []error{nil, context.Canceled} {
		ctx, cancel := context.WithCancel(s.Context())
		err := weir.Do(ctx, s.World, ask("a", cost(4)), func(context.Context, *weir.Lease) error {
			s.left("a", cost(6))
			cancel()
			return returned
		})
		s.works(err, returned)
		s.left("a", cost(10))
	}
	ctx, cancel := context.WithCancel(s.Context())
	err := weir.Do(ctx, s.World, ask("a", cost(4)), func(_ context.Context, l *weir.Lease) error {
		l.Report(cost(3))
		cancel()
		return ctx.Err()
	})
	s.works(err, context.Canceled)
	s.left("a", cost(7)) // what was reported is settled though the context has ended
	ran := false
	err = weir.Do(ctx, s.World, ask("a", cost(1)), func(context.Context, *weir.Lease) error {
		ran = true
		return errCall
	})
	if err == nil || isDenial(err) || ran && !errors.Is(err, errCall) {
		s.Fatalf("under a cancelled context: got %v, want an error", err)
	}
	s.left("a", cost(7))
}

// panics expects f to panic with "aborted".
func (s *stage) panics(f func()) {
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

func doPanics(s *stage) {
	var lease *weir.Lease
	s.panics(func() {
		_ = s.does("a", 10, func(_ context.Context, l *weir.Lease) error {
			lease = l
			panic("aborted")
		})
	})
	s.left("a", cost(10))
	s.refuses(weir.Conflict)(lease.Complete(s.Context()))
	s.panics(func() {
		_ = s.does("a", 10, func(_ context.Context, l *weir.Lease) error {
			l.Report(cost(3))
			panic("aborted")
		})
	})
	s.left("a", cost(7))
}

func doDenied(s *stage) {
	s.admit(ask("a", cost(7)))
	never := func(context.Context, *weir.Lease) error {
		s.Errorf("a call ran that was denied")
		return nil
	}
	if err := s.does("a", 3, never); !isDenial(err) {
		s.Fatalf("Do: got %v, want denied", err)
	}
	s.refused(weir.NeverSatisfiable, weir.Do(s.Context(), s.World, ask("a", cost(11)), never))
}

// doFailsToSettle: whoever reports what cannot be settled is told so, whatever the call returned,
// and what was reserved stays.
func doFailsToSettle(s *stage) {
	for _, returned := range []error{nil, errCall} {
		err := weir.Do(s.Context(), s.World, ask("a", cost(4)),
			func(_ context.Context, l *weir.Lease) error {
				l.Report(weir.Costs{"m": 1})
				return returned
			})
		s.works(err, weir.Invalid)
		if returned != nil {
			s.works(err, returned)
		}
	}
	s.left("a", cost(2))
}

func doSeveral(s *stage) {
	r := several(charge("a", cost(4)), charge("b", cost(4)))
	err := weir.Do(s.Context(), s.World, r, func(_ context.Context, l *weir.Lease) error {
		l.Report(cost(1), cost(2))
		return nil
	})
	s.works(err, nil)
	s.left("a", cost(9))
	s.left("b", cost(8))
}

func doReturnsSlots(s *stage) {
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
			s.works(err, errCall)
		} else {
			s.works(err, nil)
		}
		s.left("a", cost(10))
	}
}

// pass lets bubble time and the world's time pass together.
func (s *stage) pass(d time.Duration) {
	const step = time.Second
	for ; d > 0; d -= step {
		s.Advance(min(d, step))
		time.Sleep(min(d, step)) // in a bubble
		synctest.Wait()
	}
}

// doExtends runs five times as long as a slot is held.
func doExtends(s *stage) {
	err := weir.Do(s.Context(), s.World, ask("a", cost(10)), func(context.Context, *weir.Lease) error {
		for range 15 {
			s.pass(10 * time.Second)
			s.deny(ask("a", cost(1)))
		}
		return nil
	})
	s.works(err, nil)
	s.left("a", cost(10))
	l := s.admit(ask("a", cost(10)))
	s.pass(29 * time.Second) // nobody extends after Do has returned
	s.left("a", cost(0))
	s.pass(time.Second)
	s.left("a", cost(10))
	s.cancel(l)
}

func doExtendsLease(s *stage) {
	err := s.does("a", 9, func(_ context.Context, l *weir.Lease) error {
		s.pass(2 * time.Minute)
		l.Report(cost(1))
		return nil
	})
	s.works(err, nil)
}
