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
	limits []weir.LimitStatus
}

// appender is a body that writes itself, byte for byte as [encoding/json] would.
type appender interface {
	appendJSON(text []byte) []byte
}

// answer answers a request. An error means that the caller has not got the answer.
func (h *Handler) answer(c *incoming, a *answer) error {
	h.rateLimits.set(c.w.Header(), a.limits)
	if body, ok := a.body.(appender); ok {
		c.out = body.appendJSON(c.out[:0])
		return writeText(c.w, http.StatusOK, "application/json", c.out)
	}
	return writeJSON(c.w, http.StatusOK, "application/json", a.body)
}

// writeProblem answers with an error. A denial gets the RateLimit headers, unless limits is nil.
func writeProblem(w http.ResponseWriter, err error, limits *rateLimits) {
	writeProblemIn(make([]byte, 0, 1024), w, err, limits)
}

// writeProblemIn writes the problem in a buffer, and returns it as it is then.
func writeProblemIn(text []byte, w http.ResponseWriter, err error, limits *rateLimits) []byte {
	headerOf(w.Header(), err)
	if denied, ok := errors.AsType[*weir.DeniedError](err); ok && limits != nil {
		limits.denied(w.Header(), denied.Limits)
	}
	p := problemOf(err)
	text = p.appendJSON(text)
	_ = writeText(w, p.Status, problemType, text) // Who does not read the answer asks again.
	return text
}

// Refuse answers with a status and a problem as the API does, for a handler around it or beside it.
func Refuse(w http.ResponseWriter, status int, e *weir.Error) {
	writeProblem(w, refusal(status, e), nil)
}

// writeJSON answers with what [encoding/json] makes of a body.
func writeJSON(w http.ResponseWriter, status int, contentType string, body any) error {
	data, err := json.Marshal(body)
	if err != nil {
		panic(err) // the bodies are structs of numbers and strings
	}
	return writeText(w, status, contentType, data)
}

// writeText answers in one piece, so that who reads less than the length knows that something is
// missing. The text is not kept.
func writeText(w http.ResponseWriter, status int, contentType string, text []byte) error {
	header := w.Header()
	// The names are as net/http spells them, and the values stand in one piece of memory.
	values := [...]string{contentType, strconv.Itoa(len(text)), "no-store", "nosniff"}
	header["Content-Type"] = values[0:1:1]
	header["Content-Length"] = values[1:2:2]
	header["Cache-Control"] = values[2:3:3]
	header["X-Content-Type-Options"] = values[3:4:4]
	w.WriteHeader(status)
	_, err := w.Write(text) //nolint:gosec,nolintlint // JSON that says so is no page; gosec as in client_call.go.
	return err
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
	gone, level := ctx.Err(), slog.LevelWarn
	if gone != nil {
		if errors.Is(err, gone) {
			return // nothing has failed, and any caller could fill the log
		}
		level = slog.LevelDebug // the client hung up: that is its own doing
	}
	faults := faultsOf(err)
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
