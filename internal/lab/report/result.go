// Package report formats the report of a replay: as text for a terminal, and as a page with
// figures.
//
// A [Result] is the one model for both. Its facts and tables are the same in text and on the page,
// and its figures are package chart's, which draws them in both places.
package report

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-limiter/weir/internal/chart"
	"github.com/weir-limiter/weir/internal/lab/replay"
	"github.com/weir-limiter/weir/internal/text"
)

// Result is the result of a replay. It is printed as JSON as it stands.
type Result struct {
	*replay.Report

	// Compare is absent if nothing was compared.
	Compare *replay.Comparison `json:"compare,omitempty"`
	// Suggest is absent if no capacities were asked for.
	Suggest *Suggested `json:"suggest,omitempty"`

	// samples are those of the first and of the second run; nil without a page.
	samples [2]*replaySamples
}

// NewResult returns an empty result. For a page it collects samples.
func NewResult(withPage bool) *Result {
	o := &Result{}
	if withPage {
		o.samples = [2]*replaySamples{newReplaySamples(), newReplaySamples()}
	}
	return o
}

// Watchers returns the watchers that collect what the page shows of the first or the second run.
func (o *Result) Watchers(number int) []replay.Watcher {
	if o.samples[number] == nil {
		return nil
	}
	return []replay.Watcher{o.samples[number]}
}

// side is a run that a result is about: the only one, or one of two.
type side struct {
	*replay.Report

	name    string // A or B; empty for the only one
	samples *replaySamples
}

// sides returns one side, or the two that are compared.
func (o *Result) sides() []*side {
	if o.Compare == nil {
		return []*side{{o.Report, "", o.samples[0]}}
	}
	return []*side{{o.Report, "A", o.samples[0]}, {o.Compare.Second, "B", o.samples[1]}}
}

// Table prints the result as text.
func (o *Result) Table(b *bytes.Buffer, drawn *chart.TextOptions) {
	t := text.Table{}
	for _, f := range o.facts() {
		t.Add(f.Name, f.Value)
	}
	t.Write(b)
	b.WriteString("\n")
	limits, shadow := o.limitsTable(false)
	limits.Write(b)
	if shadow {
		b.WriteString("\n* a shadow limit denies nothing: DENIED is what it would have denied")
		if o.Compare == nil {
			b.WriteString(",\n  SOLE CAUSE what nothing else would have denied")
		}
		b.WriteString("\n")
	}
	if o.Timeline != nil && len(o.Timeline.Intervals) > 1 {
		b.WriteString("\n")
		o.charts(b, drawn)
	}
	b.WriteString("\n")
	if o.Compare == nil {
		o.foot(b)
		o.Suggest.print(b)
		return
	}
	totalsTable(o.Report, o.Compare.Second).Write(b)
	b.WriteString("\n")
	callsTable(&o.Compare.Calls).Write(b)
	x, y := o.Speed, o.Compare.Second.Speed
	fmt.Fprintf(b, "\nreplayed in %s, against both: %s operations\n",
		wallText(x.WallMS+y.WallMS), text.FormatInt(x.Operations+y.Operations))
}

// facts describe the workload, the limits and the settings.
func (o *Result) facts() []chart.Fact {
	r := o.Report
	var facts []chart.Fact
	add := func(name, format string, args ...any) {
		facts = append(facts, chart.Fact{Name: name, Value: fmt.Sprintf(format, args...)})
	}
	add("trace", "%s", r.Trace)
	add("calls", "%s", text.FormatInt(int64(r.Calls)))
	add("span", "%s, from %s to %s", spanText(r.SpanMS), r.From, r.To)
	entities, first := text.FormatInt(int64(r.Entities)), replay.TenantName(0)
	switch {
	case r.EntityColumn != "":
		add("entities", "%s, by the column %s", entities, r.EntityColumn)
	case r.Entities > 1:
		add("entities", "%s (%s to %s)", entities, first, replay.TenantName(r.Entities-1))
	default:
		add("entities", "%s", first)
	}
	if r.EntityColumn == "" {
		add("seed", "%s", strconv.FormatUint(r.Seed, 10))
	}
	if r.Resource != "" {
		add("resource", "%s", r.Resource)
	} else {
		add("resources", "%s", text.FormatInt(int64(r.Resources)))
	}
	costs := maps.Clone(r.Costs)
	switch {
	case r.Live != nil:
		add("server", "%s, %s times as fast as recorded", r.Live.Server, text.FormatInt(r.Live.Speed))
	case o.Compare != nil:
		add("limits A", "%s", r.LimitsFile)
		add("limits B", "%s", o.Compare.Second.LimitsFile)
		maps.Copy(costs, o.Compare.Second.Costs) // one file may lack a limit that the other has
	default:
		add("limits", "%s", r.LimitsFile)
	}
	add("latency", "%s", r.Latency)
	if len(r.Costs) > 0 {
		add("costs", "%s", text.FormatMap(costs, strings.Clone))
	}
	if r.Estimates != nil {
		add("estimate", "%s", r.Estimate)
	}
	if r.Retry != nil {
		add("retry", "until %s after a call's arrival", text.FormatMS(r.Retry.PatienceMS))
	}
	return facts
}

// spanText writes milliseconds in whole seconds, or in days if a duration might not hold them.
func spanText(ms int64) string {
	const day = 24 * time.Hour
	if days := ms / day.Milliseconds(); days >= 100_000 {
		return text.FormatInt(days) + " days"
	}
	return (time.Duration(ms) * time.Millisecond).Round(time.Second).String()
}

// foot prints the totals and the other figures of one run.
func (o *Result) foot(b *bytes.Buffer) {
	c := &o.Totals
	t := text.Table{Heads: []string{"", ">", ">", ">"}}
	t.Add("calls", text.FormatInt(c.Calls), "", "")
	t.Add("admitted", text.FormatInt(c.Admitted), string(c.AdmittedPercent)+" %",
		text.FormatBig(c.TokensAdmitted)+" tokens")
	t.Add("denied", text.FormatInt(c.Denied), string(c.DeniedPercent)+" %",
		text.FormatBig(c.TokensDenied)+" tokens")
	t.Add("errors", text.FormatInt(c.Errors), "", "")
	t.Write(b)
	if o.Live != nil {
		liveFoot(b, o.Live)
	} else if c.Errors > 0 {
		b.WriteString("errors are calls that can never be admitted (never satisfiable); " +
			"their tokens count as denied\n")
	}
	if c.RetryAfterP50MS != nil {
		fmt.Fprintf(b, "retry after  half of the denials within %s, 95 %% within %s\n",
			text.FormatMS(*c.RetryAfterP50MS), text.FormatMS(*c.RetryAfterP95MS))
	}
	if r := o.Retry; r != nil {
		fmt.Fprintf(b, "attempts  %s: %s admitted on arrival, %s after a retry, %s gave up\n",
			text.FormatInt(r.Attempts), text.Plural(int(r.AdmittedFirst), "call", "calls"),
			text.FormatInt(r.AdmittedLater), text.FormatInt(r.GivenUp))
		w := r.WaitMS
		fmt.Fprintf(b, "wait until admitted  half within %s, 95 %% within %s, 99 %% within %s, at most %s\n",
			text.FormatMS(w.P50), text.FormatMS(w.P95), text.FormatMS(w.P99), text.FormatMS(w.Max))
	}
	if e := o.Estimates; e != nil && e.Calls > 0 {
		b.WriteString("\n")
		estimatesTable(o.Report).Write(b)
		b.WriteString("\n")
	}
	fmt.Fprintf(b, "replayed in %s: %s operations, %s a second\n", wallText(o.Speed.WallMS),
		text.FormatInt(o.Speed.Operations), text.FormatInt(o.Speed.OperationsPerSecond))
}

// wallText writes a wall time, which may be very short.
func wallText(ms int64) string {
	if ms <= 0 {
		return "less than 1ms"
	}
	return text.FormatMS(ms)
}

// liveFoot prints the figures that only a run against a server has.
func liveFoot(b *bytes.Buffer, r *replay.LiveReport) {
	if len(r.Errors) > 0 {
		var codes []string
		for _, code := range slices.Sorted(maps.Keys(r.Errors)) {
			codes = append(codes, text.FormatInt(r.Errors[code])+" "+text.Printable(code))
		}
		fmt.Fprintf(b, "errors are not denials: %s\n", strings.Join(codes, ", "))
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
