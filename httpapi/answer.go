package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strconv"

	"github.com/weir-limiter/weir"
)

// answer is what a route says where there is no error.
type answer struct {
	body any
	// limits are those of a reservation, for the RateLimit headers.
	limits func(http.Header)
}

func (a *answer) write(w http.ResponseWriter) {
	if a.limits != nil {
		a.limits(w.Header())
	}
	writeJSON(w, http.StatusOK, "application/json", a.body)
}

// writeProblem answers with an error. A denial gets the RateLimit headers, unless limits is nil.
func writeProblem(w http.ResponseWriter, err error, limits *rateLimits) {
	headerOf(w.Header(), err)
	if denied, ok := errors.AsType[*weir.DeniedError](err); ok && limits != nil {
		limits.denied(w.Header(), denied.Limits)
	}
	p := problemOf(err)
	writeJSON(w, p.Status, problemType, p)
}

// Refuse answers with a status and a problem as the API does, for a handler around it or beside it.
func Refuse(w http.ResponseWriter, status int, e *weir.Error) {
	writeProblem(w, refusal(status, e), nil)
}

// writeJSON answers in one piece, so that who reads less than the length knows that something is
// missing.
func writeJSON(w http.ResponseWriter, status int, contentType string, body any) {
	data, err := json.Marshal(body)
	if err != nil {
		panic(err) // the bodies are structs of numbers and strings
	}
	header := w.Header()
	header.Set("Content-Type", contentType)
	header.Set("Content-Length", strconv.Itoa(len(data)))
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(data) // who does not read the answer asks again
}

// logHidden logs what an answer does not show, in one line: errors of the service that are none of
// weir's, and causes.
func (h *Handler) logHidden(ctx context.Context, err error) {
	if denied, ok := errors.AsType[*weir.DeniedError](err); ok && denied != nil {
		return
	}
	if _, ok := errors.AsType[*httpError](err); ok {
		return // the service was not asked
	}
	faults := faultsOf(err)
	if len(faults) == 0 {
		h.options.Logger.ErrorContext(ctx, "the service failed", slog.Any("error", err))
		return
	}
	for _, f := range faults {
		if f.Err != nil {
			h.options.Logger.WarnContext(ctx, "the service failed", slog.Any("error", f))
			return
		}
	}
}
