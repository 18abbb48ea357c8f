package httpapi

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/weir-limiter/weir"
)

// readBody reads a request's body, which must be JSON, into c.in. The connection's own bounds on
// time hold. A body that arrives slowly holds no place among the requests that are served, and is
// given up once too many others are on their way.
func (h *Handler) readBody(c *incoming) error {
	most := h.options.MaxBody
	if err := checkContentType(c.r.Header); err != nil {
		return err
	}
	if c.r.ContentLength > most {
		return tooLarge(most)
	}
	body := io.Reader(c.r.Body)
	if c.r.ContentLength < 0 {
		body = http.MaxBytesReader(c.w, c.r.Body, most) // it also ends the connection
	}
	given, err := h.receive(c, body)
	switch {
	case given: // also if the end of the body was there already: its connection reads no more
		c.w.Header().Set("Connection", "close")
		return overloaded("the body came slowly, and too many others are on their way; nothing was reserved")
	case err != nil:
		return bodyError(err, most)
	}
	return nil
}

// receive reads a body, and reports whether it was given up.
func (h *Handler) receive(c *incoming, body io.Reader) (given bool, err error) {
	h.arrivals.begin(c)
	defer func() { given = h.arrivals.end(c) }() // also if the reader panics
	return false, h.appendAll(c, body)
}

// appendAll reads to the end, and no more than a body may have.
func (h *Handler) appendAll(c *incoming, from io.Reader) error {
	text := c.in[:0]
	defer func() { c.in = text }()
	for {
		if len(text) == cap(text) {
			text = slices.Grow(text, 1)
			h.arrivals.grow(c, cap(text))
		}
		n, err := from.Read(text[len(text):cap(text)])
		text = text[:len(text)+n]
		switch {
		case int64(len(text)) > h.options.MaxBody:
			return &http.MaxBytesError{Limit: h.options.MaxBody}
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
	}
}

func checkContentType(header http.Header) error {
	refuse := func(field, value, reason string) error {
		return refusal(http.StatusUnsupportedMediaType, invalid(field, value, reason))
	}
	if encoding := header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return refuse("Content-Encoding", encoding, "must be left out")
	}
	given := header.Values("Content-Type")
	if len(given) != 1 {
		return refuse("Content-Type", strings.Join(given, ", "), "must be application/json")
	}
	if given[0] == "application/json" {
		return nil
	}
	media, parameters, err := mime.ParseMediaType(given[0])
	if err != nil || media != "application/json" {
		return refuse("Content-Type", given[0], "must be application/json")
	}
	if charset, ok := parameters["charset"]; ok && !strings.EqualFold(charset, "utf-8") {
		return refuse("Content-Type", given[0], "must have no charset but utf-8")
	}
	return nil
}

func tooLarge(most int64) error {
	return refusal(http.StatusRequestEntityTooLarge,
		invalid("body", "", "must have at most "+shorten(most)+" bytes"))
}

// bodyError says why a body could not be read: the sender's fault, always.
func bodyError(err error, most int64) error {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return tooLarge(most)
	}
	status, reason := http.StatusBadRequest, "could not be read to its end"
	if errors.Is(err, os.ErrDeadlineExceeded) {
		status, reason = http.StatusRequestTimeout, "did not come in time"
	}
	return refusal(status, &weir.Error{Code: weir.Invalid, Field: "body", Reason: reason, Err: err})
}
