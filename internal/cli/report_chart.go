package cli

import (
	"bytes"
	"time"

	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/internal/lab/chart"
	"github.com/weir-limiter/weir/internal/lab/replay"
)

// chartColumns is how wide a chart is where nobody says how wide a line may be: as wide as the
// table.
const chartColumns = 100

// sparkRows is how many limits are drawn.
const sparkRows = 12

// chartOptions says how charts are drawn on standard output.
func chartOptions(a *console.App) *chart.TextOptions {
	o := &chart.TextOptions{Width: chartColumns, ASCII: !a.SpeaksUTF8()}
	if t := a.TerminalAt(a.Streams.Out); t != nil {
		columns, _ := t.Size()
		o.Width, o.Color = min(columns, 2*chartColumns), t.Style.Color
	}
	return o
}

// charts draws what happened over time.
func (r *replayPrint) charts(b *bytes.Buffer) {
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
func (r *replayPrint) attempts() *chart.Columns {
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
func (r *replayPrint) rowTitle(row *replay.LimitTimeline) string {
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
