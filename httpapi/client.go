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
// in the server's process, but without the causes of errors, and an [Admin]. All methods may be
// called at once.
//
// A call whose outcome is unknown, because the server did not answer or because the answer is not
// weir's, is sent again as it was, with the same lease ID, so that nothing is charged twice. In the
// end it fails with code [weir.Unavailable].
//
// A reservation is abandoned if it ends without a lease, because the context has ended or the
// attempts are used up, although an attempt may have reached the server and may still be carried
// out. If the client made the lease ID, it cancels the lease in the background for up to ten
// seconds, also if [ClientOptions.OnUnavailable] lets the caller go on. The server refuses a
// reserve that arrives after its cancel; the cancel is repeated nevertheless, because another
// server may get the reserve. If the caller brought the ID, the client does not cancel, so that the
// caller can repeat the call; a caller that does not repeat it should call [Client.Cancel].
// [Client.Stats] and [ClientOptions.OnAbandoned] tell what became of abandoned reservations.
//
// The client keeps a tenth of the caller's deadline in reserve, so that the caller learns the
// outcome.
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
// a path. It sends nothing. It returns all mistakes in its arguments, joined; each is a
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

// Close waits until abandoned reservations are cancelled, for up to [ClientOptions.CancelFor], and
// closes idle connections unless the HTTP client is the caller's. Live leases stay charged.
func (c *Client) Close() error {
	c.abandoned.wait()
	if c.own != nil {
		c.own.CloseIdleConnections()
	}
	return nil
}

// ClientOptions tune a [Client]. Nil means all defaults.
type ClientOptions struct {
	// HTTPClient sends the requests. It is not changed. Redirects are not followed. Default: a client
	// with a transport of its own.
	HTTPClient *http.Client
	// BearerToken is sent with every request. Others can read it over plain http: use https unless the
	// server is on this machine or behind a TLS proxy. Default: none.
	BearerToken string
	// Attempts bounds how often a call with an unknown outcome is sent. Default: 4.
	Attempts int
	// Backoff is the first pause between attempts. Pauses double up to two seconds, and each is
	// shortened by up to a half at random, so that callers do not come back at once. Default: 50 ms.
	Backoff time.Duration
	// Timeout bounds one attempt. Default: five seconds.
	Timeout time.Duration
	// OnUnavailable says what a reservation becomes if the server cannot be reached: Block returns an
	// error, Allow a degraded lease whose verbs do nothing. Default: Block.
	OnUnavailable weir.Policy
	// CancelFor bounds how long the client tries to cancel an abandoned reservation (see [Client]),
	// and so how long [Client.Close] takes. If it is negative, the client does not cancel, and what
	// was reserved stays charged until its lease ends. Default: ten seconds.
	CancelFor time.Duration
	// OnAbandoned is called with each abandoned reservation: with nil if nothing of it stays charged,
	// otherwise with why it could not be cancelled. Calls may be concurrent and come after Reserve has
	// returned. It must not call Close. Default: nothing is called.
	OnAbandoned func(id weir.LeaseID, err error)
	// Now reads the clock for lease IDs, which is corrected by the server's. Default: [time.Now].
	Now func() time.Time
	// Note is called with what the server notes about a change, such as how long it holds.
	// Default: nothing is called.
	Note func(text string)
}

// maxAttempts keeps a mistake in the options from flooding a server.
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
		return "", apijson.Invalid("server", server, "is no URL")
	}
	refuse := func(reason string) (string, error) { return "", apijson.Invalid("server", u.Redacted(), reason) }
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return refuse("must begin with http:// or https://")
	case u.Hostname() == "":
		return refuse("must name a host")
	case u.User != nil:
		return refuse("must not hold a name or password: a bearer token is an option")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return refuse("must end with the path: no query, no fragment")
	}
	return strings.TrimRight(u.String(), "/"), nil
}

// newHTTPClient returns a copy of the caller's client, or a new one with its transport. It does not
// follow redirects, because weir never answers with one: a reservation and the bearer token would
// go elsewhere.
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

// newTransport returns a transport that keeps enough connections for many callers of one server.
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
