// Package httphandler serves a [weir.Service] over HTTP, in JSON with snake_case names.
//
// A request is routed and its caller authenticated; then its query and body are read, within bounds
// on their length and number, and it is carried out, as one of a bounded number at once. The answer
// is JSON, or a problem (RFC 9457) with the code, field, value and reason of a [weir.Error]. The
// OpenAPI document at /openapi.json describes every route.
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

// Handler serves a [weir.Service] over HTTP. It keeps no state of leases, so that any handler of a
// service can answer for another. All methods may be called at once.
type Handler struct {
	service    weir.Service
	options    Options
	mux        *http.ServeMux
	direct     map[string]*directRoute // by path, for POST
	patterns   []string
	serving    chan struct{} // holds an element for each request of the API that is served
	arrivals   arrivals
	document   []byte // the OpenAPI document
	rateLimits *apijson.RateLimits
	incoming   sync.Pool // of *incoming

	givenBack, notGivenBack atomic.Int64 // see Abandoned
}

var _ http.Handler = (*Handler)(nil)

// New returns a handler of a service. The server around it must bound the time that headers, bodies
// and answers take; the handler bounds their size and number. If the service knows which limits it
// applied, as [limiter.Limiter.Applied] does, the RateLimit headers have their windows too.
func New(s weir.Service, o *Options) *Handler {
	h := &Handler{service: s, options: o.withDefaults(), mux: http.NewServeMux()}
	h.serving = make(chan struct{}, h.options.MaxConcurrent)
	h.document = openAPIFor(h.options.Version, h.options.Authenticate != nil)
	h.arrivals.most, h.arrivals.of = h.options.MaxArriving, make(map[string]int)
	h.arrivals.mostBytes = max(mostArriving, 2*h.options.MaxBody)
	h.rateLimits = apijson.NewRateLimits(s, h.options.Now)
	h.register()
	return h
}

// Routes returns the patterns that are served, such as "GET /v1/status". After a request was
// served, its Pattern is one of them, or a path alone if the method was wrong, or "/" if the path
// was.
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
	// The mux would redirect a path that is not clean, which callers of an API do not expect.
	if escaped := r.URL.EscapedPath(); r.RequestURI == "*" || !isClean(escaped) {
		r.Pattern = "/"
		h.notFound(w, r)
		return
	}
	h.mux.ServeHTTP(w, r)
}

// isClean reports whether the mux would take a path as it is.
func isClean(escaped string) bool {
	if escaped == "" || escaped[0] != '/' {
		return false
	}
	clean := path.Clean(escaped)
	return clean == escaped || clean != "/" && clean+"/" == escaped
}

// panicked answers a request whose service or handler has panicked. The outcome is unknown.
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
		h.end(c)
	})
}

// process authenticates the caller, carries out the request and answers it.
func (h *Handler) process(ctx context.Context, t *route, c *incoming) {
	if t.role > RoleNone {
		if err := h.authenticate(c, t.role); err != nil {
			h.refuse(ctx, c, err)
			return
		}
		h.options.LetIn(ctx)
		ctx = h.withCaller(ctx, c)
	}
	if t.plain != nil {
		t.plain.ServeHTTP(c.w, c.r)
		return
	}
	body, err := h.carryOut(ctx, t, c)
	if err != nil {
		h.refuse(ctx, c, err)
		return
	}
	if h.answer(c, body) != nil && !c.made.IsZero() {
		h.giveBack(ctx, c)
	}
}

// carryOut reads a request and calls its endpoint. It bounds how many endpoints run at once, but
// not how many answers are written, because otherwise clients that do not read theirs would keep
// others out.
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
