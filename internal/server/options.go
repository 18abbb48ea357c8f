package server

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/namespace"
)

// Options tune a [Server]. Nil means all defaults.
type Options struct {
	// Listen is the address to listen on, as host:port; port 0 means a free one.
	// Default: a free port of 127.0.0.1.
	Listen string
	// ProbeListen is another address, under the same rules, that serves only /healthz, /readyz and
	// /metrics, so that they answer even if the server is busy. Default: none.
	ProbeListen string
	// LimitsFile is the configuration of a store that keeps none itself. Default: none.
	LimitsFile string
	// Namespace is the store's, for the log: a limits file that names another one is refused.
	// Default: the store has none.
	Namespace string
	// Namespaces administers the namespaces of the table that the store is on. Default: the store
	// is on no table.
	Namespaces namespace.Admin
	// Store is the store's name in the log, without secrets. Default: none.
	Store string
	// LimitsOpened are the contents of LimitsFile with which the store was opened. If the file is
	// unchanged, it is not put in force when the server starts. Default: the store was opened
	// without.
	LimitsOpened []byte
	// TokensFile has the bearer tokens that are accepted. Default: none are needed, and every
	// client that reaches the address is admin.
	TokensFile string
	// NoTokens allows an address that others can reach without bearer tokens. Default: false.
	NoTokens bool
	// CertFile and KeyFile are a certificate and its key in PEM. Default: no TLS.
	CertFile string
	KeyFile  string
	// Watch is how often the files are looked at, at least [LeastWatch]. A changed file is read
	// again after it was unchanged for as long. If it is negative, only [Server.Reload] reads files
	// again. Default: one second.
	Watch time.Duration
	// Bounds bound what clients can use. Default: the defaults of [Bounds].
	Bounds Bounds
	// Limiter tunes the limiter. Its Observer is called after the server's own. Default: all
	// defaults.
	Limiter *limiter.Options
	// TraceEndpoint is the URL of a collector of traces, by OTLP over HTTP. The standard OTEL_
	// variables tune the rest. Default: no traces.
	TraceEndpoint string
	// StoreFaults counts errors of the store outside of calls, for the metrics. Default: no errors are
	// counted.
	StoreFaults *StoreFaults
	// Logger is the log. Default: nothing is logged.
	Logger *slog.Logger
	// Version is the program's, for metrics and traces. Default: "(devel)".
	Version string
}

// Bounds keep clients from exhausting the process. A field that is zero has its default.
type Bounds struct {
	// MaxBody bounds the bytes of a request's body. Default: 1 MiB.
	MaxBody int64
	// MaxHeader bounds the bytes of a request's line and headers, approximately. Default: 32 KiB.
	MaxHeader int
	// MaxConcurrent bounds the requests of the API that are served concurrently. Others are refused
	// before anything is charged. Default: 1,024.
	MaxConcurrent int
	// MaxConnections bounds the open connections; others wait to be accepted. Default: 8,192.
	MaxConnections int
	// HeaderTimeout bounds the time in which headers arrive. Default: 5 seconds.
	HeaderTimeout time.Duration
	// ReadTimeout bounds the time in which a request arrives with its body. Default: 15 seconds.
	ReadTimeout time.Duration
	// WriteTimeout bounds the time from the headers of a request to the end of the answer.
	// Default: 30 seconds.
	WriteTimeout time.Duration
	// IdleTimeout bounds how long a connection waits for its next request. Default: 2 minutes.
	IdleTimeout time.Duration
	// ShutdownDelay is how long the server accepts connections after it has begun to shut down and
	// to say so at /readyz, so that load balancers stop sending requests. Default: 250
	// milliseconds.
	ShutdownDelay time.Duration
	// ShutdownTimeout bounds the wait for the requests in progress after that. Default: 30 seconds.
	ShutdownTimeout time.Duration
}

// DefaultWatch is the default of Options.Watch.
const DefaultWatch = time.Second

// LeastWatch is the least Options.Watch, because each look reads the whole files.
const LeastWatch = 100 * time.Millisecond

// DefaultBounds returns the bounds with all defaults.
func DefaultBounds() Bounds {
	var b Bounds
	_ = b.setDefaults() // the defaults are in range
	return b
}

// withDefaults returns the options with defaults filled in, or all mistakes in them, joined, with
// the command line's names of fields.
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
		out.Limiter = &limiter.Options{}
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
		errs = append(errs, invalid("limits", "-",
			"must be a regular file, because the server reads it again when it changes"))
	}
	return out, errors.Join(append(errs, out.Bounds.setDefaults())...)
}

// maxTimeout is far above any useful bound.
const maxTimeout = 24 * time.Hour

func (b *Bounds) setDefaults() error {
	return errors.Join(
		checkBound("max-body", &b.MaxBody, 1<<20, 1<<30),
		checkBound("max-header", &b.MaxHeader, 32<<10, 16<<20),
		checkBound("max-concurrent", &b.MaxConcurrent, 1024, 1<<20),
		checkBound("max-connections", &b.MaxConnections, 8192, 1<<20),
		checkBound("header-timeout", &b.HeaderTimeout, 5*time.Second, maxTimeout),
		checkBound("read-timeout", &b.ReadTimeout, 15*time.Second, maxTimeout),
		checkBound("write-timeout", &b.WriteTimeout, 30*time.Second, maxTimeout),
		checkBound("idle-timeout", &b.IdleTimeout, 2*time.Minute, maxTimeout),
		checkBound("shutdown-delay", &b.ShutdownDelay, 250*time.Millisecond, maxTimeout),
		checkBound("shutdown-timeout", &b.ShutdownTimeout, 30*time.Second, maxTimeout),
	)
}

// checkBound sets the default of a number, and refuses one that is out of range.
func checkBound[T int | int64 | time.Duration](field string, n *T, byDefault, most T) error {
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
