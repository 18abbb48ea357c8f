package httpapi

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync"
	"sync/atomic"

	"github.com/weir-limiter/weir"
)

// TransportOptions configures a [Transport]. A nil *TransportOptions means all defaults.
type TransportOptions struct {
	// Base sends the requests. Default: [http.DefaultTransport].
	Base http.RoundTripper
	// Wait makes a request wait, as [weir.Wait] does, until it fits or its context ends. Default:
	// RoundTrip returns a denial at once.
	Wait *weir.WaitOptions
	// Settle says what a call is charged, by its answer. It is also called if there was no answer
	// although the headers of the request were written. Default: [SettleByStatus].
	Settle func(a Answer) Settlement
	// Requests names the limits that count requests, such as "rpm". [SettleGiveBack] leaves them
	// charged. Default: none.
	Requests []string
	// Actuals returns the units that a call has used. It is called if there was an answer and
	// Settle says [SettleReported], after the response was read to
	// its end or closed, or after the context has ended. The response has no body; tail is the end
	// of the part that was read, which may be cut off at both sides. If ok is false, the reserved
	// units stay charged. Default: ok is always false.
	Actuals func(resp *http.Response, tail []byte) (actuals []weir.Costs, ok bool)
	// Tail is the number of bytes at the end of a body that are kept for Actuals. Default: 64 KiB.
	Tail int
	// SettleFailed is called if a lease could not be settled; the lease ends by itself. It is also
	// called if the service is a [Client] that could not cancel a reservation that it abandoned.
	// That call comes in the background, perhaps after RoundTrip has returned. Default: no call.
	SettleFailed func(req *http.Request, err error)
}

// Transport is an [http.RoundTripper] that reserves before each request and settles after the body
// of the response was read to its end or closed. It extends the lease until then. It is safe for
// concurrent use.
//
// RoundTrip does not send a request that is denied or whose reservation fails. It returns the
// [weir.DeniedError] or [weir.Error], which [http.Client] wraps. A request that fails before its
// headers were written is refunded. After that, the options Settle and Actuals decide: by default,
// an error status is charged nothing, and everything else stays charged unless Actuals says
// otherwise, however much of the response was read, because the call may have been billed.
//
// Closing a body waits until the lease is settled, unless the context of the request has ended.
type Transport struct {
	service weir.Service
	ask     func(*http.Request) (*weir.Request, error)
	options TransportOptions
}

var _ http.RoundTripper = (*Transport)(nil)

// NewTransport returns a transport that reserves from a service. The function ask returns the
// reservation for a request. If it returns nil, the request is sent without a reservation. If it
// returns an error, RoundTrip returns that error. The function must not read the body of the
// request, but may read a copy from GetBody.
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
		t.service = waitingService{s, t.options.Wait}
	}
	if t.options.Tail <= 0 {
		t.options.Tail = 64 << 10
	}
	if t.options.Settle == nil {
		t.options.Settle = SettleByStatus
	}
	if t.options.SettleFailed == nil {
		t.options.SettleFailed = func(*http.Request, error) {}
	}
	return t
}

// RoundTrip reserves, sends the request and returns the response.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	asked, err := t.ask(req)
	if err != nil {
		closeBody(req)
		return nil, err
	}
	if asked == nil {
		return t.options.Base.RoundTrip(req)
	}
	e := newExchange(t, req, asked)
	if err := e.reserve(); err != nil {
		closeBody(req)
		return nil, err
	}
	return e.send()
}

// CloseIdleConnections closes the idle connections of the base transport, for [http.Client].
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

// waitingService is a service whose Reserve waits. Its leases are those of the service behind it.
type waitingService struct {
	weir.Service

	options *weir.WaitOptions
}

// Reserve waits until the request fits.
func (w waitingService) Reserve(ctx context.Context, r *weir.Request) (*weir.Lease, error) {
	return weir.Wait(ctx, w.Service, r, w.options)
}

// exchange is one request and its response under one lease. [weir.Do] runs in a second goroutine,
// which extends the lease while the response is read, and then settles it. The channels order the
// two goroutines: a field that is valid after a channel is closed is not written later.
type exchange struct {
	transport *Transport
	req       *http.Request
	asked     *weir.Request
	lease     *weir.Lease

	leases   chan *weir.Lease // receives the lease
	answered chan struct{}    // closed when the base transport has returned
	over     chan struct{}    // closed when the response was read or closed
	settled  chan struct{}    // closed when Do has returned
	err      error            // the result of Do; valid after settled

	unsent   bool           // nothing was written; valid after answered
	response *http.Response // or nil; valid after answered
	seen     http.Response  // the response without its body, for Actuals
	end      sync.Once
	bytes    atomic.Int64 // read from the body
	mu       sync.Mutex
	tail     []byte
}

func newExchange(t *Transport, req *http.Request, asked *weir.Request) *exchange {
	return &exchange{
		transport: t, req: req, asked: asked, leases: make(chan *weir.Lease, 1),
		answered: make(chan struct{}), over: make(chan struct{}), settled: make(chan struct{}),
	}
}

// errNotSent makes Do cancel the lease.
var errNotSent = errors.New("the request was not sent")

// reserve starts Do, and returns when Do has a lease or an error.
func (e *exchange) reserve() error {
	go func() {
		defer close(e.settled)
		held := false
		service := abandonReporter{e.transport.service, func(err error) {
			e.transport.options.SettleFailed(e.req, err)
		}}
		e.err = weir.Do(e.req.Context(), service, e.asked,
			func(ctx context.Context, lease *weir.Lease) error {
				held = true
				return e.runUnderLease(ctx, lease)
			})
		if failed := withoutNotSent(e.err); held && failed != nil {
			e.transport.options.SettleFailed(e.req, failed)
		}
	}()
	select {
	case e.lease = <-e.leases:
		return nil
	case <-e.settled:
		return e.err
	}
}

// withoutNotSent returns the error of Do without errNotSent, which Do joins with the error of its
// cancel.
func withoutNotSent(err error) error {
	if !errors.Is(err, errNotSent) {
		return err
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()[1]
	}
	return nil
}

// runUnderLease is the function that Do runs under the lease. It returns when the exchange is over.
// While the base transport is sending, hold does not know what was written, so it does not return
// when the context ends; the base transport ends then.
func (e *exchange) runUnderLease(ctx context.Context, lease *weir.Lease) error {
	e.leases <- lease
	<-e.answered
	if e.unsent {
		return errNotSent
	}
	if e.response == nil {
		return nil
	}
	select {
	case <-e.over:
	case <-ctx.Done():
		e.finish(false, Answer{Cut: true, Left: true})
	}
	return nil
}

// send sends the request, and returns the response with a body that ends the exchange.
func (e *exchange) send() (*http.Response, error) {
	var traced, wrote atomic.Bool
	base := e.transport.options.Base
	if _, ok := base.(*http.Transport); ok {
		traced.Store(true)
	}
	var resp *http.Response
	empty := false
	defer func() { // also if the base transport panics
		if e.response = resp; resp == nil && traced.Load() && !wrote.Load() {
			e.unsent = true
		} else {
			e.lease.Sent()
			if resp == nil {
				e.settle(Answer{Cut: true, Left: e.req.Context().Err() != nil})
			}
		}
		close(e.answered)
		if resp == nil {
			e.wait()
		} else if empty {
			e.finish(true, Answer{}) // some callers do not close an empty body
		}
	}()
	sent := e.req.WithContext(httptrace.WithClientTrace(e.req.Context(), &httptrace.ClientTrace{
		// If the base transport does not call these hooks, the request counts as sent.
		GetConn:      func(string) { traced.Store(true) },
		WroteHeaders: func() { wrote.Store(true) },
	}))
	got, err := base.RoundTrip(sent)
	if err != nil {
		return nil, err
	}
	if got.Request == sent {
		got.Request = e.req
	}
	if got.Body == nil {
		got.Body = http.NoBody
	}
	empty = got.Body == http.NoBody
	e.seen = *got
	e.seen.Body = http.NoBody
	got.Body = e.watch(got.Body)
	resp = got
	return resp, nil
}

// finish ends the exchange when nothing more is read. The argument byReader reports whether the
// reader of the body calls it, so that trailers are valid. It adds the status and the number of
// bytes to the answer.
func (e *exchange) finish(byReader bool, a Answer) {
	e.end.Do(func() {
		defer close(e.over)
		a.Status, a.Bytes = e.seen.StatusCode, e.bytes.Load()
		if e.settle(a) == SettleReported {
			e.reportActuals(byReader)
		}
	})
}

// settle returns what Settle says about an answer, and gives back if it says so.
func (e *exchange) settle(a Answer) Settlement {
	how := e.transport.options.Settle(a)
	if how == SettleGiveBack {
		giveBack(e.lease, e.asked, e.transport.options.Requests)
	}
	return how
}

// reportActuals reports what Actuals says.
func (e *exchange) reportActuals(byReader bool) {
	actuals := e.transport.options.Actuals
	if actuals == nil {
		return
	}
	e.mu.Lock()
	tail := e.tail
	e.tail = nil
	e.mu.Unlock()
	if byReader {
		e.seen.Trailer = e.response.Trailer
	}
	if used, ok := actuals(&e.seen, tail[max(0, len(tail)-e.transport.options.Tail):]); ok {
		e.lease.Report(used...)
	}
}

// appendTail appends to the tail of the body.
func (e *exchange) appendTail(read []byte) {
	if e.transport.options.Actuals == nil || len(read) == 0 {
		return
	}
	most := e.transport.options.Tail
	e.mu.Lock()
	defer e.mu.Unlock()
	e.tail = append(e.tail, read[max(0, len(read)-most):]...)
	if len(e.tail) > 2*most {
		e.tail = append(e.tail[:0], e.tail[len(e.tail)-most:]...)
	}
}

// wait waits until Do has returned or the context of the request has ended.
func (e *exchange) wait() {
	select {
	case <-e.settled:
	case <-e.req.Context().Done():
	}
}

// exchangeBody is the body of a response. It passes what was read to its exchange, and ends it.
type exchangeBody struct {
	io.ReadCloser

	exchange *exchange
}

// watch wraps the body of a response. After a switch of protocols, the body and its wrapper are
// writable.
func (e *exchange) watch(body io.ReadCloser) io.ReadCloser {
	watched := &exchangeBody{body, e}
	if w, ok := body.(io.Writer); ok {
		return struct {
			*exchangeBody
			io.Writer
		}{watched, w}
	}
	return watched
}

// Read reads, and ends the exchange at the end of the body.
func (b *exchangeBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.exchange.bytes.Add(int64(n))
	b.exchange.appendTail(p[:n])
	if err != nil {
		cut := !errors.Is(err, io.EOF)
		left := cut && b.exchange.req.Context().Err() != nil
		b.exchange.finish(true, Answer{Cut: cut, Left: left})
	}
	return n, err
}

// Close ends the exchange and waits until it is settled.
func (b *exchangeBody) Close() error {
	err := b.ReadCloser.Close()
	e := b.exchange
	whole := e.seen.ContentLength >= 0 && e.bytes.Load() >= e.seen.ContentLength
	e.finish(true, Answer{Cut: !whole, Left: !whole})
	e.wait()
	return err
}
