// Package server is the process around an [httphandler.Handler]: the listener with its bounds, TLS,
// bearer tokens, files that are read again while it runs, metrics, traces, logs and an orderly
// shutdown.
//
// # A request
//
// A boundedListener accepts the connection. If the maximum is reached, it first closes the
// connection that has been idle longest, so that clients that hold connections open cannot keep
// others out. net/http reads the request line and the headers. The observed handler starts a span
// and counts the request, loopbackOnly refuses foreign host names if the server has no bearer
// tokens, and GET /metrics is answered here. The [httphandler.Handler] serves all other requests:
// it calls tokens to authenticate the caller, and recordAuthenticated when it has done so, which
// protects the connection from eviction. It then calls the [limiter.Limiter], whose events go to
// the observers: metrics, activity (for the status page), the log and traces. After the answer,
// observed ends the span, counts the status and logs a failure.
//
// # Files
//
// A source is a group of files: the limits, the bearer tokens, or the certificate with its key.
// [Server.Run] starts a goroutine that looks at the files regularly and loads a source when it has
// changed and was then the same for two looks; [Server.Reload] loads all of them. A source that
// cannot be loaded leaves in force what was in force before.
//
// # Locks
//
// Server.reloading guards the sources, so that a reload and the watch do not load at the same time.
// The lists of a boundedListener are guarded by its mu. Requests take neither lock for bearer
// tokens and certificates, which are atomic pointers to values that never change.
//
// # Shutdown
//
// When its context ends, Run answers 503 at /readyz, waits for Bounds.ShutdownDelay, stops
// accepting, waits for the requests in progress, stops the listener for probes, the watch and the
// limiter with its store, and sends the last traces.
//
// Requests that are not valid HTTP do not reach the handler. If a request line is malformed, or
// headers are too large or too slow, net/http answers in plain text with 400 or 431, or not at all,
// and closes the connection. The handler answers all other requests.
package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/httpapi/httphandler"
	"github.com/weir-limiter/weir/internal/declared"
	"github.com/weir-limiter/weir/internal/server/statuspage"
	"github.com/weir-limiter/weir/limiter"
)

// Server serves a store over HTTP.
type Server struct {
	options Options
	metrics *metrics
	traces  *traces
	limiter *limiter.Limiter
	// volatile is true if the configuration is lost with the process, and editable if
	// administrators can change parts of it.
	volatile, editable bool
	// limits knows whether the store had limits of its own when it was opened. Such a store keeps
	// the changes of administrators, unless the server has a limits file. It is nil for other
	// stores.
	limits interface{ OwnLimits() bool }
	// store knows whether it is ready; nil for a store that always is.
	store readyChecker
	// tokenSet and certificate are nil if they are not in use.
	tokens      *tokenSet
	certificate *certificate
	activity    *statuspage.Activity
	listener    *boundedListener
	probes      *boundedListener // nil without a listener for probes
	http        *http.Server
	// logFirstLimits logs whether the limits file with which the server starts is in force; nil if it
	// has none.
	logFirstLimits func(context.Context)
	// requestLog limits how often it logs a line, for lines that callers can cause at will.
	requestLog *slog.Logger
	trail      *trail

	reloading sync.Mutex // guards the sources and loaded
	sources   []*source
	loaded    *weir.Definitions // those of the limits file in force; nil without a file
	ending    atomic.Bool
}

// New opens a server over a store and listens, but serves nothing: call [Server.Run], even if only
// to close it. The server owns the store, and closes it if New fails. The errors, joined, are
// [*weir.Error]s about options, with the command line's names of them in Field, or [*FileError]s.
func New(ctx context.Context, b driver.Store, o *Options) (*Server, error) {
	options, err := o.withDefaults()
	if err != nil {
		return nil, errors.Join(err, b.Close())
	}
	s := &Server{
		options: options, metrics: newMetrics(options.Version), requestLog: throttled(options.Logger),
		trail: newTrail(options.Logger),
	}
	if err := s.open(ctx, b); err != nil {
		return nil, err
	}
	return s, nil
}

// open opens the parts, and closes them again if one fails.
func (s *Server) open(ctx context.Context, b driver.Store) (err error) {
	defer func() {
		if err != nil {
			s.traces.shutdown(context.WithoutCancel(ctx))
			err = errors.Join(err, b.Close())
		}
	}()
	if s.traces, err = newTraces(ctx, &s.options); err != nil {
		return err
	}
	tokens, mistakes := s.openTokens(ctx)
	if err = s.openLimiter(b); err != nil {
		return errors.Join(mistakes, err)
	}
	if err = s.openSources(ctx, tokens, mistakes); err != nil {
		return err
	}
	if err := s.ready(ctx); err != nil {
		s.options.Logger.LogAttrs(ctx, slog.LevelWarn, "not ready", slog.String("error", err.Error()))
	}
	if err = s.listen(ctx); err != nil {
		return err
	}
	if s.logFirstLimits != nil {
		s.logFirstLimits(ctx)
	}
	s.metrics.watchConnections(s.listener)
	s.metrics.watchStore(s.options.StoreFaults)
	s.metrics.watchReady(s.ready) //nolint:contextcheck // a scrape brings no context
	return nil
}

// maxProbes bounds the connections of the listener for probes.
const maxProbes = 64

// listen opens the listeners.
func (s *Server) listen(ctx context.Context) error {
	open := s.options.TokensFile != "" || s.options.NoTokens
	l, err := listen(ctx, "listen", s.options.Listen, open)
	if err != nil {
		return err
	}
	s.listener = newBoundedListener(l, s.options.Bounds.MaxConnections)
	if s.options.ProbeListen == "" {
		return nil
	}
	if l, err = listen(ctx, "probe-listen", s.options.ProbeListen, open); err != nil {
		return errors.Join(err, s.listener.Close())
	}
	s.probes = newBoundedListener(l, maxProbes)
	return nil
}

// defaultMaxLeases is the limiter's own default of MaxLeases.
const defaultMaxLeases = 1_000_000

// openLimiter makes the limiter with its observers.
func (s *Server) openLimiter(b driver.Store) error {
	options := *s.options.Limiter
	if s.tokens.callers() > 1 && options.MaxLeasesPerCaller == 0 {
		// The bound holds from the first call on, even while only one of several callers has
		// called.
		options.MaxLeasesPerCaller = max(1, cmp.Or(options.MaxLeases, defaultMaxLeases)/10)
	}
	now := options.Now
	if now == nil {
		now = time.Now
	}
	s.activity = statuspage.NewActivity(now())
	all := observers{s.metrics, s.activity, denialLog{s.options.Logger}, supersededLog{s.requestLog}}
	if s.traces != nil {
		all = append(all, s.traces)
	}
	if options.Observer != nil {
		all = append(all, options.Observer)
	}
	options.Observer = all
	_, s.volatile = b.(driver.ConfigWriter)
	_, s.editable = b.(driver.ConfigEditor)
	s.limits, _ = b.(interface{ OwnLimits() bool })
	s.store, _ = b.(readyChecker)
	var err error
	if s.limiter, err = limiter.New(b, &options); err != nil {
		return err
	}
	s.metrics.watchLimiter(s.limiter)
	s.metrics.watchBackend(b, time.Now())
	return nil
}

// URL returns the server's URL for clients on this machine.
func (s *Server) URL() string {
	scheme, address := "http", s.listener.Addr().String()
	if s.options.CertFile != "" {
		scheme = "https"
	}
	if tcp, ok := s.listener.Addr().(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		address = net.JoinHostPort("localhost", strconv.Itoa(tcp.Port))
	}
	return scheme + "://" + address
}

// handlers returns the handlers for the two listeners.
func (s *Server) handlers() (all, probes http.Handler) {
	o := &httphandler.Options{
		Admin: s.limiter, AdminNote: s.adminNote(), Records: s.limiter, Activity: s.activity.Report,
		Limits:     declared.New(s.limiter),
		Namespaces: s.options.Namespaces, Namespace: s.options.Namespace,
		Store:   storeScheme(s.options.Store),
		MaxBody: s.options.Bounds.MaxBody, MaxConcurrent: s.options.Bounds.MaxConcurrent,
		// Half of the connections stay available to requests whose bodies are not slow.
		MaxArriving: min(4*s.options.Bounds.MaxConcurrent, max(1, s.options.Bounds.MaxConnections/2)),
		Logger:      s.requestLog, Trail: s.trail, Ready: s.ready, StatusPage: statuspage.Page(), Now: s.options.Limiter.Now,
		LetIn: recordAuthenticated, HungUp: hungUp, Version: s.options.Version,
	}
	if s.tokens != nil {
		o.Authenticate = s.tokens.authenticate
	}
	api := httphandler.New(s.limiter, o)
	s.metrics.watchHandler(api)
	figures := getOnly(api.Require(httphandler.RoleRead, s.metrics.handler()))
	served := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/metrics" {
			r.Pattern = "GET /metrics"
			figures.ServeHTTP(w, r)
			return
		}
		api.ServeHTTP(w, r)
	})
	return s.instrument(s.loopbackOnly(s.options.Listen, served)),
		s.instrument(s.loopbackOnly(s.options.ProbeListen, probesOnly(served)))
}

// storeScheme returns the part of a store's name that callers may know.
func storeScheme(store string) string {
	if scheme, _, ok := strings.Cut(store, ":"); ok {
		return scheme + ":"
	}
	return store
}

// newHTTP returns the HTTP server for a listener.
func (s *Server) newHTTP(ctx context.Context, l *boundedListener, h http.Handler) *http.Server {
	b := &s.options.Bounds
	of := &http.Server{
		Handler: h, BaseContext: func(net.Listener) context.Context { return ctx },
		ReadHeaderTimeout: b.HeaderTimeout, ReadTimeout: b.ReadTimeout, WriteTimeout: b.WriteTimeout,
		IdleTimeout: b.IdleTimeout, MaxHeaderBytes: b.MaxHeader,
		ConnState: l.track, ConnContext: connContext, ErrorLog: log.New(httpErrorWriter{s.options.Logger}, "", 0),
		DisableGeneralOptionsHandler: true, // it would answer "OPTIONS *" with 200
	}
	of.RegisterOnShutdown(l.closeUnused)
	of.TLSConfig = s.tlsConfig()
	return of
}

// Run serves until ctx ends, and then shuts down: it answers at /readyz that it ends, accepts
// connections for another ShutdownDelay, waits for the requests in progress, closes the store and
// sends the last traces. It returns the errors of that. Requests that were cut off and traces that
// were lost are not errors; they are in the log. It must be called once.
func (s *Server) Run(ctx context.Context) error {
	calm := context.WithoutCancel(ctx)
	all, probes := s.handlers()
	s.http = s.newHTTP(calm, s.listener, all)
	stopProbes := s.serveProbes(calm, probes)
	watching, stop := context.WithCancel(ctx)
	watched, told := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		s.watch(watching)
	}()
	trailing, stopTrail := context.WithCancel(calm)
	go func() {
		defer close(told)
		s.trail.run(trailing)
	}()
	served := make(chan error, 1)
	go func() { served <- serveHTTP(s.http, s.listener) }()
	s.announce(ctx)
	var err error
	select {
	case err = <-served: // the listener failed
		err = errors.Join(err, s.http.Close())
	case <-ctx.Done():
		err = s.shutDown(calm)
		if late := <-served; !errors.Is(late, http.ErrServerClosed) { // it may have started only now
			err = errors.Join(err, late)
		}
	}
	err = errors.Join(err, stopProbes()) // probes are answered until now
	stop()
	stopTrail()
	<-told
	s.awaitWatch(calm, watched)
	err = errors.Join(err, s.limiter.Close())
	s.traces.shutdown(calm)
	return err
}

// watchTimeout bounds the wait for the watch of files at shutdown.
const watchTimeout = time.Second

// awaitWatch waits for the watch to end, but not for a file system that does not answer, so that
// the store is closed in any case.
func (s *Server) awaitWatch(ctx context.Context, watched <-chan struct{}) {
	select {
	case <-watched:
	case <-time.After(watchTimeout):
		s.options.Logger.LogAttrs(ctx, slog.LevelWarn,
			"the files are still being read: shutting down without waiting for them")
	}
}

// announce logs where the server listens, and warnings about its options.
func (s *Server) announce(ctx context.Context) {
	log := s.options.Logger
	if s.tokens == nil && s.options.NoTokens {
		log.LogAttrs(ctx, slog.LevelWarn,
			"no bearer tokens: every client that reaches this address is admin")
	}
	if s.volatile && s.options.LimitsFile == "" && (s.limits == nil || !s.limits.OwnLimits()) {
		log.LogAttrs(ctx, slog.LevelWarn, "no limits file: nothing is admitted until an admin sets limits")
	}
	attrs := append([]slog.Attr{slog.String("url", s.URL())}, s.identityAttrs()...)
	log.LogAttrs(ctx, slog.LevelInfo, "listening", append(attrs,
		slog.Int("bearer_tokens", s.tokens.count()), slog.Bool("tls", s.certificate != nil))...)
	if s.probes != nil {
		log.LogAttrs(ctx, slog.LevelInfo, "listening for probes",
			slog.String("address", s.probes.Addr().String()))
	}
}

// identityAttrs returns the fields that tell the server from others.
func (s *Server) identityAttrs() []slog.Attr {
	return []slog.Attr{
		slog.String("address", s.listener.Addr().String()), slog.String("version", s.options.Version),
		slog.String("store", cmp.Or(s.options.Store, none)),
		slog.String("namespace", cmp.Or(s.options.Namespace, none)),
	}
}

func serveHTTP(of *http.Server, l net.Listener) error {
	if of.TLSConfig != nil {
		return of.ServeTLS(l, "", "")
	}
	return of.Serve(l)
}

// serveProbes serves the listener for probes, if there is one, until stop is called. stop returns
// what failed.
func (s *Server) serveProbes(ctx context.Context, h http.Handler) (stop func() error) {
	if s.probes == nil {
		return func() error { return nil }
	}
	of := s.newHTTP(ctx, s.probes, h)
	served := make(chan error, 1)
	go func() {
		err := serveHTTP(of, s.probes)
		if !errors.Is(err, http.ErrServerClosed) {
			s.options.Logger.LogAttrs(ctx, slog.LevelError, "probes are not served", slog.Any("error", err))
		}
		served <- err
	}()
	return func() error {
		err := of.Close()
		if failed := <-served; !errors.Is(failed, http.ErrServerClosed) {
			err = errors.Join(err, failed)
		}
		return err
	}
}

// shutDown waits for the requests in progress, and logs how many it had to cut off.
func (s *Server) shutDown(ctx context.Context) error {
	began := time.Now()
	log := s.options.Logger
	log.LogAttrs(ctx, slog.LevelInfo, "shutting down", slog.Int64("connections", s.listener.open.Load()))
	s.ending.Store(true)
	<-time.After(s.options.Bounds.ShutdownDelay)
	bounded, cancel := context.WithTimeout(ctx, s.options.Bounds.ShutdownTimeout)
	defer cancel()
	err := s.http.Shutdown(bounded)
	if errors.Is(err, context.DeadlineExceeded) {
		log.LogAttrs(ctx, slog.LevelWarn, "requests were cut off because they took too long to end",
			slog.Int64("requests", s.listener.active.Load()), slog.Int64("connections", s.listener.open.Load()))
		err = s.http.Close()
	}
	s.trail.flush(ctx)
	log.LogAttrs(ctx, slog.LevelInfo, "shut down",
		append([]slog.Attr{slog.Duration("took", time.Since(began))}, s.identityAttrs()...)...)
	if err != nil {
		return fmt.Errorf("shut down: %w", err)
	}
	return nil
}

// readyChecker is a store that may be unable to reserve for a while, because it does not answer or
// because this server's limits are not in force there.
type readyChecker interface {
	// Ready returns why the store cannot reserve, or nil.
	Ready(ctx context.Context) error
}

// readyWithin bounds Ready if the options do not bound the store.
const readyWithin = time.Second

// ready returns why the server cannot reserve, or nil. The store has as long to answer as for other
// calls.
func (s *Server) ready(ctx context.Context) error {
	if s.ending.Load() {
		return &weir.Error{Code: weir.Unavailable, Reason: "the server is shutting down"}
	}
	if s.store == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(s.options.Limiter.StoreTimeout, readyWithin))
	defer cancel()
	return s.store.Ready(ctx)
}
