package httpapi

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptrace"
	"sync"
	"sync/atomic"

	"github.com/weir-limiter/weir"
)

// exchange is one request and its response, under one lease. [weir.Do] runs beside it, extends the
// lease for as long as the response is read, and settles at its end.
type exchange struct {
	transport *Transport
	req       *http.Request
	lease     *weir.Lease

	leases   chan *weir.Lease // the lease, once it is there
	answered chan struct{}    // closed when the base transport has returned
	over     chan struct{}    // closed when there is nothing more to come of a response
	settled  chan struct{}    // closed after the settlement
	err      error            // of Do; to be read once settled is closed

	unsent   bool           // nothing has left; to be read once answered is closed
	response *http.Response // nil where there is none; as unsent
	seen     http.Response  // what Actuals is shown
	end      sync.Once
	mu       sync.Mutex
	tail     []byte
}

func newExchange(t *Transport, req *http.Request) *exchange {
	return &exchange{
		transport: t, req: req, leases: make(chan *weir.Lease, 1), answered: make(chan struct{}),
		over: make(chan struct{}), settled: make(chan struct{}),
	}
}

// errNotSent makes Do give back what was reserved.
var errNotSent = errors.New("the request was not sent")

// reserve returns once there is a lease, or an error.
func (e *exchange) reserve(asked *weir.Request) error {
	go func() {
		defer close(e.settled)
		held := false
		service := reporting{e.transport.service, func(err error) {
			e.transport.options.SettleFailed(e.req, err)
		}}
		e.err = weir.Do(e.req.Context(), service, asked,
			func(ctx context.Context, lease *weir.Lease) error {
				held = true
				return e.hold(ctx, lease)
			})
		if failed := settling(e.err); held && failed != nil {
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

// settling is what Do returned, without what made it cancel.
func settling(err error) error {
	if !errors.Is(err, errNotSent) {
		return err
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()[1]
	}
	return nil
}

// hold is what runs under the lease: it lasts as long as the exchange. While the base transport is
// sending, nobody can say what has left, so an ended context does not end it; it ends the base.
func (e *exchange) hold(ctx context.Context, lease *weir.Lease) error {
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
		e.finish(false)
	}
	return nil
}

// send hands the request to the base transport, and returns the response with a body that settles.
func (e *exchange) send() (*http.Response, error) {
	var traced, wrote atomic.Bool
	base := e.transport.options.Base
	if _, ok := base.(*http.Transport); ok {
		traced.Store(true)
	}
	var resp *http.Response
	empty := false
	defer func() { // also while the base panics
		if e.response = resp; resp == nil && traced.Load() && !wrote.Load() {
			e.unsent = true
		} else {
			e.lease.Sent()
		}
		close(e.answered)
		if resp == nil {
			e.wait()
		} else if empty {
			e.finish(true) // some callers do not close what has nothing in it
		}
	}()
	sent := e.req.WithContext(httptrace.WithClientTrace(e.req.Context(), &httptrace.ClientTrace{
		// A base that calls none of these says nothing: then the request counts as sent.
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

// finish is called when nothing more will be read; whole says whether it is the reader who calls.
func (e *exchange) finish(whole bool) {
	e.end.Do(func() {
		defer close(e.over)
		actuals := e.transport.options.Actuals
		if actuals == nil {
			return
		}
		e.mu.Lock()
		tail := e.tail
		e.tail = nil
		e.mu.Unlock()
		if whole {
			e.seen.Trailer = e.response.Trailer
		}
		if used, ok := actuals(&e.seen, tail[max(0, len(tail)-e.transport.options.Tail):]); ok {
			e.lease.Report(used...)
		}
	})
}

// keep remembers the end of what was read.
func (e *exchange) keep(read []byte) {
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

// wait returns after the settlement, or when nobody waits for it any more.
func (e *exchange) wait() {
	select {
	case <-e.settled:
	case <-e.req.Context().Done():
	}
}
