package apijson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/weir-limiter/weir"
)

// Write returns the JSON of a request's body. It cannot fail for strings and whole numbers.
func Write(body any) ([]byte, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, Invalid("body", "", "cannot be written as JSON: "+err.Error())
	}
	return text, nil
}

// Read reads an answer. It skips unknown members, which a newer server may have added.
func Read[T any](body []byte) (*T, error) {
	out := new(T)
	if err := json.Unmarshal(body, out); err != nil {
		return nil, fmt.Errorf("cannot be read: %w", err)
	}
	return out, nil
}

// Writer writes answers, one at a time. It reuses its buffer.
type Writer struct {
	text    bytes.Buffer
	encoder *json.Encoder // writes to text
}

// NewWriter returns a [Writer].
func NewWriter() *Writer {
	a := &Writer{}
	a.text.Grow(1024)
	a.encoder = json.NewEncoder(&a.text)
	return a
}

// Kept returns how many bytes of memory the writer keeps for the next answer.
func (a *Writer) Kept() int { return a.text.Cap() }

// appender is a body that appends its own JSON to a text, byte for byte as [encoding/json] would
// write it, because it is written very often.
type appender interface {
	appendJSON(text []byte) []byte
}

// Write writes a complete answer with its length, so that a client notices a truncated one. It
// returns an error if the answer could not be written.
func (a *Writer) Write(w http.ResponseWriter, status int, contentType string, body any) error {
	a.text.Reset()
	if b, ok := body.(appender); ok {
		a.text.Write(b.appendJSON(a.text.AvailableBuffer()))
	} else if err := a.encoder.Encode(body); err != nil {
		panic(err) // the bodies are structs of numbers and strings
	}
	text := bytes.TrimSuffix(a.text.Bytes(), []byte("\n"))
	header := w.Header()
	// The names are canonical. The array holds all values in one allocation instead of four.
	values := [...]string{contentType, strconv.Itoa(len(text)), "no-store", "nosniff"}
	header["Content-Type"] = values[0:1:1]
	header["Content-Length"] = values[1:2:2]
	header["Cache-Control"] = values[2:3:3]
	header["X-Content-Type-Options"] = values[3:4:4]
	w.WriteHeader(status)
	_, err := w.Write(text) //nolint:gosec,nolintlint // A browser does not render JSON; gosec finds it in some runs only.
	return err
}

// WriteProblem answers with an error. A denial gets the RateLimit headers, unless limits is nil.
func (a *Writer) WriteProblem(w http.ResponseWriter, err error, limits *RateLimits) {
	headerOf(w.Header(), err)
	if denied, ok := errors.AsType[*weir.DeniedError](err); ok && limits != nil {
		limits.denied(w.Header(), denied.Limits)
	}
	p := ProblemOf(err)
	_ = a.Write(w, p.Status, ProblemType, p) // a caller that did not get the answer can ask again
}

// The functions below append members of an object. The argument member is the member's name with
// quotes and colon, and the comma before it if it is not the first: `,"limit":`.

// appendText appends a string. One that needs escapes is left to [encoding/json].
func appendText(text []byte, member, s string) []byte {
	text = append(text, member...)
	for i := range len(s) {
		if !isPlain(s[i]) {
			escaped, err := json.Marshal(s)
			if err != nil {
				panic(err) // every string can be written
			}
			return append(text, escaped...)
		}
	}
	text = append(text, '"')
	text = append(text, s...)
	return append(text, '"')
}

// isPlain reports whether c is one of the ASCII characters that [encoding/json] does not escape.
func isPlain(c byte) bool {
	return ' ' <= c && c <= '~' && c != '"' && c != '\\' && c != '<' && c != '>' && c != '&'
}

// appendNumber appends a number.
func appendNumber(text []byte, member string, n int64) []byte {
	return strconv.AppendInt(append(text, member...), n, 10)
}

// appendNonzero appends a number unless it is 0.
func appendNonzero(text []byte, member string, n int64) []byte {
	if n == 0 {
		return text
	}
	return appendNumber(text, member, n)
}

// appendBool appends a boolean.
func appendBool(text []byte, member string, is bool) []byte {
	return strconv.AppendBool(append(text, member...), is)
}

// appendTrue appends a boolean if it is true.
func appendTrue(text []byte, member string, is bool) []byte {
	if !is {
		return text
	}
	return appendBool(text, member, is)
}

// appendLeaseID appends an ID, which needs no escapes.
func appendLeaseID(text []byte, member string, id weir.LeaseID) []byte {
	text = append(append(text, member...), '"')
	text, _ = id.AppendText(text) // it never fails
	return append(text, '"')
}
