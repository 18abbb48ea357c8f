package server

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/httpapi/httphandler"
)

// metrics are what GET /metrics tells. No label has an entity, a resource or anything else that
// callers choose freely: the number of series is bounded whatever they send.
type metrics struct {
	registry *prometheus.Registry

	requests  *prometheus.CounterVec
	durations *prometheus.HistogramVec
	answered  *series[requestLabels, countAndTime]
	inFlight  prometheus.Gauge
	left      prometheus.Counter

	decisions      *prometheus.CounterVec
	decisionTimes  *prometheus.HistogramVec
	decided        *series[decisionLabels, countAndTime]
	limitDecisions *prometheus.CounterVec
	judged         *series[judgedLabels, prometheus.Counter]
	unitsReserved  *prometheus.CounterVec
	reserved       *series[reservedLabels, prometheus.Counter]
	limits         limitLabels

	reloads    *prometheus.CounterVec
	lastReload *prometheus.GaugeVec
}

// durationBuckets reach from a decision in memory to the bounds of a request, in seconds.
func durationBuckets() []float64 {
	return []float64{
		0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
	}
}

func newMetrics(version string) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: counters("weir_requests_total",
			"HTTP requests, by route and status code.", "method", "route", "code"),
		durations: seconds("weir_request_duration_seconds",
			"How long HTTP requests took.", "method", "route", "code"),
		left: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "weir_requests_left_total", Help: "Requests whose client hung up before the answer.",
		}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "weir_requests_in_flight", Help: "HTTP requests that are being served.",
		}),
		decisions: counters("weir_decisions_total",
			"Calls of the limiter, by verb and outcome.", "verb", "outcome"),
		decisionTimes: seconds("weir_decision_duration_seconds",
			"How long calls of the limiter took, store included.", "verb"),
		limitDecisions: counters("weir_limit_decisions_total",
			"Reservations that a limit judged; denied only where it was exceeded itself.",
			"limit", "kind", "outcome"),
		unitsReserved: counters("weir_units_reserved_total",
			"Units that reservations took of limits, for each entity charged.", "limit", "kind"),
		reloads: counters("weir_reloads_total",
			"Files read again, by what they hold; refused ones changed nothing.", "what", "outcome"),
		lastReload: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "weir_reload_last_success_timestamp_seconds",
			Help: "When what is in force was read.",
		}, []string{"what"}),
	}
	m.findSeries()
	build := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "weir_build_info", Help: "Always 1; the version of the program.",
	}, []string{"version"})
	build.WithLabelValues(version).Set(1)
	m.registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		build, m.requests, m.durations, m.inFlight, m.left, m.decisions, m.decisionTimes,
		m.limitDecisions, m.unitsReserved, m.reloads, m.lastReload,
	)
	return m
}

func counters(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

func seconds(name, help string, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: name, Help: help, Buckets: durationBuckets(),
	}, labels)
}

// gauge registers what is read when somebody asks.
func (m *metrics) gauge(name, help string, read func() float64) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(
		prometheus.GaugeOpts{Name: name, Help: help}, read))
}

// counter registers a count that somebody else keeps.
func (m *metrics) counter(name, help string, read func() float64) {
	m.registry.MustRegister(prometheus.NewCounterFunc(
		prometheus.CounterOpts{Name: name, Help: help}, read))
}

// watchLimiter registers what the limiter counts itself.
func (m *metrics) watchLimiter(l *weir.Limiter) {
	m.gauge("weir_leases_live", "Leases that are live, as far as this server knows.",
		func() float64 { return float64(l.LeaseStats().Live) })
	m.gauge("weir_leases_live_limit", "Leases that may be live at once.",
		func() float64 { return float64(l.LeaseStats().MaxLive) })
	m.counter("weir_leases_refused_total", "Reservations refused because too many leases were live.",
		func() float64 { return float64(l.LeaseStats().Refused) })
	m.counter("weir_resolution_cache_hits_total", "Resolutions that the cache had.",
		func() float64 { return float64(l.CacheStats().Hits) })
	m.counter("weir_resolution_cache_misses_total", "Resolutions that the cache had not.",
		func() float64 { return float64(l.CacheStats().Misses) })
	m.gauge("weir_resolution_cache_size", "Resolutions that the cache keeps.",
		func() float64 { return float64(l.CacheStats().Size) })
}

// watchHandler registers what the handler did for callers that had gone.
func (m *metrics) watchHandler(h *httphandler.Handler) {
	m.counter("weir_abandoned_leases_cancelled_total",
		"Leases given back because the caller hung up before the answer; the server had made the ID.",
		func() float64 { cancelled, _ := h.Abandoned(); return float64(cancelled) })
	m.counter("weir_abandoned_leases_failed_total",
		"Leases of such callers that could not be given back; they stay charged until they end.",
		func() float64 { _, failed := h.Abandoned(); return float64(failed) })
}

// watchConnections registers what the listener counts.
func (m *metrics) watchConnections(l *boundedListener) {
	m.gauge("weir_connections", "Connections that are open.",
		func() float64 { return float64(l.open.Load()) })
	m.gauge("weir_connections_limit", "Connections that may be open at once.",
		func() float64 { return float64(l.most) })
	m.counter("weir_connections_evicted_total", "Idle connections that were closed to make room for new ones.",
		func() float64 { return float64(l.evicted.Load()) })
}

// watchCertificate registers when the certificate ends.
func (m *metrics) watchCertificate(c *certificate) {
	m.gauge("weir_certificate_not_after_timestamp_seconds", "When the TLS certificate in force expires.",
		func() float64 { return float64(c.expires().Unix()) })
}

// counting is a store that counts what its operator must know of.
type counting interface {
	// Counts yields figures that only grow, by name, in snake_case, with what they are.
	Counts(yield func(name, help string, read func() int64) bool)
}

// watchBackend registers what the store itself counts, and how far the clock is off the store's.
func (m *metrics) watchBackend(b weir.Backend) {
	if c, ok := b.(counting); ok {
		for name, of := range counted(c) {
			m.counter("weir_store_"+name+"_total", of.help, func() float64 { return float64(of.read()) })
		}
	}
	if c, ok := b.(weir.ClockCorrector); ok {
		m.gauge("weir_store_clock_offset_seconds",
			"What is added to this process's clock, since the store's is off; 0 where that is little.",
			func() float64 { return c.ClockOffset().Seconds() })
	}
}

type count struct {
	help string
	read func() int64
}

func counted(c counting) map[string]count {
	all := make(map[string]count)
	c.Counts(func(name, help string, read func() int64) bool {
		all[name] = count{help, read}
		return true
	})
	return all
}

// watchStore registers what the store told outside of calls.
func (m *metrics) watchStore(f *StoreFaults) {
	m.counter("weir_store_errors_total",
		"Failures of the store outside of calls, such as a snapshot that could not be written.", f.count)
	m.gauge("weir_store_last_error_timestamp_seconds",
		"When the store last failed outside of a call; 0 for never.", f.last)
}

// loaded notes that something is in force since now.
func (m *metrics) loaded(what string, now time.Time) {
	m.lastReload.WithLabelValues(what).Set(float64(now.UnixMilli()) / 1000)
}

// reloaded notes how an attempt to read something again ended.
func (m *metrics) reloaded(what string, now time.Time, err error) {
	if err != nil {
		m.reloads.WithLabelValues(what, "refused").Inc()
		return
	}
	m.reloads.WithLabelValues(what, "ok").Inc()
	m.loaded(what, now)
}

// handler answers GET /metrics.
func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		MaxRequestsInFlight: 4, // each gathers everything
		Timeout:             10 * time.Second,
	})
}
