package conformance

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/weir-limiter/weir"
)

// waitCases returns the cases of line 11.2.
func waitCases() []Case {
	b := only(weir.Bucket)
	bubbled := Needs{Kinds: b.Kinds, Virtual: true, Bubble: true}
	slots := Needs{Kinds: []weir.Kind{weir.Concurrency}, Virtual: true, Bubble: true}
	minute := system(bucketOf("n", 10, 60, time.Minute))
	return []Case{
		{"Wait returns other errors at once", "11.2", b, onWorld(minute, waitErrors)},
		{"Wait takes no lease ID", "11.2", b, onWorld(minute, waitID)},
		{"Wait reserves when it fits", "11.2", bubbled, inBubble(minute, waitFits)},
		{"Wait uses a new ID for each attempt", "11.2", bubbled, inBubble(minute, waitAttempts)},
		{"Wait notices that others settle", "11.2", slots,
			inBubble(system(slowLimit(weir.Concurrency, "n", 10)), waitSettled)},
		{"Wait ends with its context", "11.2", bubbled, inBubble(minute, waitEnds)},
		{"Wait asks as often as the option says", "11.2", bubbled, inBubble(minute, waitOften)},
	}
}

// attemptRecorder is a service that records its attempts.
type attemptRecorder struct {
	weir.Service
	mu       sync.Mutex
	attempts []weir.LeaseID
}

func (w *attemptRecorder) Reserve(ctx context.Context, r *weir.Request) (*weir.Lease, error) {
	l, err := w.Service.Reserve(ctx, r)
	w.mu.Lock()
	defer w.mu.Unlock()
	if d, ok := errors.AsType[*weir.DeniedError](err); ok {
		w.attempts = append(w.attempts, d.LeaseID)
	} else if err == nil {
		w.attempts = append(w.attempts, l.ID)
	}
	return l, err
}

// runClock advances the world's time with the bubble's until stop is called.
func (s *caseWorld) runClock() (stop func()) {
	const step = 5 * time.Millisecond
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(step)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				s.Advance(step)
			case <-end:
				return
			}
		}
	}()
	return func() {
		close(end)
		<-ended
	}
}

func waitErrors(s *caseWorld) {
	for code, r := range map[weir.Code]*weir.Request{
		weir.NeverSatisfiable: ask("a", cost(11)),
		weir.UnknownLimit:     ask("a", weir.Costs{"z": 1}),
		weir.Invalid:          ask("a", cost(-1)),
	} {
		_, err := weir.Wait(s.Context(), s.World, r, nil)
		s.refused(code, err)
	}
	l, err := weir.Wait(s.Context(), s.World, ask("a", cost(4)), nil)
	if err != nil || l == nil {
		s.Fatalf("wait: got %v, want admitted at once", err)
	}
	s.expectAvailable("a", cost(6))
}

func waitID(s *caseWorld) {
	_, err := weir.Wait(s.Context(), s.World, with(weir.NewLeaseID(s.Now()), ask("a", cost(1))), nil)
	s.refused(weir.Invalid, err)
	s.expectAvailable("a", cost(10))
}

func waitFits(s *caseWorld) {
	s.admit(ask("a", cost(10)))
	from := s.Now()
	defer s.runClock()()
	l, err := weir.Wait(s.Context(), s.World, ask("a", cost(5)), nil)
	if err != nil {
		s.Fatalf("wait: %v", err)
	}
	took := l.ReservedAt.Sub(from)
	if took < 5*time.Second || took > 5*time.Second+1200*time.Millisecond {
		s.Fatalf("admitted after %v, want 5s and at most a pause more", took)
	}
	if left := s.available("a", "n"); left > 2 {
		s.Fatalf("got %d available, want what was gained since", left)
	}
}

func waitAttempts(s *caseWorld) {
	s.admit(ask("a", cost(10)))
	defer s.runClock()()
	w := &attemptRecorder{Service: s.World}
	if _, err := weir.Wait(s.Context(), w, ask("a", cost(3)), nil); err != nil {
		s.Fatalf("wait: %v", err)
	}
	seen := map[weir.LeaseID]bool{}
	for _, id := range w.attempts {
		if seen[id] || id.IsZero() {
			s.Fatalf("two attempts had the lease ID %v", id)
		}
		seen[id] = true
	}
	if len(seen) < 3 {
		s.Fatalf("got %d attempts in three seconds, want several", len(seen))
	}
}

// waitSettled checks a wait whose retry-after is days away, while another caller gives the units
// back earlier.
func waitSettled(s *caseWorld) {
	l := s.admit(ask("a", cost(10)))
	defer s.runClock()()
	freed := make(chan time.Time, 1)
	go func() {
		time.Sleep(7 * time.Second) // in a bubble
		if _, err := s.Cancel(s.Context(), l.ID); err != nil {
			s.Errorf("cancel: %v", err)
		}
		freed <- s.Now()
	}()
	ctx, cancel := context.WithTimeout(s.Context(), time.Minute)
	defer cancel()
	got, err := weir.Wait(ctx, s.World, ask("a", cost(1)), nil)
	at := <-freed
	if err != nil {
		s.Fatalf("wait: %v", err)
	}
	if late := got.ReservedAt.Sub(at); late > 1200*time.Millisecond {
		s.Fatalf("admitted %v after the slots were free, want a second or so", late)
	}
}

func waitEnds(s *caseWorld) {
	s.admit(ask("a", cost(10)))
	ctx, cancel := context.WithTimeout(s.Context(), 3*time.Second)
	defer cancel()
	began := time.Now()
	_, err := weir.Wait(ctx, s.World, ask("a", cost(10)), nil)
	if !errors.Is(err, context.DeadlineExceeded) || !isDenial(err) {
		s.Fatalf("wait: got %v, want the context's error and the last denial", err)
	}
	if took := time.Since(began); took != 3*time.Second {
		s.Fatalf("waited for %v, want 3s", took)
	}
	s.expectAvailable("a", cost(0))
}

func waitOften(s *caseWorld) {
	s.admit(ask("a", cost(10)))
	w := &attemptRecorder{Service: s.World}
	ctx, cancel := context.WithTimeout(s.Context(), 3*time.Second)
	defer cancel()
	_, err := weir.Wait(
		ctx,
		w,
		ask("a", cost(10)),
		&weir.WaitOptions{MaxPause: 100 * time.Millisecond},
	)
	if !isDenial(err) {
		s.Fatalf("wait: got %v, want the last denial", err)
	}
	if n := len(w.attempts); n < 25 || n > 34 {
		s.Fatalf("got %d attempts in three seconds, want about thirty", n)
	}
}
