// Package report says what became of a replay: as text for a terminal, and as a page with figures.
package report

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weir-limiter/weir/internal/lab/chart"
	"github.com/weir-limiter/weir/internal/lab/replay"
	"github.com/weir-limiter/weir/internal/text"
)

// reportPrinter prints a report for people.
type reportPrinter struct {
	*replay.Report

	chart *chart.TextOptions
}

// table prints the report.
func (r *reportPrinter) table(b *bytes.Buffer) {
	writeFacts(b, facts(r.Report))
	limits, shadow := r.limitsTable()
	limits.Write(b)
	if shadow {
		b.WriteString("\n* a shadow limit denies nothing: DENIED is what it would have denied,\n" +
			"  ONLY IT what nothing else denied\n")
	}
	r.charts(b)
	b.WriteString("\n")
	r.foot(b)
}

// writeFacts prints what was replayed and how, and an empty line.
func writeFacts(b *bytes.Buffer, facts []chart.Fact) {
	t := text.Table{}
	for _, f := range facts {
		t.Add(f.Name, f.Value)
	}
	t.Write(b)
	b.WriteString("\n")
}

// limitsTable is the table of the limits; shadow reports whether a shadow limit is among them.
func (r *reportPrinter) limitsTable() (t *text.Table, shadow bool) {
	t = &text.Table{Heads: []string{"ENTITY"}}
	if r.Resource == "" {
		t.Heads = append(t.Heads, "RESOURCE")
	}
	t.Heads = append(t.Heads, "LIMIT", "KIND",
		">ADMITTED", ">DENIED", ">ONLY IT", ">USED",
		">AVAILABLE", "UNIT", ">USED %")
	for _, l := range r.Limits {
		cells := []string{replay.RowEntity(l)}
		if r.Resource == "" {
			cells = append(cells, rowResource(l.Resource))
		}
		name, used := l.Limit, "-"
		if l.Shadow {
			shadow = true
			name += " *"
		}
		if l.UsedPercent != "" {
			used = string(l.UsedPercent)
		}
		t.Add(append(cells, name, string(l.Kind), text.FormatInt(l.Admitted), text.FormatInt(l.Denied),
			text.FormatInt(l.DeniedOnly), text.FormatBig(l.Used), text.FormatBig(l.Available),
			strings.ReplaceAll(l.Unit, "_", "-"), used)...)
	}
	return t, shadow
}

// rowResource is what a row calls its resources.
func rowResource(name string) string {
	if name == "" {
		return "all"
	}
	return name
}

func (r *reportPrinter) foot(b *bytes.Buffer) {
	c := &r.Totals
	t := text.Table{Heads: []string{"", ">", ">", ">"}}
	t.Add("calls", text.FormatInt(c.Calls), "", "")
	t.Add("admitted", text.FormatInt(c.Admitted), string(c.AdmittedPercent)+" %",
		text.FormatBig(c.TokensAdmitted)+" tokens")
	t.Add("denied", text.FormatInt(c.Denied), string(c.DeniedPercent)+" %",
		text.FormatBig(c.TokensDenied)+" tokens")
	t.Add("errors", text.FormatInt(c.Errors), "", "")
	t.Write(b)
	if r.Live != nil {
		liveFoot(b, r.Live)
	} else if c.Errors > 0 {
		b.WriteString("errors are calls that no wait makes fit: never satisfiable; " +
			"their tokens count as denied\n")
	}
	if c.RetryAfterP50MS != nil {
		fmt.Fprintf(b, "retry after  half of the denials within %s, 95 %% within %s\n",
			text.FormatMS(*c.RetryAfterP50MS), text.FormatMS(*c.RetryAfterP95MS))
	}
	r.retries(b)
	r.estimates(b)
	fmt.Fprintf(b, "replayed in %s: %s operations, %s a second\n", wallText(r.Speed.WallMS),
		text.FormatInt(r.Speed.Operations), text.FormatInt(r.Speed.OperationsPerSecond))
}

// wallText writes how long something took, which may be very short.
func wallText(ms int64) string {
	if ms <= 0 {
		return "less than 1ms"
	}
	return text.FormatMS(ms)
}

// retries says what became of the calls that came back.
func (r *reportPrinter) retries(b *bytes.Buffer) {
	c := r.Retry
	if c == nil {
		return
	}
	fmt.Fprintf(b, "attempts  %s: %s admitted when they came, %s when they came back, %s gave up\n",
		text.FormatInt(c.Attempts), text.Plural(int(c.AdmittedFirst), "call", "calls"),
		text.FormatInt(c.AdmittedLater), text.FormatInt(c.GivenUp))
	w := c.WaitMS
	fmt.Fprintf(b, "wait until admitted  half within %s, 95 %% within %s, 99 %% within %s, at most %s\n",
		text.FormatMS(w.P50), text.FormatMS(w.P95), text.FormatMS(w.P99), text.FormatMS(w.Max))
}

// estimates says how good the estimates were.
func (r *reportPrinter) estimates(b *bytes.Buffer) {
	e := r.Estimates
	if e == nil || e.Calls == 0 {
		return
	}
	b.WriteString("\n")
	r.estimateRows().Write(b)
	b.WriteString("\n")
}

// estimateRows are the callers' scores, if there are several and not too many, and that of all
// calls.
func (r *reportPrinter) estimateRows() *text.Table {
	e := r.Estimates
	t := &text.Table{Heads: []string{
		"ESTIMATE OF", ">CALLS", ">WITHIN", ">%", ">OVERRUNS",
		">TOKENS USED", ">RESERVED IN VAIN", ">%", ">NOT RESERVED",
	}}
	add := func(name string, s *replay.EstimateScore) {
		over := "-"
		if s.OverPercent != "" {
			over = string(s.OverPercent)
		}
		t.Add(name, text.FormatInt(s.Calls), text.FormatInt(s.Covered), string(s.CoveredPercent),
			text.FormatInt(s.Overruns), text.FormatBig(s.TokensUsed), text.FormatBig(s.TokensOver),
			over, text.FormatBig(s.TokensUnder))
	}
	if e.CallersTotal > 1 {
		for i := range e.Callers {
			c := &e.Callers[i]
			name := c.Entity
			if r.Resource == "" {
				name += " on " + c.Model
			}
			add(name, &c.EstimateScore)
		}
	}
	add("all calls", &e.EstimateScore)
	return t
}

// liveFoot says what else became of the calls.
func liveFoot(b *bytes.Buffer, r *replay.LiveReport) {
	if len(r.Errors) > 0 {
		var codes []string
		for _, code := range slices.Sorted(maps.Keys(r.Errors)) {
			codes = append(codes, text.FormatInt(r.Errors[code])+" "+text.Printable(code))
		}
		fmt.Fprintf(b, "errors are no denials: %s\n", strings.Join(codes, ", "))
	}
	if r.Unsettled > 0 {
		fmt.Fprintf(b, "%s could not be settled\n", text.Plural(int(r.Unsettled), "lease", "leases"))
	}
	if r.Degraded > 0 {
		fmt.Fprintf(b, "%s admitted without being charged: the store did not answer\n",
			text.Plural(int(r.Degraded), "call was", "calls were"))
	}
	late := "none late"
	if r.Late > 0 {
		late = fmt.Sprintf("%s more than %s late, at most %s",
			text.FormatInt(r.Late), text.FormatMS(replay.LateBy.Milliseconds()), text.FormatMS(r.LateMaxMS))
	}
	fmt.Fprintf(b, "sent  %s, %s\n", text.Plural(int(r.Sent), "call", "calls"), late)
	if r.Stopped != "" {
		fmt.Fprintf(b, "stopped early: %s\n", r.Stopped)
	}
}
