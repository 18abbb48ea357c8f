package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/apijson"
)

// MiddlewareOptions configures a [Middleware]. A nil *MiddlewareOptions means all defaults.
type MiddlewareOptions struct {
	// Settle says what a request is charged, by the answer of the handler. It is not called if the
	// handler has called [weir.Lease.Report], GiveBack or Sent, nor if it never began to answer and
	// panicked or its client hung up, nor for an answer below 400 that began after its client had
	// hung up. Default: [SettleByStatus].
	Settle func(a Answer) Settlement
	// Requests names the limits that count requests, such as "rpm". [SettleGiveBack] leaves them
	// charged. Default: none.
	Requests []string
	// NoRateLimits leaves the RateLimit headers out of all answers. Default: false.
	NoRateLimits bool
	// SettleFailed is called if the lease of a request could not be settled after the handler has
	// returned; the lease ends by itself. It is also called if the service is a [Client] that could
	// not cancel a reservation that it abandoned. That call comes in the background, perhaps after
	// the request has ended. Default: no call.
	SettleFailed func(r *http.Request, err error)
	// Now returns the time, for the RateLimit headers of budgets. Default: [time.Now].
	Now func() time.Time
}

// Middleware returns a function that wraps a handler. The wrapped handler reserves before the
// handler runs and settles after it, as [weir.Do] does. The function ask returns the reservation
// for a request. If it returns nil, the request passes without a reservation. If it returns an
// error, the request is refused. It must not read the body.
//
// A denial is answered with 429 and RateLimit headers, as by a server. Every other error is
// answered with the problem for its code: 503 if the service is unavailable, 400 if ask returns an
// error with code [weir.Invalid]. These answers name entities and limits.
//
// The handler gets its lease from [LeaseFrom]. If it calls [weir.Lease.Report], the reported units
// are charged, and [weir.Lease.GiveBack] refunds all units. Without them, a handler that has called
// [weir.Lease.Sent] is charged the reserved units. If it has called none of them, the option Settle
// decides by its answer: by default, an error status is charged nothing, and every other answer the
// reserved units, even if the handler panics or its client hangs up before the end. A handler that
// panics, or whose client hangs up, before it has begun to answer is charged nothing. A panic is
// passed on.
func Middleware(
	s weir.Service, ask func(*http.Request) (*weir.Request, error), o *MiddlewareOptions,
) func(http.Handler) http.Handler {
	m := &middleware{service: s, ask: ask}
	if o != nil {
		m.options = *o
	}
	if m.options.Settle == nil {
		m.options.Settle = SettleByStatus
	}
	if m.options.SettleFailed == nil {
		m.options.SettleFailed = func(*http.Request, error) {}
	}
	if m.options.Now == nil {
		m.options.Now = time.Now
	}
	if !m.options.NoRateLimits {
		m.limits = apijson.NewRateLimits(s, m.options.Now)
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { m.serve(w, r, next) })
	}
}

type middleware struct {
	service weir.Service
	ask     func(*http.Request) (*weir.Request, error)
	options MiddlewareOptions
	limits  *apijson.RateLimits // nil if the headers are left out
}

func (m *middleware) serve(w http.ResponseWriter, r *http.Request, next http.Handler) {
	asked, err := m.ask(r)
	if err != nil {
		apijson.NewWriter().WriteProblem(w, err, m.limits)
		return
	}
	if asked == nil {
		next.ServeHTTP(w, r)
		return
	}
	ran := false
	service := abandonReporter{m.service, func(err error) { m.options.SettleFailed(r, err) }}
	err = weir.Do(r.Context(), service, asked, func(ctx context.Context, lease *weir.Lease) error {
		ran = true
		if m.limits != nil {
			m.limits.Set(w.Header(), lease.Limits)
		}
		m.handle(w, r.WithContext(context.WithValue(ctx, leaseKey{}, lease)), next, asked)
		return nil
	})
	switch {
	case err != nil && ran:
		m.options.SettleFailed(r, err)
	case err != nil:
		apijson.NewWriter().WriteProblem(w, err, m.limits)
	}
}

// handle runs the handler. Then it says, unless the handler has, what is charged, even if the
// handler panics.
func (m *middleware) handle(
	w http.ResponseWriter, r *http.Request, next http.Handler, asked *weir.Request,
) {
	lease, returned := LeaseFrom(r.Context()), false
	left := func() bool { return r.Context().Err() != nil }
	watched := &answerWriter{ResponseWriter: w, left: left}
	defer func() {
		cut := !returned || left()
		if watched.status == 0 && !cut {
			watched.status = http.StatusOK // that is what the server sends
		}
		// Nothing of a success that began after the client had left reached it.
		unseen := watched.status == 0 || watched.late && watched.status < http.StatusBadRequest
		if unseen || lease.Decided() {
			return
		}
		a := Answer{Status: watched.status, Bytes: watched.bytes, Cut: cut, Left: left()}
		if m.options.Settle(a) == SettleGiveBack {
			giveBack(lease, asked, m.options.Requests)
		} else {
			lease.Sent()
		}
	}()
	next.ServeHTTP(watched, r)
	returned = true
}

type leaseKey struct{}

// LeaseFrom returns the lease of a request to a handler behind [Middleware], or nil.
func LeaseFrom(ctx context.Context) *weir.Lease {
	lease, _ := ctx.Value(leaseKey{}).(*weir.Lease)
	return lease
}
