package cli

import (
	"bytes"
	"fmt"
	"time"

	"github.com/weir-limiter/weir/internal/load"
)

// table prints the report for people.
func (r *loadtestReport) table(b *bytes.Buffer) {
	ms := func(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
	head := table{columns: []column{{}, {}}}
	head.add("server", r.Server)
	for i, text := range r.Requests {
		name := ""
		switch i {
		case 0:
			name = "requests"
		case shownRequests:
			head.add("", fmt.Sprintf("and %s more", thousands(int64(len(r.Requests)-i))))
		}
		if i < shownRequests {
			head.add(name, text)
		}
	}
	if r.Loop == "open" {
		head.add("open loop", fmt.Sprintf("%s calls a second, at most %s under way",
			thousands(r.Rate), plural(r.Concurrency, "request", "requests")))
	} else {
		head.add("closed loop", plural(r.Concurrency, "caller", "callers"))
	}
	span := ms(r.DurationMS).String()
	if r.elapsed < ms(r.DurationMS) {
		span = fmt.Sprintf("%v of %s", r.elapsed.Round(time.Millisecond), span)
	}
	if r.WarmupMS > 0 {
		span += fmt.Sprintf(" after %v of warm-up", ms(r.WarmupMS))
	}
	head.add("measured", span+", think "+r.Think)
	head.add("seed", fmt.Sprint(r.Seed))
	head.write(b)
	b.WriteByte('\n')
	r.rows(b, "LATENCY", func(row *loadtestRow) load.Quantiles { return row.latency })
	if r.Loop == "open" && len(r.Latency) > 0 {
		b.WriteByte('\n')
		r.rows(b, "SERVICE", func(row *loadtestRow) load.Quantiles { return row.service })
	}
	r.denials(b)
	b.WriteByte('\n')
	r.foot(b)
}

// shownRequests is how many sorts of requests a table names.
const shownRequests = 8

// rows prints one kind of latency.
func (r *loadtestReport) rows(
	b *bytes.Buffer, title string, of func(*loadtestRow) load.Quantiles,
) {
	t := table{columns: []column{
		{title, false}, {"RESULT", false}, {"COUNT", true}, {"PER SECOND", true}, {"P50", true},
		{"P90", true}, {"P95", true}, {"P99", true}, {"P99.9", true}, {"MAX", true},
	}}
	for i := range r.Latency {
		row := &r.Latency[i]
		q := of(row)
		t.add(row.Verb, row.Result, thousands(row.Count), perSecond(row.Count, r.served), brief(q.P50),
			brief(q.P90), brief(q.P95), brief(q.P99), brief(q.P999), brief(q.Max))
	}
	t.write(b)
}

// denials prints which limits denied.
func (r *loadtestReport) denials(b *bytes.Buffer) {
	if len(r.DeniedBy) == 0 {
		return
	}
	b.WriteByte('\n')
	t := table{columns: []column{
		{"DENIED BY", false}, {"RESOURCE", false}, {"KIND", false}, {"OF", false}, {"DENIED", true},
	}}
	for _, d := range r.DeniedBy {
		of := "entity"
		switch {
		case d.Contended:
			d.Limit, of = "other writers", ""
		case d.Parent:
			of = "parent"
		}
		t.add(d.Limit, d.Resource, d.Kind, of, thousands(d.Denied))
	}
	t.write(b)
}

// foot sums up.
func (r *loadtestReport) foot(b *bytes.Buffer) {
	c := &r.Calls
	t := table{columns: []column{{}, {}}}
	t.add("calls", fmt.Sprintf("%s, %s a second: %s admitted, %s denied, %s failed", thousands(c.Started),
		perSecond(c.Started, r.served), thousands(c.Admitted), thousands(c.Denied), thousands(c.Failed)))
	if r.Loop == "open" {
		t.add("planned", fmt.Sprintf("%s, %s a second: %s never sent, %s more than %v late, at most %v",
			thousands(c.Planned), perSecond(c.Planned, r.elapsed), thousands(c.Unsent), thousands(c.Late),
			load.LateBy, time.Duration(c.LateMaxMS)*time.Millisecond))
	}
	for _, e := range r.Errors {
		t.add("errors", fmt.Sprintf("%s: %s %s", e.Verb, thousands(e.Count), e.Code))
	}
	if c.Degraded > 0 {
		t.add("degraded", fmt.Sprintf("%s admitted without being charged: the store did not answer",
			plural(int(c.Degraded), "call was", "calls were")))
	}
	t.add("leases", fmt.Sprintf("%s taken, %s settled, %s left", thousands(r.Leases.Taken),
		thousands(r.Leases.Settled), thousands(r.Leases.Left)))
	if r.Stopped != "" {
		t.add("stopped", r.Stopped)
	}
	t.write(b)
}
