package httphandler

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/apijson"
)

// answer is what a route says where there is no error.
type answer struct {
	body any
	// limits are those of a reservation, for the RateLimit headers.
	limits []weir.LimitStatus
}

// answer answers a request. An error means that the caller has not got the answer.
func (h *Handler) answer(c *incoming, a *answer) error {
	h.rateLimits.Set(c.w.Header(), a.limits)
	if body, ok := a.body.(apijson.Appender); ok {
		c.out = body.AppendJSON(c.out[:0])
		return apijson.WriteText(c.w, http.StatusOK, "application/json", c.out)
	}
	return writeJSON(c.w, http.StatusOK, "application/json", a.body)
}

// Refuse answers with a status and a problem as the API does, for a handler around it or beside it.
func Refuse(w http.ResponseWriter, status int, e *weir.Error) {
	apijson.WriteProblem(w, nil, apijson.Refusal(status, e), nil)
}

// overloaded returns the error of a request that the handler has no room for. The service was not
// asked.
func overloaded(reason string) *weir.Error {
	return &weir.Error{Code: weir.Overloaded, Reason: reason, RetryAfter: time.Second}
}

// writeJSON answers with what [encoding/json] makes of a body.
func writeJSON(w http.ResponseWriter, status int, contentType string, body any) error {
	data, err := json.Marshal(body)
	if err != nil {
		panic(err) // the bodies are structs of numbers and strings
	}
	return apijson.WriteText(w, status, contentType, data)
}

// logHidden logs what an answer does not show, in one line: errors of the service that are none of
// weir's, and causes.
func (h *Handler) logHidden(ctx context.Context, err error) {
	if denied, ok := errors.AsType[*weir.DeniedError](err); ok && denied != nil {
		return
	}
	if _, ok := errors.AsType[*apijson.HTTPError](err); ok {
		return // the service was not asked
	}
	gone, level := ctx.Err(), slog.LevelWarn
	if gone != nil {
		if errors.Is(err, gone) {
			return // nothing has failed, and any caller could fill the log
		}
		level = slog.LevelDebug // the client hung up: that is its own doing
	}
	faults := apijson.FaultsOf(err)
	if len(faults) == 0 {
		h.options.Logger.ErrorContext(ctx, "the service failed", slog.Any("error", err))
		return
	}
	for _, f := range faults {
		if f.Err == nil {
			continue
		}
		h.options.Logger.LogAttrs(ctx, level, "the service failed", slog.Any("error", f))
		return
	}
}
