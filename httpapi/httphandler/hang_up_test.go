package httphandler_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/httpapi/httphandler"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/memory"
)

// slotsLimiter returns a limiter with one concurrency limit.
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

// failingWriter is a ResponseWriter whose writes fail.
type failingWriter struct{ *httptest.ResponseRecorder }

func (failingWriter) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

// failingCancel is a service whose Cancel fails.
type failingCancel struct{ weir.Service }

func (failingCancel) Cancel(context.Context, weir.LeaseID) (*weir.Receipt, error) {
	return nil, &weir.Error{Code: weir.Unavailable}
}

// TestCallerHangsUp checks that a lease outlives a caller that hung up before the answer only if
// the caller brought the lease ID.
func TestCallerHangsUp(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name              string
		id                bool // brought by the caller
		hangsUp, deaf     bool
		refuses           bool
		free              int64
		cancelled, failed int64
	}{
		{name: "it listens", free: 4},
		{name: "it hangs up", hangsUp: true, free: 5, cancelled: 1},
		{name: "it takes no answer", deaf: true, free: 5, cancelled: 1},
		{name: "it brought the ID and hangs up", id: true, hangsUp: true, free: 4},
		{name: "it brought the ID and takes no answer", id: true, deaf: true, free: 4},
		{name: "the cancel fails", hangsUp: true, refuses: true, free: 4, failed: 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			lim := slotsLimiter(t, 5)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var service weir.Service = lim
			if test.refuses {
				service = failingCancel{lim}
			}
			if test.hangsUp {
				service = &cancelAfterReserve{service, cancel}
			}
			var log bytes.Buffer
			h := httphandler.New(service, &httphandler.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
			body := `{"entity":"a","resource":"m"}`
			if test.id {
				body = `{"lease_id":"` + weir.NewLeaseID(time.Now()).String() + `",` + body[1:]
			}
			rec := httptest.NewRecorder()
			var w http.ResponseWriter = rec
			if test.deaf {
				w = failingWriter{rec}
			}
			h.ServeHTTP(w, reserveOf(ctx, body))
			if got := freeSlots(t, lim); got != test.free {
				t.Errorf("%d slots are free, want %d", got, test.free)
			}
			if cancelled, failed := h.Abandoned(); cancelled != test.cancelled || failed != test.failed {
				t.Errorf("counted %d cancelled and %d failed", cancelled, failed)
			}
			if allowed := rec.Code == http.StatusOK; allowed != (test.id || !test.hangsUp) {
				t.Errorf("answered %d", rec.Code)
			}
			if logged := log.Len() > 0; logged != (test.failed > 0) {
				t.Errorf("logged %q", log.String())
			}
		})
	}
}

// TestHangUpsAreNotLogged checks that a caller that hangs up before its reserve is not
// logged as a failure.
func TestHangUpsAreNotLogged(t *testing.T) {
	t.Parallel()
	lim := slotsLimiter(t, 5)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var log bytes.Buffer
	h := httphandler.New(lim, &httphandler.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, reserveOf(ctx, `{"entity":"a","resource":"m"}`))
	if rec.Code != http.StatusServiceUnavailable || log.Len() > 0 || freeSlots(t, lim) != 5 {
		t.Errorf("answered %d, logged %q", rec.Code, log.String())
	}
}

func reserveOf(ctx context.Context, body string) *http.Request {
	r := httptest.NewRequestWithContext(ctx, "POST", "/v1/reserve", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	return r
}

// cancelAfterReserve is a service that ends the context of the caller after its reserve.
type cancelAfterReserve struct {
	weir.Service
	end func()
}

func (s *cancelAfterReserve) Reserve(ctx context.Context, r *weir.Request) (*weir.Lease, error) {
	lease, err := s.Service.Reserve(ctx, r)
	s.end()
	return lease, err
}
