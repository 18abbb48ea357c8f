package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/dynamodb"
	"github.com/weir-limiter/weir/internal/connect"
	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/internal/server"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/manifest"
	"github.com/weir-limiter/weir/store"
)

const serveHelp = `Serve a store over HTTP until interrupted. /openapi.json describes the API.

With the memory store and on TigerBeetle, the limits file is the configuration. The server
reads it again when it changes and on a hangup signal (SIGHUP), and does the same with the
files of bearer tokens and of the certificate. If a file has a mistake, the server logs it and
keeps what was in force. On TigerBeetle all servers of a namespace need the same limits file: a
server whose limits are not the ones in force refuses to reserve, and /readyz reports it. On
DynamoDB the table has the configuration, and --limits is an error.

Without --tokens every client that reaches the server is admin, so the server listens only on a
loopback address. The file of bearer tokens must be private (mode 0600, or 0640 if it is root's and
the server is another user), and looks like this:

  tokens:
    - {name: checkout, role: call, token: "at least 16 characters"}
    - {name: grafana, role: read, sha256: "its SHA-256, in hexadecimal"}

A client with the role read can only look, one with the role call can also reserve and settle,
and one with the role admin can also change limits. All of them see only the namespace of the
server. With "namespaces: all" too, an admin can register, delete and recover the other
namespaces of a DynamoDB table.

Once the server listens, it prints its URL on standard output. Everything else is logged to
standard error: each change of the configuration, with who made it and what was before and
after, refused bearer tokens and roles with their address (bounded, then counted), reloads with
their cause, start and stop. At level debug this includes each request and denial, with who
asked and which limits denied. docs/server.md has a table of the lines. If
OTEL_EXPORTER_OTLP_ENDPOINT or OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is set, traces are sent
there, by OTLP over HTTP.`

// serveOptions are the flags of serve.
type serveOptions struct {
	server.Options
	limiter limiter.Options
	store   string
	// putInForce puts the limits file in force even if it was superseded.
	putInForce bool
	// resources is "declared" if reservations on other resources are refused.
	resources *console.Choice
	format    *console.Choice
	logLevel  string
}

func serveCommand(a *console.App) *cobra.Command {
	o := serveOptions{
		format: console.NewChoice("text", "json"), resources: console.NewChoice("any", "declared"),
	}
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve a store over HTTP",
		Long:  serveHelp,
		Example: `  weir serve --limits limits.yaml
  weir serve --limits limits.yaml --store 'memory:?snapshot=/var/lib/weir/state'
  weir serve --store dynamodb://limits?region=eu-central-1
  weir serve --limits limits.yaml \
    --store 'tigerbeetle://10.0.0.1:3000,10.0.0.2:3000?cluster=7'
  weir serve --limits limits.yaml --listen :7117 --tokens tokens.yaml \
    --tls-cert cert.pem --tls-key key.pem`,
		Args: console.Arguments(0, 0, ""),
	}
	o.flags(cmd)
	cmd.RunE = console.RunE(func(cmd *cobra.Command, _ []string) error {
		if err := errors.Join(o.refuseEmpty(cmd), o.refuseZero(cmd), refusePutInForce(a, cmd, &o)); err != nil {
			return err
		}
		if o.Watch == 0 {
			o.Watch = -1 // 0 on the command line means never
		}
		if o.limiter.CacheTTL == 0 {
			o.limiter.CacheTTL = -1
		}
		o.limiter.DeclaredResources = o.resources.String() == "declared"
		err := runServer(cmd.Context(), a, &o)
		named := withDashes(cmd, err)
		if e, ok := errors.AsType[*weir.Error](err); ok && e.Code == weir.Invalid && flagAtFault(cmd, err) != "" {
			return console.UsageError(cmd, "%w", named)
		}
		return named
	})
	return cmd
}

// flagAtFault returns the flag to which an error belongs, or "" if there is none.
func flagAtFault(cmd *cobra.Command, err error) string {
	if _, inFile := errors.AsType[*server.FileError](err); inFile {
		return ""
	}
	e, ok := errors.AsType[*weir.Error](err)
	if !ok {
		return ""
	}
	if cmd.Flags().Lookup(e.Field) != nil {
		return e.Field
	}
	for _, name := range []string{
		"cascade-depth", "lease-lifetime", "lease-memory", "lease-memory-size", "cache-ttl", "store-timeout",
		"max-leases", "max-leases-per-caller",
	} {
		if strings.EqualFold(strings.ReplaceAll(name, "-", ""), e.Field) { // the limiter's name for the same option
			return name
		}
	}
	return ""
}

// withDashes writes the names of flags in errors as the command line has them.
func withDashes(cmd *cobra.Command, err error) error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var errs []error
		for _, e := range joined.Unwrap() {
			errs = append(errs, withDashes(cmd, e))
		}
		return errors.Join(errs...)
	}
	if file, ok := errors.AsType[*server.FileError](err); ok && file.Option != "" {
		return &server.FileError{Option: "--" + file.Option, File: file.File, Err: file.Err}
	}
	e, ok := errors.AsType[*weir.Error](err)
	if !ok {
		return err
	}
	if _, alone := err.(*weir.Error); !alone && e.Code != weir.Invalid { // keep the text around it
		return err
	}
	field := flagAtFault(cmd, err)
	if field == "" {
		return err
	}
	named := *e
	named.Field = "--" + field
	return &named
}

// runServer opens the store and serves it until ctx ends.
func runServer(ctx context.Context, a *console.App, o *serveOptions) error {
	// This comes first, because a hangup signal without a listener would end the process.
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	console.IgnoreBrokenPipes()

	logger, err := o.logger(a.Streams.Err)
	if err != nil {
		return err
	}
	o.Logger = logger
	o.Version = console.BuildVersion().Version
	o.Limiter = &o.limiter
	o.TraceEndpoint = traceEndpoint(a.Env)
	if o.TraceEndpoint != "" {
		// RouteTelemetry changes the whole process. That is safe, because only this server makes
		// traces.
		server.RouteTelemetry(ctx, a.Env, logger)
	}
	o.StoreFaults = server.NewStoreFaults(logger)
	backend, err := openServed(ctx, a, o)
	if err != nil {
		return err
	}
	s, err := server.New(ctx, backend, &o.Options)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(a.Streams.Out, "weir: listening on %s\n", s.URL()); err != nil {
		ended, cancel := context.WithCancel(ctx)
		cancel()
		return errors.Join(fmt.Errorf("output: %w", err), s.Run(ended))
	}
	done := make(chan struct{})
	defer close(done)
	go func() {
		for {
			select {
			case <-hangup:
				_ = s.Reload(ctx) // it is logged
			case <-done:
				return
			}
		}
	}()
	return s.Run(ctx)
}

// traceEndpoint returns the URL to which the standard variables send traces, or "" for none.
func traceEndpoint(env func(string) string) string {
	if env("OTEL_SDK_DISABLED") == "true" || env("OTEL_TRACES_EXPORTER") == "none" {
		return ""
	}
	if u := env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"); u != "" {
		return u
	}
	if u := env("OTEL_EXPORTER_OTLP_ENDPOINT"); u != "" {
		return strings.TrimRight(u, "/") + "/v1/traces"
	}
	return ""
}

// servedStore returns the URL of the store to serve.
func servedStore(a *console.App, o *serveOptions) string {
	return cmp.Or(o.store, a.Env(connect.StoreEnv), "memory:")
}

// refusePutInForce refuses the flag on a store that has no limits of other servers.
func refusePutInForce(a *console.App, cmd *cobra.Command, o *serveOptions) error {
	if !o.putInForce || connect.IsCluster(servedStore(a, o)) {
		return nil
	}
	return console.UsageError(cmd, "--put-in-force needs a store whose servers share one limits file: "+
		"--store tigerbeetle://HOST:PORT")
}

// openServed opens the store to serve.
func openServed(ctx context.Context, a *console.App, o *serveOptions) (driver.Store, error) {
	at := servedStore(a, o)
	refused := func(reason string) error {
		return &weir.Error{Code: weir.Invalid, Field: "limits", Value: o.LimitsFile, Reason: reason}
	}
	opening := &store.Options{
		OnError: o.StoreFaults.Note, PutInForce: o.putInForce, Timeout: o.Limiter.StoreTimeout,
	}
	m := &manifest.Manifest{}
	o.Store, o.Namespace = storeInLog(at), store.Namespace(at)
	switch {
	case connect.IsTable(at) && o.LimitsFile != "":
		return nil, refused(connect.LimitsOnTable)
	case !connect.IsCluster(at):
	case o.LimitsFile == "":
		return nil, refused(connect.LimitsOfCluster)
	case o.LimitsFile == console.StandardInput:
		return nil, refused("must be a regular file, because the server reads it again when it changes")
	default:
		var err error
		if m, err = openingLimits(ctx, o); err != nil {
			return nil, err
		}
		opening.Definitions = m.Definitions
	}
	if table, err := store.Table(at); err == nil {
		o.Namespace = cmp.Or(table.Options.Namespace, "default") // there is no limits file
	}
	backend, err := store.Open(ctx, at, opening)
	if table, ok := backend.(*dynamodb.Store); ok {
		o.Namespaces = table.Table()
	}
	if err != nil && opening.Definitions != nil && !connect.IsURLError(err) {
		return nil, m.Locate(err)
	}
	if k, ok := backend.(interface{ OwnLimits() bool }); ok && k.OwnLimits() && o.LimitsFile != "" {
		return nil, errors.Join(refused(connect.LimitsInFile), backend.Close())
	}
	return backend, err
}

// openingLimits reads the limits with which a store is opened. A store on a cluster decides when it
// is opened whether they are in force.
func openingLimits(ctx context.Context, o *serveOptions) (*manifest.Manifest, error) {
	data, err := server.ReadLimits(o.LimitsFile)
	if err != nil {
		return nil, err
	}
	m, err := manifest.Parse(o.LimitsFile, data)
	if err != nil {
		return nil, &server.FileError{Err: err}
	}
	if err := m.CheckNamespace(o.Namespace); err != nil {
		return nil, &server.FileError{Err: err}
	}
	o.LimitsOpened = data
	refused, err := connect.ValidateFor(ctx, m.Definitions, o.limiter)
	if refused != nil {
		return nil, &server.FileError{Err: m.Locate(refused)}
	}
	return m, err
}
