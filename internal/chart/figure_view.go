package chart

import (
	"slices"
	"strconv"
	"strings"
)

// overTime is the view of a figure over time, without its shapes and its scale.
func overTime(title, unit string, times Times, series []Series, room int) *figureView {
	places := most(series)
	names := make([]string, places)
	for i := range names {
		names[i] = times.label(i, places)
	}
	return &figureView{
		Title: title, Keys: keys(series), Data: data("from", names, series, unit),
		Plot: &plotView{
			Label: requireTitle(title), Desc: times.span(places) + ": " + described(series, unit),
			Width: places * columnWidth, Height: plotHeight, Grid: []int{0, plotHeight / 2},
			Hits:  hits(columnWidth, names, series, unit),
			Ticks: timeTicks(times, places, room),
		},
	}
}

func (c *Columns) view() *figureView {
	each := mergeCount(most(c.Series), maxPlaces)
	series := merge(c.Series, each, false)
	times := c.Times.normal(most(c.Series)).each(each)
	top := roundTop(highest(series), c.Unit)
	v := overTime(perStep(c.Title, c.Unit, times), c.Unit, times, series, wideRoom)
	v.Note, v.Wide = c.Note, true
	v.Plot.Scale = scaleLabels(top, c.Unit)
	for _, g := range gapsOf(c.Gaps, each, most(series)) {
		band := rect{g.From * columnWidth, 0, (g.To - g.From) * columnWidth, plotHeight}
		v.Plot.Shapes = append(v.Plot.Shapes, shapeView{"gap", band.path()})
	}
	v.Plot.Shapes = append(v.Plot.Shapes, shapes(series, rects(series, top, plotHeight, false))...)
	return v
}

func (c *Comparison) view() *figureView {
	n := max(most(c.Above.Series), most(c.Below.Series))
	each := mergeCount(n, maxPlaces)
	above, below := merge(c.Above.Series, each, false), merge(c.Below.Series, each, false)
	times := c.Times.normal(n).each(each)
	top := roundTop(max(highest(above), highest(below)), c.Unit)
	var both []Series // named with their side
	for _, s := range above {
		both = append(both, Series{c.Above.Name + ": " + s.Name, s.Tone, s.Values})
	}
	for _, s := range below {
		both = append(both, Series{c.Below.Name + ": " + s.Name, s.Tone, s.Values})
	}
	v := overTime(perStep(c.Title, c.Unit, times), c.Unit, times, both, wideRoom)
	v.Note, v.Wide, v.Keys = c.Note, true, keys(above)
	p := v.Plot
	p.Upper, p.Lower, p.Height = c.Above.Name, c.Below.Name, 2*plotHeight
	p.Grid = []int{0, plotHeight / 2, plotHeight, plotHeight * 3 / 2, 2 * plotHeight}
	down := scaleLabels(top, c.Unit)
	up := slices.Clone(down[:len(down)-1])
	slices.Reverse(up)
	p.Scale = slices.Concat(down, up)
	p.Shapes = append(shapes(above, rects(above, top, plotHeight, false)),
		shapes(below, rects(below, top, plotHeight, true))...)
	return v
}

func (l *Lines) view() *figureView {
	each := mergeCount(most(l.Series), maxPlaces)
	series := merge(l.Series, each, true)
	times := l.Times.normal(most(l.Series)).each(each)
	top := roundTop(l.largest(), l.Unit)
	v := overTime(l.Title, l.Unit, times, series, halfRoom)
	v.Note = l.Note
	p := v.Plot
	p.Scale = scaleLabels(top, l.Unit)
	classes := seriesClasses(series)
	for k := range series {
		if line := steps(series[k].Values, top); line != "" {
			if len(series) == 1 {
				p.Shapes = append(p.Shapes, shapeView{"area " + classes[k], line + "V" +
					strconv.Itoa(plotHeight) + "H0z"})
			}
			p.Shapes = append(p.Shapes, shapeView{"line " + classes[k], line})
		}
	}
	if l.Rule != nil {
		y := strconv.Itoa(plotHeight - scale(size(l.Rule.Value), top, plotHeight))
		p.Shapes = append(p.Shapes, shapeView{"rule", "M0 " + y + "H" + strconv.Itoa(p.Width)})
		rule := l.Rule.Name + " " + exact(l.Rule.Value, l.Unit)
		v.Keys = append(v.Keys, keyView{"rule", rule})
		p.Desc = titled(p.Desc, rule)
	}
	return v
}

// steps returns the path of a line that is level over each interval.
func steps(values []int64, top uint64) string {
	text := ""
	for i, v := range values {
		y := strconv.Itoa(plotHeight - scale(size(v), top, plotHeight))
		if i == 0 {
			text = "M0 " + y
		} else {
			text += "V" + y
		}
		text += "H" + strconv.Itoa((i+1)*columnWidth)
	}
	return text
}

func (d *Distribution) view() *figureView {
	names, n := d.binNames(), d.bins()
	width := max(len(d.Series), 1)*columnWidth + columnGap*4
	top := niceTop(largest(d.Series))
	bars := make([][]rect, len(d.Series))
	for k := range d.Series {
		for i := range n {
			if h := stack([]uint64{size(d.Series[k].at(i))}, top, plotHeight, minHeight)[1]; h > 0 {
				x := i*width + 2*columnGap + k*columnWidth
				bars[k] = append(bars[k], rect{x, plotHeight - h, columnWidth - columnGap, h})
			}
		}
	}
	ticks := make([]tick, n)
	for i := range ticks {
		ticks[i] = tick{(2*i + 1) * 10_000 / (2 * n), "more"}
		if i < len(d.Bounds) {
			ticks[i].label = plain(d.Bounds[i], d.Unit)
		}
	}
	return &figureView{
		Title: d.Title, Note: d.Note, Keys: keys(d.Series), Data: data("value", names, d.Series, ""),
		Plot: &plotView{
			Label: requireTitle(d.Title), Desc: described(d.Series, ""), Scale: scaleLabels(top, ""),
			Width: n * width, Height: plotHeight, Grid: []int{0, plotHeight / 2},
			Shapes: shapes(d.Series, bars),
			Hits:   hits(width, names, d.Series, ""),
			Ticks:  tickViews(ticks, halfRoom),
		},
	}
}

// figureView is a figure as the template needs it: a plot or bars, and a table of the numbers.
type figureView struct {
	Title, Note string
	// Wide figures have a row of the page to themselves.
	Wide bool
	Keys []keyView
	Plot *plotView
	Bars []barView
	Data *dataView
}

// keyView is an entry of the legend.
type keyView struct{ Class, Name string }

// dataView is the table of a figure's numbers.
type dataView struct {
	Heads []string
	Rows  []dataRow
}

type dataRow struct {
	Name  string
	Cells []string
}

// seriesClasses returns the CSS classes of the series: by their tone or, without a tone, by their
// index among those without one.
func seriesClasses(series []Series) []string {
	out := make([]string, len(series))
	others := 0
	for i := range series {
		switch series[i].Tone {
		case Good:
			out[i] = "good"
		case Bad:
			out[i] = "bad"
		default:
			out[i] = "s" + strconv.Itoa(others%4)
			others++
		}
	}
	return out
}

// keys returns the legend of several series.
func keys(series []Series) []keyView {
	classes := seriesClasses(series)
	var out []keyView
	for i := range series {
		if series[i].Name != "" {
			out = append(out, keyView{classes[i], series[i].Name})
		}
	}
	return out
}

// data returns the table of the numbers, with a row for each name. It has no rows if there are no
// series.
func data(first string, names []string, series []Series, unit string) *dataView {
	v := &dataView{Heads: []string{first}}
	for _, s := range series {
		v.Heads = append(v.Heads, s.Name)
	}
	if len(series) == 0 {
		return v
	}
	for i, name := range names {
		row := dataRow{Name: name}
		for k := range series {
			row.Cells = append(row.Cells, plain(series[k].at(i), unit))
		}
		v.Rows = append(v.Rows, row)
	}
	return v
}

// describePlace describes the values at one place: "18:15: admitted 120, denied 3".
func describePlace(name string, series []Series, i int, unit string) string {
	parts := make([]string, len(series))
	for k := range series {
		parts[k] = strings.TrimSpace(series[k].Name + " " + exact(series[k].at(i), unit))
	}
	return name + ": " + strings.Join(parts, ", ")
}

// requireTitle returns the title of a drawing. A drawing must have one, for screen readers.
func requireTitle(title string) string {
	if title == "" {
		return "figure"
	}
	return title
}

// described returns a description of the series, for screen readers.
func described(series []Series, unit string) string {
	parts := make([]string, len(series))
	for k := range series {
		highest := largest(series[k : k+1])
		parts[k] = series[k].Name + " at most " + exact(int64(highest), unit)
	}
	return strings.Join(parts, ", ")
}

// barView is a label with its bars.
type barView struct {
	Label string
	Lines []barLine
}

// barLine is one bar and the numbers behind it.
type barLine struct {
	Text, Said string
	Width      int
	Shapes     []shapeView
}

func (b *Bars) view() *figureView {
	v := &figureView{Title: b.Title, Note: b.Note, Bars: []barView{}}
	if len(b.Series) > 1 {
		v.Keys = keys(b.Series)
	}
	classes, top := seriesClasses(b.Series), b.top()
	names := make([]string, max(len(b.Labels), most(b.Series)))
	for i := range names {
		names[i] = b.label(i)
		bar := barView{Label: names[i]}
		for g, series := range b.groups() {
			line := barLine{Said: describePlace(names[i], series, i, b.Unit), Width: plotHeight}
			edges := stack(column(series, i), top, plotHeight, minHeight)
			for k := range series {
				if k > 0 {
					line.Text += " + "
				}
				line.Text += plain(series[k].at(i), b.Unit)
				if width := edges[k+1] - edges[k]; width > 0 {
					line.Shapes = append(line.Shapes,
						shapeView{classes[g+k], rect{edges[k], 0, width, columnWidth}.path()})
				}
			}
			bar.Lines = append(bar.Lines, line)
		}
		v.Bars = append(v.Bars, bar)
	}
	v.Data = data("", names, b.Series, b.Unit)
	return v
}
