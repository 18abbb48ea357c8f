package chart

import (
	"strings"

	"github.com/weir-limiter/weir/internal/text"
)

// eighths is the number of heights that a cell can show.
const eighths = 8

// textPlot is an area of cells with a scale on its left and times below.
type textPlot struct {
	*lineBuffer

	series []Series
	unit   string
	top    uint64
	rule   uint64 // height of a line across; 0 for none
	times  Times
	n      int
	margin int // cells left of the axis
	each   int // cells of one interval
	gaps   []Gap
}

// newPlot lays out n intervals. The times are those of the series as drawn.
func (t *lineBuffer) newPlot(series []Series, times Times, n int, top uint64, unit string) *textPlot {
	p := &textPlot{lineBuffer: t, series: series, unit: unit, times: times, top: top, n: n}
	p.margin = scaleWidth(top, unit)
	p.each = max((t.Width-p.margin-2)/max(p.n, 1), 1)
	return p
}

// scaleWidth returns the number of cells for the labels of a scale.
func scaleWidth(top uint64, unit string) int {
	return max(text.Width(short(top, unit)), text.Width(short(top/2, unit)))
}

// columnsLeft returns the number of intervals that fit beside the scale.
func (t *lineBuffer) columnsLeft(top uint64, unit string) int {
	return max(t.Width-2-scaleWidth(top, unit), 1)
}

// draw writes the plot, from its top.
func (p *textPlot) draw() {
	columns := make([][]int, p.n)
	for i := range columns {
		columns[i] = p.edges(i)
	}
	rule := -1
	if p.rule > 0 {
		rule = min(scale(p.rule, p.top, p.Height*eighths)/eighths, p.Height-1)
	}
	for row := p.Height - 1; row >= 0; row-- {
		var runs []coloredText
		for i := range columns {
			runs = append(runs, p.cell(columns[i], row, row == rule))
		}
		for len(runs) > 0 && strings.TrimSpace(runs[len(runs)-1].text) == "" {
			runs = runs[:len(runs)-1]
		}
		p.b.WriteString(p.scaleLabel(row) + p.painted(runs) + "\n")
	}
	p.axis()
}

// edges returns the positions at which the series of an interval begin and end, in eighths of a
// row. Without colours only the end of the lowest series can be shown more exactly than to a row.
func (p *textPlot) edges(i int) []int {
	values := column(p.series, i)
	if p.exact() || len(values) < 2 || sum(values[1:]) == 0 {
		return stack(values, p.top, p.Height*eighths, 1)
	}
	return stackRows(values, p.top, p.Height, eighths)
}

// cell draws the part of a column in a row. It shows at most two of the series that have a part of
// it.
func (p *textPlot) cell(edges []int, row int, ruled bool) coloredText {
	low, high := row*eighths, (row+1)*eighths
	var inside []int
	for k := range len(edges) - 1 {
		if edges[k] < high && edges[k+1] > low && edges[k+1] > edges[k] {
			inside = append(inside, k)
		}
	}
	filled := min(edges[len(edges)-1], high) - low
	color, back, text := uncolored, uncolored, " "
	switch len(inside) {
	case 0:
		if ruled && p.ASCII {
			text = "-"
		} else if ruled {
			text = "╌"
		}
	case 1:
		k := inside[0]
		if color, text = p.color(p.series, k), p.fill(k); filled < eighths && (k == 0 || p.exact()) {
			text = p.upright(filled)
		}
	default: // a cell has two colours, so a small gap above them is filled
		below, above := inside[0], inside[len(inside)-1]
		color, back = p.color(p.series, below), p.color(p.series, above)
		text = p.upright(min(max(edges[below+1]-low, 1), eighths-1))
	}
	return coloredText{strings.Repeat(text, p.each), color, back}
}

// scaleLabel returns the text to the left of a row: a number at the top and at half the height.
func (p *textPlot) scaleLabel(row int) string {
	label := ""
	switch {
	case row == p.Height-1:
		label = short(p.top, p.unit)
	case p.Height >= 4 && p.Height%2 == 0 && row == p.Height/2-1 && p.top%2 == 0:
		label = short(p.top/2, p.unit)
	}
	mark := " │"
	switch {
	case p.ASCII:
		mark = " |"
	case label != "":
		mark = " ┤"
	}
	return text.Right(label, p.margin) + mark
}

// axis writes the line below the plot and the times.
func (p *textPlot) axis() {
	corner, level, mark := "└", "─", "┬"
	if p.ASCII {
		corner, level, mark = "+", "-", "+"
	}
	width := p.n * p.each
	line := strings.Split(strings.Repeat(level, width), "")
	for _, g := range p.gaps {
		for i := g.From * p.each; i < g.To*p.each; i++ {
			line[i] = "?"
		}
	}
	labels, end := "", 0
	for _, tick := range p.times.ticks(p.n, max(width/8, 1)) {
		at := min(tick.at*width/10_000, width-1)
		from := min(at, p.Width-p.margin-2-text.Width(tick.label))
		if from < end || at < 0 {
			continue
		}
		if line[at] == level {
			line[at] = mark
		}
		labels += text.Blank(from-text.Width(labels)) + tick.label
		end = text.Width(labels) + 2
	}
	p.line(text.Right("0", p.margin), " ", corner, strings.Join(line, ""))
	p.line(text.Blank(p.margin+2), labels)
}

// perStep adds to a title the unit and the interval: "calls each 1 min".
func perStep(title, unit string, times Times) string {
	step := "each " + times.step()
	switch {
	case strings.EqualFold(title, unit) && title != "":
		return title + " " + step
	case unit == Milliseconds || unit == "":
		return titled(title, step)
	}
	return titled(title, unit+" "+step)
}

// titled joins a title and the text that follows it.
func titled(title, rest string) string {
	if title == "" || rest == "" {
		return title + rest
	}
	return title + ", " + rest
}

// fitted finds a common scale for several sets of series, with one or more intervals in a cell.
// Merging intervals changes the scale, and the width of the scale changes how many fit, so it tries
// up to three times.
func (t *lineBuffer) fitted(unit string, sets ...[]Series) sameScale {
	s := sameScale{each: 1}
	for _, series := range sets {
		s.n = max(s.n, most(series))
	}
	for range 3 {
		s.top = 0
		for _, series := range sets {
			s.top = max(s.top, roundTop(highest(merge(series, s.each, false)), unit))
		}
		each := mergeCount(s.n, t.columnsLeft(s.top, unit))
		if each <= s.each {
			break
		}
		s.each = each
	}
	return s
}

// sameScale is a common scale of several figures.
type sameScale struct {
	n    int // intervals
	each int // intervals merged into one
	top  uint64
}

// columns draws stacked columns. Side is put before the title.
func (t *lineBuffer) columns(c *Columns, side string, s sameScale) {
	if s.n == 0 {
		t.heading(titled(side, c.Title), c.Note, c.Series)
		t.line("nothing to show")
		return
	}
	series, times := merge(c.Series, s.each, false), c.Times.normal(s.n).each(s.each)
	t.heading(titled(side, perStep(c.Title, c.Unit, times)), c.Note, series)
	p := t.newPlot(series, times, (s.n+s.each-1)/s.each, s.top, c.Unit)
	p.gaps = gapsOf(c.Gaps, s.each, p.n)
	p.draw()
}

func (c *Columns) text(t *lineBuffer) { t.columns(c, "", t.fitted(c.Unit, c.Series)) }

func (c *Comparison) text(t *lineBuffer) {
	scale := t.fitted(c.Unit, c.Above.Series, c.Below.Series)
	for _, side := range []*ComparisonSide{&c.Above, &c.Below} {
		t.columns(&Columns{Title: c.Title, Unit: c.Unit, Times: c.Times, Series: side.Series},
			side.Name, scale)
	}
	if c.Note != "" {
		t.line(t.safe(c.Note, t.Width))
	}
}

func (l *Lines) text(t *lineBuffer) {
	top := roundTop(l.largest(), l.Unit)
	note := l.Note
	if l.Rule != nil {
		note = titled(l.Rule.Name+" "+exact(l.Rule.Value, l.Unit), note)
	}
	if most(l.Series) == 0 {
		t.heading(l.Title, note, nil)
		t.line("nothing to show")
		return
	}
	n := most(l.Series)
	each := mergeCount(n, t.columnsLeft(top, l.Unit))
	for i := range l.Series {
		series := merge(l.Series[i:i+1], each, true)
		t.line(t.safe(titled(l.Title, titled(series[0].Name, note)), t.Width))
		p := t.newPlot(series, l.Times.normal(n).each(each), (n+each-1)/each, top, l.Unit)
		if l.Rule != nil {
			p.rule = size(l.Rule.Value)
		}
		p.draw()
	}
}

// largest returns the largest value of the lines and of their rule.
func (l *Lines) largest() uint64 {
	top := largest(l.Series)
	if l.Rule != nil {
		top = max(top, size(l.Rule.Value))
	}
	return top
}
