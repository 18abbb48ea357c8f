package httpapi

import (
	"context"
	"net/http"

	"github.com/weir-limiter/weir"
)

// TransportOptions tune a [Transport]. Nil means all defaults.
type TransportOptions struct {
	// Base sends the requests. Default: [http.DefaultTransport].
	Base http.RoundTripper
	// Wait makes a request wait, as [weir.Wait] does, until it fits or its context ends. Default: nil,
	// a denial is returned at once.
	Wait *weir.WaitOptions
	// Actuals says what a call has used, once its response has been read to the end or closed, or its
	// context has ended. The response has no body; tail is the end of what was read of it, perhaps cut
	// off at both sides. False leaves what was reserved. Default: always false.
	Actuals func(resp *http.Response, tail []byte) (actuals []weir.Costs, ok bool)
	// Tail is how many bytes of the end of a body are kept for Actuals. Default: 64 KiB.
	Tail int
	// SettleFailed is told where a lease could not be settled; one that stays live ends by itself. It
	// is also told, in the background and perhaps after RoundTrip has returned, if the service is a
	// [Client] and could not cancel a reservation that it abandoned. Default: nobody.
	SettleFailed func(req *http.Request, err error)
}

// Transport reserves before each request that it sends, and settles once the response's body has
// been read to its end or closed; until then it extends the lease. It is an [http.RoundTripper].
// All methods may be called at once.
//
// A request that is denied, or cannot be reserved, is not sent: RoundTrip returns the
// [weir.DeniedError] or [weir.Error], which [http.Client] wraps. A request that fails before its
// headers were written gives back what was reserved. After that it stays charged unless Actuals
// says otherwise, whatever the response's status and however much of it was read: the call may
// have been billed.
//
// Close of a body waits for the settlement, unless the request's context has ended.
type Transport struct {
	service weir.Service
	ask     func(*http.Request) (*weir.Request, error)
	options TransportOptions
}

var _ http.RoundTripper = (*Transport)(nil)

// NewTransport puts a reservation around what the base transport sends. Ask says what a request
// asks; nil without an error sends it without a reservation, and an error is returned instead of
// sending it. It must not read the request's body, but may read a copy from GetBody.
func NewTransport(
	s weir.Service, ask func(*http.Request) (*weir.Request, error), o *TransportOptions,
) *Transport {
	t := &Transport{service: s, ask: ask}
	if o != nil {
		t.options = *o
	}
	if t.options.Base == nil {
		t.options.Base = http.DefaultTransport
	}
	if t.options.Wait != nil {
		t.service = waiting{s, t.options.Wait}
	}
	if t.options.Tail <= 0 {
		t.options.Tail = 64 << 10
	}
	if t.options.SettleFailed == nil {
		t.options.SettleFailed = func(*http.Request, error) {}
	}
	return t
}

// RoundTrip reserves, sends and returns the response.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	asked, err := t.ask(req)
	if err != nil {
		closeBody(req)
		return nil, err
	}
	if asked == nil {
		return t.options.Base.RoundTrip(req)
	}
	e := newExchange(t, req)
	if err := e.reserve(asked); err != nil {
		closeBody(req)
		return nil, err
	}
	return e.send()
}

// CloseIdleConnections closes those of the base transport; [http.Client] passes it on.
func (t *Transport) CloseIdleConnections() {
	if c, ok := t.options.Base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

func closeBody(req *http.Request) {
	if req.Body != nil {
		_ = req.Body.Close()
	}
}

// waiting is a service whose reservations wait. Its leases are those of the service behind it.
type waiting struct {
	weir.Service

	options *weir.WaitOptions
}

// Reserve waits until the request fits.
func (w waiting) Reserve(ctx context.Context, r *weir.Request) (*weir.Lease, error) {
	return weir.Wait(ctx, w.Service, r, w.options)
}
