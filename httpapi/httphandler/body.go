package httphandler

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/apijson"
)

// readBody reads the body of a request, which must be JSON, into c.in. A body that arrives slowly
// does not count towards MaxConcurrent. The handler gives it up if too many other bodies are
// arriving. The server bounds the time of the read.
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
		body = http.MaxBytesReader(c.w, c.r.Body, most) // also closes the connection
	}
	given, err := h.receive(c, body)
	switch {
	case given: // even if the body is complete: its connection has an expired read deadline
		c.w.Header().Set("Connection", "close")
		return overloaded("the body arrived too slowly while too many other bodies were being read; nothing was reserved")
	case err != nil:
		return bodyError(err, most)
	}
	return nil
}

// receive reads a body and reports whether the handler gave it up.
func (h *Handler) receive(c *incoming, body io.Reader) (given bool, err error) {
	h.arrivals.begin(c)
	defer func() { given = h.arrivals.end(c) }() // also after a panic
	return false, h.appendAll(c, body)
}

// appendAll reads a body to its end. It returns an error if the body is longer than MaxBody.
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
		return apijson.Refusal(http.StatusUnsupportedMediaType, apijson.Invalid(field, value, reason))
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
		return refuse("Content-Type", given[0], "must have no charset other than utf-8")
	}
	return nil
}

func tooLarge(most int64) error {
	return apijson.Refusal(http.StatusRequestEntityTooLarge,
		apijson.Invalid("body", "", "must have at most "+apijson.Shorten(most)+" bytes"))
}

// bodyError returns the error of a body that could not be read. The cause is always the sender.
func bodyError(err error, most int64) error {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return tooLarge(most)
	}
	status, reason := http.StatusBadRequest, "could not be read completely"
	if errors.Is(err, os.ErrDeadlineExceeded) {
		status, reason = http.StatusRequestTimeout, "did not arrive in time"
	}
	return apijson.Refusal(status, &weir.Error{Code: weir.Invalid, Field: "body", Reason: reason, Err: err})
}

// Incomplete bodies use memory. The first freeOfBody bytes of each body are not counted;
// maxArriving bounds the sum of the rest.
const (
	freeOfBody  = maxKept
	maxArriving = 64 << 20
)

// arrivals is the list of the requests whose bodies are arriving, oldest first. Two bounds protect
// the server from clients that send slowly:
//
// If the list is too long, the handler gives up the oldest request among the callers that have at
// least the average number of requests in it. So a caller with many slow requests cannot push out
// the request of a caller with few.
//
// If the bodies use too much memory, the handler gives up the oldest bodies that have grown beyond
// freeOfBody. A body that is sent without delay is never the oldest for long.
type arrivals struct {
	most      int
	mostBytes int64

	mu          sync.Mutex
	first, last *incoming
	len         int
	of          map[string]int // the number of requests in the list, by caller
	bytes       int64
}

// arriving is the state of a request in arrivals.
type arriving struct {
	prev, next *incoming
	listed     bool          // it is in the list
	stopped    chan struct{} // closed after the read deadline is set; nil if not given up
	bytes      int64         // of the body beyond freeOfBody
}

// begin adds a request whose body is about to be read.
func (a *arrivals) begin(c *incoming) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c.arriving = arriving{prev: a.last, listed: true}
	if a.last != nil {
		a.last.arriving.next = c
	} else {
		a.first = c
	}
	a.last = c
	a.of[c.caller]++
	if a.len++; a.len > a.most {
		a.giveUp(a.oldest())
	}
}

// oldest returns the oldest request of the callers with at least the average number of requests.
func (a *arrivals) oldest() *incoming {
	average := a.len / len(a.of)
	c := a.first
	for a.of[c.caller] < average {
		c = c.arriving.next // ends, because some caller has at least the average
	}
	return c
}

// grow counts the memory of a body whose buffer has grown to size, and gives up the oldest large
// bodies while the sum is above the bound.
func (a *arrivals) grow(c *incoming, size int) {
	beyond := int64(size) - freeOfBody
	if beyond <= 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if !c.arriving.listed {
		return
	}
	a.bytes += beyond - c.arriving.bytes
	c.arriving.bytes = beyond
	for next := a.first; next != nil && a.bytes > a.mostBytes; {
		large := next
		if next = next.arriving.next; large.arriving.bytes > 0 {
			a.giveUp(large)
		}
	}
}

// end removes a request whose body has arrived or failed, and reports whether the handler gave it
// up.
func (a *arrivals) end(c *incoming) bool {
	a.mu.Lock()
	a.remove(c)
	stopped := c.arriving.stopped
	a.mu.Unlock()
	if stopped == nil {
		return false
	}
	<-stopped
	return true
}

// giveUp makes the read of a body fail. It sets the deadline in a goroutine because the caller
// holds a.mu: on HTTP/2 the call waits for a goroutine of the connection, and a busy connection
// would block all other requests. The end method waits for the goroutine, because the
// ResponseWriter must not be used after the request has ended.
func (a *arrivals) giveUp(c *incoming) {
	a.remove(c)
	stopped := make(chan struct{})
	c.arriving.stopped = stopped
	go func() {
		defer close(stopped)
		// If the server does not support read deadlines, its own timeouts end the read.
		_ = http.NewResponseController(c.w).SetReadDeadline(time.Unix(1, 0))
	}()
}

func (a *arrivals) remove(c *incoming) {
	at := &c.arriving
	if !at.listed {
		return
	}
	if at.prev != nil {
		at.prev.arriving.next = at.next
	} else {
		a.first = at.next
	}
	if at.next != nil {
		at.next.arriving.prev = at.prev
	} else {
		a.last = at.prev
	}
	a.len--
	if a.of[c.caller]--; a.of[c.caller] == 0 {
		delete(a.of, c.caller)
	}
	a.bytes -= at.bytes
	at.prev, at.next, at.listed, at.bytes = nil, nil, false, 0
}
