package conformance

import (
	"errors"
	"fmt"
	"time"

	"github.com/weir-limiter/weir"
)

// caseWorld is a world with the helpers that cases are written in. Helpers that expect something
// end the case if it does not hold.
type caseWorld struct {
	T
	World
	h Harness
	// latest is the latest instant from which Advance has moved the clock.
	latest time.Time
}

// Advance moves the world's time.
func (s *caseWorld) Advance(d time.Duration) {
	if now := s.Now(); now.After(s.latest) {
		s.latest = now
	}
	s.World.Advance(d)
}

// resource is the usual resource, on which cases charge unless they name another.
const resource = "m"

// onWorld returns a function that opens a world, plays a case on it, and closes it.
func onWorld(set Setup, play func(s *caseWorld)) func(T, Harness) {
	return func(t T, h Harness) {
		t.Helper()
		s := open(t, h, set)
		defer func() {
			if err := s.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		}()
		play(s)
	}
}

func open(t T, h Harness, set Setup) *caseWorld {
	t.Helper()
	if set.Start.IsZero() {
		set.Start = begin()
	}
	if set.Definitions == nil {
		set.Definitions = &weir.Definitions{}
	}
	return &caseWorld{T: t, World: h.Open(t, set), h: h}
}

// ask returns a request with one charge on the usual resource.
func ask(entity string, c weir.Costs) *weir.Request {
	return &weir.Request{Entity: entity, Resource: resource, Costs: c}
}

// several returns a request with several charges on the usual resource.
func several(charges ...weir.Charge) *weir.Request { return &weir.Request{Charges: charges} }

func charge(entity string, c weir.Costs) weir.Charge {
	return weir.Charge{Entity: entity, Resource: resource, Costs: c}
}

// with returns a copy of a request under a lease ID.
func with(id weir.LeaseID, r *weir.Request) *weir.Request {
	c := *r
	c.LeaseID = id
	return &c
}

// admit expects a request to be admitted.
func (s *caseWorld) admit(r *weir.Request) *weir.Lease {
	s.Helper()
	l, err := s.Reserve(s.Context(), r)
	if err != nil {
		s.Fatalf("at %s: reserve %s: got %v, want admitted", s.clock(), show(r), err)
	}
	return l
}

// deny expects a request to be denied, and the denial to be consistent.
func (s *caseWorld) deny(r *weir.Request) *weir.DeniedError {
	s.Helper()
	l, err := s.Reserve(s.Context(), r)
	d, ok := errors.AsType[*weir.DeniedError](err)
	if !ok {
		s.Fatalf("at %s: reserve %s: got %v, want denied", s.clock(), show(r), outcome(l, err))
	}
	if e, ok := errors.AsType[*weir.Error](err); ok {
		s.Fatalf("reserve %s: got a denial that is %v too", show(r), e)
	}
	if d.LeaseID.IsZero() {
		s.Fatalf("reserve %s: got a denial without a lease ID", show(r))
	}
	longest, exceeded := comeAgain(d), 0
	for i := range d.Limits {
		st := &d.Limits[i]
		if st.Exceeded && !st.Shadow {
			exceeded++
		}
		if !mayBeLikely(st) {
			s.Fatalf("reserve %s: got %+v, which cannot be likely", show(r), *st)
		}
	}
	if d.RetryAfter != longest || exceeded == 0 && !d.Contended {
		s.Fatalf("reserve %s: denied by %d limits for %v, want the longest of theirs, %v",
			show(r), exceeded, d.RetryAfter, longest)
	}
	return d
}

// fail expects a request to be refused with a code.
func (s *caseWorld) fail(code weir.Code, r *weir.Request) *weir.Error {
	s.Helper()
	l, err := s.Reserve(s.Context(), r)
	if err == nil {
		s.Fatalf("reserve %s: got %v, want %q", show(r), outcome(l, err), code)
	}
	return s.refused(code, err)
}

// refused expects an error with a code, or with any code if it is empty, that is not a denial.
func (s *caseWorld) refused(code weir.Code, err error) *weir.Error {
	s.Helper()
	e, ok := errors.AsType[*weir.Error](err)
	if !ok || code != "" && (e.Code != code || !errors.Is(err, code)) {
		s.Fatalf("at %s: got %v, want %q", s.clock(), err, code)
	}
	if _, ok := errors.AsType[*weir.DeniedError](err); ok {
		s.Fatalf("got %v, which looks like a denial", err)
	}
	return e
}

// refuses returns a function that expects an update to be refused with a code.
func (s *caseWorld) refuses(code weir.Code) func(*weir.Receipt, error) {
	s.Helper()
	return func(r *weir.Receipt, err error) {
		s.Helper()
		if err == nil {
			s.Fatalf("got a receipt of %v, want %q", r.At, code)
		}
		s.refused(code, err)
	}
}

// done expects an update to succeed.
func (s *caseWorld) done(r *weir.Receipt, err error) *weir.Receipt {
	s.Helper()
	if err != nil {
		s.Fatalf("at %s: got %v, want a receipt", s.clock(), err)
	}
	return r
}

func (s *caseWorld) adjust(l *weir.Lease, seq int64, totals ...weir.Costs) *weir.Receipt {
	s.Helper()
	return s.done(s.Adjust(s.Context(), l.ID, seq, totals))
}

func (s *caseWorld) complete(l *weir.Lease, actuals ...weir.Costs) *weir.Receipt {
	s.Helper()
	return s.done(s.Complete(s.Context(), l.ID, actuals))
}

func (s *caseWorld) cancel(l *weir.Lease) *weir.Receipt {
	s.Helper()
	return s.done(s.Cancel(s.Context(), l.ID))
}

func (s *caseWorld) extend(l *weir.Lease) *weir.Receipt {
	s.Helper()
	return s.done(s.Extend(s.Context(), l.ID))
}

// configure expects a change of the definitions to succeed.
func (s *caseWorld) configure(d *weir.Definitions) {
	s.Helper()
	if err := s.Configure(d); err != nil {
		s.Fatalf("configure: %v", err)
	}
}

func (s *caseWorld) clock() string { return s.Now().UTC().Format("2006-01-02T15:04:05.000000") }

// outcome returns a word for the result of a reservation.
func outcome(l *weir.Lease, err error) string {
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("admitted with %v", l.Limits)
}

func show(r *weir.Request) string {
	if len(r.Charges) > 0 {
		return fmt.Sprint(r.Charges)
	}
	return fmt.Sprintf("%s %v", r.Entity, r.Costs)
}
