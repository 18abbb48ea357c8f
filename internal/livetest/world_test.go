package livetest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/httpapi"
	"github.com/weir-limiter/weir/limiter"
)

// The networks of the table.
const (
	direct       = "direct"        // no message is held back
	lateRequests = "late requests" // reservations to servers are held back
	lateAnswers  = "late answers"  // answers to reservations are held back
	lateStore    = "late store"    // messages between servers and their store are held back
)

// cell is one combination of the table.
type cell struct {
	front   *front
	store   *store
	network string
	servers int
}

func (c *cell) String() string {
	return fmt.Sprintf("%s/%s/%s/%d", c.store.name, c.front.name, c.network, c.servers)
}

// world has the servers, clients and networks of a cell.
type world struct {
	*cell
	*dice

	limiters []*limiter.Limiter
	client   *httpapi.Client
	// plain reaches the servers without weir's client; app is the URL of the service behind the
	// middleware.
	plain *http.Client
	app   string
	// transport sends requests to a model, each under a reservation.
	transport *httpapi.Transport
	tally     tally
	delays    *delays
	slots     int64

	// doubt returns the number of units whose refund is in doubt; nil if the store does not count
	// them.
	doubt func() int64
	wave  *wave
	// keptBefore counts the calls that took place in earlier waves.
	keptBefore int64
	// serving counts the requests that the middleware is serving.
	serving atomic.Int64
	// reported counts the settlements and cancels whose failure was reported.
	reported atomic.Int64
	// reportedIDs has the lease IDs of these failures, so that each is counted once.
	reportedIDs sync.Map
	closing     []func()
}

// open starts a cell's store, servers and clients.
func open(t *testing.T, c *cell, d *dice, slots int64) *world {
	t.Helper()
	w := &world{cell: c, dice: d, slots: slots, delays: &delays{dice: d, oneOf: 2}}
	w.tally.answered = map[string]*limiter.Limiter{}
	var on network = loopback{}
	if c.store.virtual {
		on = &pipes{}
		w.delays.latency = 10 * time.Millisecond
	}
	w.openStore(t)
	if c.front.direct {
		return w
	}
	var addresses []string
	for i := range c.servers {
		address, stop := serve(t, on, w.tally.handler(w.limiters[i%len(w.limiters)]))
		w.closing = append(w.closing, stop)
		if c.store.virtual || c.network == lateRequests || c.network == lateAnswers {
			between := &wire{
				network: on, target: address, delays: w.delays, marks: isReserve, deaf: true,
				requests: c.network == lateRequests, answers: c.network == lateAnswers,
			}
			between.start(t)
			w.closing = append(w.closing, between.close)
			address = between.address()
		}
		addresses = append(addresses, address)
	}
	base := &http.Transport{DialContext: on.dial, MaxIdleConnsPerHost: 256}
	if !c.store.virtual {
		base.MaxConnsPerHost = 256 // each connection uses up to four files of the process
	}
	w.closing = append(w.closing, base.CloseIdleConnections)
	w.plain = &http.Client{Transport: &spread{d, addresses, base}}
	w.openClient(t, addresses[0])
	w.openApp(t, on)
	return w
}

// openStore opens the store for each server, and limiters over it.
func (w *world) openStore(t *testing.T) {
	t.Helper()
	o := &opening{servers: w.servers, limits: w.store.limitsOf(w.slots)}
	if w.network == lateStore {
		o.late = w.delays
		o.late.oneOf = 8
	}
	for _, s := range w.store.open(t, o) {
		l, err := limiter.New(s, nil)
		if err != nil {
			t.Fatal(err)
		}
		w.limiters = append(w.limiters, l)
	}
	w.doubt = o.doubt
	w.closing = append(w.closing, o.closing...)
	w.closing = append(w.closing, func() {
		for _, l := range w.limiters {
			if err := l.Close(); err != nil {
				t.Errorf("close a limiter: %v", err)
			}
		}
	})
}

func (w *world) openClient(t *testing.T, address string) {
	t.Helper()
	var err error
	w.client, err = httpapi.NewClient("http://"+address, w.clientOptions())
	if err != nil {
		t.Fatal(err)
	}
	w.closing = append(w.closing, func() {
		if err := w.client.Close(); err != nil {
			t.Errorf("close the client: %v", err)
		}
	})
	w.transport = httpapi.NewTransport(w.client, w.asks, &httpapi.TransportOptions{
		Base:         model{},
		Actuals:      w.actuals,
		SettleFailed: func(_ *http.Request, err error) { w.report(err) },
	})
}

// clientOptions returns the options of the client.
func (w *world) clientOptions() *httpapi.ClientOptions {
	return &httpapi.ClientOptions{HTTPClient: w.plain, OnAbandoned: func(_ weir.LeaseID, err error) {
		if err != nil {
			w.report(err)
		}
	}}
}

// report counts a reported failure.
func (w *world) report(err error) {
	e, ok := errors.AsType[*weir.Error](err)
	if ok && e.Field == "lease_id" {
		if _, twice := w.reportedIDs.LoadOrStore(e.Value, true); twice {
			return
		}
	}
	w.reported.Add(1)
}

// asks returns the request to reserve for an HTTP request through middleware or transport.
func (w *world) asks(*http.Request) (*weir.Request, error) { return w.request(), nil }

// request returns the request of every caller.
func (w *world) request() *weir.Request {
	return &weir.Request{Entity: entity, Resource: resource, Costs: w.store.costs()}
}

// limiter returns the limiter of a random server.
func (w *world) limiter() *limiter.Limiter { return w.limiters[w.pick(len(w.limiters))] }

// close ends everything, the client first.
func (w *world) close() {
	for i := len(w.closing) - 1; i >= 0; i-- {
		w.closing[i]()
	}
}

// doubts returns the number of units whose refund the store reports as in doubt.
func (w *world) doubts() int64 {
	if w.doubt == nil {
		return 0
	}
	return w.doubt()
}

// inUse returns the units in use of a limit, as each server reports them.
func (w *world) inUse(ctx context.Context) ([]map[string]int64, error) {
	var all []map[string]int64
	for _, l := range w.limiters {
		statuses, err := l.Status(ctx, entity, resource)
		if err != nil {
			return nil, err
		}
		of := map[string]int64{}
		for _, s := range statuses {
			of[s.Limit] = s.Capacity - s.Available
		}
		all = append(all, of)
	}
	return all, nil
}
