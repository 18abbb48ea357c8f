package httpapi

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/apijson"
)

// Client calls a server. It is a [weir.Service] with the leases, denials and errors of the service
// in the server's process, except for the causes of errors. It is also an [Admin]. It is safe for
// concurrent use.
//
// The outcome of an attempt is unknown if the server does not answer, or if a proxy or another
// program answers instead. The client then sends the same call again with the same lease ID, so
// that nothing is charged twice. After the last attempt the call fails with code
// [weir.Unavailable].
//
// A reservation is abandoned if it ends without a lease, because the context has ended or the
// attempts are used up, although the server may still carry out one of the attempts. If the client
// made the lease ID, it cancels the lease in the background for up to ten seconds, even if
// [ClientOptions.OnUnavailable] allows the call. The server refuses a reserve that arrives after
// its cancel. The client repeats the cancel nevertheless, because the reserve may reach another
// server. If the caller brought the ID, the client does not cancel, so that the caller can repeat
// the call; a caller that does not repeat it should call [Client.Cancel]. [Client.Stats] counts
// abandoned reservations, and [ClientOptions.OnAbandoned] reports each.
//
// The client ends a call when nine tenths of the time to the caller's deadline have passed, so that
// the caller learns the outcome before its deadline.
//
// The client has two kinds of shared state: its estimate of the server's clock, from which it makes
// lease IDs, and the counts of abandoned reservations, which have a mutex of their own. No lock is
// held while a request is sent.
type Client struct {
	base    string
	options ClientOptions
	http    *http.Client
	own     *http.Transport // nil if the HTTP client is the caller's
	clock   serverClock

	abandoned abandoned
}

var (
	_ weir.Service = (*Client)(nil)
	_ Admin        = (*Client)(nil)
)

// NewClient returns a client of the server at a URL such as "http://127.0.0.1:8080", which may have
// a path. It sends no request. It returns all mistakes in its arguments, joined; each is a
// [weir.Error] with code [weir.Invalid].
func NewClient(baseURL string, o *ClientOptions) (*Client, error) {
	options, errs := o.withDefaults()
	base, err := baseOf(baseURL)
	if err != nil {
		errs = append(errs, err)
	}
	if len(errs) > 0 {
		return nil, fmt.Errorf("weir: new client: %w", errors.Join(errs...))
	}
	c := &Client{base: base, options: options, abandoned: abandoned{sending: make(chan struct{}, maxCancelling)}}
	c.http, c.own = newHTTPClient(options.HTTPClient)
	return c, nil
}

// Close waits until no abandoned reservation is being cancelled, for up to
// [ClientOptions.CancelFor]. It closes idle connections unless the HTTP client is the caller's.
// Live leases stay charged.
func (c *Client) Close() error {
	c.abandoned.wait()
	if c.own != nil {
		c.own.CloseIdleConnections()
	}
	return nil
}

// ClientOptions configures a [Client]. A nil *ClientOptions means all defaults.
type ClientOptions struct {
	// HTTPClient sends the requests. It is not changed. Redirects are not followed. Default: a client
	// with a transport of its own.
	HTTPClient *http.Client
	// BearerToken is sent with every request. Plain http exposes it to the network: use https
	// unless the server is on this machine or behind a TLS proxy. Default: none.
	BearerToken string
	// Attempts bounds the attempts of a call whose outcome is unknown. Default: 4.
	Attempts int
	// Backoff is the first pause between attempts. Pauses double up to two seconds, and each is
	// shortened by up to a half at random, so that callers do not retry at the same time. Default:
	// 50 ms.
	Backoff time.Duration
	// Timeout bounds one attempt. Default: five seconds.
	Timeout time.Duration
	// OnUnavailable is the policy for a reservation if the server cannot be reached: Block returns
	// an error, and Allow returns a degraded lease whose verbs do nothing. Default: Block.
	OnUnavailable weir.Policy
	// CancelFor bounds the time for which the client tries to cancel an abandoned reservation (see
	// [Client]), and so the time that [Client.Close] takes. If it is negative, the client does not
	// cancel, and abandoned reservations stay charged until their leases end. Default: ten seconds.
	CancelFor time.Duration
	// OnAbandoned is called with each abandoned reservation. The error is nil if nothing of the
	// reservation stays charged; otherwise it says why the cancel failed. Calls may be concurrent
	// and may come after Reserve has returned. OnAbandoned must not call Close. Default: no call.
	OnAbandoned func(id weir.LeaseID, err error)
	// Now returns the client's time, for lease IDs. The client corrects it by the server's clock.
	// Default: [time.Now].
	Now func() time.Time
	// Note is called with the server's note about a change, such as how long it holds. Default: no
	// call.
	Note func(text string)
}

// maxAttempts bounds the option Attempts, so that a mistake in it cannot flood a server.
const maxAttempts = 1000

// withDefaults returns the options with defaults filled in, and all mistakes in them.
func (o *ClientOptions) withDefaults() (ClientOptions, []error) {
	var out ClientOptions
	if o != nil {
		out = *o
	}
	out.Attempts = cmp.Or(out.Attempts, 4)
	out.Backoff = cmp.Or(out.Backoff, 50*time.Millisecond)
	out.Timeout = cmp.Or(out.Timeout, 5*time.Second)
	out.OnUnavailable = cmp.Or(out.OnUnavailable, weir.Block)
	out.CancelFor = cmp.Or(out.CancelFor, 10*time.Second)
	if out.OnAbandoned == nil {
		out.OnAbandoned = func(weir.LeaseID, error) {}
	}
	if out.Now == nil {
		out.Now = time.Now
	}
	if out.Note == nil {
		out.Note = func(string) {}
	}
	var errs []error
	refuse := func(field string, value any, reason string) {
		errs = append(errs, apijson.Invalid(field, value, reason))
	}
	if out.Attempts < 1 || out.Attempts > maxAttempts {
		refuse("Attempts", out.Attempts, fmt.Sprintf("must be from 1 to %d", maxAttempts))
	}
	if out.Backoff < 0 {
		refuse("Backoff", out.Backoff, "must be above zero")
	}
	if out.Timeout < 0 {
		refuse("Timeout", out.Timeout, "must be above zero")
	}
	if out.OnUnavailable != weir.Block && out.OnUnavailable != weir.Allow {
		refuse("OnUnavailable", string(out.OnUnavailable), "must be block or allow")
	}
	if strings.ContainsFunc(out.BearerToken, func(r rune) bool { return r <= ' ' || r > '~' }) {
		refuse("BearerToken", "", "must be printable ASCII without spaces") // its value is a secret
	}
	return out, errs
}

// baseOf checks the URL of a server and returns it without a trailing slash.
func baseOf(server string) (string, error) {
	u, err := url.Parse(server)
	if err != nil {
		if at := strings.LastIndexByte(server, '@'); at >= 0 {
			server = "…" + server[at:] // the part before may be a secret
		}
		return "", apijson.Invalid("server", server, "is not a URL")
	}
	refuse := func(reason string) (string, error) { return "", apijson.Invalid("server", u.Redacted(), reason) }
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return refuse("must begin with http:// or https://")
	case u.Hostname() == "":
		return refuse("must name a host")
	case u.User != nil:
		return refuse("must not contain a user or password: give a bearer token instead")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return refuse("must not have a query or a fragment")
	}
	return strings.TrimRight(u.String(), "/"), nil
}

// newHTTPClient returns a copy of the caller's client, or a new one with its own transport. It does
// not follow redirects. A weir server never redirects, and a redirect would send the reservation
// and the bearer token to another server.
func newHTTPClient(given *http.Client) (client *http.Client, own *http.Transport) {
	out := http.Client{}
	if given != nil {
		out = *given
	} else {
		own = newTransport()
		out.Transport = own
	}
	out.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &out, own
}

// newTransport returns a transport that keeps enough idle connections for many concurrent callers
// of one server.
func newTransport() *http.Transport {
	dialer := &net.Dialer{Timeout: 5 * time.Second, KeepAlive: 30 * time.Second}
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         dialer.DialContext,
		ForceAttemptHTTP2:   true,
		MaxIdleConns:        256,
		MaxIdleConnsPerHost: 256,
		IdleConnTimeout:     90 * time.Second,
		TLSHandshakeTimeout: 5 * time.Second,
		DisableCompression:  true, // answers are small, and bounded as they are sent
	}
}
