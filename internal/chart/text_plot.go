package chart

import "strings"

// eighths are how many heights a cell can show.
const eighths = 8

// plot is an area of cells with a scale on its left and times below.
type plot struct {
	*terminal

	series []Series
	unit   string
	top    uint64
	rule   uint64 // a line across; 0 is none
	times  Times
	n      int
	margin int // cells left of the axis
	each   int // cells of one interval
}

// newPlot finds the layout of n intervals. The times are of the series as they are drawn.
func (t *terminal) newPlot(series []Series, times Times, n int, top uint64, unit string) *plot {
	p := &plot{terminal: t, series: series, unit: unit, times: times, top: top, n: n}
	p.margin = max(cells(short(top, unit)), cells(short(top/2, unit)))
	p.each = max((t.Width-p.margin-2)/max(p.n, 1), 1)
	return p
}

// room is how many intervals fit beside any scale.
func (t *terminal) room(top uint64, unit string) int {
	return max(t.Width-2-max(cells(short(top, unit)), cells(short(top/2, unit))), 1)
}

// width is how many cells the plot has, without its margin.
func (p *plot) width() int { return p.n * p.each }

// draw writes the plot, from its top.
func (p *plot) draw() {
	columns := make([][]int, p.n)
	for i := range columns {
		columns[i] = p.edges(i)
	}
	rule := -1
	if p.rule > 0 {
		rule = min(scale(p.rule, p.top, p.Height*eighths)/eighths, p.Height-1)
	}
	for row := p.Height - 1; row >= 0; row-- {
		var runs []run
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

// edges are where the series of an interval begin and end, in eighths of a row. Only the end of the
// lowest can be shown more exactly than to a row, unless there are colours.
func (p *plot) edges(i int) []int {
	values := column(p.series, i)
	if p.exact() || len(values) < 2 || sum(values[1:]) == 0 {
		return stack(values, p.top, p.Height*eighths, 1)
	}
	return stackWhole(values, p.top, p.Height, eighths)
}

// cell draws what a column has in a row: the series that have the most of it, two at most.
func (p *plot) cell(edges []int, row int, ruled bool) run {
	low, high := row*eighths, (row+1)*eighths
	var inside []int
	for k := range len(edges) - 1 {
		if edges[k] < high && edges[k+1] > low && edges[k+1] > edges[k] {
			inside = append(inside, k)
		}
	}
	filled := min(edges[len(edges)-1], high) - low
	switch {
	case len(inside) == 0 && ruled:
		return run{strings.Repeat(p.ruleMark(), p.each), uncolored, uncolored}
	case len(inside) == 0:
		return run{blank(p.each), uncolored, uncolored}
	case len(inside) == 1:
		k := inside[0]
		return run{strings.Repeat(p.part(k, filled), p.each), p.color(p.series, k), uncolored}
	}
	// A cell has two colours. What little is empty above them is filled.
	below, above := inside[0], inside[len(inside)-1]
	until := min(max(edges[below+1]-low, 1), eighths-1)
	return run{strings.Repeat(p.upright(until), p.each),
		p.color(p.series, below), p.color(p.series, above)}
}

// part is a cell with one series in it, filled so high.
func (p *plot) part(k, filled int) string {
	if filled < eighths && (k == 0 || p.exact()) {
		return p.upright(filled)
	}
	return p.fill(k)
}

func (p *plot) ruleMark() string {
	if p.ASCII {
		return "-"
	}
	return "╌"
}

// scaleLabel is what stands left of a row: numbers at the top and at half the height.
func (p *plot) scaleLabel(row int) string {
	text := ""
	switch {
	case row == p.Height-1:
		text = short(p.top, p.unit)
	case p.Height >= 4 && p.Height%2 == 0 && row == p.Height/2-1 && p.top%2 == 0:
		text = short(p.top/2, p.unit)
	}
	mark := " │"
	switch {
	case p.ASCII:
		mark = " |"
	case text != "":
		mark = " ┤"
	}
	return right(text, p.margin) + mark
}

// axis writes the line below the plot and the times.
func (p *plot) axis() {
	corner, level, mark := "└", "─", "┬"
	if p.ASCII {
		corner, level, mark = "+", "-", "+"
	}
	width := p.width()
	line := strings.Split(strings.Repeat(level, width), "")
	labels, end := "", 0
	for _, tick := range p.times.ticks(p.n, max(width/8, 1)) {
		at := min(tick.at*width/10_000, width-1)
		from := min(at, p.Width-p.margin-2-cells(tick.label))
		if from < end || at < 0 {
			continue
		}
		line[at] = mark
		labels += blank(from-cells(labels)) + tick.label
		end = cells(labels) + 2
	}
	p.line(right("0", p.margin), " ", corner, strings.Join(line, ""))
	p.line(blank(p.margin+2), labels)
}
