package lab

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/internal/lab/loadtest"
	"github.com/weir-limiter/weir/internal/text"
)

// loadtestReport is the report of a load test as it is printed in JSON. All figures but those of the
// leases are about the measured time, without the warm-up.
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

	// ElapsedMS is the measured time; it is less than the duration if the run was stopped.
	ElapsedMS int64 `json:"elapsed_ms"`
	// ServedMS is the time until the last answer to a request that was due in the measured time.
	// Rates of answers are relative to it.
	ServedMS int64                  `json:"served_ms"`
	Calls    loadtestCalls          `json:"calls"`
	Latency  []loadtestRow          `json:"latency"`
	DeniedBy []loadtest.DeniedCount `json:"denied_by"`
	Errors   []loadtest.ErrorCount  `json:"errors"`
	Leases   loadtestLeases         `json:"leases"`
	// Stopped is the reason that the run ended early; empty if it did not.
	Stopped string `json:"stopped,omitempty"`

	measured *loadtest.Report
}

// loadtestCalls counts calls. In a closed loop all calls that began were planned.
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

// loadtestRow is one verb with one result. Latency counts from when a request was due. Only an open
// loop has the service time, which counts from when it was sent.
type loadtestRow struct {
	Verb      string      `json:"verb"`
	Result    string      `json:"result"`
	Count     int64       `json:"count"`
	PerSecond json.Number `json:"per_second"`
	loadtestQuantiles
	Service *loadtestQuantiles `json:"service,omitempty"`
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

// loadtestLeases counts the leases of the whole run.
type loadtestLeases struct {
	Taken   int64 `json:"taken"`
	Settled int64 `json:"settled"`
	Left    int64 `json:"left"`
}

func newLoadtestReport(m *loadtest.Report, server string, requests []string) *loadtestReport {
	o := &m.Options
	r := &loadtestReport{
		measured: m, Server: server, Loop: "closed", Requests: requests,
		DurationMS: o.Duration.Milliseconds(),
		WarmupMS:   o.Warmup.Milliseconds(), Concurrency: o.Concurrency, Rate: o.Rate,
		Think: o.Think.String(), CancelPercent: o.CancelPercent, Seed: o.Seed,
		ElapsedMS: m.Elapsed.Milliseconds(), ServedMS: m.Served.Milliseconds(),
		Calls: loadtestCalls{
			Planned: m.Planned, Started: m.Started, Unsent: m.Unsent, Late: m.Late,
			LateMaxMS:        int64((m.LateMax + time.Millisecond - 1) / time.Millisecond),
			PlannedPerSecond: jsonPerSecond(m.Planned, m.Elapsed),
			StartedPerSecond: jsonPerSecond(m.Started, m.Served),
			Admitted:         m.Count(loadtest.Reserve, loadtest.Admitted),
			Denied:           m.Count(loadtest.Reserve, loadtest.Denied),
			Failed:           m.Count(loadtest.Reserve, loadtest.Failed), Degraded: m.Degraded,
		},
		Latency:  []loadtestRow{},
		DeniedBy: append([]loadtest.DeniedCount{}, m.DeniedBy...), // never null in JSON
		Errors:   append([]loadtest.ErrorCount{}, m.Errors...),
		Leases:   loadtestLeases{m.Taken, m.Settled, m.Left},
		Stopped:  strings.Join(console.MistakeLines(m.Stopped), "; "),
	}
	if o.Rate > 0 {
		r.Loop = "open"
	}
	for i := range m.Rows {
		row := &m.Rows[i]
		out := loadtestRow{
			Verb: string(row.Verb), Result: string(row.Result), Count: row.Count,
			PerSecond: jsonPerSecond(row.Count, m.Served), loadtestQuantiles: toMicroseconds(row.Latency),
		}
		if o.Rate > 0 {
			out.Service = new(toMicroseconds(row.Service))
		}
		r.Latency = append(r.Latency, out)
	}
	return r
}

func toMicroseconds(q loadtest.Quantiles) loadtestQuantiles {
	us := func(d time.Duration) int64 { return int64((d + time.Microsecond - 1) / time.Microsecond) }
	return loadtestQuantiles{us(q.P50), us(q.P90), us(q.P95), us(q.P99), us(q.P999), us(q.Max)}
}

// jsonPerSecond writes a rate as a JSON number.
func jsonPerSecond(n int64, span time.Duration) json.Number {
	return json.Number(strings.ReplaceAll(perSecond(n, span), ",", ""))
}

// table prints the report as text.
func (r *loadtestReport) table(b *bytes.Buffer) {
	ms := func(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
	head := text.Table{}
	head.Add("server", r.Server)
	for i, request := range r.Requests {
		name := ""
		switch i {
		case 0:
			name = "requests"
		case shownRequests:
			head.Add("", fmt.Sprintf("and %s more", text.FormatInt(int64(len(r.Requests)-i))))
		}
		if i < shownRequests {
			head.Add(name, request)
		}
	}
	if r.Loop == "open" {
		head.Add("open loop", fmt.Sprintf("%s calls a second, at most %s in progress",
			text.FormatInt(r.Rate), text.Plural(r.Concurrency, "request", "requests")))
	} else {
		head.Add("closed loop", text.Plural(r.Concurrency, "caller", "callers"))
	}
	span := ms(r.DurationMS).String()
	if elapsed := r.measured.Elapsed; elapsed < ms(r.DurationMS) {
		span = fmt.Sprintf("%v of %s", elapsed.Round(time.Millisecond), span)
	}
	if r.WarmupMS > 0 {
		span += fmt.Sprintf(" after %v of warm-up", ms(r.WarmupMS))
	}
	head.Add("measured", span+", think "+r.Think)
	head.Add("seed", fmt.Sprint(r.Seed))
	head.Write(b)
	b.WriteByte('\n')
	r.rows(b, "LATENCY", func(row *loadtest.Row) *loadtest.Quantiles { return &row.Latency })
	if r.Loop == "open" && len(r.Latency) > 0 {
		b.WriteByte('\n')
		r.rows(b, "SERVICE", func(row *loadtest.Row) *loadtest.Quantiles { return &row.Service })
	}
	r.denials(b)
	b.WriteByte('\n')
	r.foot(b)
}

// shownRequests bounds the kinds of requests that a table names.
const shownRequests = 8

// rows prints one kind of latency.
func (r *loadtestReport) rows(
	b *bytes.Buffer, title string, of func(*loadtest.Row) *loadtest.Quantiles,
) {
	t := text.Table{Heads: []string{
		title, "RESULT", ">COUNT", ">PER SECOND", ">P50",
		">P90", ">P95", ">P99", ">P99.9", ">MAX",
	}}
	for i := range r.measured.Rows {
		row := &r.measured.Rows[i]
		q := of(row)
		t.Add(string(row.Verb), string(row.Result), text.FormatInt(row.Count),
			perSecond(row.Count, r.measured.Served), formatLatency(q.P50), formatLatency(q.P90),
			formatLatency(q.P95), formatLatency(q.P99), formatLatency(q.P999), formatLatency(q.Max))
	}
	t.Write(b)
}

// denials prints the limits that denied.
func (r *loadtestReport) denials(b *bytes.Buffer) {
	if len(r.DeniedBy) == 0 {
		return
	}
	b.WriteByte('\n')
	t := text.Table{Heads: []string{"DENIED BY", "RESOURCE", "KIND", "OF", ">DENIED"}}
	for _, d := range r.DeniedBy {
		of := "entity"
		switch {
		case d.Contended:
			d.Limit, of = "other writers", ""
		case d.Parent:
			of = "parent"
		}
		t.Add(d.Limit, d.Resource, string(d.Kind), of, text.FormatInt(d.Count))
	}
	t.Write(b)
}

// foot prints the totals.
func (r *loadtestReport) foot(b *bytes.Buffer) {
	c := &r.Calls
	t := text.Table{}
	t.Add("calls", fmt.Sprintf("%s, %s a second: %s admitted, %s denied, %s failed", text.FormatInt(c.Started),
		perSecond(c.Started, r.measured.Served), text.FormatInt(c.Admitted), text.FormatInt(c.Denied), text.FormatInt(c.Failed)))
	if r.Loop == "open" {
		t.Add("planned", fmt.Sprintf("%s, %s a second: %s never sent, %s more than %v late, at most %v",
			text.FormatInt(c.Planned), perSecond(c.Planned, r.measured.Elapsed), text.FormatInt(c.Unsent), text.FormatInt(c.Late),
			loadtest.LateBy, time.Duration(c.LateMaxMS)*time.Millisecond))
	}
	for _, e := range r.Errors {
		t.Add("errors", fmt.Sprintf("%s: %s %s", e.Verb, text.FormatInt(e.Count), string(e.Code)))
	}
	if c.Degraded > 0 {
		t.Add("degraded", fmt.Sprintf("%s admitted without being charged: the store did not answer",
			text.Plural(int(c.Degraded), "call was", "calls were")))
	}
	t.Add("leases", fmt.Sprintf("%s taken, %s settled, %s left", text.FormatInt(r.Leases.Taken),
		text.FormatInt(r.Leases.Settled), text.FormatInt(r.Leases.Left)))
	if r.Stopped != "" {
		t.Add("stopped", r.Stopped)
	}
	t.Write(b)
}

// formatLatency writes a latency with three digits.
func formatLatency(d time.Duration) string {
	unit := 10 * time.Nanosecond
	for _, u := range []time.Duration{
		10 * time.Millisecond, time.Millisecond, 100 * time.Microsecond, 10 * time.Microsecond,
		time.Microsecond, 100 * time.Nanosecond,
	} {
		if d >= 100*u {
			unit = u
			break
		}
	}
	return d.Round(unit).String()
}

// perSecond writes a rate, with a decimal if it is low.
func perSecond(n int64, span time.Duration) string {
	us := span.Microseconds()
	if us <= 0 {
		return "0"
	}
	tenths := (n*10*int64(time.Second/time.Microsecond) + us/2) / us // a million calls a second fit for a day
	if tenths >= 1000 {
		return text.FormatInt((tenths + 5) / 10)
	}
	return fmt.Sprintf("%d.%d", tenths/10, tenths%10)
}
