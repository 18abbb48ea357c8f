package weir

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// settleGrace is how long [Lease.Do] tries to settle once its own context may have ended.
const settleGrace = 10 * time.Second

// Do reserves, runs call, and settles with what call reported; see [Lease.Do]. A denial is returned
// as it is, and call does not run. If the context has ended by the time the lease is there, Do
// cancels the lease and returns the context's error, and call does not run.
func Do(ctx context.Context, s Service, r *Request, call func(context.Context, *Lease) error) error {
	lease, err := s.Reserve(ctx, r)
	if err != nil {
		return err
	}
	if ctx.Err() != nil { // the context ended after the reservation: nothing has been sent
		return errors.Join(ctx.Err(), lease.settleReported(ctx, false))
	}
	if lease.Replay {
		return lease.Do(ctx, call)
	}
	return lease.do(ctx, &Receipt{
		At: lease.ReservedAt, Expires: lease.Expires, HoldsUntil: lease.HoldsUntil,
	}, call)
}

// Do runs call under the lease, extends the lease while it runs, and settles it afterwards, also
// when call panics or the context has ended.
//
// What call reported last ([Lease.Report]) is completed, whether or not call failed. Without a
// report, success completes with what was reserved; an error, a panic or a cancelled context
// cancels, unless call said that the request had left ([Lease.Sent]): then what was reserved stays
// charged, so that aborting a stream is no way to spend for nothing.
//
// The lease is extended first, since nobody knows how long ago it was made. If it has ended, or its
// slots have timed out, that is returned with code [Ended], and call does not run.
//
// Do returns the error of call, joined with the one of settling if that failed too.
func (l *Lease) Do(ctx context.Context, call func(context.Context, *Lease) error) error {
	renewed, err := l.Extend(ctx)
	switch {
	case errors.Is(err, Unavailable):
		// The first of the extensions has failed, and others will follow.
		renewed = &Receipt{At: l.ReservedAt, Expires: l.ReservedAt}
	case err != nil:
		return err
	case !l.HoldsUntil.IsZero() && renewed.HoldsUntil.IsZero():
		return NewError(Ended, "lease_id", l.ID, "its slots have timed out")
	}
	return l.do(ctx, renewed, call)
}

// do runs call under a lease that was just reserved or renewed.
func (l *Lease) do(
	ctx context.Context, renewed *Receipt, call func(context.Context, *Lease) error,
) (err error) {
	stop := l.keepAlive(ctx, renewed)
	succeeded := false
	defer func() {
		// Also while panicking: a panic must not leave slots occupied.
		stop()
		if failed := l.settleReported(ctx, succeeded && ctx.Err() == nil); failed != nil {
			err = errors.Join(err, failed)
		}
	}()
	err = call(ctx, l)
	succeeded = err == nil
	return err
}

func (l *Lease) settleReported(ctx context.Context, succeeded bool) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleGrace)
	defer cancel()
	var err error
	if report := l.report.Load(); report != nil {
		if _, err = l.Complete(ctx, *report...); errors.Is(err, Invalid) {
			// What was reserved stays charged, as far as anybody knows, but the slots must return.
			_, failed := l.Complete(ctx)
			err = errors.Join(err, failed)
		}
	} else if succeeded || l.sent.Load() {
		_, err = l.Complete(ctx)
	} else {
		_, err = l.Cancel(ctx)
	}
	return err
}

// keepAlive extends the lease whenever a third of the shorter of its own and its holds' lifetimes
// has passed, so that two extensions may fail before anything is lost. It ends with stop, or when
// the lease has ended.
func (l *Lease) keepAlive(ctx context.Context, renewed *Receipt) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		pause := renewed.renewal()
		timer := time.NewTimer(pause)
		defer timer.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-timer.C:
			}
			receipt, err := l.Extend(ctx)
			if errors.Is(err, Ended) || errors.Is(err, UnknownLease) {
				return
			}
			if err == nil {
				pause = receipt.renewal()
			}
			timer.Reset(pause)
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// renewal is how long after a receipt to extend.
func (r *Receipt) renewal() time.Duration {
	end := r.Expires
	if !r.HoldsUntil.IsZero() && r.HoldsUntil.Before(end) {
		end = r.HoldsUntil
	}
	return max(end.Sub(r.At)/3, 10*time.Millisecond)
}

// WaitOptions tune [Wait]. Nil means all defaults.
type WaitOptions struct {
	// MaxPause is the longest pause between attempts. A pause is the retry-after of the last denial
	// where that is shorter; others may settle early, so it is worth asking before. Default: one
	// second.
	MaxPause time.Duration
}

// firstPause is what [Wait] begins with; each pause after it is up to twice as long.
const firstPause = 25 * time.Millisecond

// Wait reserves, and after a denial, or an error with code [Overloaded], tries again until the
// request fits or the context ends. Each attempt has a lease ID of its own, so the request must not
// bring one. Other errors are returned at once; when the context ends, its error is joined with
// that of the last attempt.
func Wait(ctx context.Context, s Service, r *Request, o *WaitOptions) (*Lease, error) {
	if r != nil && !r.LeaseID.IsZero() {
		return nil, invalid("lease_id", r.LeaseID, "cannot be brought: every attempt needs its own")
	}
	longest := time.Second
	if o != nil && o.MaxPause > 0 {
		longest = o.MaxPause
	}
	for pause := min(firstPause, longest); ; pause = min(2*pause, longest) {
		lease, err := s.Reserve(ctx, r)
		after, again := retryAfter(err)
		if !again {
			return lease, err
		}
		// A little more than told, and not the same for all: those who were denied together must
		// not come back together.
		next := pause
		if after > 0 {
			next = min(after, pause)
		}
		timer := time.NewTimer(next + time.Duration(rand.Int64N(int64(next)/8+1)))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
		if ctx.Err() != nil {
			return nil, errors.Join(ctx.Err(), err)
		}
	}
}

// retryAfter reports whether a failed reservation is worth another attempt, because nothing was
// reserved and time alone may help, and after how long.
func retryAfter(err error) (after time.Duration, again bool) {
	if denied, ok := errors.AsType[*DeniedError](err); ok {
		return denied.RetryAfter, true
	}
	if e, ok := errors.AsType[*Error](err); ok && e.Code == Overloaded {
		return e.RetryAfter, true
	}
	return 0, false
}
