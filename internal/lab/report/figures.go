package report

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/chart"
	"github.com/weir-limiter/weir/internal/lab/replay"
	"github.com/weir-limiter/weir/internal/text"
)

const (
	// sparkRows is the number of limits that are drawn as lines of text.
	sparkRows = 12
	// barRows is the number of limits of a figure of bars.
	barRows = 40
)

// charts draws the timeline on a terminal. Writing to a buffer cannot fail.
func (o *Result) charts(b *bytes.Buffer, drawn *chart.TextOptions) {
	if o.Compare != nil {
		_ = chart.WriteText(b, o.callsComparison(), drawn)
		return
	}
	columns := attempts(o.Report)
	_ = chart.WriteText(b, columns, drawn)
	var lines []*chart.Lines
	for _, row := range o.Timeline.Limits[:min(len(o.Timeline.Limits), sparkRows)] {
		lines = append(lines, &chart.Lines{
			Title: rowTitle(o.Report, row), Times: columns.Times,
			Series: []chart.Series{{Name: "most in use", Values: row.PeakUse}},
			Rule:   &chart.ReferenceLine{Name: "capacity", Value: row.Capacity},
		})
	}
	b.WriteString("\nmost in use, of the capacity\n")
	_ = chart.WriteSparks(b, lines, drawn)
}

// series returns a figure of each interval.
func series(
	name string, tone chart.Tone, l *replay.Timeline, of func(n *replay.Interval) int64,
) chart.Series {
	s := chart.Series{Name: name, Tone: tone}
	for i := range l.Intervals {
		s.Values = append(s.Values, of(&l.Intervals[i]))
	}
	return s
}

func errorsIn(n *replay.Interval) int64 { return n.Errors }

// attempts draws the results of each attempt.
func attempts(r *replay.Report) *chart.Columns {
	l := r.Timeline
	columns := &chart.Columns{
		Title: asked(r) + " over time", Times: chartTimes(l),
		Series: []chart.Series{
			series("admitted", chart.Good, l, func(n *replay.Interval) int64 { return n.Admitted }),
			series("denied", chart.Bad, l, func(n *replay.Interval) int64 { return n.DeniedAttempts }),
		},
	}
	if r.Totals.Errors > 0 {
		columns.Series = append(columns.Series, series("errors", chart.Plain, l, errorsIn))
	}
	return columns
}

// asked names what the limits judge: calls, or each of their attempts.
func asked(r *replay.Report) string {
	if r.Retry != nil {
		return "attempts"
	}
	return "calls"
}

// arrivals returns the calls by their results on arrival. If calls are retried, the timeline does
// not distinguish errors on arrival from later ones.
func arrivals(l *replay.Timeline, r *replay.Report) []chart.Series {
	name, split := "admitted", r.Totals.Errors > 0 && r.Retry == nil
	if r.Totals.Errors > 0 && r.Retry != nil {
		name = "not denied"
	}
	out := []chart.Series{
		series(name, chart.Good, l, func(n *replay.Interval) int64 {
			if split {
				return n.Arrived - n.Denied - n.Errors
			}
			return n.Arrived - n.Denied
		}),
		series("denied", chart.Bad, l, func(n *replay.Interval) int64 { return n.Denied }),
	}
	if split {
		out = append(out, series("errors", chart.Plain, l, errorsIn))
	}
	return out
}

// callsComparison draws the results of the calls on arrival, the first file's above the second's.
func (o *Result) callsComparison() *chart.Comparison {
	second := o.Compare.Second
	a, b := replay.AlignTimelines(o.Timeline, second.Timeline)
	above, below := arrivals(a, o.Report), arrivals(b, second)
	for len(above) < len(below) { // both sides must have the same series
		above = append(above, chart.Series{Name: "errors"})
	}
	for len(below) < len(above) {
		below = append(below, chart.Series{Name: "errors"})
	}
	return &chart.Comparison{
		Title: "calls on arrival", Times: chartTimes(a),
		Above: chart.ComparisonSide{Name: "A", Series: above},
		Below: chart.ComparisonSide{Name: "B", Series: below},
	}
}

// rowTitle returns the title of a limit.
func rowTitle(r *replay.Report, row *replay.LimitTimeline) string {
	title := row.Entity
	if row.Group != "" {
		title = string(row.Group)
	}
	if r.Resource == "" {
		title += " " + rowResource(row.Resource)
	}
	return title + " " + row.Limit
}

// chartTimes returns the intervals of a timeline. A trace whose times count from its own beginning
// has no dates.
func chartTimes(l *replay.Timeline) chart.Times {
	const year = 365 * 24 * time.Hour
	times := chart.Times{Step: time.Duration(l.IntervalMS) * time.Millisecond}
	if l.FromMS >= year.Milliseconds() {
		times.Start = time.UnixMilli(l.FromMS).UTC()
	}
	return times
}

// overTime returns the figures of the events over time.
func (o *Result) overTime() chart.Section {
	l, other := o.Timeline, o.Timeline
	if o.Compare != nil {
		l, other = replay.AlignTimelines(l, o.Compare.Second.Timeline)
	}
	times := chartTimes(l)
	s := chart.Section{Title: "Over time", Note: fmt.Sprintf("In intervals of %v", times.Step)}
	if times.Start.IsZero() {
		s.Note += ", counted from the first call."
	} else {
		s.Note += ", in UTC."
	}
	asked, admitted := tokens(l)
	switch {
	case o.Compare != nil:
		calls := o.callsComparison()
		calls.Title, calls.Unit = "Calls on arrival", "calls"
		_, admittedB := tokens(other)
		s.Figures = []chart.Figure{calls, &chart.Comparison{
			Title: "Tokens admitted", Unit: "tokens", Times: times,
			Above: chart.ComparisonSide{Name: "A", Series: []chart.Series{admitted}},
			Below: chart.ComparisonSide{Name: "B", Series: []chart.Series{admittedB}},
		}}
		return s
	case o.Retry == nil:
		left := series("not admitted", chart.Bad, l, func(n *replay.Interval) int64 {
			return n.TokensAsked - n.TokensAdmitted
		})
		s.Figures = []chart.Figure{&chart.Columns{
			Title: "Tokens asked for on arrival", Unit: "tokens", Times: times,
			Series: []chart.Series{admitted, left},
		}}
	default: // calls may be admitted later than they came
		columns := attempts(o.Report)
		columns.Title, columns.Unit = "Attempts", "attempts"
		columns.Note = "Each time that a call comes back is another attempt."
		asked.Name, admitted.Name, admitted.Tone = "", "", chart.Plain
		s.Figures = []chart.Figure{columns, &chart.Comparison{
			Title: "Tokens of calls", Unit: "tokens", Times: times,
			Above: chart.ComparisonSide{Name: "that arrived", Series: []chart.Series{asked}},
			Below: chart.ComparisonSide{Name: "that were admitted", Series: []chart.Series{admitted}},
		}}
	}
	s.Figures = append([]chart.Figure{&chart.Columns{
		Title: "Calls on arrival", Unit: "calls", Times: times, Series: arrivals(l, o.Report),
	}}, s.Figures...)
	return s
}

// tokens draws the tokens of the calls that arrived, and of those that were admitted.
func tokens(l *replay.Timeline) (asked, admitted chart.Series) {
	return series("asked", chart.Plain, l, func(n *replay.Interval) int64 { return n.TokensAsked }),
		series("admitted", chart.Good, l, func(n *replay.Interval) int64 { return n.TokensAdmitted })
}

// denials draws how often each limit denied: alone and with others, or in each of two files. There
// is no figure if none did.
func (o *Result) denials() []chart.Figure {
	b := &chart.Bars{
		Title: "Denials by limit", Unit: asked(o.Report), Grouped: o.Compare != nil,
		Note:   "One denial counts on every limit that was exceeded. Limits that denied nothing are left out.",
		Series: []chart.Series{{Name: "only this limit", Tone: chart.Bad}, {Name: "others too"}},
	}
	add := func(l *replay.LimitReport, first, second int64) {
		if first+second == 0 || len(b.Labels) == barRows {
			return
		}
		title := replay.RowEntity(l)
		if o.Resource == "" {
			title += " " + rowResource(l.Resource)
		}
		if title += " " + l.Limit; l.Shadow {
			title += " *"
		}
		b.Labels = append(b.Labels, title)
		b.Series[0].Values = append(b.Series[0].Values, first)
		b.Series[1].Values = append(b.Series[1].Values, second)
	}
	if o.Compare == nil {
		for _, l := range o.Limits {
			add(l, l.DeniedOnly, l.Denied-l.DeniedOnly)
		}
	} else {
		b.Series = []chart.Series{{Name: "A"}, {Name: "B"}}
		for _, l := range o.Compare.Limits {
			var denied [2]int64
			for i, r := range []*replay.LimitReport{l.First, l.Second} {
				if r != nil {
					denied[i] = r.Denied
				}
			}
			add(eitherRow(l), denied[0], denied[1])
		}
	}
	if len(b.Labels) == 0 {
		return nil
	}
	return []chart.Figure{b}
}

// uses draws the use of each limit; those that two files share stand beside each other.
func (o *Result) uses() []chart.Section {
	const note = "The highest use in each interval: the capacity less the smallest number of units that an " +
		"answer reported as available. In intervals without calls, windows and budgets keep their last value, " +
		"and other limits are drawn at 0."
	sides := o.sides()
	a := o.Timeline
	all := chart.Section{Title: "Use against capacity", Note: note}
	for i := range sides {
		if m := sides[i].mostInUse(); len(m.Meters) > 0 {
			all.Figures = append(all.Figures, m)
		}
	}
	if o.Compare == nil {
		for _, row := range a.Limits {
			all.Figures = append(all.Figures, sides[0].use(a, row))
		}
		all.Note += omittedNote(a)
		return nonEmpty(all)
	}
	a, b := replay.AlignTimelines(a, o.Compare.Second.Timeline)
	onlyA := chart.Section{Title: "Use against capacity: only A"}
	onlyB := chart.Section{Title: "Use against capacity: only B"}
	taken := map[int]bool{}
	for i, k := range replay.Match(a.Limits, b.Limits, replay.SameLimit) {
		figure := sides[0].use(a, a.Limits[i])
		if k < 0 {
			onlyA.Figures = append(onlyA.Figures, figure)
			continue
		}
		taken[k] = true
		all.Figures = append(all.Figures, figure, sides[1].use(b, b.Limits[k]))
	}
	for k, row := range b.Limits {
		if !taken[k] {
			onlyB.Figures = append(onlyB.Figures, sides[1].use(b, row))
		}
	}
	all.Note += omittedNote(a)
	return nonEmpty(all, onlyA, onlyB)
}

// omittedNote says how many limits are not drawn.
func omittedNote(l *replay.Timeline) string {
	if l.RowsLeftOut == 0 {
		return ""
	}
	return fmt.Sprintf(" These are the first %d limits; %s not drawn.",
		len(l.Limits), text.Plural(l.RowsLeftOut, "more is", "more are"))
}

// nonEmpty returns the sections that have figures.
func nonEmpty(sections ...chart.Section) []chart.Section {
	var out []chart.Section
	for _, s := range sections {
		if len(s.Figures) > 0 {
			out = append(out, s)
		}
	}
	return out
}

// use draws the use of a limit. If no call asked in an interval, a window or a budget keeps the use
// of the interval before.
func (s *side) use(l *replay.Timeline, row *replay.LimitTimeline) *chart.Lines {
	values, last := make([]int64, len(row.PeakUse)), int64(0)
	for i, use := range row.PeakUse {
		switch {
		case use >= 0:
			last = use
		case row.Kind != weir.Window && row.Kind != weir.Budget:
			last = 0
		}
		values[i] = last
	}
	f := &chart.Lines{
		Title: s.titled(rowTitle(s.Report, row)), Unit: "units", Times: chartTimes(l),
		Series: []chart.Series{{Name: "most in use", Tone: chart.Good, Values: values}},
		Rule:   &chart.ReferenceLine{Name: "capacity", Value: row.Capacity},
	}
	if row.Kind == weir.Concurrency {
		f.Unit = "slots"
	}
	if row.Shadow {
		f.Note = "A shadow limit: it denies nothing."
	}
	return f
}

// mostInUse draws the most that was in use of each limit at any time.
func (s *side) mostInUse() *chart.Meters {
	m := &chart.Meters{
		Title: s.titled("Most in use"), Note: "Each bar is the share of the capacity that was in use.",
	}
	for _, row := range s.Timeline.Limits {
		used := slices.Max(append([]int64{0}, row.PeakUse...))
		m.Meters = append(m.Meters, chart.Meter{
			Label: rowTitle(s.Report, row), Used: used, Capacity: row.Capacity,
			Text: inUse(row.Kind, used, row.Capacity),
		})
	}
	return m
}

// inUse says how much of a capacity is in use, as the server's status page does.
func inUse(kind weir.Kind, used, capacity int64) string {
	said := text.FormatInt(used) + " of " + text.FormatInt(capacity)
	if kind == weir.Concurrency {
		said += " slots"
	}
	switch said += " in use"; {
	case used <= capacity:
		return said
	case kind == weir.Bucket:
		return said + ", in debt"
	}
	return said + ", over capacity"
}

// waits draws the retry-afters of denials, and the times that calls waited for their admission.
func (o *Result) waits() []chart.Section {
	var told, waited []namedHistogram
	s := chart.Section{Title: "Waits"}
	for _, side := range o.sides() {
		told = append(told, namedHistogram{side.name, side.samples.retryAfter})
		c := side.Retry
		if c == nil {
			continue
		}
		waited = append(waited, namedHistogram{side.name, side.samples.waits})
		if s.Note != "" {
			s.Note += " "
		}
		if side.name != "" {
			s.Note += side.name + ": "
		}
		s.Note += fmt.Sprintf("%s attempts; %s admitted on arrival, %s after a retry, %s gave up.",
			text.FormatInt(c.Attempts), text.Plural(int(c.AdmittedFirst), "call was", "calls were"),
			text.FormatInt(c.AdmittedLater), text.FormatInt(c.GivenUp))
	}
	if d := distribution("Wait until admitted", chart.Milliseconds, waited...); d != nil {
		d.Note = "Of the calls that were admitted; 0 ms is for those admitted on arrival."
		s.Figures = append(s.Figures, d)
	}
	if d := distribution("Retry after", chart.Milliseconds, told...); d != nil {
		d.Note = "The retry-after of each denial."
		s.Figures = append(s.Figures, d)
	}
	return nonEmpty(s)
}

// estimated draws the estimates beside the actual tokens.
func (o *Result) estimated() []chart.Section {
	var out []chart.Section
	for _, side := range o.sides() {
		if e := side.Estimates; e == nil || e.Calls == 0 {
			continue
		}
		d := distribution("Tokens generated by a call", "tokens",
			namedHistogram{"estimated", side.samples.estimated}, namedHistogram{"used", side.samples.used})
		d.Note = "Of the calls that were admitted and have ended."
		out = append(out, chart.Section{
			Title: side.titled("Estimates"), Note: "Calls reserved " + side.Estimate + ".",
			Table: pageTable(estimatesTable(side.Report)), Figures: []chart.Figure{d},
		})
	}
	return out
}
