package server

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/weir-limiter/weir"
)

// Options tune a [Server]. Nil means all defaults.
type Options struct {
	// Listen is the address to listen on, as host:port; port 0 takes a free one.
	// Default: a free port of 127.0.0.1.
	Listen string
	// ProbeListen is an address like Listen that serves /healthz, /readyz and /metrics alone, under
	// the same rules, so that they answer however busy the other one is. Default: none.
	ProbeListen string
	// LimitsFile is the configuration, for a store that keeps none itself. Default: none.
	LimitsFile string
	// Namespace is the store's: a limits file that names another one is refused. Default: the store
	// has none.
	Namespace string
	// LimitsOpened is what LimitsFile held when the store was opened with it. A file that still holds
	// the same is not put in force when the server starts. Default: the store was opened with nothing.
	LimitsOpened []byte
	// TokensFile names the bearer tokens that are let in. Default: none are needed, and everybody
	// who reaches the address is admin.
	TokensFile string
	// NoTokens lets the server do without bearer tokens on an address that others can reach.
	// Default: false.
	NoTokens bool
	// CertFile and KeyFile are a certificate and its key, in PEM, for TLS. Default: no TLS.
	CertFile string
	KeyFile  string
	// Watch is how often the files are looked at; what has changed is read again once it has
	// stood still for as long; at least [LeastWatch]. Below zero they are read again by
	// [Server.Reload] alone. Default: one second.
	Watch time.Duration
	// Bounds are the limits of the server itself. Default: those of [Bounds].
	Bounds Bounds
	// Limiter tunes the limiter. Its Observer is told after the server's own. Default: all defaults.
	Limiter *weir.Options
	// TraceEndpoint is the URL that a collector takes traces at, by OTLP over HTTP; the standard
	// OTEL_ variables tune the rest. Default: no traces.
	TraceEndpoint string
	// StoreFaults counts what goes wrong in the store outside of calls, for the metrics.
	// Default: they say that nothing does.
	StoreFaults *StoreFaults
	// Logger is told what happens. Default: nobody.
	Logger *slog.Logger
	// Version is the program's own, for metrics and traces. Default: "(devel)".
	Version string
}

// Bounds keep clients from using up the process. Zero fields are defaults.
type Bounds struct {
	// MaxBody is how many bytes a request's body may have. Default: 1 MiB.
	MaxBody int64
	// MaxHeader is how many bytes a request's line and headers may have, about. Default: 32 KiB.
	MaxHeader int
	// MaxConcurrent is how many requests of the API are served at once; others are turned away
	// before anything is charged. Default: 1,024.
	MaxConcurrent int
	// MaxConnections is how many connections are open at once; others wait to be accepted.
	// Default: 8,192.
	MaxConnections int
	// HeaderTimeout is how long a request's headers may take. Default: 5 seconds.
	HeaderTimeout time.Duration
	// ReadTimeout is how long a request may take to arrive, body included. Default: 15 seconds.
	ReadTimeout time.Duration
	// WriteTimeout is how long a request may take from its headers to the end of the answer.
	// Default: 30 seconds.
	WriteTimeout time.Duration
	// IdleTimeout is how long a connection may wait for its next request. Default: 2 minutes.
	IdleTimeout time.Duration
	// ShutdownDelay is how long the server still accepts once it has begun to shut down and says so
	// at /readyz: time for requests on their way, and for a load balancer to look elsewhere.
	// Default: 250 milliseconds.
	ShutdownDelay time.Duration
	// ShutdownTimeout is how long the requests under way then have to end. Default: 30 seconds.
	ShutdownTimeout time.Duration
}

// DefaultWatch is the default of Options.Watch.
const DefaultWatch = time.Second

// LeastWatch is the least that Options.Watch may be: each look reads the files whole.
const LeastWatch = 100 * time.Millisecond

// DefaultBounds are the bounds with every default filled in.
func DefaultBounds() Bounds {
	var b Bounds
	_ = b.setDefaults() // the defaults are in range
	return b
}

// withDefaults returns the options with defaults filled in, or every mistake in them, joined.
// Fields are named as the command line names them.
func (o *Options) withDefaults() (Options, error) {
	var out Options
	if o != nil {
		out = *o
	}
	out.Listen = cmp.Or(out.Listen, "127.0.0.1:0")
	out.Watch = cmp.Or(out.Watch, DefaultWatch)
	out.Version = cmp.Or(out.Version, "(devel)")
	if out.Logger == nil {
		out.Logger = slog.New(slog.DiscardHandler)
	}
	if out.Limiter == nil {
		out.Limiter = &weir.Options{}
	}
	var errs []error
	if out.CertFile == "" && out.KeyFile != "" {
		errs = append(errs, invalid("tls-cert", "", "must be given with --tls-key"))
	}
	if out.KeyFile == "" && out.CertFile != "" {
		errs = append(errs, invalid("tls-key", "", "must be given with --tls-cert"))
	}
	if out.Watch > 0 && out.Watch < LeastWatch {
		errs = append(errs, invalid("watch", out.Watch, fmt.Sprintf("must be at least %v", LeastWatch)))
	}
	if out.LimitsFile == "-" {
		errs = append(errs, invalid("limits", "-", "must be a file, which can be read again"))
	}
	return out, errors.Join(append(errs, out.Bounds.setDefaults())...)
}

// maxTimeout is far more than any bound on time needs.
const maxTimeout = 24 * time.Hour

func (b *Bounds) setDefaults() error {
	return errors.Join(
		bound("max-body", &b.MaxBody, 1<<20, 1<<30),
		bound("max-header", &b.MaxHeader, 32<<10, 16<<20),
		bound("max-concurrent", &b.MaxConcurrent, 1024, 1<<20),
		bound("max-connections", &b.MaxConnections, 8192, 1<<20),
		bound("header-timeout", &b.HeaderTimeout, 5*time.Second, maxTimeout),
		bound("read-timeout", &b.ReadTimeout, 15*time.Second, maxTimeout),
		bound("write-timeout", &b.WriteTimeout, 30*time.Second, maxTimeout),
		bound("idle-timeout", &b.IdleTimeout, 2*time.Minute, maxTimeout),
		bound("shutdown-delay", &b.ShutdownDelay, 250*time.Millisecond, maxTimeout),
		bound("shutdown-timeout", &b.ShutdownTimeout, 30*time.Second, maxTimeout),
	)
}

// bound gives a number its default, and refuses one that is out of range.
func bound[T int | int64 | time.Duration](field string, n *T, byDefault, most T) error {
	if *n == 0 {
		*n = byDefault
	}
	if *n < 0 || *n > most {
		return invalid(field, *n, fmt.Sprintf("must be above 0 and at most %v", most))
	}
	return nil
}

func invalid(field string, value any, reason string) *weir.Error {
	return &weir.Error{Code: weir.Invalid, Field: field, Value: fmt.Sprint(value), Reason: reason}
}
