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

// readBody reads a request's body, which must be JSON, into a buffer that may grow for it. The
// connection's own bounds on time hold.
func readBody(w http.ResponseWriter, r *http.Request, most int64, into []byte) ([]byte, error) {
	if err := checkContentType(r.Header); err != nil {
		return into, err
	}
	if r.ContentLength > most {
		return into, tooLarge(most)
	}
	body := io.Reader(r.Body)
	if r.ContentLength < 0 {
		body = http.MaxBytesReader(w, r.Body, most) // it also ends the connection
	}
	text, err := appendAll(into[:0], body, most)
	if err != nil {
		return text, bodyError(err, most)
	}
	return text, nil
}

// appendAll reads to the end, and no more than a bound.
func appendAll(text []byte, from io.Reader, most int64) ([]byte, error) {
	for {
		if len(text) == cap(text) {
			text = slices.Grow(text, 1)
		}
		n, err := from.Read(text[len(text):cap(text)])
		text = text[:len(text)+n]
		switch {
		case int64(len(text)) > most:
			return text, &http.MaxBytesError{Limit: most}
		case err == io.EOF:
			return text, nil
		case err != nil:
			return text, err
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
