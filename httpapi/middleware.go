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
// are charged, and a report of zeros refunds all units. Without a report, a handler that returns is
// charged the reserved units, whatever its status. A handler that panics, or whose client has hung
// up, is charged nothing unless it called [weir.Lease.Sent]. A panic is passed on.
func Middleware(
	s weir.Service, ask func(*http.Request) (*weir.Request, error), o *MiddlewareOptions,
) func(http.Handler) http.Handler {
	m := &middleware{service: s, ask: ask}
	if o != nil {
		m.options = *o
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
		next.ServeHTTP(w, r.WithContext(context.WithValue(ctx, leaseKey{}, lease)))
		return nil
	})
	switch {
	case err != nil && ran:
		m.options.SettleFailed(r, err)
	case err != nil:
		apijson.NewWriter().WriteProblem(w, err, m.limits)
	}
}

type leaseKey struct{}

// LeaseFrom returns the lease of a request to a handler behind [Middleware], or nil.
func LeaseFrom(ctx context.Context) *weir.Lease {
	lease, _ := ctx.Value(leaseKey{}).(*weir.Lease)
	return lease
}
