package connect

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"sync"
	"time"
)

// attemptTimeout is how long one attempt to ask a server may take: as long as by the client's
// default.
const attemptTimeout = 5 * time.Second

// manyIdle is how many idle connections are kept: as many as a replay has requests under way.
const manyIdle = 256

// finishKey is where a context keeps the one that ends the attempt which is under way.
type finishKey struct{}

// DetachAttempts returns a context for calls of a server whose attempts go on when it ends, until
// they time out or until ends. How the one under way ended would be unknown otherwise; no other one
// begins.
func DetachAttempts(ctx, until context.Context) context.Context {
	return context.WithValue(ctx, finishKey{}, until)
}

// serverTransport sends the requests of one command, and keeps what may explain a failure.
type serverTransport struct {
	*http.Transport

	mu sync.Mutex
	// seen is the last answer's status, and location where it points; zero where nothing answered.
	seen     int
	location string
}

// newServerTransport trusts the certificates in the pool; nil means the system's.
func newServerTransport(trusted *x509.CertPool, idle int) *serverTransport {
	base, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		base = &http.Transport{Proxy: http.ProxyFromEnvironment} // it was replaced
	}
	t := &serverTransport{Transport: base.Clone()}
	t.MaxIdleConns, t.MaxIdleConnsPerHost = idle, idle
	t.DisableCompression = true // what is bounded is what was sent
	t.TLSClientConfig = tlsTrusting(trusted)
	return t
}

// RoundTrip sends a request.
func (t *serverTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	until, ok := r.Context().Value(finishKey{}).(context.Context)
	if !ok {
		return t.send(r)
	}
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(until, attemptTimeout)
	answer, err := t.send(r.WithContext(ctx)) //nolint:contextcheck // It has to outlive the request's own.
	if err != nil {
		cancel()
		return nil, err
	}
	answer.Body = &contextBody{answer.Body, cancel}
	return answer, nil
}

func (t *serverTransport) send(r *http.Request) (*http.Response, error) {
	answer, err := t.Transport.RoundTrip(r)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.seen, t.location = 0, ""
	if err == nil {
		t.seen, t.location = answer.StatusCode, answer.Header.Get("Location")
	}
	return answer, err
}

// last returns the status of the last answer, and where it points.
func (t *serverTransport) last() (status int, location string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.seen, t.location
}

// contextBody is a body with a context of its own, which ends with it.
type contextBody struct {
	io.ReadCloser

	end context.CancelFunc
}

// Close ends the reading.
func (b *contextBody) Close() error {
	defer b.end()
	return b.ReadCloser.Close()
}

func tlsTrusting(trusted *x509.CertPool) *tls.Config {
	return &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12}
}
