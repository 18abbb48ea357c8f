package httphandler

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/weir-limiter/weir/httpapi"
	"github.com/weir-limiter/weir/namespace"
)

// Options configures a [Handler]. A nil *Options means all defaults.
type Options struct {
	// Authenticate returns the owner of a bearer token, or false if the token is unknown. It must
	// compare in constant time. Default: no bearer token is needed and every caller is an admin,
	// for use on loopback.
	Authenticate func(bearerToken string) (Identity, bool)
	// LetIn is called with the context of each request that needs a role, after the caller has
	// passed the check of the role and before the body is read. Default: no call.
	LetIn func(context.Context)
	// HungUp reports whether the client of the request with this context has closed its connection.
	// The handler calls it before it writes the answer to a reserve without a lease ID from the
	// caller. HungUp must not block. Default: the handler checks only whether the context has
	// ended, which may happen later.
	HungUp func(context.Context) bool
	// Admin reads and changes the configuration. Default: the routes that need it answer 404.
	Admin httpapi.Admin
	// AdminNote is the member "note" in answers to changes of the configuration, such as "holds
	// until the next reload or restart". Default: none.
	AdminNote string
	// Limits compares limits files with the configuration and applies them, for the routes below
	// /v1/admin/limits. Default: these routes answer 404.
	Limits httpapi.LimitsAdmin
	// Namespaces administers the namespaces of the table that the service is on, for the routes
	// below /v1/admin/namespaces. Default: these routes answer 400 with code [weir.Unsupported], or
	// 404 if Admin is not set.
	Namespaces namespace.Admin
	// Namespace is the name of the namespace that the service is on, which is not deleted.
	// Default: none.
	Namespace string
	// Store is the name of the store in errors. Default: none.
	Store string
	// Records reads the usage and the audit, for GET /v1/usage and GET /v1/audit. Default: these
	// routes answer 404.
	Records httpapi.Records
	// Activity returns the body of GET /v1/activity at the given time. Default: the route answers
	// 404.
	Activity func(now time.Time) *httpapi.ActivityReport
	// MaxBody bounds the body of a request, in bytes. Default: 1 MiB.
	MaxBody int64
	// MaxConcurrent bounds the requests of the API that are served concurrently. A request above the
	// bound is answered with 503 and charges nothing. Default: 1,024.
	MaxConcurrent int
	// MaxArriving bounds the requests whose bodies are incomplete, which do not count towards
	// MaxConcurrent. Above the bound, the handler answers an old request of one of the callers that
	// have the most with 503 and charges nothing. Default: four times MaxConcurrent.
	MaxArriving int
	// Logger logs the failures that answers do not show. Default: nothing is logged.
	Logger *slog.Logger
	// Trail records what callers change, and which of them are refused. Default: no record.
	Trail Trail
	// Ready returns the reason that the service cannot answer, or nil, for /readyz. Default: always
	// nil.
	Ready func(context.Context) error
	// Version is the version of the program, for the OpenAPI document. Default: the document's own.
	Version string
	// StatusPage serves "/", "/usage" and the files under "/page/", without a bearer token. Default:
	// these paths answer 404.
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
