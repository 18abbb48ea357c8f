package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-limiter/weir"
)

// answer is everything that an operation returned.
type answer struct {
	lease       *weir.Lease
	receipt     *weir.Receipt
	limits      []weir.LimitStatus
	explanation *weir.Explanation
	err         error
}

// perform makes the call of an operation in a world.
func perform(ctx context.Context, w World, s *Script, o *Op) answer {
	var a answer
	switch o.Verb {
	case opAdvance:
		w.Advance(o.By)
	case opReserve:
		a.lease, a.err = w.Reserve(ctx, o.request())
	case opAdjust:
		a.receipt, a.err = w.Adjust(ctx, o.ID, o.Seq, o.Totals)
	case opComplete:
		a.receipt, a.err = w.Complete(ctx, o.ID, o.Totals)
	case opCancel:
		a.receipt, a.err = w.Cancel(ctx, o.ID)
	case opExtend:
		a.receipt, a.err = w.Extend(ctx, o.ID)
	case opStatus:
		a.limits, a.err = w.Status(ctx, o.Entity, o.Resource)
	case opExplain:
		a.explanation, a.err = w.Explain(ctx, o.Entity, o.Resource)
	case opConfigure:
		if d := s.set(o.Set); d != nil {
			a.err = w.Configure(d)
		}
	}
	return a
}

func (o *Op) request() *weir.Request {
	r := &weir.Request{LeaseID: o.ID, Keyed: o.Keyed, Limits: o.Bring}
	if len(o.Charges) == 1 {
		c := o.Charges[0]
		r.Entity, r.Resource, r.Costs = c.Entity, c.Resource, c.Costs
	} else {
		r.Charges = o.Charges
	}
	return r
}

// comparison says how answers are compared.
type comparison struct {
	// exact is false if a retry-after may be lower than the model's.
	exact bool
	// servers is set if several servers answer, each of which remembers leases. changed is set if
	// the configuration was changed after the lease was reserved.
	servers, changed bool
}

// same reports whether two answers agree in everything that docs/semantics.md promises. Errors are
// compared by their codes.
func (c comparison) same(got, want answer) bool {
	return c.sameError(got.err, want.err) && c.sameLease(got.lease, want.lease) &&
		sameReceipt(got.receipt, want.receipt) &&
		c.sameLimits(got.limits, want.limits) &&
		sameExplanation(got.explanation, want.explanation)
}

func (c comparison) sameError(got, want error) bool {
	if got == nil || want == nil {
		return got == nil && want == nil
	}
	denied, isDenied := deniedBy(got)
	wantDenied, wantIsDenied := deniedBy(want)
	if isDenied || wantIsDenied {
		return isDenied && wantIsDenied && c.sameDenial(denied, wantDenied)
	}
	e, isError := errors.AsType[*weir.Error](got)
	wantE, wantIsError := errors.AsType[*weir.Error](want)
	if !isError || !wantIsError {
		return false
	}
	forgotten := wantE.Code == weir.UnknownLease ||
		wantE.Code == weir.Invalid && wantE.Field == leaseField
	if c.servers && e.Code == weir.Ended && forgotten {
		return true
	}
	return e.Code == wantE.Code && (wantE.Field != leaseField || e.Field == leaseField)
}

func deniedBy(err error) (*weir.DeniedError, bool) {
	return errors.AsType[*weir.DeniedError](err)
}

// leaseField is the only field of an error that the contract fixes: it distinguishes a refused
// lease ID from a mistake in the request.
const leaseField = "lease_id"

func (c comparison) sameDenial(got, want *weir.DeniedError) bool {
	return got.LeaseID == want.LeaseID && got.Contended == want.Contended &&
		slices.Equal(got.Charges, want.Charges) &&
		got.RetryAfter == comeAgain(got) &&
		sameWait(exactWait(got), exactWait(want), got.AtLeast, c.exact) &&
		c.sameLimits(got.Limits, want.Limits)
}

// comeAgain returns the retry-after of a denial by the statuses of its limits (4.4).
func comeAgain(d *weir.DeniedError) time.Duration {
	return longestWait(d, func(s *weir.LimitStatus) time.Duration {
		if s.RetryLikely > 0 {
			return s.RetryLikely
		}
		return s.RetryAfter
	})
}

// exactWait returns the first instant at which the limits would fit without other calls (4.1).
func exactWait(d *weir.DeniedError) time.Duration {
	return longestWait(d, func(s *weir.LimitStatus) time.Duration { return s.RetryAfter })
}

func longestWait(d *weir.DeniedError, of func(*weir.LimitStatus) time.Duration) time.Duration {
	var longest time.Duration
	for i := range d.Limits {
		if s := &d.Limits[i]; s.Exceeded && !s.Shadow {
			longest = max(longest, of(s))
		}
	}
	return longest
}

// mayBeLikely reports whether a status may have its RetryLikely (4.4).
func mayBeLikely(s *weir.LimitStatus) bool {
	return s.RetryLikely == 0 || s.Kind == weir.Concurrency && s.Exceeded &&
		0 < s.RetryLikely && s.RetryLikely <= s.RetryAfter
}

func sameWait(got, want time.Duration, atLeast, exact bool) bool {
	return got == want && !atLeast || !exact && atLeast && got <= want
}

func (c comparison) sameLimits(got, want []weir.LimitStatus) bool {
	return slices.EqualFunc(got, want, func(g, w weir.LimitStatus) bool {
		if !sameWait(g.RetryAfter, w.RetryAfter, g.AtLeast, c.exact) || !mayBeLikely(&g) {
			return false
		}
		g.RetryAfter, g.AtLeast, g.RetryLikely = w.RetryAfter, w.AtLeast, w.RetryLikely
		return g == w
	})
}

func (c comparison) sameLease(got, want *weir.Lease) bool {
	if got == nil || want == nil {
		return got == nil && want == nil
	}
	return got.ID == want.ID && got.ReservedAt.Equal(want.ReservedAt) &&
		got.Expires.Equal(want.Expires) && got.HoldsUntil.Equal(want.HoldsUntil) &&
		got.Degraded == want.Degraded && (c.sameLimits(got.Limits, want.Limits) ||
		c.servers && got.Replay && c.sameNames(got.Limits, want.Limits))
}

// sameNames reports whether the statuses in the answer to a repeat are of the limits of the first
// answer, perhaps at another time. After a change of the configuration some may be missing.
func (c comparison) sameNames(got, want []weir.LimitStatus) bool {
	if !c.changed {
		return slices.EqualFunc(got, want, sameLimit)
	}
	return !slices.ContainsFunc(got, func(g weir.LimitStatus) bool {
		return !slices.ContainsFunc(want, func(w weir.LimitStatus) bool { return sameLimit(g, w) })
	})
}

// sameLimit reports whether two statuses are of one limit for one request, perhaps at different
// times.
func sameLimit(a, b weir.LimitStatus) bool {
	return a.Entity == b.Entity && a.Resource == b.Resource && a.Limit == b.Limit &&
		a.Kind == b.Kind && a.Requested == b.Requested
}

func sameReceipt(got, want *weir.Receipt) bool {
	if got == nil || want == nil {
		return got == nil && want == nil
	}
	return got.LeaseID == want.LeaseID && got.At.Equal(want.At) && got.Expires.Equal(want.Expires) &&
		got.HoldsUntil.Equal(want.HoldsUntil) && got.Degraded == want.Degraded &&
		got.RefundInDoubt == want.RefundInDoubt
}

func sameExplanation(got, want *weir.Explanation) bool {
	if got == nil || want == nil {
		return got == nil && want == nil
	}
	sameLevel := func(g, w weir.LevelLimits) bool {
		return g.Level == w.Level && slices.EqualFunc(g.Limits, w.Limits, weir.Limit.Same)
	}
	return got.Entity == want.Entity && got.Resource == want.Resource &&
		sameLevel(weir.LevelLimits{Level: got.Level, Limits: got.Limits},
			weir.LevelLimits{Level: want.Level, Limits: want.Limits}) &&
		slices.EqualFunc(got.Hidden, want.Hidden, sameLevel) &&
		sameExplanation(got.Parent, want.Parent)
}

// String returns the answer in full, for failure messages.
func (a answer) String() string {
	var b strings.Builder
	if denied, ok := deniedBy(a.err); ok {
		fmt.Fprintf(&b, "denied %v of %v, retry after %v", denied.LeaseID, denied.Charges, denied.RetryAfter)
		writeLimits(&b, denied.Limits)
		return b.String()
	}
	if a.err != nil {
		return a.err.Error()
	}
	if l := a.lease; l != nil {
		fmt.Fprintf(&b, "lease %v, reserved at %s, expires %s, holds until %s", l.ID,
			formatTime(l.ReservedAt), formatTime(l.Expires), formatTime(l.HoldsUntil))
		writeLimits(&b, l.Limits)
	}
	if r := a.receipt; r != nil {
		fmt.Fprintf(&b, "receipt %v, at %s, expires %s, holds until %s", r.LeaseID,
			formatTime(r.At), formatTime(r.Expires), formatTime(r.HoldsUntil))
	}
	writeLimits(&b, a.limits)
	for e := a.explanation; e != nil; e = e.Parent {
		fmt.Fprintf(&b, "\n    %s/%s: %s %s", e.Entity, e.Resource, e.Level, limitsText(e.Limits))
		for _, h := range e.Hidden {
			fmt.Fprintf(&b, "\n      hides %s %s", h.Level, limitsText(h.Limits))
		}
	}
	if b.Len() == 0 {
		return "nothing"
	}
	return b.String()
}

func formatTime(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z")
}

func writeLimits(b *strings.Builder, limits []weir.LimitStatus) {
	for _, s := range limits {
		fmt.Fprintf(b, "\n    %s/%s %s (%s, %s): %d of %d available, %d requested",
			s.Entity, s.Resource, s.Limit, s.Kind, s.Level, s.Available, s.Capacity, s.Requested)
		if s.Shadow {
			b.WriteString(", shadow")
		}
		if s.Exceeded {
			fmt.Fprintf(b, ", exceeded, retry after %v", s.RetryAfter)
		}
	}
}
