package report

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/weir-limiter/weir/internal/lab/chart"
	"github.com/weir-limiter/weir/internal/lab/replay"
	"github.com/weir-limiter/weir/internal/text"
)

// facts say what was replayed, and how.
func facts(r *replay.Report) []chart.Fact {
	f := []chart.Fact{
		{Name: "trace", Value: r.Trace},
		{Name: "calls", Value: text.FormatInt(int64(r.Calls))},
		{Name: "span", Value: fmt.Sprintf("%s, from %s to %s", replaySpan(r), r.From, r.To)},
	}
	add := func(name, value string) { f = append(f, chart.Fact{Name: name, Value: value}) }
	entities := replay.TenantName(0)
	if r.EntityColumn != "" {
		entities = fmt.Sprintf("%s, by the column %s", text.FormatInt(int64(r.Entities)), r.EntityColumn)
	} else if r.Entities > 1 {
		entities = fmt.Sprintf("%s (%s to %s)",
			text.FormatInt(int64(r.Entities)), entities, replay.TenantName(r.Entities-1))
	}
	add("entities", entities)
	if r.EntityColumn == "" {
		add("seed", strconv.FormatUint(r.Seed, 10))
	}
	if r.Resource != "" {
		add("resource", r.Resource)
	} else {
		add("resources", text.FormatInt(int64(r.Resources)))
	}
	if r.Live != nil {
		add("server", fmt.Sprintf("%s, %s times as fast as recorded",
			r.Live.Server, text.FormatInt(r.Live.Speed)))
	} else {
		add("limits", r.LimitsFile)
	}
	add("latency", r.Latency)
	if costs := text.FormatMap(r.Costs, strings.Clone); costs != "" {
		add("costs", costs)
	}
	if r.Estimates != nil {
		add("estimate", r.Estimate)
	}
	if r.Retry != nil {
		add("retry", "until "+text.FormatMS(r.Retry.PatienceMS)+" after a call came")
	}
	return f
}

// replaySpan is how long it all took, in whole seconds; in days where a duration might not hold it.
func replaySpan(r *replay.Report) string {
	const day = 24 * time.Hour
	if days := r.SpanMS / day.Milliseconds(); days >= 100_000 {
		return text.FormatInt(days) + " days"
	}
	return (time.Duration(r.SpanMS) * time.Millisecond).Round(time.Second).String()
}

// sparkRows is how many limits are drawn.
const sparkRows = 12

// charts draws what happened over time.
func (r *reportPrinter) charts(b *bytes.Buffer) {
	l := r.Timeline
	if l == nil || len(l.Intervals) < 2 {
		return
	}
	columns := r.attempts()
	b.WriteString("\n")
	_ = chart.WriteText(b, columns, r.chart) // a buffer takes everything
	var lines []*chart.Lines
	for _, row := range l.Limits[:min(len(l.Limits), sparkRows)] {
		lines = append(lines, &chart.Lines{
			Title: r.rowTitle(row), Times: columns.Times,
			Series: []chart.Series{{Name: "most in use", Values: row.PeakUse}},
			Rule:   &chart.ReferenceLine{Name: "capacity", Value: row.Capacity},
		})
	}
	b.WriteString("\n")
	b.WriteString("most in use, of the capacity\n")
	_ = chart.WriteSparks(b, lines, r.chart)
}

// attempts draws what became of the attempts: of the calls, where none comes back.
func (r *reportPrinter) attempts() *chart.Columns {
	l := r.Timeline
	var admitted, denied, errors []int64
	failed := false
	for i := range l.Intervals {
		n := &l.Intervals[i]
		admitted, denied = append(admitted, n.Admitted), append(denied, n.DeniedAttempts)
		errors = append(errors, n.Errors)
		failed = failed || n.Errors > 0
	}
	unit := "calls"
	if r.Retry != nil {
		unit = "attempts"
	}
	columns := &chart.Columns{
		Title: unit + " over time", Times: chartTimes(l),
		Series: []chart.Series{
			{Name: "admitted", Tone: chart.Good, Values: admitted},
			{Name: "denied", Tone: chart.Bad, Values: denied},
		},
	}
	if failed {
		columns.Series = append(columns.Series, chart.Series{Name: "errors", Values: errors})
	}
	return columns
}

// rowTitle names a limit.
func (r *reportPrinter) rowTitle(row *replay.LimitTimeline) string {
	title := row.Entity
	if row.Group != "" {
		title = string(row.Group)
	}
	if r.Resource == "" {
		title += " " + rowResource(row.Resource)
	}
	return title + " " + row.Limit
}

// chartTimes are the intervals of a timeline. A trace whose times count from its own beginning has
// no dates.
func chartTimes(l *replay.Timeline) chart.Times {
	const year = 365 * 24 * time.Hour
	times := chart.Times{Step: time.Duration(l.IntervalMS) * time.Millisecond}
	if l.FromMS >= year.Milliseconds() {
		times.Start = time.UnixMilli(l.FromMS).UTC()
	}
	return times
}
