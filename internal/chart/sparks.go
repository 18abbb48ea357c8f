package chart

import (
	"io"
	"strings"
)

// WriteSparks draws the first series of each of several figures as one line of text: its title, a
// small column for each interval, and the highest value beside the rule. A column that is full is
// at the rule, or at the highest value where there is none; those at the rule have another colour.
// The error is the writer's.
func WriteSparks(w io.Writer, lines []*Lines, o *TextOptions) error {
	t := newTerminal(o)
	names, ends := make([]string, len(lines)), t.peaks(lines)
	name, end, n := 0, 0, 0
	for i, l := range lines {
		names[i] = t.safe(l.Title, t.Width/3)
		name, end = max(name, cells(names[i])), max(end, cells(ends[i]))
		n = max(n, most(l.Series))
	}
	room := t.Width - name - end - 4
	if room < 4 {
		for i := range lines {
			t.line(left(names[i], name), "  ", ends[i])
		}
	} else {
		merged := apiece(n, room)
		long := (n + merged - 1) / merged
		wide := max(room/max(long, 1), 1)
		for i, l := range lines {
			text, width := t.spark(l, merged, wide)
			t.b.WriteString(strings.TrimRight(left(names[i], name)+"  "+text+
				blank(long*wide-width)+"  "+ends[i], " ") + "\n")
		}
	}
	_, err := io.WriteString(w, t.b.String())
	return err
}

// peaks say how high each first series is, below each other.
func (t *terminal) peaks(lines []*Lines) []string {
	peaks, rules := make([]string, len(lines)), make([]string, len(lines))
	peak, rule := 0, 0
	for i, l := range lines {
		if len(l.Series) > 0 {
			peaks[i] = t.safe(plain(int64(largest(l.Series[:1])), l.Unit), t.Width/3)
		}
		if l.Rule != nil {
			rules[i] = t.safe(plain(l.Rule.Value, l.Unit), t.Width/3)
		}
		peak, rule = max(peak, cells(peaks[i])), max(rule, cells(rules[i]))
	}
	for i := range peaks {
		peaks[i] = right(peaks[i], peak)
		if rules[i] != "" {
			peaks[i] += " of " + right(rules[i], rule)
		}
	}
	return peaks
}

// spark draws a line of columns of so many intervals and cells each, and says how many cells it
// takes.
func (t *terminal) spark(l *Lines, merged, wide int) (text string, width int) {
	if len(l.Series) == 0 {
		return "", 0
	}
	series := merge(l.Series[:1], merged, true)
	top := largest(series)
	ruled := l.Rule != nil && l.Rule.Value > 0
	if ruled {
		top = size(l.Rule.Value)
	}
	var runs []run
	for _, v := range series[0].Values {
		high := stack([]uint64{size(v)}, top, eighths, 1)[1]
		color := uncolored
		if ruled && size(v) >= top {
			color = t.color([]Series{{Tone: Bad}}, 0)
		}
		runs = append(runs, run{strings.Repeat(t.upright(high), wide), color, uncolored})
	}
	width = wide * len(runs)
	return t.painted(runs), width
}
