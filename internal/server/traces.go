package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/weir-limiter/weir/limiter"
)

// scope is the name of the tracer.
const scope = "github.com/weir-limiter/weir"

// flushTimeout bounds sending the last spans at shutdown.
const flushTimeout = 2 * time.Second

// traces makes spans of requests and of calls of the limiter. A nil traces makes none.
type traces struct {
	provider   *sdktrace.TracerProvider
	tracer     trace.Tracer
	propagator propagation.TextMapPropagator
	logger     *slog.Logger
}

// newTraces returns traces that are sent to a collector, or nil without one. It sets nothing of
// OpenTelemetry for the whole process.
func newTraces(ctx context.Context, o *Options) (*traces, error) {
	if o.TraceEndpoint == "" {
		return nil, nil
	}
	if err := checkEndpoint(o.TraceEndpoint); err != nil {
		return nil, err
	}
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(o.TraceEndpoint))
	if err != nil {
		return nil, fmt.Errorf("traces: %w", err)
	}
	// The last one wins: OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES.
	origin, err := resource.New(ctx, resource.WithTelemetrySDK(),
		resource.WithAttributes(attribute.String("service.name", "weir"),
			attribute.String("service.version", o.Version)),
		resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("traces: %w", err)
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithResource(origin),
		sdktrace.WithBatcher(&loggedExporter{SpanExporter: exporter, logger: o.Logger}))
	return &traces{
		provider: provider, tracer: provider.Tracer(scope, trace.WithInstrumentationVersion(o.Version)),
		propagator: propagation.NewCompositeTextMapPropagator(
			propagation.TraceContext{}, propagation.Baggage{}),
		logger: o.Logger,
	}, nil
}

// checkEndpoint refuses a URL to which spans cannot be sent, or that has a user and password, which
// would not be sent. Its errors quote at most scheme and host.
func checkEndpoint(endpoint string) error {
	const field = "trace endpoint"
	u, err := url.Parse(endpoint)
	switch {
	case err != nil || u.Host == "":
		return invalid(field, hidden, "must be an http or https URL")
	case u.Scheme != "http" && u.Scheme != "https":
		return invalid(field, u.Scheme+"://"+u.Host, "must be an http or https URL")
	case u.User != nil:
		return invalid(field, u.Scheme+"://"+u.Host,
			"must not contain a user or password: set headers in OTEL_EXPORTER_OTLP_HEADERS")
	}
	return nil
}

// loggedExporter logs failures to export, because the whole process has only one error handler of
// OpenTelemetry.
type loggedExporter struct {
	sdktrace.SpanExporter
	logger *slog.Logger
}

// ExportSpans sends spans, and logs if it cannot.
func (e *loggedExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	if err := e.SpanExporter.ExportSpans(ctx, spans); err != nil {
		e.logger.LogAttrs(ctx, slog.LevelWarn, "traces are lost",
			slog.Int("spans", len(spans)), slog.Any("error", err))
	}
	return nil
}

// requestSpan is the span of a request, nil for none.
type requestSpan struct {
	span trace.Span
}

// startSpan starts the span of a request, in the caller's trace if the request names one.
func (t *traces) startSpan(r *http.Request) (*http.Request, *requestSpan) {
	if t == nil {
		return r, nil
	}
	ctx := t.propagator.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
	//nolint:spancheck // [requestSpan.end] ends it.
	ctx, span := t.tracer.Start(ctx, methodLabel(r.Method), trace.WithSpanKind(trace.SpanKindServer))
	//nolint:spancheck // As above.
	return r.WithContext(ctx), &requestSpan{span}
}

// end ends the span. Its name is the route, because the path would name entities.
func (s *requestSpan) end(r *servedRequest) {
	if s == nil {
		return
	}
	s.span.SetName(r.method + " " + r.route)
	s.span.SetAttributes(
		attribute.String("http.request.method", r.method),
		attribute.String("http.route", r.route),
		attribute.Int("http.response.status_code", r.status),
	)
	if r.status >= http.StatusInternalServerError {
		s.span.SetStatus(codes.Error, "")
	}
	s.span.End()
}

// Observe makes the span of a call of the limiter after the call. It implements [limiter.Observer].
func (t *traces) Observe(ctx context.Context, e limiter.Event) {
	if !trace.SpanFromContext(ctx).IsRecording() {
		return
	}
	_, span := t.tracer.Start(ctx, "weir."+string(e.Verb), trace.WithTimestamp(e.At))
	out := resultLabel(&e)
	span.SetAttributes(
		attribute.String("weir.verb", string(e.Verb)),
		attribute.String("weir.outcome", out),
		attribute.String("weir.lease_id", e.LeaseID.String()),
	)
	if e.RefundInDoubt {
		span.SetAttributes(attribute.Bool("weir.refund_in_doubt", true))
	}
	if out == "unavailable" || out == "error" {
		span.SetStatus(codes.Error, "")
	}
	span.End(trace.WithTimestamp(e.At.Add(e.Took)))
}

// shutdown sends the last spans. It logs a failure, which is not an error of the server.
func (t *traces) shutdown(ctx context.Context) {
	if t == nil {
		return
	}
	bounded, cancel := context.WithTimeout(ctx, flushTimeout)
	defer cancel()
	if err := t.provider.Shutdown(bounded); err != nil {
		t.logger.LogAttrs(ctx, slog.LevelWarn, "traces are lost: the last ones could not be sent in time",
			slog.Any("error", err))
	}
}

// RouteTelemetry sends OpenTelemetry's errors to a logger, and warns of variables that it will
// ignore. The command must call it before traces are made, because it changes settings of the whole
// process.
//
// It silences OpenTelemetry's own logger, which writes lines of another form to standard error and
// quotes variables with secrets, such as OTEL_EXPORTER_OTLP_HEADERS. The warnings do not quote
// values.
func RouteTelemetry(ctx context.Context, env func(string) string, logger *slog.Logger) {
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		logger.LogAttrs(context.WithoutCancel(ctx), slog.LevelWarn, "traces", slog.Any("error", err))
	}))
	setZero(otel.SetLogger) // a zero logger discards
	for _, v := range unusable(env) {
		logger.LogAttrs(ctx, slog.LevelWarn,
			"an environment variable for traces is invalid and ignored",
			slog.String("variable", v.name), slog.Any("reason", v.err))
	}
}

// setZero calls set with a zero value, whose type belongs to a module that is not imported here.
func setZero[T any](set func(T)) {
	var zero T
	set(zero)
}

// variable is an environment variable that cannot be used, and why.
type variable struct {
	name string
	err  error
}

// unusable returns the variables that the exporter cannot use, of those for all signals and for
// traces.
func unusable(env func(string) string) []variable {
	var all []variable
	note := func(name string, err error) {
		if err != nil {
			all = append(all, variable{name, err})
		}
	}
	for _, prefix := range []string{"OTEL_EXPORTER_OTLP_", "OTEL_EXPORTER_OTLP_TRACES_"} {
		for _, of := range []struct {
			suffix string
			check  func(string) error
		}{
			{"HEADERS", checkHeaders}, {"TIMEOUT", checkMilliseconds}, {"CERTIFICATE", checkAuthorities},
		} {
			if value := strings.TrimSpace(env(prefix + of.suffix)); value != "" {
				note(prefix+of.suffix, of.check(value))
			}
		}
		cert, key := env(prefix+"CLIENT_CERTIFICATE"), env(prefix+"CLIENT_KEY")
		if cert != "" && key != "" {
			_, err := tls.LoadX509KeyPair(strings.TrimSpace(cert), strings.TrimSpace(key))
			note(prefix+"CLIENT_CERTIFICATE", err)
		}
	}
	return all
}

// checkHeaders checks for name=value, name=value, with percent-encoded values. Its errors quote
// nothing.
func checkHeaders(value string) error {
	n := 0
	for pair := range strings.SplitSeq(value, ",") {
		n++
		name, encoded, ok := strings.Cut(pair, "=")
		if !ok {
			return fmt.Errorf("header %d has no '='", n)
		}
		if !isHeaderName(strings.TrimSpace(name)) {
			return fmt.Errorf("header %d has an invalid name", n)
		}
		if _, err := url.PathUnescape(encoded); err != nil {
			return fmt.Errorf("header %d has a malformed percent-encoding", n)
		}
	}
	return nil
}

func isHeaderName(name string) bool {
	for i := range len(name) {
		c := name[i]
		if (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') &&
			strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return name != ""
}

func checkMilliseconds(value string) error {
	if _, err := strconv.Atoi(value); err != nil {
		return errors.New("must be a whole number of milliseconds")
	}
	return nil
}

func checkAuthorities(file string) error {
	data, _, err := readFile(file, maxPEM)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if !x509.NewCertPool().AppendCertsFromPEM(data) {
		return fmt.Errorf("%s: has no certificate in PEM", file)
	}
	return nil
}
