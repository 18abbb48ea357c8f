package cli

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/internal/lab/loadtest"
)

// loadtestReport is what a load test has found. Figures are those of the measured time, without the
// warm-up, except for the leases.
type loadtestReport struct {
	Server string `json:"server"`
	// Loop is "closed" or "open".
	Loop          string   `json:"loop"`
	Requests      []string `json:"requests"`
	DurationMS    int64    `json:"duration_ms"`
	WarmupMS      int64    `json:"warmup_ms"`
	Concurrency   int      `json:"concurrency"`
	Rate          int64    `json:"rate,omitempty"`
	Think         string   `json:"think"`
	CancelPercent int      `json:"cancel_percent"`
	Seed          uint64   `json:"seed"`

	// ElapsedMS is how long was measured; less than the duration where the run was stopped.
	ElapsedMS int64 `json:"elapsed_ms"`
	// ServedMS is how long it took to the last answer to what was due in that time. Rates of what was
	// done count over it.
	ServedMS int64          `json:"served_ms"`
	Calls    loadtestCalls  `json:"calls"`
	Latency  []loadtestRow  `json:"latency"`
	DeniedBy []loadtestDeny `json:"denied_by"`
	Errors   []loadtestErr  `json:"errors"`
	Leases   loadtestLeases `json:"leases"`
	// Stopped is why the run ended early; empty if it did not.
	Stopped string `json:"stopped,omitempty"`

	elapsed, served time.Duration
}

// loadtestCalls counts calls. In a closed loop all that began were planned.
type loadtestCalls struct {
	Planned          int64       `json:"planned"`
	Started          int64       `json:"started"`
	Unsent           int64       `json:"unsent"`
	Late             int64       `json:"late"`
	LateMaxMS        int64       `json:"late_max_ms"`
	PlannedPerSecond json.Number `json:"planned_per_second"`
	StartedPerSecond json.Number `json:"started_per_second"`
	Admitted         int64       `json:"admitted"`
	Denied           int64       `json:"denied"`
	Failed           int64       `json:"failed"`
	Degraded         int64       `json:"degraded"`
}

// loadtestRow is one verb with one result. Latency counts from when a request was due; the service
// time, which only an open loop has, from when it was sent.
type loadtestRow struct {
	Verb      string      `json:"verb"`
	Result    string      `json:"result"`
	Count     int64       `json:"count"`
	PerSecond json.Number `json:"per_second"`
	loadtestQuantiles
	Service *loadtestQuantiles `json:"service,omitempty"`

	latency, service loadtest.Quantiles
}

// loadtestQuantiles are in microseconds, rounded up.
type loadtestQuantiles struct {
	P50  int64 `json:"p50_us"`
	P90  int64 `json:"p90_us"`
	P95  int64 `json:"p95_us"`
	P99  int64 `json:"p99_us"`
	P999 int64 `json:"p999_us"`
	Max  int64 `json:"max_us"`
}

type loadtestDeny struct {
	Resource  string `json:"resource,omitempty"`
	Limit     string `json:"limit,omitempty"`
	Kind      string `json:"kind,omitempty"`
	Parent    bool   `json:"parent"`
	Contended bool   `json:"contended,omitempty"`
	Denied    int64  `json:"denied"`
}

type loadtestErr struct {
	Verb  string `json:"verb"`
	Code  string `json:"code"`
	Count int64  `json:"count"`
}

// loadtestLeases are those of the whole run.
type loadtestLeases struct {
	Taken   int64 `json:"taken"`
	Settled int64 `json:"settled"`
	Left    int64 `json:"left"`
}

func newLoadtestReport(m *loadtest.Report, server string, requests []string) *loadtestReport {
	o := &m.Options
	r := &loadtestReport{
		Server: server, Loop: "closed", Requests: requests, DurationMS: o.Duration.Milliseconds(),
		WarmupMS: o.Warmup.Milliseconds(), Concurrency: o.Concurrency, Rate: o.Rate,
		Think: o.Think.String(), CancelPercent: o.CancelPercent, Seed: o.Seed,
		ElapsedMS: m.Elapsed.Milliseconds(), ServedMS: m.Served.Milliseconds(),
		elapsed: m.Elapsed, served: m.Served,
		Calls: loadtestCalls{
			Planned: m.Planned, Started: m.Started, Unsent: m.Unsent, Late: m.Late,
			LateMaxMS:        int64((m.LateMax + time.Millisecond - 1) / time.Millisecond),
			PlannedPerSecond: jsonPerSecond(m.Planned, m.Elapsed),
			StartedPerSecond: jsonPerSecond(m.Started, m.Served),
			Admitted:         m.Count(loadtest.Reserve, loadtest.Admitted),
			Denied:           m.Count(loadtest.Reserve, loadtest.Denied),
			Failed:           m.Count(loadtest.Reserve, loadtest.Failed), Degraded: m.Degraded,
		},
		Latency: []loadtestRow{}, DeniedBy: []loadtestDeny{}, Errors: []loadtestErr{},
		Leases:  loadtestLeases{m.Taken, m.Settled, m.Left},
		Stopped: strings.Join(console.ComplaintLines(m.Stopped), "; "),
	}
	if o.Rate > 0 {
		r.Loop = "open"
	}
	for i := range m.Rows {
		r.Latency = append(r.Latency, newLoadtestRow(&m.Rows[i], m))
	}
	for _, d := range m.DeniedBy {
		r.DeniedBy = append(r.DeniedBy, loadtestDeny{
			d.Resource, d.Limit, string(d.Kind), d.Parent, d.Contended, d.Count,
		})
	}
	for _, e := range m.Errors {
		r.Errors = append(r.Errors, loadtestErr{string(e.Verb), string(e.Code), e.Count})
	}
	return r
}

func newLoadtestRow(row *loadtest.Row, m *loadtest.Report) loadtestRow {
	out := loadtestRow{
		Verb: string(row.Verb), Result: string(row.Result), Count: row.Count,
		PerSecond:         jsonPerSecond(row.Count, m.Served),
		loadtestQuantiles: inMicroseconds(row.Latency), latency: row.Latency, service: row.Service,
	}
	if m.Options.Rate > 0 {
		out.Service = new(inMicroseconds(row.Service))
	}
	return out
}

func inMicroseconds(q loadtest.Quantiles) loadtestQuantiles {
	us := func(d time.Duration) int64 { return int64((d + time.Microsecond - 1) / time.Microsecond) }
	return loadtestQuantiles{us(q.P50), us(q.P90), us(q.P95), us(q.P99), us(q.P999), us(q.Max)}
}

// jsonPerSecond writes a rate as JSON has numbers.
func jsonPerSecond(n int64, span time.Duration) json.Number {
	return json.Number(strings.ReplaceAll(perSecond(n, span), ",", ""))
}
