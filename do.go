package weir

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"
)

// settleGrace bounds how long [Lease.Do] tries to settle. The caller's context does not bound it,
// because it may have ended.
const settleGrace = 10 * time.Second

// Do reserves, runs call under the lease, and settles; see [Lease.Do]. If the reservation is
// denied, Do returns the denial and does not run call. If the context has ended by the time the
// lease is granted, Do cancels the lease, returns the context's error, and does not run call.
func Do(ctx context.Context, s Service, r *Request, call func(context.Context, *Lease) error) error {
	lease, err := s.Reserve(ctx, r)
	if err != nil {
		return err
	}
	// The context ended during the reservation, and nothing has been sent yet.
	if ctx.Err() != nil {
		return errors.Join(ctx.Err(), lease.settleReported(ctx, false))
	}
	// A repeated reservation may be old, so it is extended first.
	if lease.Replay {
		return lease.Do(ctx, call)
	}
	return lease.do(ctx, &Receipt{
		At: lease.ReservedAt, Expires: lease.Expires, HoldsUntil: lease.HoldsUntil,
	}, call)
}

// Do extends the lease, runs call, extends the lease while call runs, and settles it afterwards,
// even if call panics or the context ends.
//
// If call has reported what was used ([Lease.Report]), Do completes the lease with the last report,
// whether call succeeded or not. Without a report, Do completes the lease with what was reserved if
// call succeeded. If call failed or panicked or the context has ended, Do cancels the lease, unless
// call has said that the request was sent ([Lease.Sent]): then what was reserved stays charged, so
// that aborting a stream does not make it free. If call has said that nothing was used
// ([Lease.GiveBack]), Do cancels the lease in any case.
//
// Do extends the lease first, because it may have been reserved some time ago. If it has ended, or
// its slots have timed out, Do returns an error with code [Ended] and does not run call. If the
// store does not answer, Do runs call and repeats the extension meanwhile.
//
// Do returns the error of call, joined with the error of settling the lease.
func (l *Lease) Do(ctx context.Context, call func(context.Context, *Lease) error) error {
	renewed, err := l.Extend(ctx)
	switch {
	case errors.Is(err, Unavailable):
		// The store did not answer this extension. A lifetime of zero makes keepAlive repeat it
		// soon.
		renewed = &Receipt{At: l.ReservedAt, Expires: l.ReservedAt}
	case err != nil:
		return err
	case !l.HoldsUntil.IsZero() && renewed.HoldsUntil.IsZero():
		return NewError(Ended, "lease_id", l.ID, "its slots have timed out")
	}
	return l.do(ctx, renewed, call)
}

// do runs call under a lease that has just been reserved or extended.
func (l *Lease) do(
	ctx context.Context, renewed *Receipt, call func(context.Context, *Lease) error,
) (err error) {
	stop := l.keepAlive(ctx, renewed)
	succeeded := false
	defer func() {
		// This runs during a panic too: a panic must not leave slots occupied.
		stop()
		if failed := l.settleReported(ctx, succeeded && ctx.Err() == nil); failed != nil {
			err = errors.Join(err, failed)
		}
	}()
	err = call(ctx, l)
	succeeded = err == nil
	return err
}

// settleReported ends the lease as [Lease.Do] says.
func (l *Lease) settleReported(ctx context.Context, succeeded bool) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleGrace)
	defer cancel()
	report := l.notes.Load().lastReport()
	var err error
	switch {
	case report == nil && !succeeded && !l.sent.Load(), report != nil && report.nothing:
		_, err = l.Cancel(ctx)
	default:
		var actuals []Costs
		if report != nil {
			actuals = report.actuals
		}
		if _, err = l.Complete(ctx, actuals...); errors.Is(err, Invalid) {
			// Complete without the report: the amounts stay as reserved, but the slots return.
			_, failed := l.Complete(ctx)
			err = errors.Join(err, failed)
		}
	}
	return err
}

// keepAlive extends the lease whenever a third of its remaining lifetime has passed, or of the time
// until its slots time out if that is shorter. So two extensions in a row may fail before anything
// is lost. It ends when stop is called or the lease has ended. stop returns after the last
// extension, so that none comes after the lease is settled.
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

// renewal returns how long after a receipt to extend the lease again.
func (r *Receipt) renewal() time.Duration {
	end := r.Expires
	if !r.HoldsUntil.IsZero() && r.HoldsUntil.Before(end) {
		end = r.HoldsUntil
	}
	return max(end.Sub(r.At)/3, 10*time.Millisecond)
}

// WaitOptions tune [Wait]. A nil *WaitOptions means all defaults.
type WaitOptions struct {
	// MaxPause is the longest pause between attempts. A pause is shorter if the retry-after of the
	// last denial is. It may be worth trying before the retry-after, because other leases may be
	// settled early. Default: one second or, if the denial says when slots are likely to return
	// ([LimitStatus.RetryLikely]), until then.
	MaxPause time.Duration
}

// firstPause is the first pause of [Wait]. Each later pause is up to twice as long as the one
// before.
const firstPause = 25 * time.Millisecond

// Wait reserves. After a denial, or an error with code [Overloaded], it tries again until the
// request fits or the context ends. Each attempt has a lease ID of its own, so the request must not
// have one. Wait returns other errors at once. If the context ends, it returns the context's error
// joined with the error of the last attempt.
func Wait(ctx context.Context, s Service, r *Request, o *WaitOptions) (*Lease, error) {
	if r != nil && !r.LeaseID.IsZero() {
		return nil, invalid("lease_id", r.LeaseID,
			"must be empty: each attempt makes a lease ID of its own")
	}
	longest, bounded := time.Second, o != nil && o.MaxPause > 0
	if bounded {
		longest = o.MaxPause
	}
	for pause := min(firstPause, longest); ; pause = min(2*pause, longest) {
		lease, err := s.Reserve(ctx, r)
		after, likely, again := retryAfter(err)
		if !again {
			return lease, err
		}
		// Each pause is longer than needed by a random part, so that callers that were denied
		// together do not all try again at the same time.
		next := pause
		switch {
		case likely && bounded:
			next = min(after, longest)
		case likely: // each denied caller is given a time of its own
			next = after
		case after > 0:
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

// retryAfter reports whether a reservation that failed with err may succeed later without a change
// to the request, and after how long; likely is set if that is when slots are likely to return.
// Nothing may have been reserved.
func retryAfter(err error) (after time.Duration, likely, again bool) {
	if denied, ok := errors.AsType[*DeniedError](err); ok {
		likely = slices.ContainsFunc(denied.Limits, func(s LimitStatus) bool {
			return s.RetryLikely > 0
		})
		return denied.RetryAfter, likely, true
	}
	if e, ok := errors.AsType[*Error](err); ok && e.Code == Overloaded {
		return e.RetryAfter, false, true
	}
	return 0, false, false
}
