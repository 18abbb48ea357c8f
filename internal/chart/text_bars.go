package chart

import (
	"io"
	"slices"
	"strings"

	"github.com/weir-limiter/weir/internal/text"
)

func (b *Bars) text(t *lineBuffer) {
	keyed := b.Series
	if len(keyed) < 2 {
		keyed = nil // a single series is named by the title
	}
	t.heading(b.Title, b.Note, keyed)
	rows := max(len(b.Labels), most(b.Series))
	if rows == 0 || len(b.Series) == 0 {
		t.line("nothing to show")
		return
	}
	name := 0
	for i := range rows {
		name = max(name, text.Width(t.safe(b.label(i), t.Width/3)))
	}
	groups := b.groups()
	numbers, number := b.numbers(groups, rows)
	l := barLayout{lineBuffer: t, top: b.top(), width: t.Width - name - number - 4, all: b.Series}
	for i := range rows {
		label := t.safe(b.label(i), t.Width/3)
		for g, series := range groups {
			beside := text.Left(label, name) + "  " + text.Right(numbers[i*len(groups)+g], number)
			if l.width < 4 { // only numbers fit beside the labels
				t.line(beside)
			} else {
				t.b.WriteString(strings.TrimRight(beside+"  "+l.bar(series, i, g), " ") + "\n")
			}
			label = ""
		}
	}
}

// groups returns the series of each bar of a label.
func (b *Bars) groups() [][]Series {
	if b.Grouped {
		return slices.Collect(slices.Chunk(b.Series, 1))
	}
	return [][]Series{b.Series}
}

func (b *Bars) label(i int) string {
	if i < len(b.Labels) {
		return b.Labels[i]
	}
	return ""
}

// top returns the longest bar.
func (b *Bars) top() uint64 {
	if b.Grouped {
		return largest(b.Series)
	}
	return highest(b.Series)
}

// numbers returns the texts beside the bars: the values of their parts, aligned if they are
// stacked.
func (b *Bars) numbers(groups [][]Series, rows int) (out []string, widest int) {
	width := make([]int, len(b.Series))
	for k := range b.Series {
		for i := 0; i < rows && !b.Grouped; i++ {
			width[k] = max(width[k], text.Width(plain(b.Series[k].at(i), b.Unit)))
		}
	}
	for i := range rows {
		for _, series := range groups {
			var parts []string
			for k := range series {
				parts = append(parts, text.Right(plain(series[k].at(i), b.Unit), width[k]))
			}
			line := strings.Join(parts, "  ")
			out, widest = append(out, line), max(widest, text.Width(line))
		}
	}
	return out, widest
}

// barLayout describes the area of the bars.
type barLayout struct {
	*lineBuffer

	top   uint64
	width int
	all   []Series // to choose colours
}

// bar draws the parts of a bar. Group is the index of the first of them among all series.
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

func (d *Distribution) text(t *lineBuffer) {
	bars := Bars{
		Title: d.Title, Note: d.Note, Labels: d.binNames(), Series: d.Series, Grouped: true,
	}
	if d.bins() == 0 {
		bars.Labels = nil
	}
	bars.text(t)
}

// WriteSparks draws the first series of each figure as one line of text: its title, a small column
// for each interval, and the highest value beside the rule. A full column is at the rule, or at the
// highest value if there is no rule. Columns at the rule have another colour. The error is the
// writer's.
func WriteSparks(w io.Writer, lines []*Lines, o *TextOptions) error {
	t := newTerminal(o)
	names, ends := make([]string, len(lines)), t.peaks(lines)
	name, end, n := 0, 0, 0
	for i, l := range lines {
		names[i] = t.safe(l.Title, t.Width/3)
		name, end = max(name, text.Width(names[i])), max(end, text.Width(ends[i]))
		n = max(n, most(l.Series))
	}
	room := t.Width - name - end - 4
	if room < 4 {
		for i := range lines {
			t.line(text.Left(names[i], name), "  ", ends[i])
		}
	} else {
		merged := mergeCount(n, room)
		long := (n + merged - 1) / merged
		wide := max(room/max(long, 1), 1)
		for i, l := range lines {
			spark, width := t.spark(l, merged, wide)
			t.b.WriteString(strings.TrimRight(text.Left(names[i], name)+"  "+spark+
				text.Blank(long*wide-width)+"  "+ends[i], " ") + "\n")
		}
	}
	_, err := io.WriteString(w, t.b.String())
	return err
}

// peaks returns the highest value of each first series, aligned.
func (t *lineBuffer) peaks(lines []*Lines) []string {
	peaks, rules := make([]string, len(lines)), make([]string, len(lines))
	peak, rule := 0, 0
	for i, l := range lines {
		if len(l.Series) > 0 {
			peaks[i] = t.safe(plain(int64(largest(l.Series[:1])), l.Unit), t.Width/3)
		}
		if l.Rule != nil {
			rules[i] = t.safe(plain(l.Rule.Value, l.Unit), t.Width/3)
		}
		peak, rule = max(peak, text.Width(peaks[i])), max(rule, text.Width(rules[i]))
	}
	for i := range peaks {
		peaks[i] = text.Right(peaks[i], peak)
		if rules[i] != "" {
			peaks[i] += " of " + text.Right(rules[i], rule)
		}
	}
	return peaks
}

// spark draws a line of columns with a number of intervals merged in each, and returns the number
// of cells that it takes.
func (t *lineBuffer) spark(l *Lines, merged, wide int) (text string, width int) {
	if len(l.Series) == 0 {
		return "", 0
	}
	series := merge(l.Series[:1], merged, true)
	top := largest(series)
	ruled := l.Rule != nil && l.Rule.Value > 0
	if ruled {
		top = size(l.Rule.Value)
	}
	var runs []coloredText
	for _, v := range series[0].Values {
		high := stack([]uint64{size(v)}, top, eighths, 1)[1]
		color := uncolored
		if ruled && size(v) >= top {
			color = t.color([]Series{{Tone: Bad}}, 0)
		}
		runs = append(runs, coloredText{strings.Repeat(t.upright(high), wide), color, uncolored})
	}
	width = wide * len(runs)
	return t.painted(runs), width
}
