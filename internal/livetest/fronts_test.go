package livetest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"path"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/httpapi"
)

// front is one way to reserve.
type front struct {
	name string
	// direct is set if the front calls the limiter, without HTTP.
	direct bool
	// waits is set if the front waits after a denial; then there are few slots.
	waits bool
	// serves is set if the callers call a service that reserves on their behalf.
	serves bool
	// call reserves, works and settles. It returns an error if it got no lease, or left while it
	// had one.
	call func(ctx context.Context, w *world, p *plan) error
}

// fronts returns every way to reserve.
func fronts() []*front {
	return []*front{
		{name: "limiter", direct: true, call: callLimiter},
		{name: "client", call: callClient},
		{name: "own ID", call: callOwnID},
		{name: "Wait", waits: true, call: callWait},
		{name: "Do", call: callDo},
		{name: "middleware", serves: true, call: callMiddleware},
		{name: "transport", call: callTransport},
		{name: "plain HTTP", call: callPlain},
	}
}

// errUnused is returned from a call that did not take place.
var errUnused = errors.New("the call did not take place")

func callLimiter(ctx context.Context, w *world, p *plan) error {
	lease, err := w.limiter().Reserve(ctx, w.request())
	if err != nil {
		return err
	}
	return w.settle(lease, w.use(ctx, p))
}

func callClient(ctx context.Context, w *world, p *plan) error {
	lease, err := w.client.Reserve(ctx, w.request())
	if err != nil {
		return err
	}
	return w.settle(lease, w.use(ctx, p))
}

// callOwnID brings the lease's ID, so the caller has to cancel.
func callOwnID(ctx context.Context, w *world, p *plan) error {
	r := w.request()
	r.LeaseID = weir.NewLeaseID(time.Now())
	lease, err := w.client.Reserve(ctx, r)
	if err == nil {
		return w.settle(lease, w.use(ctx, p))
	}
	if _, failed := w.client.Cancel(context.WithoutCancel(ctx), r.LeaseID); failed != nil &&
		!errors.Is(failed, weir.UnknownLease) {
		w.report(failed)
	}
	return err
}

func callWait(ctx context.Context, w *world, p *plan) error {
	lease, err := weir.Wait(ctx, w.client, w.request(), nil)
	if err != nil {
		return err
	}
	return w.settle(lease, w.use(ctx, p))
}

func callDo(ctx context.Context, w *world, p *plan) error {
	ran := false
	err := weir.Do(ctx, w.client, w.request(), func(ctx context.Context, l *weir.Lease) error {
		ran = true
		if !w.use(ctx, p) {
			return errUnused
		}
		p.wave.kept.Add(1)
		l.Report(w.store.used())
		return nil
	})
	if ran && errors.Is(err, weir.Unavailable) {
		w.report(err)
	}
	if ran && !p.gone() {
		return nil
	}
	return err
}

// callMiddleware calls a service behind the middleware, which reserves on the caller's behalf.
func callMiddleware(ctx context.Context, w *world, p *plan) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, w.app+"/"+strconv.Itoa(p.index), nil)
	if err != nil {
		return err
	}
	return w.sent(w.plain.Transport.(*spread).base.RoundTrip(r)) //nolint:bodyclose // sent closes it.
}

// sent reads an answer of the service behind the middleware, or of the model.
func (w *world) sent(resp *http.Response, err error) error {
	_, err = readAnswer(resp, err)
	return err
}

// readAnswer returns the body of an answer, or an error if there is none or it is not 200.
func readAnswer(resp *http.Response, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, problem(resp.StatusCode, text)
	}
	return text, nil
}

// problem returns the error of an answer that is not 200.
func problem(status int, text []byte) error {
	err := fmt.Errorf("status %d: %s", status, text)
	if status == http.StatusTooManyRequests {
		return errors.Join(err, &weir.DeniedError{})
	}
	return err
}

// openApp starts the service behind the middleware.
func (w *world) openApp(t *testing.T, on network) {
	t.Helper()
	limited := httpapi.Middleware(w.client, w.asks, &httpapi.MiddlewareOptions{
		SettleFailed: func(_ *http.Request, err error) { w.report(err) },
	})(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		p, lease := w.planned(r), httpapi.LeaseFrom(r.Context())
		switch {
		case w.use(r.Context(), p):
			p.wave.kept.Add(1)
			lease.Report(w.store.used())
		case p.ending == giveBack:
			lease.Report(w.store.unused())
		}
		rw.WriteHeader(http.StatusOK)
	}))
	address, stop := serve(t, on, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.serving.Add(1)
		defer w.serving.Add(-1)
		limited.ServeHTTP(rw, r)
	}))
	w.app = "http://" + address
	w.closing = append(w.closing, stop)
}

// planned returns the plan of a request's caller.
func (w *world) planned(r *http.Request) *plan {
	i, err := strconv.Atoi(path.Base(r.URL.Path))
	if err != nil {
		panic(err)
	}
	return w.wave.plans[i]
}

// callTransport sends a request to a model.
func callTransport(ctx context.Context, w *world, p *plan) error {
	url := "http://model/" + strconv.Itoa(p.index)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := w.transport.RoundTrip(r)
	if err != nil {
		return err
	}
	w.use(ctx, p)
	if p.ending == untilGone {
		_ = resp.Body.Close()
		return ctx.Err()
	}
	return w.sent(resp, nil)
}

// actuals returns the units that a call of the model used; the transport asks once for each call.
func (w *world) actuals(resp *http.Response, _ []byte) ([]weir.Costs, bool) {
	p := w.planned(resp.Request)
	if p.ending == giveBack || p.ending == untilGone {
		return []weir.Costs{w.store.unused()}, true
	}
	p.wave.kept.Add(1)
	return []weir.Costs{w.store.used()}, true
}

// model answers at once. It sends nothing to a caller that has left.
type model struct{}

func (model) RoundTrip(r *http.Request) (*http.Response, error) {
	trace := httptrace.ContextClientTrace(r.Context())
	trace.GetConn(r.URL.Host)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	trace.WroteHeaders()
	return &http.Response{
		StatusCode: http.StatusOK, Request: r, Body: io.NopCloser(strings.NewReader("{}")),
	}, nil
}

// callPlain sends a reservation as a client without a library does: the server makes the lease's
// ID.
func callPlain(ctx context.Context, w *world, p *plan) error {
	body, err := json.Marshal(map[string]any{
		"entity": entity, "resource": resource, "costs": w.store.costs(),
	})
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(
		ctx, http.MethodPost, "http://any/v1/reserve", bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	text, err := readAnswer(w.plain.Do(r)) //nolint:bodyclose // readAnswer closes it.
	if err != nil {
		return err
	}
	id, err := weir.ParseLeaseID(leaseOf(text))
	if err != nil {
		return err
	}
	w.tally.received(id.String())
	return w.settle((&weir.Lease{ID: id}).Bind(w.client), w.use(ctx, p))
}

// use carries out a plan under a lease, and reports whether the call took place.
func (w *world) use(ctx context.Context, p *plan) bool {
	p.leased.Store(int64(time.Since(p.began)))
	switch p.ending {
	case stay:
		p.wave.staying.Add(1)
		p.arrive()
		<-p.wave.release
		p.wave.staying.Add(-1)
	case untilGone:
		<-ctx.Done()
	default:
		<-time.After(p.work)
	}
	return p.ending == complete || p.ending == stay
}

// settle ends a lease whose caller has it, and therefore has not left.
func (w *world) settle(lease *weir.Lease, used bool) (err error) {
	for range settles {
		if used {
			_, err = lease.Complete(context.Background(), w.store.used())
		} else {
			_, err = lease.Cancel(context.Background())
		}
		if !errors.Is(err, weir.Unavailable) {
			break
		}
	}
	if err != nil {
		w.report(err)
		return fmt.Errorf("settle: %w", err)
	}
	if used {
		w.wave.kept.Add(1)
	}
	return nil
}

// settles is the number of times that a settlement without an answer is sent.
const settles = 10
