package httpapi_test

import (
	"errors"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/conformance"
	"github.com/weir-limiter/weir/httpapi"
)

// skewedWorld returns a world whose client has a wrong clock, and counts requests. The server was
// opened just before the end of a second.
func skewedWorld(
	t *testing.T, skew time.Duration, wrap func(http.Handler) http.Handler,
) (w *clientWorld, requests *atomic.Int64) {
	t.Helper()
	requests = new(atomic.Int64)
	hundred := weir.Limit{Name: "n", Kind: weir.Window, Capacity: 100, Window: time.Hour}
	w = openClientWorld(t, conformance.Setup{
		Start:       time.Date(2025, 6, 18, 12, 0, 0, int(990*time.Millisecond), time.UTC),
		Definitions: &weir.Definitions{System: []weir.Limit{hundred}},
	}, httpapi.ClientOptions{
		Backoff: 1, Now: func() time.Time { return w.Clock.Now().Add(skew) },
	}, func(t conformance.T, h http.Handler) *network {
		return overPipes(t, counted(requests, wrap(h)))
	})
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w, requests
}

func asServed(h http.Handler) http.Handler { return h }

func TestSkewedClient(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		skew  time.Duration
		first int64 // requests of the first reservation
	}{
		{0, 1},
		{2 * time.Hour, 2},
		{-2 * time.Hour, 2},
		{30 * time.Second, 1},
		{-1 * time.Second, 2}, // the server was opened this second
		{-30 * time.Second, 2},
		{20 * 365 * 24 * time.Hour, 2},
		{-20 * 365 * 24 * time.Hour, 2},
	} {
		t.Run(test.skew.String(), func(t *testing.T) {
			t.Parallel()
			w, requests := skewedWorld(t, test.skew, asServed)
			lease, err := w.Reserve(t.Context(), &plainRequest)
			if err != nil {
				t.Fatal(err)
			}
			if requests.Load() != test.first {
				t.Errorf("the first reservation took %d requests, want %d", requests.Load(), test.first)
			}
			if off := lease.ID.Time().Sub(lease.ReservedAt).Abs(); off > time.Minute {
				t.Errorf("the ID's time is off by %v", off)
			}
			for range 20 {
				if _, err := w.Reserve(t.Context(), &plainRequest); err != nil {
					t.Fatal(err)
				}
			}
			if requests.Load() != test.first+20 {
				t.Errorf("20 more took %d requests, want 20", requests.Load()-test.first)
			}
			expectUsed(t, w, 21)
		})
	}
}

// expectUsed checks the units in use of a hundred.
func expectUsed(t *testing.T, w *clientWorld, want int64) {
	t.Helper()
	statuses, err := w.limiter.Status(t.Context(), "a", "m")
	if err != nil {
		t.Fatal(err)
	}
	if used := 100 - statuses[0].Available; used != want {
		t.Errorf("used: got %d, want %d", used, want)
	}
}

// TestServerClockSetBack checks that a server whose clock was put back refuses IDs of its own time
// for a while, but not later ones.
func TestServerClockSetBack(t *testing.T) {
	t.Parallel()
	w, _ := skewedWorld(t, 0, asServed)
	w.Advance(-50 * time.Second)
	for range 3 {
		if _, err := w.Reserve(t.Context(), &plainRequest); err != nil {
			t.Fatal(err)
		}
		w.Advance(time.Second)
	}
	expectUsed(t, w, 3)
}

// TestBroughtIDsAreKept checks that the client does not replace an ID that the caller brought, and
// returns the error about it.
func TestBroughtIDsAreKept(t *testing.T) {
	t.Parallel()
	for _, off := range []time.Duration{-2 * time.Hour, 2 * time.Hour} {
		w, requests := skewedWorld(t, 0, asServed)
		r := plainRequest
		r.LeaseID = weir.NewLeaseID(w.Now().Add(off))
		_, err := w.Reserve(t.Context(), &r)
		if e, ok := errors.AsType[*weir.Error](
			err,
		); !ok || e.Code != weir.Invalid ||
			e.Value != r.LeaseID.String() {
			t.Errorf("got %v, want the ID refused", err)
		}
		if requests.Load() != 1 {
			t.Errorf("got %d requests, want one", requests.Load())
		}
		expectUsed(t, w, 0)
	}
}

// TestEveryIDRefused checks that the client sends only a few IDs to a server that refuses every
// one, and then returns the refusal. Without a Date it cannot correct the ID.
func TestEveryIDRefused(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		date []string
		want int // requests
	}{{nil, 1}, {[]string{"yesterday"}, 1}, {[]string{"Wed, 18 Jun 2025 12:00:00 GMT"}, 3}} {
		s := newStub(t, func(_ int, w http.ResponseWriter, _ string) {
			w.Header()["Date"] = test.date
			w.Header().Set("Content-Type", problemType)
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(`{"status":400,"code":"invalid","field":"lease_id","reason":"is ugly"}`))
		})
		c := s.client(t, httpapi.ClientOptions{OnUnavailable: weir.Allow})
		_, err := c.Reserve(t.Context(), &plainRequest)
		if e, ok := errors.AsType[*weir.Error](
			err,
		); !ok || e.Code != weir.Invalid ||
			e.Reason != "is ugly" {
			t.Errorf("date %v: got %v, want the refusal", test.date, err)
		}
		ids := map[string]bool{}
		for _, body := range s.sent() {
			ids[idIn(t, body)] = true
		}
		if len(ids) != test.want || len(s.sent()) != test.want {
			t.Errorf(
				"date %v: got %d IDs in %d requests, want %d",
				test.date,
				len(ids),
				len(s.sent()),
				test.want,
			)
		}
	}
}

// TestIDRefusedAfterLostAttempt checks that the outcome is unknown if an ID is refused after an
// attempt was lost, because that attempt may have used the ID.
func TestIDRefusedAfterLostAttempt(t *testing.T) {
	t.Parallel()
	for _, lost := range []int64{0, 1} {
		var attempt atomic.Int64 // without those of the cancel, which the client sends in the background
		w, _ := skewedWorld(t, 2*time.Hour, func(h http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/v1/reserve" && attempt.Add(1) <= lost {
					badGateway(w)
					return
				}
				h.ServeHTTP(w, r)
			})
		})
		_, err := w.Reserve(t.Context(), &plainRequest)
		if lost == 0 {
			if err != nil {
				t.Errorf("nothing was lost: got %v", err)
			}
			continue
		}
		expectUnavailable(t, "reserve", err)
		if !errors.Is(err, weir.Invalid) {
			t.Errorf("got %v, want the refusal as its cause", err)
		}
		if n := attempt.Load(); n != 2 {
			t.Errorf("got %d attempts, want no other ID to be tried", n)
		}
	}
}

// TestServerThatStartsLater makes a reservation while the server starts, which refuses IDs that are
// older than its start. Attempts before it listened have sent nothing, so another ID is tried.
func TestServerThatStartsLater(t *testing.T) {
	t.Parallel()
	s := newStub(t, func(n int, w http.ResponseWriter, body string) {
		if n == 1 {
			w.Header().Set("Content-Type", problemType)
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(`{"status":400,"code":"invalid","field":"lease_id","reason":"is too old"}`))
			return
		}
		w.Header().Set("Content-Type", jsonType)
		_, _ = w.Write([]byte(strings.Replace(rightLease, "ID", idIn(t, body), 1)))
	})
	var attempts atomic.Int64
	c := s.client(t, httpapi.ClientOptions{HTTPClient: &http.Client{Transport: roundTrips(
		func(r *http.Request) (*http.Response, error) {
			if attempts.Add(1) <= 2 {
				return nil, &net.OpError{Op: "dial", Err: errors.New("connection refused")}
			}
			return http.DefaultTransport.RoundTrip(r)
		})}})
	lease, err := c.Reserve(t.Context(), &plainRequest)
	if err != nil {
		t.Fatalf("got %v, want a lease", err)
	}
	if sent := s.sent(); len(sent) != 2 || lease.ID.String() != idIn(t, sent[1]) {
		t.Errorf("got lease %s of requests %q, want two", lease.ID, sent)
	}

	attempts.Store(-2)
	s.Server.Close()
	_, err = c.Reserve(t.Context(), &plainRequest)
	expectUnavailable(t, "reserve without a server", err)
}

// TestClockIsLearned checks that the client learns the server's clock from admissions, and not from
// denials or old leases.
func TestClockIsLearned(t *testing.T) {
	t.Parallel()
	w, requests := skewedWorld(t, 2*time.Hour, asServed)
	ctx := t.Context()
	all, err := w.limiter.Reserve(ctx, &weir.Request{Entity: "a", Resource: "m", Costs: weir.Costs{"n": 100}})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []int64{2, 1, 1} { // only the first is refused for its ID
		before := requests.Load()
		_, err := w.Reserve(ctx, &plainRequest)
		if _, ok := errors.AsType[*weir.DeniedError](err); !ok {
			t.Fatalf("got %v, want denied", err)
		}
		if n := requests.Load() - before; n != want {
			t.Errorf("denial %d took %d requests, want %d", i+1, n, want)
		}
	}
	if _, err := all.Cancel(ctx); err != nil {
		t.Fatal(err)
	}
	old := plainRequest
	old.LeaseID = weir.NewLeaseID(w.Clock.Now())
	for _, replay := range []bool{false, true} {
		lease, err := w.Reserve(ctx, &old)
		if err != nil || lease.Replay != replay {
			t.Fatalf("got %+v, %v, want replay %v", lease, err, replay)
		}
		before := requests.Load()
		if _, err := w.Reserve(ctx, &plainRequest); err != nil {
			t.Fatal(err)
		}
		if n := requests.Load() - before; n != 1 {
			t.Errorf("after an answer with replay %v: took %d requests, want one", replay, n)
		}
		w.Advance(30 * time.Minute)
	}
}
