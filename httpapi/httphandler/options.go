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
	// Authenticate says who a bearer token belongs to, and false where nobody. It must compare in
	// constant time. Default: no bearer token is needed and everybody is admin, for loopback use.
	Authenticate func(bearerToken string) (Identity, bool)
	// LetIn is told of each request that needs a role, once its caller was found to have it and
	// before its body is read; the context is the request's. Default: nobody.
	LetIn func(context.Context)
	// HungUp reports whether the client of the request with this context has closed its connection.
	// It is asked before the answer to a reserve whose lease ID the handler made is written, and must
	// not wait. Default: false; the end of the request's context says so in any case, but net/http
	// may end it later.
	HungUp func(context.Context) bool
	// Admin reads and changes the configuration. Default: the admin routes, children and capacity
	// answer 404.
	Admin httpapi.Admin
	// AdminNote is put as "note" into the answers to admin writes, such as "holds until the next
	// reload or restart". Default: none.
	AdminNote string
	// Activity returns what GET /v1/activity answers, at a time. Default: the route answers 404.
	Activity func(now time.Time) *httpapi.ActivityReport
	// MaxBody is how many bytes a request's body may have. Default: 1 MiB.
	MaxBody int64
	// MaxConcurrent is how many requests of the API are served at once; one above it is answered
	// with 503 and charges nothing. Default: 1,024.
	MaxConcurrent int
	// MaxArriving is how many requests may have a body on its way at once. They are not among the
	// MaxConcurrent; above it the oldest is given up with 503 and charges nothing.
	// Default: four times MaxConcurrent.
	MaxArriving int
	// Logger is told of failures that are not shown to callers. Default: [slog.DiscardHandler].
	Logger *slog.Logger
	// Ready says whether the service can answer; /readyz asks it. Default: always ready.
	Ready func(context.Context) error
	// Version is the program's own, for the OpenAPI document. Default: that of the document.
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
