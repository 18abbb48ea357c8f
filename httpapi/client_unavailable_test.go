package httpapi_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/httpapi"
	"github.com/weir-limiter/weir/httpapi/httphandler"
)

// deadServer returns an address on which no process listens.
func deadServer(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // closed at once
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return "http://" + l.Addr().String()
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	server := deadServer(t)
	block, err := httpapi.NewClient(server, &httpapi.ClientOptions{Backoff: 1})
	if err != nil {
		t.Fatal(err)
	}
	id := weir.NewLeaseID(time.Now())
	r := plainRequest
	r.LeaseID = id
	lease, err := block.Reserve(ctx, &r)
	expectUnavailable(t, "reserve under block", err)
	e, _ := errors.AsType[*weir.Error](err)
	if lease != nil || e == nil || e.Field != "lease_id" || e.Value != id.String() {
		t.Errorf("got %+v, %+v, want the lease ID to repeat with", lease, e)
	}
	if _, ok := errors.AsType[net.Error](err); !ok {
		t.Errorf("got %v, want its cause too", err)
	}

	now := time.UnixMilli(1750248000000).UTC()
	allow, err := httpapi.NewClient(server, &httpapi.ClientOptions{
		Backoff: 1, OnUnavailable: weir.Allow, Now: func() time.Time { return now.Add(time.Microsecond) },
	})
	if err != nil {
		t.Fatal(err)
	}
	if lease, err = allow.Reserve(ctx, &r); err != nil {
		t.Fatal(err)
	}
	if lease.ID != id || !lease.Degraded || !lease.ReservedAt.Equal(now) ||
		!lease.Expires.Equal(now.Add(time.Hour)) {
		t.Errorf("got %+v, want a degraded lease", lease)
	}
	// No process listens on the address, so an answer shows that the client sent nothing.
	live := weir.Receipt{LeaseID: id, At: now, Expires: now.Add(time.Hour), Degraded: true}
	over := weir.Receipt{LeaseID: id, At: now, Degraded: true}
	for name, verb := range map[string]struct {
		call func() (*weir.Receipt, error)
		want weir.Receipt
	}{
		"adjust":   {func() (*weir.Receipt, error) { return lease.Adjust(ctx, weir.Costs{"n": 5}) }, live},
		"extend":   {func() (*weir.Receipt, error) { return lease.Extend(ctx) }, live},
		"complete": {func() (*weir.Receipt, error) { return lease.Complete(ctx) }, over},
		"cancel":   {func() (*weir.Receipt, error) { return lease.Cancel(ctx) }, over},
	} {
		if got, err := verb.call(); err != nil || *got != verb.want {
			t.Errorf("%s: got %+v, %v, want %+v", name, got, err, verb.want)
		}
	}
	ran := false
	if err := weir.Do(ctx, allow, &plainRequest, func(_ context.Context, l *weir.Lease) error {
		ran = l.Degraded
		return nil
	}); err != nil || !ran {
		t.Errorf("do: got %v, ran under a degraded lease %v", err, ran)
	}
	// The policy applies to reservations only, not to updates of a lease in the store or to
	// queries.
	_, err = allow.Complete(ctx, id, nil)
	expectUnavailable(t, "complete by ID", err)
	_, err = allow.Status(ctx, "a", "m")
	expectUnavailable(t, "status", err)
	expectUnavailable(t, "set limits", allow.SetLimits(ctx, weir.Subject{}, nil))
}

// TestAllowHidesNoRefusal checks that Allow hides neither a denial nor a mistake.
func TestAllowHidesNoRefusal(t *testing.T) {
	t.Parallel()
	for _, code := range []weir.Code{
		weir.Invalid, weir.UnknownLimit, weir.NoLimits, weir.NotFound, weir.Conflict, weir.Ended,
		weir.NeverSatisfiable, weir.PermissionDenied, weir.Unsupported, weir.Superseded,
	} {
		if lease, err := allowed(t, &weir.Error{Code: code}); lease != nil || !errors.Is(err, code) {
			t.Errorf("%s: got %+v, %v", code, lease, err)
		}
	}
	lease, err := allowed(t, &weir.DeniedError{Contended: true})
	if _, ok := errors.AsType[*weir.DeniedError](err); !ok || lease != nil {
		t.Errorf("denied: got %+v, %v", lease, err)
	}
	if lease, err := allowed(t, &weir.Error{Code: weir.Unavailable}); err != nil || !lease.Degraded {
		t.Errorf("unavailable: got %+v, %v, want a degraded lease", lease, err)
	}
}

// allowed reserves with the policy Allow from a service that fails.
func allowed(t *testing.T, fails error) (*weir.Lease, error) {
	t.Helper()
	net := overPipes(t, httphandler.New(&failing{err: fails}, nil))
	c, err := httpapi.NewClient(net.url, &httpapi.ClientOptions{
		HTTPClient: net.client, Backoff: 1, OnUnavailable: weir.Allow,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = net.close() })
	return c.Reserve(t.Context(), &plainRequest)
}

// TestRedirectsAreNotFollowed checks that the client does not send a reservation and the bearer
// token to another server.
func TestRedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	elsewhere := newStub(
		t,
		func(_ int, w http.ResponseWriter, body string) { admitting(w, idIn(t, body)) },
	)
	for _, status := range []int{301, 302, 303, 307, 308} {
		s := newStub(t, func(_ int, w http.ResponseWriter, _ string) {
			w.Header().Set("Location", elsewhere.URL)
			w.WriteHeader(status)
		})
		for _, given := range []*http.Client{nil, {CheckRedirect: func(*http.Request, []*http.Request) error { return nil }}} {
			c := s.client(t, httpapi.ClientOptions{HTTPClient: given, BearerToken: "s3cret", Attempts: 2})
			_, err := c.Reserve(t.Context(), &plainRequest)
			expectUnavailable(t, "reserve", err)
			_, err = c.Status(t.Context(), "a", "m")
			expectUnavailable(t, "status", err)
		}
	}
	if n := len(elsewhere.sent()); n > 0 {
		t.Errorf("%d requests went elsewhere", n)
	}
}
