package chart

// Meters is a figure of one bar for each capacity: the share of it that is in use. The server's
// status page draws the same bars, in the same colours and with the same words.
type Meters struct {
	Title, Note string
	Meters      []Meter
}

// Meter is one bar. What is in use may be more than the capacity, and then the bar is full.
type Meter struct {
	Label          string
	Used, Capacity int64
	Text           string // what is in use of what, in words
}

// meterKeys returns the legend: the colours of bars, and their meaning.
func meterKeys() []keyView {
	return []keyView{{"good", "below 80 %"}, {"low", "80 % or more"}, {"bad", "all of it, or more"}}
}

// bar returns the length of the bar on a scale of the given size, and the class of its colour.
func (m *Meter) bar(full int) (length int, class string) {
	used, capacity := size(m.Used), size(m.Capacity)
	if used >= capacity {
		return full, "bad"
	}
	length = scale(used, capacity, full)
	if used > 0 {
		length = max(length, full*minHeight/plotHeight)
	}
	if capacity-used <= capacity/5 {
		return length, "low"
	}
	return length, "good"
}

func (m *Meters) view() *figureView {
	v := &figureView{
		Title: m.Title, Note: m.Note, Wide: true, Keys: meterKeys(), Bars: []barView{},
		Data: &dataView{Heads: []string{"", "in use", "capacity"}},
	}
	for i := range m.Meters {
		one := &m.Meters[i]
		length, class := one.bar(plotHeight)
		line := barLine{Text: one.Text, Said: requireTitle(titled(one.Label, one.Text)), Width: plotHeight}
		if length > 0 {
			line.Shapes = []shapeView{{class, rect{0, 0, length, columnWidth}.path()}}
		}
		v.Bars = append(v.Bars, barView{one.Label, []barLine{line}})
		v.Data.Rows = append(v.Data.Rows, dataRow{
			one.Label, []string{plain(one.Used, ""), plain(one.Capacity, "")},
		})
	}
	return v
}

func (m *Meters) text(t *lineBuffer) {
	t.heading(m.Title, m.Note, nil)
	if len(m.Meters) == 0 {
		t.line("nothing to show")
	}
	for i := range m.Meters {
		t.line(t.safe(titled(m.Meters[i].Label, m.Meters[i].Text), t.Width))
	}
}
