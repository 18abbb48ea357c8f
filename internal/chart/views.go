package chart

import "strconv"

func (c *Columns) view() *figureView {
	each := apiece(most(c.Series), mostPlaces)
	series := merge(c.Series, each, false)
	places := most(series)
	times := c.Times.normal(most(c.Series)).each(each)
	top := roundTop(highest(series), c.Unit)
	names := timeNames(times, places)
	return &figureView{
		Title: perStep(c.Title, c.Unit, times), Note: c.Note, Wide: true,
		Keys: keys(series), Data: data("from", names, series, c.Unit),
		Plot: &plotView{
			Label: spoken(perStep(c.Title, c.Unit, times)),
			Desc:  times.span(places) + ": " + described(series, c.Unit),
			Scale: scaleLabels(top, c.Unit), Width: places * columnWidth, Height: plotHeight,
			Grid:   []int{0, plotHeight / 2},
			Shapes: shapes(series, rects(series, top, plotHeight, false)),
			Hits: hits(places, columnWidth, func(i int) string {
				return said(names[i], series, i, c.Unit)
			}),
			Ticks: timeTicks(times, places, wideRoom),
		},
	}
}

func (c *Comparison) view() *figureView {
	n := max(most(c.Above.Series), most(c.Below.Series))
	each := apiece(n, mostPlaces)
	above, below := merge(c.Above.Series, each, false), merge(c.Below.Series, each, false)
	places := max(most(above), most(below))
	times := c.Times.normal(n).each(each)
	top := roundTop(max(highest(above), highest(below)), c.Unit)
	names := timeNames(times, places)
	both := append(prefixed(c.Above.Name, above), prefixed(c.Below.Name, below)...)
	scale := scaleLabels(top, c.Unit)
	for i := len(scale) - 2; i >= 0; i-- {
		scale = append(scale, scale[i])
	}
	return &figureView{
		Title: perStep(c.Title, c.Unit, times), Note: c.Note, Wide: true,
		Keys: keys(above), Data: data("from", names, both, c.Unit),
		Plot: &plotView{
			Label: spoken(perStep(c.Title, c.Unit, times)), Upper: c.Above.Name, Lower: c.Below.Name,
			Desc:  times.span(places) + ": " + described(both, c.Unit),
			Scale: scale, Width: places * columnWidth, Height: 2 * plotHeight,
			Grid: []int{0, plotHeight / 2, plotHeight, plotHeight * 3 / 2, 2 * plotHeight},
			Shapes: append(shapes(above, rects(above, top, plotHeight, false)),
				shapes(below, rects(below, top, plotHeight, true))...),
			Hits: hits(places, columnWidth, func(i int) string {
				return said(names[i], both, i, c.Unit)
			}),
			Ticks: timeTicks(times, places, wideRoom),
		},
	}
}

// prefixed are series under names that say whose they are.
func prefixed(side string, series []Series) []Series {
	out := make([]Series, len(series))
	for i, s := range series {
		out[i] = Series{side + ": " + s.Name, s.Tone, s.Values}
	}
	return out
}

func (l *Lines) view() *figureView {
	each := apiece(most(l.Series), mostPlaces)
	series := merge(l.Series, each, true)
	places := most(series)
	times := l.Times.normal(most(l.Series)).each(each)
	top := roundTop(l.largest(), l.Unit)
	names := timeNames(times, places)
	v := &figureView{
		Title: l.Title, Note: l.Note, Keys: keys(series), Data: data("from", names, series, l.Unit),
	}
	p := &plotView{
		Label: spoken(l.Title), Desc: times.span(places) + ": " + described(series, l.Unit),
		Scale: scaleLabels(top, l.Unit), Width: places * columnWidth, Height: plotHeight,
		Grid:  []int{0, plotHeight / 2},
		Ticks: timeTicks(times, places, halfRoom),
		Hits: hits(places, columnWidth, func(i int) string {
			return said(names[i], series, i, l.Unit)
		}),
	}
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
	v.Plot = p
	return v
}

// steps is a line that is level over each interval.
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
			if h := stack([]uint64{size(d.Series[k].at(i))}, top, plotHeight, leastHeight)[1]; h > 0 {
				x := i*width + 2*columnGap + k*columnWidth
				bars[k] = append(bars[k], rect{x, plotHeight - h, columnWidth - columnGap, h})
			}
		}
	}
	ticks := make([]tick, n)
	for i := range ticks {
		ticks[i] = tick{(2*i + 1) * 10_000 / (2 * n), d.binLabel(i)}
	}
	return &figureView{
		Title: d.Title, Note: d.Note, Keys: keys(d.Series), Data: data("value", names, d.Series, ""),
		Plot: &plotView{
			Label: spoken(d.Title), Desc: described(d.Series, ""), Scale: scaleLabels(top, ""),
			Width: n * width, Height: plotHeight, Grid: []int{0, plotHeight / 2},
			Shapes: shapes(d.Series, bars),
			Hits:   hits(n, width, func(i int) string { return said(names[i], d.Series, i, "") }),
			Ticks:  tickViews(ticks, halfRoom),
		},
	}
}
