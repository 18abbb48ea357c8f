package limiter

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
)

// invalid returns an error about one part of the input.
func invalid(field string, value any, reason string) *weir.Error {
	return weir.NewError(weir.Invalid, field, value, reason)
}

// classify returns a store's error as an [*weir.Error]. An error of any other type means that the
// store did not answer.
func classify(err error) error {
	if e, ok := errors.AsType[*weir.Error](err); ok {
		return e
	}
	return &weir.Error{Code: weir.Unavailable, Reason: "the store did not answer", Err: err}
}

// wrongAnswer returns the error for an answer that no store may give. The outcome of the call is
// then unknown, as if the answer had been lost, and the call may be repeated.
func wrongAnswer(format string, args ...any) error {
	return &weir.Error{Code: weir.Unavailable, Reason: "the store's answer is wrong: " + fmt.Sprintf(format, args...)}
}

// checkTaken refuses an outcome that does not say what was taken of each of n limits.
func checkTaken(out *driver.Outcome, n int) error {
	switch {
	case out == nil:
		return wrongAnswer("it is neither an outcome nor an error")
	case len(out.Taken) != n && !out.Denied && !out.Replay:
		return wrongAnswer("it says what was taken of %d limits, and the plan has %d",
			len(out.Taken), n)
	}
	return nil
}

// checkRecord refuses a store's record of a lease whose holdings are incomplete.
func checkRecord(r *driver.LeaseRecord) error {
	for i := range r.Holdings {
		h := &r.Holdings[i]
		if h.Limit == nil {
			return wrongAnswer("a holding of the lease names no limit")
		}
		for _, p := range h.Parts {
			if p.Charge < 0 || p.Charge >= r.Charges {
				return wrongAnswer("a holding of the lease is of charge %d, and the lease has %d",
					p.Charge, r.Charges)
			}
		}
	}
	return nil
}

// callerGone returns an error if the caller's context has ended. It is called after the last wait
// before a reservation is written, because a caller that has left would not settle it.
func callerGone(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return &weir.Error{Code: weir.Unavailable, Reason: "the context of the call has ended",
			Err: err}
	}
	return nil
}

// nameLease adds the lease ID to an error with code [weir.Unavailable]: to repeat the call safely,
// the caller needs the ID, which the limiter may have made.
func nameLease(err error, id weir.LeaseID) error {
	e, ok := errors.AsType[*weir.Error](err)
	if !ok || e.Code != weir.Unavailable || e.Field != "" {
		return err
	}
	named := *e
	named.Field, named.Value = "lease_id", id.String()
	return &named
}

func unknownLeaseError(id weir.LeaseID) *weir.Error {
	return weir.NewError(weir.UnknownLease, "lease_id", id, "is neither live nor remembered")
}

func endedError(e *leaseEntry) *weir.Error {
	what := "was " + string(e.state.state())
	if e.state == leaseVoided {
		what = "was cancelled before it was reserved,"
	}
	return weir.NewError(weir.Ended, "lease_id", e.id, what+" at "+
		time.UnixMilli(e.endedAt).UTC().Format(time.RFC3339Nano))
}

// newDeniedError returns the error for a denial. Its wait is the longest of the limits that denied,
// by the likely waits if there are any.
func (l *Limiter) newDeniedError(now time.Time, r *reservation, out *driver.Outcome) *weir.DeniedError {
	e := &weir.DeniedError{
		LeaseID: r.id, Charges: make([]weir.Subject, len(r.charges)),
		Limits: out.Limits, Contended: out.Contended,
	}
	for i := range r.charges {
		e.Charges[i] = weir.Subject{Entity: r.charges[i].Entity, Resource: r.charges[i].Resource}
	}
	for i := range out.Limits {
		s := &out.Limits[i]
		if s.Exceeded && !s.Shadow {
			if s.Kind == weir.Concurrency {
				s.RetryLikely = l.returns.likely(now, s)
			}
			e.RetryAfter = max(e.RetryAfter, s.ComeAgain())
			e.AtLeast = e.AtLeast || s.AtLeast
		}
	}
	return e
}
