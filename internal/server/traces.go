package server

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/weir-limiter/weir"
)

// scope names the origin of spans.
const scope = "github.com/weir-limiter/weir"

// flushTimeout is how long the last spans have to be sent when the server ends.
const flushTimeout = 2 * time.Second

// traces makes spans for requests and for calls of the limiter. A nil one makes none.
type traces struct {
	provider   *sdktrace.TracerProvider
	tracer     trace.Tracer
	propagator propagation.TextMapPropagator
	logger     *slog.Logger
}

// newTraces sends spans to a collector, or returns nil where none is named. Nothing of
// OpenTelemetry is set for the whole process.
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
	// OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES come last and win.
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

// checkEndpoint refuses a URL that spans cannot be sent to, or that has a user and a password: they
// would not be sent. Of what is refused it tells no more than scheme and host.
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
			"must have no user and password in it: headers are in OTEL_EXPORTER_OTLP_HEADERS")
	}
	return nil
}

// loggedExporter keeps failures to export out of OpenTelemetry's error handler, which is one for
// the whole process.
type loggedExporter struct {
	sdktrace.SpanExporter
	logger *slog.Logger
}

// ExportSpans sends spans, and logs where it cannot.
func (e *loggedExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	if err := e.SpanExporter.ExportSpans(ctx, spans); err != nil {
		e.logger.LogAttrs(ctx, slog.LevelWarn, "traces are lost",
			slog.Int("spans", len(spans)), slog.Any("error", err))
	}
	return nil
}

// requestSpan is the span of a request; a nil one is none.
type requestSpan struct {
	span trace.Span
}

// begin starts the span of a request, as a part of the caller's trace if it says which.
func (t *traces) begin(r *http.Request) (*http.Request, *requestSpan) {
	if t == nil {
		return r, nil
	}
	ctx := t.propagator.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
	//nolint:spancheck // [requestSpan.end] ends it.
	ctx, span := t.tracer.Start(ctx, methodLabel(r.Method), trace.WithSpanKind(trace.SpanKindServer))
	//nolint:spancheck // As above.
	return r.WithContext(ctx), &requestSpan{span}
}

// end ends it. Its name is the route; the path itself would name entities.
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

// Observe makes the span of a call of the limiter, after it. It fulfils [weir.Observer].
func (t *traces) Observe(ctx context.Context, e weir.Event) {
	if !trace.SpanFromContext(ctx).IsRecording() {
		return
	}
	_, span := t.tracer.Start(ctx, "weir."+string(e.Verb), trace.WithTimestamp(e.At))
	out := outcome(&e)
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

// close sends what is left. A collector that does not take it is no reason to end badly.
func (t *traces) close(ctx context.Context) {
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
