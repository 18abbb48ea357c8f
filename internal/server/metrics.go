package server

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/weir-limiter/weir/httpapi/httphandler"
	"github.com/weir-limiter/weir/limiter"
)

// metrics are the answer to GET /metrics. No label has an entity, a resource or anything else that
// callers choose freely, so the number of series is bounded.
type metrics struct {
	registry *prometheus.Registry

	answered *seriesCache[requestLabels, countAndTime]
	inFlight prometheus.Gauge
	left     prometheus.Counter

	decided  *seriesCache[decisionLabels, countAndTime]
	judged   *seriesCache[judgedLabels, prometheus.Counter]
	reserved *seriesCache[unitsLabels, prometheus.Counter]
	used     *seriesCache[unitsLabels, prometheus.Counter]
	limits   limitLabels

	reloads    *prometheus.CounterVec
	lastReload *prometheus.GaugeVec
	reloadedOK *prometheus.GaugeVec
}

func newMetrics(version string) *metrics {
	m := &metrics{registry: prometheus.NewRegistry()}
	m.left = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "weir_requests_left_total",
		Help: "HTTP requests whose client disconnected before the answer.",
	})
	m.inFlight = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "weir_requests_in_flight", Help: "HTTP requests that are being served.",
	})
	m.reloads = m.counters("weir_reloads_total",
		"Reloads of files, by their content and the outcome; a refused file changes nothing.",
		"what", "outcome")
	m.lastReload = m.gauges("weir_reload_last_success_timestamp_seconds",
		"When the content that is in force was loaded.", "what")
	m.reloadedOK = m.gauges("weir_reload_last_successful",
		"1 if the files as they were last read are in force; 0 if they were refused.", "what")
	m.gauges("weir_build_info", "Always 1; the label is the version of the program.", "version").
		WithLabelValues(version).Set(1)
	m.registry.MustRegister(m.left, m.inFlight, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.makeSeries()
	return m
}

// counters registers counters with labels.
func (m *metrics) counters(name, help string, labels ...string) *prometheus.CounterVec {
	v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	m.registry.MustRegister(v)
	return v
}

// gauges registers gauges with labels.
func (m *metrics) gauges(name, help string, labels ...string) *prometheus.GaugeVec {
	v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	m.registry.MustRegister(v)
	return v
}

// seconds registers histograms of durations with labels. The buckets reach from a decision in
// memory to the longest request.
func (m *metrics) seconds(name, help string, labels ...string) *prometheus.HistogramVec {
	v := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: []float64{
		0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
	}}, labels)
	m.registry.MustRegister(v)
	return v
}

// gauge registers a figure that is read at each scrape.
func (m *metrics) gauge(name, help string, read func() float64) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(
		prometheus.GaugeOpts{Name: name, Help: help}, read))
}

// counter registers a count that is read at each scrape.
func (m *metrics) counter(name, help string, read func() float64) {
	m.registry.MustRegister(prometheus.NewCounterFunc(
		prometheus.CounterOpts{Name: name, Help: help}, read))
}

// watchLimiter registers the limiter's own counts.
func (m *metrics) watchLimiter(l *limiter.Limiter) {
	m.gauge("weir_leases_live", "Leases that are live, as far as this server knows.",
		func() float64 { return float64(l.LeaseStats().Live) })
	m.gauge("weir_leases_live_limit", "Leases that may be live at once.",
		func() float64 { return float64(l.LeaseStats().MaxLive) })
	m.counter("weir_leases_refused_total", "Reservations refused because too many leases were live.",
		func() float64 { return float64(l.LeaseStats().Refused) })
	m.counter("weir_resolution_cache_hits_total",
		"Lookups of a subject's limits that the cache answered.",
		func() float64 { return float64(l.CacheStats().Hits) })
	m.counter("weir_resolution_cache_misses_total",
		"Lookups of a subject's limits that had to ask the store.",
		func() float64 { return float64(l.CacheStats().Misses) })
	m.gauge("weir_resolution_cache_size", "Subjects whose limits are in the cache.",
		func() float64 { return float64(l.CacheStats().Size) })
}

// watchHandler registers the handler's counts of callers that had gone.
func (m *metrics) watchHandler(h *httphandler.Handler) {
	m.counter("weir_abandoned_leases_cancelled_total",
		"Leases cancelled because the caller disconnected before the answer and had not made the lease ID.",
		func() float64 { cancelled, _ := h.Abandoned(); return float64(cancelled) })
	m.counter("weir_abandoned_leases_failed_total",
		"Leases of such callers that could not be cancelled; they stay charged, and their slots return when they time out.",
		func() float64 { _, failed := h.Abandoned(); return float64(failed) })
}

// watchConnections registers the listener's counts.
func (m *metrics) watchConnections(l *boundedListener) {
	m.gauge("weir_connections", "Connections that are open.",
		func() float64 { return float64(l.open.Load()) })
	m.gauge("weir_connections_limit", "Connections that may be open at once.",
		func() float64 { return float64(l.most) })
	m.counter("weir_connections_evicted_total", "Idle connections that were closed to make room for new ones.",
		func() float64 { return float64(l.evicted.Load()) })
}

// watchCertificate registers when the certificate was issued and when it expires.
func (m *metrics) watchCertificate(c *certificate) {
	m.gauge("weir_certificate_not_before_timestamp_seconds",
		"From when on the TLS certificate in force is valid.",
		func() float64 { from, _ := c.validity(); return float64(from.Unix()) })
	m.gauge("weir_certificate_not_after_timestamp_seconds", "When the TLS certificate in force expires.",
		func() float64 { _, until := c.validity(); return float64(until.Unix()) })
}

// opened records that a source was put in force when the server was opened. Its counts begin at
// zero, because a count that begins at one has not risen for Prometheus.
func (m *metrics) opened(what string, now time.Time) {
	for _, outcome := range []string{reloadOK, reloadRefused} {
		m.reloads.WithLabelValues(what, outcome)
	}
	m.loaded(what, now)
}

// loaded records that a source is in force now.
func (m *metrics) loaded(what string, now time.Time) {
	m.lastReload.WithLabelValues(what).Set(float64(now.UnixMilli()) / 1000)
	m.reloadedOK.WithLabelValues(what).Set(1)
}

// The outcomes of a reload, as labels.
const (
	reloadOK      = "ok"
	reloadRefused = "refused"
)

// reloaded records the result of reading a source again.
func (m *metrics) reloaded(what string, now time.Time, err error) {
	if err != nil {
		m.reloads.WithLabelValues(what, reloadRefused).Inc()
		m.reloadedOK.WithLabelValues(what).Set(0)
		return
	}
	m.reloads.WithLabelValues(what, reloadOK).Inc()
	m.loaded(what, now)
}

// handler answers GET /metrics.
func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		MaxRequestsInFlight: 4, // each gathers all metrics
		Timeout:             10 * time.Second,
	})
}
