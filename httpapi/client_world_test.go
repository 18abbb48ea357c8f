package httpapi_test

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/conformance"
	"github.com/weir-limiter/weir/httpapi"
	"github.com/weir-limiter/weir/httpapi/httphandler"
	"github.com/weir-limiter/weir/internal/testkit"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/memory"
)

// clientWorld is a limiter over the memory store, behind a handler, behind a client. The clock of
// all of them is virtual.
type clientWorld struct {
	*conformance.Clock
	*httpapi.Client

	limiter *limiter.Limiter
	close   func() error
}

// Configure replaces the definitions, in the server's process.
func (w *clientWorld) Configure(d *weir.Definitions) error {
	return w.limiter.Configure(context.Background(), d)
}

// Close closes the client, the server and the limiter.
func (w *clientWorld) Close() error {
	return errors.Join(w.Client.Close(), w.close(), w.limiter.Close())
}

// network connects a test's client to the handler.
type network struct {
	url    string
	client *http.Client
	close  func() error
}

// openClientWorld opens a limiter and serves it over a network.
func openClientWorld(
	t conformance.T, s conformance.Setup, o httpapi.ClientOptions,
	serve func(t conformance.T, h http.Handler) *network,
) *clientWorld {
	t.Helper()
	store, err := memory.Open(&memory.Options{Definitions: s.Definitions})
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	clock := conformance.NewClock(s.Start)
	s.Options.Now = clock.Now
	lim, err := limiter.New(store, &s.Options)
	if err != nil {
		t.Fatalf("new: %v", err)
	}
	handler := httphandler.New(lim, &httphandler.Options{Admin: lim, Now: clock.Now})
	net := serve(t, dated(clock.Now, handler))
	if o.Now == nil {
		o.Now = clock.Now
	}
	o.HTTPClient = net.client
	client, err := httpapi.NewClient(net.url, &o)
	if err != nil {
		t.Fatalf("new client: %v", err)
	}
	return &clientWorld{clock, client, lim, net.close}
}

// dated writes the world's time to the Date of every answer. Without it net/http would write the
// machine's time.
func dated(now func() time.Time, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Date", now().UTC().Format(http.TimeFormat))
		next.ServeHTTP(w, r)
	})
}

// overPipes serves over connections in memory, which work in a bubble of testing/synctest.
func overPipes(_ conformance.T, h http.Handler) *network {
	pipes := testkit.ListenPipes("pipe")
	server := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	served := make(chan error, 1)
	go func() { served <- server.Serve(pipes) }()
	transport := &http.Transport{DialContext: pipes.DialContext}
	return &network{
		url: "http://pipe", client: &http.Client{Transport: transport},
		close: func() error {
			transport.CloseIdleConnections()
			err := server.Close()
			if failed := <-served; !errors.Is(failed, http.ErrServerClosed) {
				err = errors.Join(err, failed)
			}
			return err
		},
	}
}
