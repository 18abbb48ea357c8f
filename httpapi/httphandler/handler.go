// Package httphandler serves a [weir.Service] over HTTP, in JSON with snake_case names. The OpenAPI
// document at /openapi.json describes every route.
//
// A [Handler] has a table of routes. Each route has a method, a path, the least [Role] that its
// caller needs, and an endpoint. A request of a route passes through these steps in order:
//
//  1. ServeHTTP finds the route. It looks up the verbs in a map and leaves other paths to
//     [http.ServeMux].
//  2. authenticate checks the bearer token and the role, before anything of the body is read.
//  3. The query and the body are read and checked, within bounds on their length. A bodyReader
//     reports all mistakes of a body at once. Bodies that are still arriving are kept in a list of
//     their own (see arrivals), so that slow clients do not use up the places in step 4.
//  4. The endpoint calls the service or the configuration. At most [Options.MaxConcurrent]
//     endpoints run at once; a request above that is refused.
//  5. The answer is written: JSON, or a problem (RFC 9457) with the code, field, value and reason
//     of a [weir.Error]. A lease whose ID the server made is cancelled if its caller has hung up,
//     because no caller could settle it.
//
// The memory of a request, an incoming, comes from a pool. Other requests use it after the answer,
// so endpoints and the service keep no part of it. The Handler itself has no lock; arrivals has one
// for its list.
package httphandler

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"path"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/apijson"
)

// Handler serves a [weir.Service] over HTTP. It keeps no state of leases, so any handler of the
// same service can answer any call. It is safe for concurrent use.
type Handler struct {
	service    weir.Service
	options    Options
	mux        *http.ServeMux
	direct     map[string]*directRoute // by path, for POST
	patterns   []string
	serving    chan struct{} // one element for each endpoint that is running
	arrivals   arrivals
	document   []byte // the OpenAPI document
	rateLimits *apijson.RateLimits
	incoming   sync.Pool // of *incoming

	givenBack, notGivenBack atomic.Int64 // see Abandoned
}

var _ http.Handler = (*Handler)(nil)

// New returns a handler that serves s. The handler bounds the size and number of requests; the
// server around it must bound the time that headers, bodies and answers take. If the service knows
// which limits it applied, as [limiter.Limiter.Applied] does, the RateLimit headers include the
// windows.
func New(s weir.Service, o *Options) *Handler {
	h := &Handler{service: s, options: o.withDefaults(), mux: http.NewServeMux()}
	h.serving = make(chan struct{}, h.options.MaxConcurrent)
	h.document = openAPIFor(h.options.Version, h.options.Authenticate != nil)
	h.arrivals.most, h.arrivals.of = h.options.MaxArriving, make(map[string]int)
	h.arrivals.mostBytes = max(maxArriving, 2*h.options.MaxBody)
	h.rateLimits = apijson.NewRateLimits(s, h.options.Now)
	h.register()
	return h
}

// Routes returns the patterns of all routes, such as "GET /v1/status". After a request was served,
// its Pattern is one of these, or only the path if the method is not allowed, or "/" if no route
// has the path.
func (h *Handler) Routes() []string { return slices.Clone(h.patterns) }

// ServeHTTP answers one request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer func() {
		if cause := recover(); cause != nil {
			h.panicked(w, r, cause)
		}
	}()
	if d := h.directly(r); d != nil {
		r.Pattern = d.pattern
		d.handler.ServeHTTP(w, r)
		return
	}
	// The mux would redirect a path that is not clean. Callers of an API do not expect a redirect.
	if escaped := r.URL.EscapedPath(); r.RequestURI == "*" || !isClean(escaped) {
		r.Pattern = "/"
		h.notFound(w, r)
		return
	}
	h.mux.ServeHTTP(w, r)
}

// isClean reports whether the mux would serve a path without a redirect.
func isClean(escaped string) bool {
	if escaped == "" || escaped[0] != '/' {
		return false
	}
	clean := path.Clean(escaped)
	return clean == escaped || clean != "/" && clean+"/" == escaped
}

// panicked answers a request after a panic in the service or the handler. The outcome is unknown.
func (h *Handler) panicked(w http.ResponseWriter, r *http.Request, cause any) {
	if err, ok := cause.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(cause)
	}
	h.options.Logger.ErrorContext(r.Context(), "panic while serving",
		slog.String("route", r.Pattern), slog.Any("cause", cause),
		slog.String("stack", string(debug.Stack())))
	h.fail(w, r, &weir.Error{
		Code: weir.Unavailable, Reason: "the server failed, the outcome is unknown",
	})
}

// handle returns the handler of a route.
func (h *Handler) handle(t *route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := h.begin(w, r)
		h.process(r.Context(), t, c)
		if c.details != nil {
			c.details.asked(c)
		}
		h.end(c)
	})
}

// process authenticates the caller, calls the endpoint and writes the answer.
func (h *Handler) process(ctx context.Context, t *route, c *incoming) {
	if t.role > RoleNone {
		err := h.authenticate(c, t.role)
		if err == nil && t.allNamespaces {
			err = h.checkAllNamespaces(c)
		}
		if err != nil {
			h.tellRefused(ctx, c, err)
			h.refuse(ctx, c, err)
			return
		}
		h.options.LetIn(ctx)
		ctx = h.withCaller(ctx, c)
	}
	if t.role == RoleAdmin {
		ctx = h.withPrincipal(ctx, c)
	}
	if t.plain != nil {
		t.plain.ServeHTTP(c.w, c.r)
		return
	}
	if t.changes != nil && h.options.Trail != nil {
		h.change(ctx, t, c)
		return
	}
	body, err := h.carryOut(ctx, t, c)
	if err != nil {
		h.tellRefused(ctx, c, err)
		h.refuse(ctx, c, err)
		return
	}
	if h.answer(c, body) != nil && !c.made.IsZero() {
		h.giveBack(ctx, c)
	}
}

// carryOut reads a request and calls its endpoint. The bound on concurrent requests covers the
// endpoint but not the writing of the answer. Otherwise clients that do not read their answers
// would block all others.
func (h *Handler) carryOut(ctx context.Context, t *route, c *incoming) (body any, err error) {
	if t.limited() {
		if c.query, err = parseQuery(c.r.URL.RawQuery, t.query...); err != nil {
			return nil, err
		}
		if t.hasBody() {
			if err := h.readBody(c); err != nil {
				return nil, err
			}
		}
		select {
		case h.serving <- struct{}{}:
			defer func() { <-h.serving }()
		default:
			return nil, overloaded("too many requests at once; nothing was reserved")
		}
	}
	return t.serve(h, ctx, c)
}
