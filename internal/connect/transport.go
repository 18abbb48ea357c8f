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

// attemptTimeout bounds one attempt of a request to a server. It is the client's default.
const attemptTimeout = 5 * time.Second

// manyIdle is the number of idle connections that are kept: as many as a replay has requests in
// flight.
const manyIdle = 256

// finishKey is the context key of the context that ends the attempt in progress.
type finishKey struct{}

// DetachAttempts returns a context for calls of a server. When the context ends, the attempt in
// progress continues until it times out or until ends, because its outcome would otherwise be
// unknown. No further attempt begins.
func DetachAttempts(ctx, until context.Context) context.Context {
	return context.WithValue(ctx, finishKey{}, until)
}

// serverTransport sends the requests of one command, and records what may explain a failure.
type serverTransport struct {
	*http.Transport

	mu sync.Mutex
	// seen is the status of the last answer, and location its Location header; zero if there was no
	// answer.
	seen     int
	location string
}

// newServerTransport trusts the certificates in the pool; nil means the system's.
func newServerTransport(trusted *x509.CertPool, idle int) *serverTransport {
	base, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		base = &http.Transport{Proxy: http.ProxyFromEnvironment} // another package has replaced the default
	}
	t := &serverTransport{Transport: base.Clone()}
	t.MaxIdleConns, t.MaxIdleConnsPerHost = idle, idle
	t.DisableCompression = true // so that a bound on an answer counts the bytes that were sent
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

// last returns the status and the Location header of the last answer.
func (t *serverTransport) last() (status int, location string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.seen, t.location
}

// contextBody is a body that ends the context of its request when it is closed.
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
