package httpapi

import (
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

// Client calls a server. It is a [weir.Service] that answers as the one in the
// server's process does: the same leases, denials and errors, but for the causes of errors. It
// is an [Admin] too. All methods may be called at once.
//
// A call whose outcome is unknown, because the server did not answer or because what answered
// is not weir, is sent again as it was, with the same lease ID, so nothing is charged twice.
// Then it fails with code [weir.Unavailable].
//
// A reservation that ends without a lease though an attempt may have reached the server,
// because the context has ended or the attempts are used up, is *abandoned*: an attempt may
// still be carried out. If the client made the lease ID, it cancels the lease in the background
// for up to ten seconds, also if [ClientOptions.OnUnavailable] lets the caller go on. A cancel
// that arrives before its reserve makes the server refuse the reserve; it is repeated
// nevertheless, because another server may get it. If the caller brought the ID, the client
// leaves it alone, so that the caller can repeat the call: a caller that does not, cancels it
// by [Client.Cancel]. [Client.Stats] and [ClientOptions.OnAbandoned] tell what became of
// abandoned reservations.
//
// A deadline of the caller's is kept to nine tenths, so that the caller still hears what
// happened.
type Client struct {
	base    string
	options ClientOptions
	http    *http.Client
	own     *http.Transport // nil where the caller brought the HTTP client
	clock   serverClock

	abandoned abandoned
}

var (
	_ weir.Service = (*Client)(nil)
	_ Admin        = (*Client)(nil)
)

// NewClient returns a client of the server at an address such as "http://127.0.0.1:8080", perhaps
// with a path in front of the API's own, or every mistake in the arguments, joined; each is a
// [weir.Error] with code [weir.Invalid]. It sends nothing yet.
func NewClient(baseURL string, o *ClientOptions) (*Client, error) {
	options, errs := o.withDefaults()
	base, err := baseOf(baseURL)
	if err != nil {
		errs = append(errs, err)
	}
	if err := joined("new client", errs); err != nil {
		return nil, err
	}
	c := &Client{base: base, options: options, abandoned: newAbandoned()}
	c.http, c.own = newHTTPClient(options.HTTPClient)
	return c, nil
}

// Close waits until the reservations that were abandoned are cancelled, up to
// [ClientOptions.CancelFor], and closes idle connections, unless the HTTP client is the
// caller's. Leases that are live stay charged.
func (c *Client) Close() error {
	c.abandoned.wait()
	if c.own != nil {
		c.own.CloseIdleConnections()
	}
	return nil
}

// ClientOptions tune a [Client]. Nil means all defaults.
type ClientOptions struct {
	// HTTPClient sends the requests. It is not changed; its redirects are not followed. Default: one
	// with a transport of its own.
	HTTPClient *http.Client
	// BearerToken is sent with every request. Over plain http it can be read on the way: use https
	// unless the server is on this machine or TLS ends in front of it. Default: none.
	BearerToken string
	// Attempts is how often a call is sent whose outcome is unknown. Default: 4.
	Attempts int
	// Backoff is the first pause between attempts, which doubles, up to two seconds; each pause is
	// shortened by up to a half, so that callers do not come back together. Default: 50 ms.
	Backoff time.Duration
	// Timeout is that of one attempt. Default: five seconds.
	Timeout time.Duration
	// OnUnavailable says what a reservation becomes when the server cannot be reached: Block returns
	// an error, Allow a degraded lease whose verbs do nothing. Default: Block.
	OnUnavailable weir.Policy
	// CancelFor is how long the client tries to cancel a reservation that it has abandoned (see
	// [Client]), and so how long [Client.Close] may take. Negative: it does not; what was reserved
	// stays charged until its lease ends. Default: ten seconds.
	CancelFor time.Duration
	// OnAbandoned is told what became of each reservation that was abandoned: nil if nothing of it is
	// charged any more, otherwise why it could not be cancelled. It may be called at once, also after
	// Reserve has returned, and must not call Close. Default: nobody.
	OnAbandoned func(id weir.LeaseID, err error)
	// Now makes lease IDs. A clock that is wrong is corrected by the server's. Default: [time.Now].
	Now func() time.Time
	// Note is told what the server says besides of a change, such as how long it holds.
	// Default: nobody.
	Note func(text string)
}

// maxAttempts keeps a mistake in the options from becoming a flood.
const maxAttempts = 1000

// withDefaults returns the options with defaults filled in, or every mistake in them.
func (o *ClientOptions) withDefaults() (ClientOptions, []error) {
	var out ClientOptions
	if o != nil {
		out = *o
	}
	var errs []error
	if out.Attempts == 0 {
		out.Attempts = 4
	}
	if out.Attempts < 1 || out.Attempts > maxAttempts {
		errs = append(
			errs,
			apijson.Invalid("Attempts", out.Attempts, fmt.Sprintf("must be from 1 to %d", maxAttempts)),
		)
	}
	positive := func(field string, d *time.Duration, byDefault time.Duration) {
		if *d == 0 {
			*d = byDefault
		}
		if *d < 0 {
			errs = append(errs, apijson.Invalid(field, *d, "must be above zero"))
		}
	}
	positive("Backoff", &out.Backoff, 50*time.Millisecond)
	positive("Timeout", &out.Timeout, 5*time.Second)
	if out.CancelFor == 0 {
		out.CancelFor = 10 * time.Second
	}
	if out.OnAbandoned == nil {
		out.OnAbandoned = func(weir.LeaseID, error) {}
	}
	if out.OnUnavailable == "" {
		out.OnUnavailable = weir.Block
	}
	if out.OnUnavailable != weir.Block && out.OnUnavailable != weir.Allow {
		errs = append(errs, apijson.Invalid("OnUnavailable", string(out.OnUnavailable), "must be block or allow"))
	}
	if strings.ContainsFunc(out.BearerToken, func(r rune) bool { return r <= ' ' || r > '~' }) {
		// The value would be a secret in a log.
		errs = append(errs, &weir.Error{Code: weir.Invalid, Field: "BearerToken",
			Reason: "must be printable ASCII without spaces"})
	}
	if out.Now == nil {
		out.Now = time.Now
	}
	if out.Note == nil {
		out.Note = func(string) {}
	}
	return out, errs
}

// baseOf checks a server's address and returns it without a slash at its end.
func baseOf(server string) (string, error) {
	u, err := url.Parse(server)
	if err != nil {
		if at := strings.LastIndexByte(server, '@'); at >= 0 {
			server = "…" + server[at:] // what is before it may be a secret
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

// newHTTPClient sends by the caller's client, or by one of its own. Redirects are answers that weir
// never gives: following one would send a reservation, and the bearer token, to somebody else.
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

// newTransport keeps enough connections for many callers of one server.
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
		DisableCompression:  true, // answers are small, and what is bounded is what was sent
	}
}

// joined wraps all mistakes of a constructor.
func joined(doing string, errs []error) error {
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("weir: %s: %w", doing, errors.Join(errs...))
}
