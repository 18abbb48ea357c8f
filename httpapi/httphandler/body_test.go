package httphandler

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/apijson"
)

// TestBodyLengths checks that the bound applies to the bytes of the body, whatever Content-Length
// says and however small the chunks are.
func TestBodyLengths(t *testing.T) {
	t.Parallel()
	const most = 1000
	for _, c := range []struct {
		name           string
		size, declared int64
		want           int // status; 200 if the body is read
	}{
		{"empty", 0, 0, 200}, {"declared", 700, 700, 200}, {"as long as may be", most, most, 200},
		{"too long", most + 1, most + 1, 413}, {"far too long", 100 * most, 100 * most, 413},
		{"chunked", 700, -1, 200}, {"chunked, as long as may be", most, -1, 200},
		{"chunked, too long", most + 1, -1, 413}, {"longer than declared", most + 1, 5, 413},
	} {
		body := strings.Repeat("x", int(c.size))
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/",
			iotest.HalfReader(strings.NewReader(body)))
		r.Header.Set("Content-Type", "application/json")
		r.ContentLength = c.declared
		h := New(nil, &Options{MaxBody: most})
		in := &incoming{w: httptest.NewRecorder(), r: r, in: []byte("left from before")}
		err := h.readBody(in)
		got := in.in
		status := http.StatusOK
		if refused, ok := errors.AsType[*apijson.HTTPError](err); ok {
			status = refused.Status
		}
		if status != c.want || err == nil && string(got) != body {
			t.Errorf("%s: %d, %v, %d bytes", c.name, status, err, len(got))
		}
	}
}

// TestBodyBreaks checks that a body that fails to arrive is refused, and that no caller sees the
// error.
func TestBodyBreaks(t *testing.T) {
	t.Parallel()
	cause := errors.New("cut off")
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", iotest.ErrReader(cause))
	r.Header.Set("Content-Type", "application/json")
	err := New(nil, nil).readBody(&incoming{w: httptest.NewRecorder(), r: r})
	fault, ok := errors.AsType[*weir.Error](err)
	if !ok || fault.Code != weir.Invalid || fault.Field != "body" || !errors.Is(err, cause) {
		t.Errorf("%#v", err)
	}
}
