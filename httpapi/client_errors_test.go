package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"reflect"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/httpapi"
	"github.com/weir-limiter/weir/httpapi/httphandler"
)

// failing is a service whose methods all return one error.
type failing struct {
	weir.Service

	err error
}

func (f *failing) Reserve(_ context.Context, r *weir.Request) (*weir.Lease, error) {
	if denied, ok := errors.AsType[*weir.DeniedError](f.err); ok {
		denied.LeaseID = r.LeaseID
	}
	return nil, f.err
}

func (f *failing) Cancel(context.Context, weir.LeaseID) (*weir.Receipt, error) { return nil, f.err }

func (f *failing) Status(context.Context, string, string) ([]weir.LimitStatus, error) {
	return nil, f.err
}

// doubtful is a service that settles leases, but reports that refunds are in doubt.
type doubtful struct{ weir.Service }

func (doubtful) receipt(id weir.LeaseID) (*weir.Receipt, error) {
	return &weir.Receipt{LeaseID: id, At: time.UnixMilli(1750000000123), RefundInDoubt: true}, nil
}

func (d doubtful) Adjust(
	_ context.Context, id weir.LeaseID, _ int64, _ []weir.Costs,
) (*weir.Receipt, error) {
	return d.receipt(id)
}

func (d doubtful) Complete(
	_ context.Context, id weir.LeaseID, _ []weir.Costs,
) (*weir.Receipt, error) {
	return d.receipt(id)
}

func (d doubtful) Cancel(_ context.Context, id weir.LeaseID) (*weir.Receipt, error) {
	return d.receipt(id)
}

// TestRefundInDoubtArrives checks that the client's caller learns that a refund is in doubt.
func TestRefundInDoubtArrives(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(httphandler.New(doubtful{}, nil))
	defer server.Close()
	c, err := httpapi.NewClient(server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	ctx, id := t.Context(), weir.NewLeaseID(time.Now())
	for verb, call := range map[string]func() (*weir.Receipt, error){
		"adjust":   func() (*weir.Receipt, error) { return c.Adjust(ctx, id, 1, []weir.Costs{{"n": 1}}) },
		"complete": func() (*weir.Receipt, error) { return c.Complete(ctx, id, nil) },
		"cancel":   func() (*weir.Receipt, error) { return c.Cancel(ctx, id) },
	} {
		if r, err := call(); err != nil || !r.RefundInDoubt {
			t.Errorf("%s: got %+v, %v, want a refund in doubt", verb, r, err)
		}
	}
}

// counted counts the requests to a handler.
func counted(n *atomic.Int64, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n.Add(1)
		next.ServeHTTP(w, r)
	})
}

// failingClient returns a client of a handler whose service fails.
func failingClient(t *testing.T, attempts *atomic.Int64, err error) *httpapi.Client {
	t.Helper()
	handler := httphandler.New(&failing{err: err}, nil)
	server := httptest.NewServer(counted(attempts, handler))
	t.Cleanup(server.Close)
	c, failed := httpapi.NewClient(server.URL, &httpapi.ClientOptions{CancelFor: -1, Backoff: 1})
	if failed != nil {
		t.Fatal(failed)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// TestCodesArriveUnchanged checks that every code arrives unchanged, is definite unless it is
// unavailable, and is never a denial.
func TestCodesArriveUnchanged(t *testing.T) {
	t.Parallel()
	cause := errors.New("nobody else's business")
	fault := func(code weir.Code) *weir.Error {
		return &weir.Error{
			Code:   code,
			Field:  "costs.ünits",
			Value:  `"<1>"`,
			Reason: "is wrong\n",
			Err:    cause,
		}
	}
	tests := []struct {
		name     string
		err      error
		attempts int64
	}{
		{"two mistakes", errors.Join(fault(weir.Invalid), fault(weir.UnknownLimit)), 1},
		{
			"wrapped mistakes",
			fmt.Errorf("doing: %w", errors.Join(fault(weir.Conflict), fault(weir.Ended))),
			1,
		},
		{"no details", &weir.Error{Code: weir.Ended}, 1},
		{"not weir's", cause, 4},
	}
	for _, code := range []weir.Code{
		weir.Invalid, weir.UnknownLimit, weir.NoLimits, weir.NotFound, weir.UnknownLease, weir.Conflict,
		weir.Ended, weir.NeverSatisfiable, weir.PermissionDenied, weir.Unsupported, weir.Unavailable,
		weir.Superseded,
	} {
		attempts := int64(1)
		if code == weir.Unavailable {
			attempts = 4
		}
		tests = append(tests, struct {
			name     string
			err      error
			attempts int64
		}{string(code), fault(code), attempts})
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var attempts atomic.Int64
			c := failingClient(t, &attempts, test.err)
			want := faultText(test.err)
			if errors.Is(test.err, cause) && len(faults(test.err)) == 0 {
				want = faultText(&weir.Error{Code: weir.Unavailable, Reason: "the service failed"})
			}
			_, reserve := c.Reserve(t.Context(), &plainRequest)
			_, cancel := c.Cancel(t.Context(), weir.NewLeaseID(time.Now()))
			_, status := c.Status(t.Context(), "a", "")
			for verb, err := range map[string]error{"cancel": cancel, "status": status} {
				if got := faultText(err); got != want {
					t.Errorf("%s: got %s, want %s", verb, got, want)
				}
			}
			if got := faultText(reserve); got != want && test.name != "not weir's" {
				t.Errorf("reserve: got %s, want %s", got, want)
			}
			if _, ok := errors.AsType[*weir.DeniedError](reserve); ok {
				t.Errorf("got a denial: %v", reserve)
			}
			if n := attempts.Load(); n != 3*test.attempts {
				t.Errorf("got %d attempts for three calls, want %d", n, 3*test.attempts)
			}
		})
	}
}

// TestDenialsArriveComplete checks that a denial arrives complete, in the first attempt.
func TestDenialsArriveComplete(t *testing.T) {
	t.Parallel()
	status := weir.LimitStatus{
		Entity:     "org/team",
		Resource:   "openai/gpt-4o",
		Limit:      "tpm",
		Kind:       weir.Bucket,
		Level:      weir.LevelEntityDefault,
		Capacity:   math.MaxInt64 / 1000,
		Available:  math.MinInt64,
		Requested:  math.MaxInt64,
		Exceeded:   true,
		RetryAfter: 1500 * time.Millisecond,
		AtLeast:    true,
	}
	shadow := status
	shadow.Limit, shadow.Shadow, shadow.RetryAfter = "day", true, 0
	for name, denied := range map[string]weir.DeniedError{
		"whole":     {Limits: []weir.LimitStatus{status, shadow}, RetryAfter: status.RetryAfter, AtLeast: true},
		"contended": {Contended: true, RetryAfter: time.Millisecond, AtLeast: true},
		"longest":   {Limits: []weir.LimitStatus{shadow}, RetryAfter: math.MaxInt64},
		"no wait":   {Limits: []weir.LimitStatus{status}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var attempts atomic.Int64
			c := failingClient(t, &attempts, &denied)
			lease, err := c.Reserve(t.Context(), &plainRequest)
			got, ok := errors.AsType[*weir.DeniedError](err)
			if !ok || lease != nil {
				t.Fatalf("got %+v, %v, want a denial", lease, err)
			}
			if !reflect.DeepEqual(*got, denied) {
				t.Errorf("got %+v, want %+v", *got, denied)
			}
			if n := attempts.Load(); n != 1 {
				t.Errorf("got %d attempts, want one", n)
			}
		})
	}
}

// TestRefusalsByAProxy checks that a refusal by a proxy before the server is returned, even with
// the policy Allow.
func TestRefusalsByAProxy(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired} {
		s := newStub(t, func(_ int, w http.ResponseWriter, _ string) { http.Error(w, "no", status) })
		c := s.client(t, httpapi.ClientOptions{OnUnavailable: weir.Allow})
		if _, err := c.Reserve(t.Context(), &plainRequest); !errors.Is(err, weir.PermissionDenied) {
			t.Errorf("%d: got %v, want permission denied", status, err)
		}
		expectAttempts(t, s.sent(), 1)
	}
}
