package chart

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
	rows := max(len(b.Labels), most(b.Series))
	top := b.top()
	names := make([]string, rows)
	for i := range rows {
		names[i] = b.label(i)
		bar := barView{Label: names[i]}
		if b.Grouped {
			for k := range b.Series {
				bar.Lines = append(bar.Lines, b.line(i, k, k+1, top))
			}
		} else {
			bar.Lines = append(bar.Lines, b.line(i, 0, len(b.Series), top))
		}
		v.Bars = append(v.Bars, bar)
	}
	v.Data = data("", names, b.Series, b.Unit)
	return v
}

// line draws the series from one up to another.
func (b *Bars) line(i, from, to int, top uint64) barLine {
	series, classes := b.Series[from:to], seriesClasses(b.Series)
	line := barLine{Said: said(b.label(i), series, i, b.Unit), Width: plotHeight}
	edges := stack(column(series, i), top, plotHeight, leastHeight)
	for k := range series {
		if k > 0 {
			line.Text += " + "
		}
		line.Text += plain(series[k].at(i), b.Unit)
		if width := edges[k+1] - edges[k]; width > 0 {
			line.Shapes = append(line.Shapes,
				shapeView{classes[from+k], rect{edges[k], 0, width, columnWidth}.path()})
		}
	}
	return line
}
