package cli

import (
	"errors"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/server"
)

// flags declares the flags. The names are those that the server's errors have.
func (o *serveOptions) flags(cmd *cobra.Command) {
	f, b := cmd.Flags(), &o.Bounds
	*b = server.DefaultBounds()
	f.StringVar(&o.LimitsFile, "limits", "", "the limits `FILE`")
	f.BoolVar(&o.putInForce, "put-in-force", false,
		"on TigerBeetle, put the limits file in force though a newer one is: to go back to it")
	f.StringVar(&o.Listen, "listen", defaultListen, "listen on `HOST:PORT`; port 0 takes a free one")
	f.StringVar(&o.ProbeListen, "probe-listen", "",
		"serve /healthz, /readyz and /metrics alone on `HOST:PORT`")
	f.StringVar(&o.store, "store", "", "the store's `URL` (default $WEIR_STORE, or memory:)")
	f.StringVar(&o.TokensFile, "tokens", "", "let in who has a bearer token of this `FILE`")
	f.BoolVar(&o.NoTokens, "insecure-no-tokens", false,
		"let everybody in as admin, from other machines too")
	f.StringVar(&o.CertFile, "tls-cert", "", "serve TLS with the certificate in this PEM `FILE`")
	f.StringVar(&o.KeyFile, "tls-key", "", "the certificate's key, a PEM `FILE`")
	f.DurationVar(&o.Watch, "watch", server.DefaultWatch,
		"look at the files this often, at least 100ms; 0 for never")
	f.Var(&o.format, "log-format", "log as text or JSON")
	f.StringVar(&o.logLevel, "log-level", "info", "log from this level: debug, info, warn or error")

	l := &o.limiter
	f.IntVar(&l.CascadeDepth, "cascade-depth", 1, "charge at most `N` ancestors of an entity, up to 8")
	f.DurationVar(&l.LeaseLifetime, "lease-lifetime", time.Hour, "a lease lives this long unless it is extended")
	f.DurationVar(&l.LeaseMemory, "lease-memory", 10*time.Minute, "remember ended leases this long")
	f.IntVar(&l.LeaseMemorySize, "lease-memory-size", 1_000_000, "remember at most `N` ended leases")
	f.IntVar(&l.MaxLeases, "max-leases", 1_000_000, "at most `N` live leases")
	f.IntVar(&l.MaxLeasesPerCaller, "max-leases-per-caller", 0,
		"at most `N` of them for a bearer token or, without, an address (default a tenth of --max-leases)")
	f.DurationVar(&l.CacheTTL, "cache-ttl", time.Minute, "use what was read of the configuration this long; 0 for never")
	f.DurationVar(&l.StoreTimeout, "store-timeout", time.Second, "a store in another process has this long to answer")

	f.Int64Var(&b.MaxBody, "max-body", b.MaxBody, "at most `BYTES` in a request's body")
	f.IntVar(&b.MaxHeader, "max-header", b.MaxHeader, "at most `BYTES` in a request's headers")
	f.IntVar(&b.MaxConcurrent, "max-concurrent", b.MaxConcurrent, "serve at most `N` requests at once")
	f.IntVar(&b.MaxConnections, "max-connections", b.MaxConnections, "at most `N` open connections")
	f.DurationVar(&b.HeaderTimeout, "header-timeout", b.HeaderTimeout, "a request's headers may take this long")
	f.DurationVar(&b.ReadTimeout, "read-timeout", b.ReadTimeout, "a whole request may take this long to arrive")
	f.DurationVar(&b.WriteTimeout, "write-timeout", b.WriteTimeout, "an answer may take this long")
	f.DurationVar(&b.IdleTimeout, "idle-timeout", b.IdleTimeout, "a connection may be idle this long")
	f.DurationVar(&b.ShutdownDelay, "shutdown-delay", b.ShutdownDelay,
		"go on accepting this long after /readyz says that the server ends")
	f.DurationVar(&b.ShutdownTimeout, "shutdown-timeout", b.ShutdownTimeout,
		"then give requests under way this long")
}

// refuseEmpty refuses a flag that is given and yet empty, as a variable of a script may be that was
// never set: without bearer tokens, say, everybody would be admin.
func (o *serveOptions) refuseEmpty(cmd *cobra.Command) error {
	var errs []error
	for _, f := range []struct{ name, value string }{
		{"limits", o.LimitsFile},
		{"listen", o.Listen},
		{"probe-listen", o.ProbeListen},
		{"store", o.store},
		{"tokens", o.TokensFile},
		{"tls-cert", o.CertFile},
		{"tls-key", o.KeyFile},
	} {
		if f.value == "" && cmd.Flags().Changed(f.name) {
			errs = append(errs, misused(cmd, "--%s must not be empty", f.name))
		}
	}
	return errors.Join(errs...)
}

// refuseZero refuses a bound of 0, which the server would take for its default, and a negative time
// between looks, which it would take for never.
func (o *serveOptions) refuseZero(cmd *cobra.Command) error {
	var errs []error
	for _, name := range []string{
		"max-body", "max-header", "max-concurrent", "max-connections", "header-timeout",
		"read-timeout", "write-timeout", "idle-timeout", "shutdown-delay", "shutdown-timeout",
		"cascade-depth", "lease-lifetime", "lease-memory", "lease-memory-size", "store-timeout",
		"max-leases", "max-leases-per-caller",
	} {
		given := cmd.Flags().Lookup(name).Value.String()
		if cmd.Flags().Changed(name) && (given == "0" || given == "0s") {
			errs = append(errs, misused(cmd, "%w", &weir.Error{
				Code: weir.Invalid, Field: "--" + name, Value: given, Reason: "must be above 0",
			}))
		}
	}
	if o.Watch < 0 {
		errs = append(errs, misused(cmd, "%w", &weir.Error{
			Code: weir.Invalid, Field: "--watch", Value: o.Watch.String(), Reason: "must be 0 or above",
		}))
	}
	return errors.Join(errs...)
}

// logFormat is how logs are written; it is the value of a flag.
type logFormat string

const (
	textLogs logFormat = "text"
	jsonLogs logFormat = "json"
)

// String returns the flag's text.
func (f *logFormat) String() string { return string(*f) }

// Set reads the flag's text.
func (f *logFormat) Set(s string) error {
	switch logFormat(s) {
	case textLogs, jsonLogs:
		*f = logFormat(s)
		return nil
	}
	return errors.New("must be text or json")
}

// Type names the values in the help.
func (f *logFormat) Type() string { return "text|json" }

// logger makes the log.
func (o *serveOptions) logger(w io.Writer) (*slog.Logger, error) {
	var level slog.Level
	switch strings.ToLower(o.logLevel) {
	case "debug", "info", "warn", "error":
		if err := level.UnmarshalText([]byte(o.logLevel)); err != nil {
			return nil, err
		}
	default:
		return nil, &weir.Error{Code: weir.Invalid, Field: "log-level", Value: o.logLevel,
			Reason: "must be debug, info, warn or error"}
	}
	options := &slog.HandlerOptions{Level: level}
	if o.format == jsonLogs {
		return slog.New(slog.NewJSONHandler(w, options)), nil
	}
	return slog.New(slog.NewTextHandler(w, options)), nil
}
