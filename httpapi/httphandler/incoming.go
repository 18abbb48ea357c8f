package httphandler

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/change"
	"github.com/weir-limiter/weir/internal/apijson"
)

// maxKept bounds the size of each buffer that is kept for the next request, in bytes.
const maxKept = 16 << 10

// incoming is a request of a route, with its buffers. After the answer, another request uses the
// same buffers, so nothing may keep a part of them.
type incoming struct {
	w        http.ResponseWriter
	r        *http.Request
	identity Identity
	caller   string // the name of the caller for the engine
	query    map[string]string
	in       []byte // the body
	arriving arriving
	reader   *bodyReader
	writer   *apijson.Writer
	update   updateBody
	details  *Details           // nil if none are wanted
	made     weir.LeaseID       // the ID of the lease, if the server made the ID
	limits   []weir.LimitStatus // the status after a reservation, for the RateLimit headers
}

// begin returns an incoming for a request. Without bearer tokens every caller is an admin.
func (h *Handler) begin(w http.ResponseWriter, r *http.Request) *incoming {
	c, ok := h.incoming.Get().(*incoming)
	if !ok {
		c = &incoming{in: make([]byte, 0, 512), reader: &bodyReader{}, writer: apijson.NewWriter()}
	}
	c.w, c.r, c.identity = w, r, Identity{Role: RoleAdmin}
	c.details = h.wantedDetails(r.Context())
	return c
}

// end returns the buffers to the pool. It is not called after a panic, because a goroutine may
// still use the buffers then.
func (h *Handler) end(c *incoming) {
	if cap(c.in) <= maxKept && c.writer.Kept() <= maxKept {
		*c = incoming{in: c.in[:0], reader: c.reader, writer: c.writer}
		h.incoming.Put(c)
	}
}

// endpoint handles a request of a route and returns the body of the answer.
type endpoint func(h *Handler, ctx context.Context, c *incoming) (body any, err error)

// answer writes an answer with status 200. It returns an error if the answer could not be written.
func (h *Handler) answer(c *incoming, body any) error {
	h.rateLimits.Set(c.w.Header(), c.limits)
	return c.writer.Write(c.w, http.StatusOK, "application/json", body)
}

// refuse answers a request of a route with a problem.
func (h *Handler) refuse(ctx context.Context, c *incoming, err error) {
	h.logHidden(ctx, err)
	c.writer.WriteProblem(c.w, err, h.rateLimits)
}

// fail answers any other request with a problem.
func (h *Handler) fail(w http.ResponseWriter, r *http.Request, err error) {
	h.logHidden(r.Context(), err)
	apijson.NewWriter().WriteProblem(w, err, h.rateLimits)
}

// Refuse writes a problem with the status, in the form of the API. It is for handlers that wrap a
// [Handler] or are served beside it.
func Refuse(w http.ResponseWriter, status int, e *weir.Error) {
	apijson.NewWriter().WriteProblem(w, apijson.Refusal(status, e), nil)
}

// overloaded returns the error of a request for which the handler has no capacity. The service was
// not called.
func overloaded(reason string) *weir.Error {
	return &weir.Error{Code: weir.Overloaded, Reason: reason, RetryAfter: time.Second}
}

// logHidden logs the parts of an error that a problem leaves out: causes, and errors that are not
// of package weir.
func (h *Handler) logHidden(ctx context.Context, err error) {
	if _, ok := errors.AsType[*weir.DeniedError](err); ok {
		return
	}
	if _, ok := errors.AsType[*apijson.HTTPError](err); ok {
		return // the service was not called
	}
	level := slog.LevelWarn
	if gone := ctx.Err(); gone != nil {
		if errors.Is(err, gone) {
			return // not a failure, and any caller could fill the log
		}
		level = slog.LevelDebug // the client hung up, which may have caused the failure
	}
	faults := apijson.FaultsOf(err)
	if len(faults) == 0 {
		h.options.Logger.ErrorContext(ctx, "the service failed", slog.Any("error", err))
		return
	}
	for _, f := range faults {
		if _, ok := errors.AsType[*change.ConflictError](f.Err); ok {
			continue // the problem has it
		}
		if f.Err != nil {
			h.options.Logger.LogAttrs(ctx, level, "the service failed", slog.Any("error", f))
			return
		}
	}
}
