package httpapi

import (
	"net/http"

	"github.com/weir-limiter/weir"
)

// Client speaks to a [Handler] elsewhere. It is a [weir.Service] that answers as the one in the
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
