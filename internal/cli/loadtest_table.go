package cli

import (
	"bytes"
	"fmt"
	"time"

	"github.com/weir-limiter/weir/internal/lab/loadtest"
	"github.com/weir-limiter/weir/internal/text"
)

// table prints the report for people.
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
		head.Add("open loop", fmt.Sprintf("%s calls a second, at most %s under way",
			text.FormatInt(r.Rate), text.Plural(r.Concurrency, "request", "requests")))
	} else {
		head.Add("closed loop", text.Plural(r.Concurrency, "caller", "callers"))
	}
	span := ms(r.DurationMS).String()
	if r.elapsed < ms(r.DurationMS) {
		span = fmt.Sprintf("%v of %s", r.elapsed.Round(time.Millisecond), span)
	}
	if r.WarmupMS > 0 {
		span += fmt.Sprintf(" after %v of warm-up", ms(r.WarmupMS))
	}
	head.Add("measured", span+", think "+r.Think)
	head.Add("seed", fmt.Sprint(r.Seed))
	head.Write(b)
	b.WriteByte('\n')
	r.rows(b, "LATENCY", func(row *loadtestRow) loadtest.Quantiles { return row.latency })
	if r.Loop == "open" && len(r.Latency) > 0 {
		b.WriteByte('\n')
		r.rows(b, "SERVICE", func(row *loadtestRow) loadtest.Quantiles { return row.service })
	}
	r.denials(b)
	b.WriteByte('\n')
	r.foot(b)
}

// shownRequests is how many sorts of requests a table names.
const shownRequests = 8

// rows prints one kind of latency.
func (r *loadtestReport) rows(
	b *bytes.Buffer, title string, of func(*loadtestRow) loadtest.Quantiles,
) {
	t := text.Table{Heads: []string{
		title, "RESULT", ">COUNT", ">PER SECOND", ">P50",
		">P90", ">P95", ">P99", ">P99.9", ">MAX",
	}}
	for i := range r.Latency {
		row := &r.Latency[i]
		q := of(row)
		t.Add(row.Verb, row.Result, text.FormatInt(row.Count), perSecond(row.Count, r.served), brief(q.P50),
			brief(q.P90), brief(q.P95), brief(q.P99), brief(q.P999), brief(q.Max))
	}
	t.Write(b)
}

// denials prints which limits denied.
func (r *loadtestReport) denials(b *bytes.Buffer) {
	if len(r.DeniedBy) == 0 {
		return
	}
	b.WriteByte('\n')
	t := text.Table{Heads: []string{
		"DENIED BY", "RESOURCE", "KIND", "OF", ">DENIED",
	}}
	for _, d := range r.DeniedBy {
		of := "entity"
		switch {
		case d.Contended:
			d.Limit, of = "other writers", ""
		case d.Parent:
			of = "parent"
		}
		t.Add(d.Limit, d.Resource, d.Kind, of, text.FormatInt(d.Denied))
	}
	t.Write(b)
}

// foot sums up.
func (r *loadtestReport) foot(b *bytes.Buffer) {
	c := &r.Calls
	t := text.Table{}
	t.Add("calls", fmt.Sprintf("%s, %s a second: %s admitted, %s denied, %s failed", text.FormatInt(c.Started),
		perSecond(c.Started, r.served), text.FormatInt(c.Admitted), text.FormatInt(c.Denied), text.FormatInt(c.Failed)))
	if r.Loop == "open" {
		t.Add("planned", fmt.Sprintf("%s, %s a second: %s never sent, %s more than %v late, at most %v",
			text.FormatInt(c.Planned), perSecond(c.Planned, r.elapsed), text.FormatInt(c.Unsent), text.FormatInt(c.Late),
			loadtest.LateBy, time.Duration(c.LateMaxMS)*time.Millisecond))
	}
	for _, e := range r.Errors {
		t.Add("errors", fmt.Sprintf("%s: %s %s", e.Verb, text.FormatInt(e.Count), e.Code))
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
