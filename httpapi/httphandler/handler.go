// Package httphandler serves a [weir.Service] over HTTP, in JSON with snake_case names.
//
// A request is routed, its caller authenticated, its query and body read within bounds, and the verb
// carried out in one of a bounded number of slots; the answer is JSON, or a problem (RFC 9457) with the
// code, field, value and reason of a [weir.Error]. The OpenAPI document at /openapi.json describes every
// route.
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

// Handler serves a [weir.Service] over HTTP. It has no state of its own, so that any handler of a
// service answers for every other. All methods may be called at once.
type Handler struct {
	service    weir.Service
	options    Options
	mux        *http.ServeMux
	direct     map[string]*directRoute // by path, for POST
	patterns   []string
	slots      chan struct{} // one for each request of the API under way
	arrivals   arrivals
	document   []byte // the OpenAPI document
	rateLimits *apijson.RateLimits
	incoming   sync.Pool // of *incoming

	givenBack, notGivenBack atomic.Int64 // see Abandoned
}

var _ http.Handler = (*Handler)(nil)

// New makes the handler of a service. The server around it bounds the time of headers,
// bodies and answers; the handler bounds their size and number. Where the service says which limits
// it applied, as [weir.Limiter.Applied] does, the RateLimit headers tell their windows too.
func New(s weir.Service, o *Options) *Handler {
	h := &Handler{service: s, options: o.withDefaults(), mux: http.NewServeMux()}
	h.slots = make(chan struct{}, h.options.MaxConcurrent)
	h.document = openAPIFor(h.options.Version, h.options.Authenticate != nil)
	h.arrivals.most, h.arrivals.of = h.options.MaxArriving, make(map[string]int)
	h.arrivals.mostBytes = max(mostArriving, 2*h.options.MaxBody)
	h.rateLimits = apijson.NewRateLimits(s, h.options.Now)
	h.register()
	return h
}

// Routes lists what is served, as "GET /v1/status". A request's Pattern is one of them once it has
// been served; a path alone where the method was wrong, and "/" where the path was.
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
	// The mux would redirect what is not in its plainest form, and nobody expects that of an API.
	if escaped := r.URL.EscapedPath(); r.RequestURI == "*" || !isClean(escaped) {
		r.Pattern = "/"
		h.notFound(w, r)
		return
	}
	h.mux.ServeHTTP(w, r)
}

// isClean reports whether a path is one that the mux takes as it is.
func isClean(escaped string) bool {
	if escaped == "" || escaped[0] != '/' {
		return false
	}
	clean := path.Clean(escaped)
	return clean == escaped || clean != "/" && clean+"/" == escaped
}

// panicked answers for a service or handler that did not come to its end. The outcome is unknown.
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

// handle makes the handler of a route.
func (h *Handler) handle(t *route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := h.begin(w, r)
		h.admit(r.Context(), t, c)
		h.end(c)
	})
}

// admit lets a request in: who asks, and whether its body arrives.
func (h *Handler) admit(ctx context.Context, t *route, c *incoming) {
	if t.role > RoleNone {
		if err := h.authenticate(c, t.role); err != nil {
			h.refuse(ctx, c, err)
			return
		}
		h.options.LetIn(ctx)
		ctx = h.withCaller(ctx, c)
	}
	if t.limited() {
		if err := h.arrive(t, c); err != nil {
			h.refuse(ctx, c, err)
			return
		}
	}
	h.serve(ctx, t, c)
}

// arrive reads what the caller sends: the query, and a body if the route wants one.
func (h *Handler) arrive(t *route, c *incoming) (err error) {
	if c.query, err = parseQuery(c.r.URL.RawQuery, t.query...); err != nil || !t.reads() {
		return err
	}
	return h.readBody(c)
}

// serve answers a request that was let in.
func (h *Handler) serve(ctx context.Context, t *route, c *incoming) {
	if t.plain != nil {
		t.plain.ServeHTTP(c.w, c.r)
		return
	}
	answer, err := h.work(ctx, t, c)
	if err != nil {
		h.refuse(ctx, c, err)
		return
	}
	if h.answer(c, answer) != nil && !c.made.IsZero() {
		h.giveBack(ctx, c)
	}
}

// work does what a request asks for, in a place among those that are served at once. The place is
// free again before the answer is written, or clients that do not read theirs would keep others
// out.
func (h *Handler) work(ctx context.Context, t *route, c *incoming) (*answer, error) {
	if t.limited() {
		select {
		case h.slots <- struct{}{}:
			defer func() { <-h.slots }()
		default:
			return nil, overloaded("too many requests at once; nothing was reserved")
		}
	}
	return t.serve(h, ctx, c)
}

// fail answers with an error, and logs what the answer leaves out.
func (h *Handler) fail(w http.ResponseWriter, r *http.Request, err error) {
	h.logHidden(r.Context(), err)
	apijson.WriteProblem(w, nil, err, h.rateLimits)
}

// refuse answers a request of a route with an error.
func (h *Handler) refuse(ctx context.Context, c *incoming, err error) {
	h.logHidden(ctx, err)
	c.out = apijson.WriteProblem(c.w, c.out, err, h.rateLimits)
}

// maxKept is how many bytes a request may leave behind for the next one to use.
const maxKept = 16 << 10

// incoming is one request of a route, and the memory that it works in. Once it was answered another
// request uses that again: nothing may keep a piece of it.
type incoming struct {
	w        http.ResponseWriter
	r        *http.Request
	identity Identity
	caller   string // its name for the limiter
	query    map[string]string
	in, out  []byte // the request's body, and the answer's
	arriving arriving
	verb     apijson.Update
	said     answer
	made     weir.LeaseID // of the lease that was reserved, if the caller brought no ID
}

// say makes the answer.
func (c *incoming) say(body any, limits []weir.LimitStatus) *answer {
	c.said = answer{body, limits}
	return &c.said
}

// begin begins a request. It comes from an admin until a bearer token says otherwise.
func (h *Handler) begin(w http.ResponseWriter, r *http.Request) *incoming {
	c, ok := h.incoming.Get().(*incoming)
	if !ok {
		c = &incoming{in: make([]byte, 0, 512), out: make([]byte, 0, 1024)}
	}
	c.w, c.r, c.identity = w, r, Identity{Role: RoleAdmin}
	return c
}

// end ends a request that was answered. One that panicked does not get here: something may be at
// work on it still.
func (h *Handler) end(c *incoming) {
	if cap(c.in) <= maxKept && cap(c.out) <= maxKept {
		*c = incoming{in: c.in[:0], out: c.out[:0]}
		h.incoming.Put(c)
	}
}
