package livetest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/httpapi/httphandler"
	"github.com/weir-limiter/weir/limiter"
)

// serve serves a handler until stop is called.
func serve(t *testing.T, on network, h http.Handler) (address string, stop func()) {
	t.Helper()
	listener := on.listen(t)
	server := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	return listener.Addr().String(), func() {
		if err := server.Close(); err != nil {
			t.Errorf("close a server: %v", err)
		}
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("serve: %v", err)
		}
	}
}

// spread sends each request to one of several addresses.
type spread struct {
	*dice

	to   []string
	base *http.Transport
}

func (s *spread) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Host = s.to[s.pick(len(s.to))]
	return s.base.RoundTrip(r)
}

// tally counts the requests and answers of servers.
type tally struct {
	// reserving is the number of reservations that are being served.
	reserving atomic.Int64
	// admitted and refused count the answers to reservations: 200, and those with the code of an
	// ended lease.
	admitted, refused atomic.Int64
	// cancelled and early count the answers to cancels: 200, and 404.
	cancelled, early atomic.Int64

	mu sync.Mutex
	// answered are leases whose ID a server made and whose answer it sent while, as far as it knew,
	// the caller was there. A caller that has received the answer removes its lease.
	answered map[string]*limiter.Limiter
}

// hangUpNoticeTime is the longest time until a server notices that a caller has hung up.
const hangUpNoticeTime = 5 * time.Millisecond

// handler returns the HTTP handler of a limiter.
func (y *tally) handler(lim *limiter.Limiter) http.Handler {
	next := httphandler.New(lim, nil)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the caller left before it sent its request
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		out := &answer{ResponseWriter: w}
		stop := context.AfterFunc(r.Context(), func() { out.gone.Store(time.Now().UnixNano()) })
		defer stop()
		switch r.URL.Path {
		case "/v1/reserve":
			y.reserving.Add(1)
			defer y.reserving.Add(-1)
			next.ServeHTTP(out, r)
			y.reserved(lim, out, bytes.Contains(body, []byte(`"lease_id"`)))
		case "/v1/cancel":
			next.ServeHTTP(out, r)
			switch out.status {
			case http.StatusOK:
				y.cancelled.Add(1)
			case http.StatusNotFound:
				y.early.Add(1)
			}
		default:
			next.ServeHTTP(out, r)
		}
	})
}

// reserved counts an answer to a reservation.
func (y *tally) reserved(lim *limiter.Limiter, out *answer, brought bool) {
	switch out.status {
	case http.StatusOK:
		y.admitted.Add(1)
		if id := leaseOf(out.body.Bytes()); !brought && id != "" && out.sent {
			y.mu.Lock()
			y.answered[id] = lim
			y.mu.Unlock()
		}
	case http.StatusConflict:
		y.refused.Add(1)
	}
}

// received records that a caller has received a lease.
func (y *tally) received(id string) {
	y.mu.Lock()
	defer y.mu.Unlock()
	delete(y.answered, id)
}

// lost cancels the leases whose answer was sent and not received, and returns how many there were.
// Neither the server nor a client that does not know the lease's ID can do that.
func (y *tally) lost(t *testing.T) int {
	t.Helper()
	y.mu.Lock()
	defer y.mu.Unlock()
	n := 0
	for id, lim := range y.answered {
		lease, err := weir.ParseLeaseID(id)
		if err != nil {
			t.Error(err)
			continue
		}
		_, err = lim.Cancel(t.Context(), lease)
		if err == nil {
			n++
		}
		delete(y.answered, id)
	}
	return n
}

// answer is a response writer that keeps what is written.
type answer struct {
	http.ResponseWriter

	status int
	body   bytes.Buffer
	// gone is the time at which the caller hung up, in Unix nanoseconds; 0 if it has not.
	gone atomic.Int64
	// sent is set if the answer was written before the server knew that its caller had left.
	sent bool
}

func (a *answer) WriteHeader(status int) {
	a.status = status
	a.ResponseWriter.WriteHeader(status)
}

func (a *answer) Write(p []byte) (int, error) {
	if a.status == 0 {
		a.status = http.StatusOK
	}
	gone := a.gone.Load()
	a.sent = gone == 0 || time.Since(time.Unix(0, gone)) < hangUpNoticeTime
	a.body.Write(p)
	return a.ResponseWriter.Write(p)
}

// leaseOf reads the lease ID in the answer to a reservation.
func leaseOf(body []byte) string {
	var b struct {
		LeaseID string `json:"lease_id"`
	}
	if json.Unmarshal(body, &b) != nil {
		return ""
	}
	return b.LeaseID
}

// isReserve reports whether a request is a reservation over HTTP.
func isReserve(piece []byte) bool { return bytes.HasPrefix(piece, []byte("POST /v1/reserve ")) }

// isTableWrite reports whether a request changes a DynamoDB table.
func isTableWrite(piece []byte) bool {
	head := string(piece[:min(len(piece), 2<<10)])
	return strings.Contains(head, ".UpdateItem") || strings.Contains(head, ".TransactWriteItems") ||
		strings.Contains(head, ".PutItem")
}
