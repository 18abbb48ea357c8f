package httphandler

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/weir-limiter/weir/httpapi"
)

// Options tune a [Handler]. Nil means all defaults.
type Options struct {
	// Authenticate returns whose a bearer token is, and false if it is nobody's. It must compare in
	// constant time. Default: no bearer token is needed and everybody is admin, for loopback use.
	Authenticate func(bearerToken string) (Identity, bool)
	// LetIn is called with the context of each request that needs a role, after its caller was found
	// to have it and before its body is read. Default: nothing is called.
	LetIn func(context.Context)
	// HungUp reports whether the client of the request with this context has closed its connection. It
	// is called before the answer to a reserve without a lease ID of the caller's is written, and must
	// not wait. Default: only the end of the context counts, which may come later.
	HungUp func(context.Context) bool
	// Admin reads and changes the configuration. Default: the routes that need it answer 404.
	Admin httpapi.Admin
	// AdminNote is the "note" in answers to changes of the configuration, such as "holds until the
	// next reload or restart". Default: none.
	AdminNote string
	// Activity returns what GET /v1/activity answers, at a time. Default: the route answers 404.
	Activity func(now time.Time) *httpapi.ActivityReport
	// MaxBody bounds the bytes of a request's body. Default: 1 MiB.
	MaxBody int64
	// MaxConcurrent bounds the requests of the API that are served at once. One above it is answered
	// with 503 and charges nothing. Default: 1,024.
	MaxConcurrent int
	// MaxArriving bounds the requests whose bodies have not arrived whole, which do not count towards
	// MaxConcurrent. If there are more, the oldest is given up with 503 and charges nothing.
	// Default: four times MaxConcurrent.
	MaxArriving int
	// Logger gets the failures that callers are not told of. Default: nothing is logged.
	Logger *slog.Logger
	// Ready returns why the service cannot answer, for /readyz. Default: it always can.
	Ready func(context.Context) error
	// Version is the program's, for the OpenAPI document. Default: the document's own.
	Version string
	// Page serves "/" and the files under "/page/", without a bearer token. Default: these paths
	// answer 404.
	StatusPage http.Handler
	// Now reads the clock, for the RateLimit headers of budgets and for Activity.
	// Default: [time.Now].
	Now func() time.Time
}

// withDefaults returns the options with defaults filled in.
func (o *Options) withDefaults() Options {
	var out Options
	if o != nil {
		out = *o
	}
	if out.MaxBody <= 0 {
		out.MaxBody = 1 << 20
	}
	if out.MaxConcurrent <= 0 {
		out.MaxConcurrent = 1024
	}
	if out.MaxArriving <= 0 {
		out.MaxArriving = 4 * out.MaxConcurrent
	}
	if out.LetIn == nil {
		out.LetIn = func(context.Context) {}
	}
	if out.HungUp == nil {
		out.HungUp = func(context.Context) bool { return false }
	}
	if out.Logger == nil {
		out.Logger = slog.New(slog.DiscardHandler)
	}
	if out.Ready == nil {
		out.Ready = func(context.Context) error { return nil }
	}
	if out.Now == nil {
		out.Now = time.Now
	}
	return out
}
