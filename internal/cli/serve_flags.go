package cli

import (
	"errors"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/connect"
	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/internal/server"
)

// flags declares the flags, in the groups of the help. Their names are those in the server's errors.
func (o *serveOptions) flags(cmd *cobra.Command) {
	f, b, l := cmd.Flags(), &o.Bounds, &o.limiter
	*b = server.DefaultBounds()

	f.StringVar(&o.LimitsFile, "limits", "", "read limits and entities from `FILE`")
	f.StringVar(&o.store, "store", "", "`URL` of the store (default $WEIR_STORE, or memory:)")
	f.DurationVar(&o.Watch, "watch", server.DefaultWatch,
		"how often to check whether files have changed, at least 100ms; 0 for never")
	f.DurationVar(&l.CacheTTL, "cache-ttl", time.Minute,
		"how long to cache which limits apply to an entity on a resource; 0 turns the cache off")
	f.DurationVar(&l.StoreTimeout, "store-timeout", time.Second,
		"how long a DynamoDB table or TigerBeetle cluster may take to answer")
	f.BoolVar(&o.putInForce, "put-in-force", false,
		"put the limits of --limits in force even if other limits have replaced them before; only on TigerBeetle")
	f.Var(o.resources, "resources",
		"reserve on any resource, or only on those that have limits by name: 404 for others")
	console.GroupFlags(cmd, "Limits and store", "limits", "store", "watch", "cache-ttl",
		"store-timeout", "put-in-force", "resources")

	f.StringVar(&o.Listen, "listen", connect.DefaultListen, "listen on `HOST:PORT`; port 0 picks a free one")
	f.StringVar(&o.ProbeListen, "probe-listen", "",
		"also listen on `HOST:PORT`, for /healthz, /readyz and /metrics only")
	f.StringVar(&o.CertFile, "tls-cert", "", "serve TLS with the certificate in `FILE` (PEM)")
	f.StringVar(&o.KeyFile, "tls-key", "", "private key of the certificate, in `FILE` (PEM)")
	console.GroupFlags(cmd, "Listening", "listen", "probe-listen", "tls-cert", "tls-key")

	f.StringVar(&o.TokensFile, "tokens", "", "require one of the bearer tokens in `FILE`")
	f.BoolVar(&o.NoTokens, "insecure-no-tokens", false,
		"listen on any address without bearer tokens: every client that reaches the server is admin")
	console.GroupFlags(cmd, "Who may call", "tokens", "insecure-no-tokens")

	f.DurationVar(&l.LeaseLifetime, "lease-lifetime", time.Hour, "how long a lease lives unless it is extended")
	f.DurationVar(&l.LeaseMemory, "lease-memory", 10*time.Minute,
		"how long to remember an ended lease")
	f.IntVar(&l.LeaseMemorySize, "lease-memory-size", 1_000_000,
		"remember at most `N` ended leases of all callers")
	f.IntVar(&l.MaxLeases, "max-leases", 1_000_000, "allow at most `N` live leases of all callers")
	f.IntVar(&l.MaxLeasesPerCaller, "max-leases-per-caller", 0,
		"allow at most `N` live leases of one caller, which is a bearer token or, without --tokens, an address "+
			"(default a tenth of --max-leases, or nine tenths for the only caller)")
	f.IntVar(&l.CascadeDepth, "cascade-depth", 1,
		"charge at most `N` ancestors of an entity, up to 8")
	console.GroupFlags(cmd, "Leases", "lease-lifetime", "lease-memory", "lease-memory-size",
		"max-leases", "max-leases-per-caller", "cascade-depth")

	f.IntVar(&b.MaxConcurrent, "max-concurrent", b.MaxConcurrent, "serve at most `N` requests at once")
	f.IntVar(&b.MaxConnections, "max-connections", b.MaxConnections, "keep at most `N` connections open")
	f.Int64Var(&b.MaxBody, "max-body", b.MaxBody, "accept at most `BYTES` in the body of a request")
	f.IntVar(&b.MaxHeader, "max-header", b.MaxHeader,
		"accept at most `BYTES` in the headers of a request")
	f.DurationVar(&b.HeaderTimeout, "header-timeout", b.HeaderTimeout, "how long the headers of a request may take to arrive")
	f.DurationVar(&b.ReadTimeout, "read-timeout", b.ReadTimeout, "how long a whole request may take to arrive")
	f.DurationVar(&b.WriteTimeout, "write-timeout", b.WriteTimeout,
		"how long a request may take from its headers to the end of the answer")
	f.DurationVar(&b.IdleTimeout, "idle-timeout", b.IdleTimeout, "how long a connection may be idle between requests")
	console.GroupFlags(cmd, "Bounds on requests and connections", "max-concurrent",
		"max-connections", "max-body",
		"max-header", "header-timeout", "read-timeout", "write-timeout", "idle-timeout")

	f.DurationVar(&b.ShutdownDelay, "shutdown-delay", b.ShutdownDelay,
		"how long to keep accepting requests after /readyz reports that the server is shutting down")
	f.DurationVar(&b.ShutdownTimeout, "shutdown-timeout", b.ShutdownTimeout,
		"how long requests in progress may then take to end")
	console.GroupFlags(cmd, "Shutdown", "shutdown-delay", "shutdown-timeout")

	f.Var(o.format, "log-format", "format of the log")
	f.StringVar(&o.logLevel, "log-level", "info",
		"lowest `LEVEL` to log: debug, info, warn or error")
	console.GroupFlags(cmd, "Log", "log-format", "log-level")
}

// refuseEmpty refuses a flag that is given with an empty value, such as an unset variable of a
// script. An empty --tokens, for example, would make every client admin.
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
			errs = append(errs, console.UsageError(cmd, "--%s must not be empty", f.name))
		}
	}
	return errors.Join(errs...)
}

// refuseZero refuses a bound of 0, which the server would replace by its default, and a negative
// time between looks, which would mean never.
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
			errs = append(errs, console.UsageError(cmd, "%w", &weir.Error{
				Code: weir.Invalid, Field: "--" + name, Value: given, Reason: "must be above 0",
			}))
		}
	}
	if o.Watch < 0 {
		errs = append(errs, console.UsageError(cmd, "%w", &weir.Error{
			Code: weir.Invalid, Field: "--watch", Value: o.Watch.String(), Reason: "must be 0 or above",
		}))
	}
	return errors.Join(errs...)
}

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
	if o.format.String() == "json" {
		return slog.New(slog.NewJSONHandler(w, options)), nil
	}
	return slog.New(slog.NewTextHandler(w, options)), nil
}
