package chart

import "strings"

// perStep says what the values of a figure are of: "calls each 1 min".
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

// titled joins a title and what is behind it.
func titled(title, rest string) string {
	if title == "" || rest == "" {
		return title + rest
	}
	return title + ", " + rest
}

// fitted finds a scale for several sets of series, of which one interval or a few fit into a cell.
// Merged intervals change the scale, and the scale what fits, so it looks again.
func (t *terminal) fitted(unit string, sets ...[]Series) sameScale {
	s := sameScale{each: 1}
	for _, series := range sets {
		s.n = max(s.n, most(series))
	}
	for range 3 {
		s.top = 0
		for _, series := range sets {
			s.top = max(s.top, roundTop(highest(merge(series, s.each, false)), unit))
		}
		each := apiece(s.n, t.room(s.top, unit))
		if each <= s.each {
			break
		}
		s.each = each
	}
	return s
}

// sameScale is what figures have in common that can be compared.
type sameScale struct {
	n    int // intervals
	each int // intervals as one
	top  uint64
}

// columns draws stacked columns. Side says whose they are.
func (t *terminal) columns(c *Columns, side string, s sameScale) {
	if s.n == 0 {
		t.heading(titled(side, c.Title), c.Note, c.Series)
		t.line("nothing to show")
		return
	}
	series, times := merge(c.Series, s.each, false), c.Times.normal(s.n).each(s.each)
	t.heading(titled(side, perStep(c.Title, c.Unit, times)), c.Note, series)
	t.newPlot(series, times, (s.n+s.each-1)/s.each, s.top, c.Unit).draw()
}

func (c *Columns) text(t *terminal) { t.columns(c, "", t.fitted(c.Unit, c.Series)) }

func (c *Comparison) text(t *terminal) {
	scale := t.fitted(c.Unit, c.Above.Series, c.Below.Series)
	for _, side := range []*Side{&c.Above, &c.Below} {
		t.columns(&Columns{Title: c.Title, Unit: c.Unit, Times: c.Times, Series: side.Series},
			side.Name, scale)
	}
	if c.Note != "" {
		t.line(t.safe(c.Note, t.Width))
	}
}

func (l *Lines) text(t *terminal) {
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
	each := apiece(n, t.room(top, l.Unit))
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

// largest is the end of what the lines and their rule need.
func (l *Lines) largest() uint64 {
	top := largest(l.Series)
	if l.Rule != nil {
		top = max(top, size(l.Rule.Value))
	}
	return top
}
