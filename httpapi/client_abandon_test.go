package httpapi_test

import (
	"context"
	"errors"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/httpapi"
	"github.com/weir-limiter/weir/httpapi/httphandler"
	"github.com/weir-limiter/weir/internal/soak"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/memory"
)

// slotsLimiter returns a limiter whose concurrency slots time out only after five minutes.
func slotsLimiter(t *testing.T, slots int64) *limiter.Limiter {
	t.Helper()
	store, err := memory.Open(&memory.Options{Definitions: &weir.Definitions{System: []weir.Limit{
		{Name: "n", Kind: weir.Concurrency, Capacity: slots, Timeout: 5 * time.Minute},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	l, err := limiter.New(store, nil)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func freeSlots(t *testing.T, l *limiter.Limiter) int64 {
	t.Helper()
	statuses, err := l.Status(context.Background(), "a", "m")
	if err != nil {
		t.Fatal(err)
	}
	return statuses[0].Available
}

// slow delays the handling of a reserve: the answer, or everything.
type slow struct {
	http.Handler
	before, after time.Duration
}

func (s *slow) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/v1/reserve" {
		s.Handler.ServeHTTP(w, r)
		return
	}
	// Like a proxy, pass on what has arrived even if the caller has hung up.
	r = r.WithContext(context.WithoutCancel(r.Context()))
	rec := httptest.NewRecorder()
	body := new(strings.Builder)
	_, _ = io.Copy(body, r.Body)
	time.Sleep(s.before)
	passed := r.Clone(r.Context())
	passed.Body = http.NoBody
	if body.Len() > 0 {
		passed, _ = http.NewRequestWithContext(r.Context(), r.Method, r.URL.String(), strings.NewReader(body.String()))
		passed.Header = r.Header
	}
	s.Handler.ServeHTTP(rec, passed)
	time.Sleep(s.after)
	maps.Copy(w.Header(), rec.Header())
	w.WriteHeader(rec.Code)
	_, _ = w.Write(rec.Body.Bytes())
}

// abandonCase is a way in which a caller abandons its reservation.
type abandonCase struct {
	name          string
	before, after time.Duration
	policy        weir.Policy
}

// TestAbandonedReservations checks that callers whose context ends during the reserve leave no
// units in use.
func TestAbandonedReservations(t *testing.T) {
	const ms = time.Millisecond
	for _, test := range []abandonCase{
		{"the answer is late", 0, 100 * ms, weir.Block},
		{"the answer is late, allow", 0, 100 * ms, weir.Allow},
		{"the reserve is late", 100 * ms, 0, weir.Block},
		{"the reserve is very late", 3 * time.Second, 0, weir.Block},
		{"both are late", time.Second, time.Second, weir.Allow},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { abandon(t, &test) })
		})
	}
}

func abandon(t *testing.T, test *abandonCase) {
	t.Helper()
	lim := slotsLimiter(t, 5)
	net := overPipes(t, &slow{httphandler.New(lim, nil), test.before, test.after})
	told := make(chan error, 5)
	c, err := httpapi.NewClient(net.url, &httpapi.ClientOptions{
		HTTPClient: net.client, OnUnavailable: test.policy,
		OnAbandoned: func(_ weir.LeaseID, err error) { told <- err },
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
		err := weir.Do(ctx, c, &plainRequest, func(_ context.Context, l *weir.Lease) error {
			if !l.Degraded {
				t.Error("it came in time")
			}
			return nil
		})
		if (err != nil) != (test.policy == weir.Block) {
			t.Errorf("got %v under %s", err, test.policy)
		}
		cancel()
	}
	time.Sleep(test.before + 2*time.Second)
	if got := freeSlots(t, lim); got != 5 {
		t.Errorf("%d of 5 slots are free", got)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	for range 5 {
		if err := <-told; err != nil {
			t.Errorf("told %v, want nothing left", err)
		}
	}
	stats := c.Stats()
	if stats.Abandoned != 5 || stats.Cancelled+stats.Absent != 5 || stats.UnderWay != 0 {
		t.Errorf("got %+v, want five abandoned and none left", stats)
	}
	if got := freeSlots(t, lim); got != 5 {
		t.Errorf("%d of 5 slots are free in the end", got)
	}
	net.client.CloseIdleConnections()
	time.Sleep(5 * time.Second) // the slow handler ends within this time
	if err := net.close(); err != nil {
		t.Error(err)
	}
}

// TestBroughtIDIsNotCancelled checks that the client does not cancel a lease ID that the caller
// brought.
func TestBroughtIDIsNotCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := slotsLimiter(t, 5)
		net := overPipes(t, &slow{httphandler.New(lim, nil), 0, 100 * time.Millisecond})
		c, err := httpapi.NewClient(net.url, &httpapi.ClientOptions{HTTPClient: net.client})
		if err != nil {
			t.Fatal(err)
		}
		r := plainRequest
		r.LeaseID = weir.NewLeaseID(time.Now())
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
		_, err = c.Reserve(ctx, &r)
		cancel()
		expectUnavailable(t, "reserve", err)
		time.Sleep(time.Second)
		if lease, err := c.Reserve(t.Context(), &r); err != nil || !lease.Replay || freeSlots(t, lim) != 4 {
			t.Errorf("repeated: got %+v, %v", lease, err)
		}
		if stats := c.Stats(); stats.Abandoned != 0 {
			t.Errorf("got %+v, want none abandoned", stats)
		}
		net.client.CloseIdleConnections()
		if err := errors.Join(c.Close(), net.close()); err != nil {
			t.Error(err)
		}
	})
}

// TestAbandonedAndNotCancelled checks that a failed cancel is reported to the options of the
// client, the middleware and the transport.
func TestAbandonedAndNotCancelled(t *testing.T) {
	var mu sync.Mutex
	told := map[string]int{}
	note := func(whom string, err error) {
		mu.Lock()
		defer mu.Unlock()
		if told[whom]++; !errors.Is(err, weir.Unavailable) || !strings.Contains(err.Error(), "abandoned") {
			t.Errorf("%s was told %v", whom, err)
		}
	}
	o := httpapi.ClientOptions{CancelFor: 10 * time.Second, Attempts: 1,
		OnAbandoned: func(_ weir.LeaseID, err error) { note("owner", err) }}
	inPipe(t, o, func(_ int, w http.ResponseWriter, _ *http.Request) { badGateway(w) },
		func(t *testing.T, c *httpapi.Client) {
			asks := func(*http.Request) (*weir.Request, error) { return &plainRequest, nil }
			m := httpapi.Middleware(c, asks, &httpapi.MiddlewareOptions{
				SettleFailed: func(_ *http.Request, err error) { note("middleware", err) },
			})(http.NotFoundHandler())
			m.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), "GET", "/", nil))
			tr := httpapi.NewTransport(c, asks, &httpapi.TransportOptions{
				Wait:         &weir.WaitOptions{},
				SettleFailed: func(_ *http.Request, err error) { note("transport", err) },
			})
			resp, err := tr.RoundTrip(httptest.NewRequestWithContext(t.Context(), "GET", "/", nil))
			if err == nil {
				_ = resp.Body.Close()
				t.Error("it was sent")
			}
			began := time.Now()
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			if took := time.Since(began); took > 10*time.Second || took < 5*time.Second {
				t.Errorf("close took %v, want up to ten seconds", took)
			}
			if stats := c.Stats(); stats != (httpapi.ClientStats{Abandoned: 2, Failed: 2}) {
				t.Errorf("got %+v, want two failed", stats)
			}
		})
	if told["owner"] != 2 || told["middleware"] != 1 || told["transport"] != 1 {
		t.Errorf("told %v, want each of its own", told)
	}
}

// TestNewIDAfterCancelledAttempt checks that the client makes a new lease ID if an earlier
// attempt was cancelled, because nothing is charged under the old one.
func TestNewIDAfterCancelledAttempt(t *testing.T) {
	for attempts, admitted := range map[int]bool{3: true, 2: false} {
		ids := map[string]bool{}
		inPipe(t, httpapi.ClientOptions{Attempts: attempts}, func(n int, w http.ResponseWriter, r *http.Request) {
			body := new(strings.Builder)
			_, _ = io.Copy(body, r.Body)
			ids[idIn(t, body.String())] = true
			switch n {
			case 1:
				badGateway(w)
			case 2:
				httphandler.Refuse(w, http.StatusConflict, &weir.Error{Code: weir.Ended, Field: "lease_id"})
			default:
				admitting(w, idIn(t, body.String()))
			}
		}, func(t *testing.T, c *httpapi.Client) {
			_, err := c.Reserve(t.Context(), &plainRequest)
			if admitted && (err != nil || len(ids) != 2) {
				t.Errorf("got %v under %d IDs, want a lease under the second", err, len(ids))
			} else if !admitted {
				expectUnavailable(t, "reserve", err)
			}
			if stats := c.Stats(); stats.Abandoned != 0 {
				t.Errorf("got %+v, want none abandoned: it has ended", stats)
			}
		})
	}
}

// TestAbandonedOnLoopback checks that thousands of callers with deadlines near the duration of a
// call leave every slot free.
func TestAbandonedOnLoopback(t *testing.T) {
	t.Parallel()
	const slots = 5000
	lim := slotsLimiter(t, slots)
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: httphandler.New(lim, nil), ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }()
	defer func() { _ = server.Close() }()
	c, err := httpapi.NewClient("http://"+listener.Addr().String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var callers sync.WaitGroup
	calls := soak.Amount(400, 4000)
	for i := range 40 {
		callers.Go(func() {
			rng := rand.New(rand.NewPCG(1, uint64(i)))
			for range calls / 40 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rng.Int64N(int64(3*time.Millisecond))))
				_ = weir.Do(ctx, c, &plainRequest, func(context.Context, *weir.Lease) error { return nil })
				cancel()
			}
		})
	}
	callers.Wait()
	began := time.Now()
	for freeSlots(t, lim) < slots && time.Since(began) < 20*time.Second {
		runtime.Gosched()
	}
	t.Logf("all slots free %v after %d calls; %+v", time.Since(began), calls, c.Stats())
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	stats := c.Stats()
	t.Logf("in the end %+v", stats)
	if got := freeSlots(t, lim); got != slots || stats.Failed != 0 || stats.Abandoned == 0 {
		t.Errorf("%d slots are free, and %+v", got, stats)
	}
}
