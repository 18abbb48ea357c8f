package httphandler_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-limiter/weir/httpapi/httphandler"
	"github.com/weir-limiter/weir/internal/server/statuspage"
)

// TestConcurrentCallers checks that concurrent callers with flat leases take exactly what is
// available, and settle only their own leases.
func TestConcurrentCallers(t *testing.T) {
	t.Parallel()
	w := newHandlerWorld(t, nil)
	var admitted, denied atomic.Int64
	ids := make(chan string, 100)
	var wait sync.WaitGroup
	for i := range 8 {
		wait.Go(func() {
			for range 5 {
				a := w.reserve(fmt.Sprintf(
					`{"requirements":[{"key":"k2","amount":1},{"key":"own%d","amount":1}]}`, i))
				switch a.status {
				case http.StatusOK:
					admitted.Add(1)
					ids <- a.body["lease_id"].(string)
				case http.StatusTooManyRequests:
					denied.Add(1)
				default:
					t.Errorf("%d: %s", a.status, a.text)
				}
			}
		})
	}
	wait.Wait()
	close(ids)
	if admitted.Load() != 10 || denied.Load() != 30 {
		t.Errorf("%d admitted and %d denied, want 10 and 30", admitted.Load(), denied.Load())
	}
	for id := range ids {
		for range 4 { // the same call four times, concurrently
			wait.Go(func() {
				w.post("complete", `{"lease_id":"`+id+`","actuals":[{"key":"k2","actual_amount":0}]}`).
					want(t, 200, "lease_id", id)
			})
		}
	}
	wait.Wait()
	if got := w.available("k2", "key", "units"); got != 10 {
		t.Errorf("%d left, want 10", got)
	}
}

func TestActivityRoute(t *testing.T) {
	t.Parallel()
	w := newHandlerWorld(t, &httphandler.Options{Activity: statuspage.NewActivity(time.Now()).Report})
	w.get("/v1/activity").want(t, 200)
	w.get("/v1/activity?entity=acme").want(t, 400, "field", "entity", "value", "acme")
	bare := httphandler.New(w.limiter, nil)
	askHandler(t, bare, sent{method: "GET", target: "/v1/activity"}).want(t, 404, "field", "path")
	if strings.Contains(strings.Join(bare.Routes(), " "), "activity") {
		t.Error("the route is listed, but not served")
	}
}

// unreadAnswer is a ResponseWriter whose client does not read the answer.
type unreadAnswer struct {
	httptest.ResponseRecorder

	begun, release chan struct{}
}

func (u *unreadAnswer) Write(p []byte) (int, error) {
	close(u.begun)
	<-u.release
	return u.ResponseRecorder.Write(p)
}

// TestUnreadAnswersDoNotCount checks that a request does not count towards MaxConcurrent while its
// answer is being written.
func TestUnreadAnswersDoNotCount(t *testing.T) {
	t.Parallel()
	w := newHandlerWorld(t, &httphandler.Options{MaxConcurrent: 1, Activity: statuspage.NewActivity(time.Now()).Report})
	for _, path := range []string{"/v1/status?entity=acme&resource=bucket", "/v1/activity", "/v1/status?entity=%20&resource=r"} {
		u := &unreadAnswer{begun: make(chan struct{}), release: make(chan struct{})}
		u.HeaderMap = http.Header{}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			w.handler.ServeHTTP(u, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody))
		}()
		<-u.begun
		other := httptest.NewRecorder()
		w.handler.ServeHTTP(other, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/status?entity=acme&resource=bucket", http.NoBody))
		if other.Code != http.StatusOK {
			t.Errorf("%s: another request: got %d %s", path, other.Code, other.Body)
		}
		close(u.release)
		<-ended
	}
}

// busyConn is a client whose connection blocks while the handler sets the read deadline.
type busyConn struct {
	httptest.ResponseRecorder

	body         *io.PipeWriter
	asked, ready chan struct{}
}

func (b *busyConn) SetReadDeadline(time.Time) error {
	close(b.asked)
	<-b.ready
	return b.body.CloseWithError(os.ErrDeadlineExceeded)
}

// TestGivingUpDelaysNoOtherRequest checks that other requests are served while the handler waits
// for the connection of a body that it gave up.
func TestGivingUpDelaysNoOtherRequest(t *testing.T) {
	t.Parallel()
	w := newHandlerWorld(t, &httphandler.Options{MaxArriving: 1})
	post := func(rw http.ResponseWriter, body io.Reader) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/reserve", body)
		r.Header.Set("Content-Type", "application/json")
		w.handler.ServeHTTP(rw, r)
	}
	from, to := io.Pipe()
	slow := &busyConn{body: to, asked: make(chan struct{}), ready: make(chan struct{})}
	slow.HeaderMap = http.Header{}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		post(slow, from)
	}()
	if _, err := to.Write([]byte("{")); err != nil { // wait until the handler reads it
		t.Fatal(err)
	}
	for range 3 {
		answered := make(chan *httptest.ResponseRecorder, 1)
		go func() {
			rw := httptest.NewRecorder()
			post(rw, strings.NewReader(`{"entity":"acme","resource":"bucket","costs":{"rpm":1}}`))
			answered <- rw
		}()
		select {
		case got := <-answered:
			if got.Code != http.StatusOK {
				t.Errorf("got %d %s", got.Code, got.Body)
			}
		case <-time.After(10 * time.Second):
			close(slow.ready)
			t.Fatal("another request waits for the connection")
		}
	}
	<-slow.asked
	close(slow.ready)
	<-ended
	if slow.Code != http.StatusServiceUnavailable {
		t.Errorf("the slow one: got %d %s", slow.Code, slow.Body)
	}
}
