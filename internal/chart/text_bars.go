package chart

import (
	"slices"
	"strings"
)

func (b *Bars) text(t *terminal) {
	t.heading(b.Title, b.Note, b.keyed())
	rows := max(len(b.Labels), most(b.Series))
	if rows == 0 || len(b.Series) == 0 {
		t.line("nothing to show")
		return
	}
	name := 0
	for i := range rows {
		name = max(name, cells(t.safe(b.label(i), t.Width/3)))
	}
	groups := [][]Series{b.Series} // of each label
	if b.Grouped {
		groups = slices.Collect(slices.Chunk(b.Series, 1))
	}
	numbers := t.numbers(b, groups, rows)
	number := 0
	for _, n := range numbers {
		number = max(number, cells(n))
	}
	l := barLayout{terminal: t, top: b.top(), width: t.Width - name - number - 4, all: b.Series}
	for i := range rows {
		label := t.safe(b.label(i), t.Width/3)
		for g, series := range groups {
			beside := left(label, name) + "  " + right(numbers[i*len(groups)+g], number)
			if l.width < 4 { // numbers say more than bars
				t.line(beside)
			} else {
				t.b.WriteString(strings.TrimRight(beside+"  "+l.bar(series, i, g), " ") + "\n")
			}
			label = ""
		}
	}
}

// keyed are the series that need a name: one alone is named by the title.
func (b *Bars) keyed() []Series {
	if len(b.Series) < 2 {
		return nil
	}
	return b.Series
}

func (b *Bars) label(i int) string {
	if i < len(b.Labels) {
		return b.Labels[i]
	}
	return ""
}

// top is the longest bar.
func (b *Bars) top() uint64 {
	if b.Grouped {
		return largest(b.Series)
	}
	return highest(b.Series)
}

// numbers are what stands beside the bars: the values of their parts.
func (t *terminal) numbers(b *Bars, groups [][]Series, rows int) []string {
	width := make([]int, len(b.Series))
	for k := range b.Series {
		for i := range rows {
			width[k] = max(width[k], cells(plain(b.Series[k].at(i), b.Unit)))
		}
	}
	var out []string
	for i := range rows {
		for _, series := range groups {
			var parts []string
			for k := range series {
				w := 0
				if !b.Grouped {
					w = width[k]
				}
				parts = append(parts, right(plain(series[k].at(i), b.Unit), w))
			}
			out = append(out, strings.Join(parts, "  "))
		}
	}
	return out
}

// barLayout is where bars are drawn.
type barLayout struct {
	*terminal

	top   uint64
	width int
	all   []Series // for the colours
}

// bar draws the parts of a bar. Group is the place of the first of them among all series.
func (l *barLayout) bar(series []Series, i, group int) string {
	values := column(series, i)
	if len(values) == 1 {
		long := stack(values, l.top, l.width*eighths, 1)[1]
		text := strings.Repeat(l.fill(group), long/eighths)
		if rest := long % eighths; rest > 0 {
			text += l.sideways(rest)
		}
		return l.paint(text, l.color(l.all, group))
	}
	text, edges := "", stack(values, l.top, l.width, 1)
	for k := range values {
		text += l.paint(strings.Repeat(l.fill(k), edges[k+1]-edges[k]), l.color(l.all, k))
	}
	return text
}

func (d *Distribution) text(t *terminal) {
	bars := Bars{
		Title: d.Title, Note: d.Note, Labels: d.binNames(), Series: d.Series, Grouped: true,
	}
	if d.bins() == 0 {
		bars.Labels = nil
	}
	bars.text(t)
}
