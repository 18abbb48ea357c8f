package chart

import (
	"io"
	"strings"
)

// TextOptions say what a terminal can show. Nil is for all defaults.
type TextOptions struct {
	// Width is how many cells a line may take, 20 to 400. Default: 80
	Width int
	// Height is how many lines the plot itself takes, 1 to 50. Default: 8
	Height int
	// ASCII is for terminals without block characters. Default: block characters
	ASCII bool
	// Color allows the escape sequences of colours. Default: none
	Color bool
}

// WriteText draws a figure on a terminal. Its lines end with a line feed, have no spaces at their
// ends, and no line is wider than the options say. Nil is no figure, and nothing is written. The
// error is the writer's.
func WriteText(w io.Writer, f Figure, o *TextOptions) error {
	t := newTerminal(o)
	if f != nil {
		f.text(t)
	}
	_, err := io.WriteString(w, t.b.String())
	return err
}

// terminal collects lines.
type terminal struct {
	TextOptions

	b strings.Builder
}

func newTerminal(o *TextOptions) *terminal {
	t := &terminal{}
	if o != nil {
		t.TextOptions = *o
	}
	if t.Width == 0 {
		t.Width = 80
	}
	if t.Height == 0 {
		t.Height = 8
	}
	t.Width, t.Height = min(max(t.Width, 20), 400), min(max(t.Height, 1), 50)
	return t
}

// line writes a line, cut where the terminal ends. It must not hold escape sequences.
func (t *terminal) line(parts ...string) {
	text := strings.TrimRight(strings.Join(parts, ""), " ")
	t.b.WriteString(strings.TrimRight(shorten(text, t.Width, t.ASCII), " ") + "\n")
}

// safe is a text of the caller as it may be shown, shortened to so many cells.
func (t *terminal) safe(text string, most int) string {
	return strings.TrimRight(shorten(printable(text, t.ASCII), most, t.ASCII), " ")
}

// heading writes the title, on its right the names of the series, and the note.
func (t *terminal) heading(title, note string, series []Series) {
	title = t.safe(title, t.Width)
	keys, width := t.keys(series)
	if width > 0 && cells(title)+2+width <= t.Width {
		t.b.WriteString(left(title, t.Width-width) + keys + "\n")
	} else {
		if title != "" {
			t.line(title)
		}
		t.keyLines(series)
	}
	if note != "" {
		t.line(t.safe(note, t.Width))
	}
}

// keys are the names of the series behind their marks, and how many cells they take.
func (t *terminal) keys(series []Series) (text string, width int) {
	for i := range series {
		name := t.safe(series[i].Name, t.Width)
		if name == "" {
			continue
		}
		if width > 0 {
			text, width = text+"  ", width+2
		}
		text += t.paint(t.fill(i), t.color(series, i)) + " " + name
		width += 2 + cells(name)
	}
	return text, width
}

// keyLines is for keys that do not fit beside the title.
func (t *terminal) keyLines(series []Series) {
	if text, width := t.keys(series); width > 0 && width <= t.Width {
		t.b.WriteString(text + "\n")
		return
	}
	for i := range series {
		if name := t.safe(series[i].Name, t.Width-2); name != "" {
			t.b.WriteString(t.paint(t.fill(i), t.color(series, i)) + " " + name + "\n")
		}
	}
}

// fill is the mark of a series by its place. Blocks in colours need no marks, and meet well.
func (t *terminal) fill(i int) string {
	if t.exact() {
		return "█"
	}
	if t.ASCII {
		return [...]string{"#", "!", "+", "="}[i%4]
	}
	return [...]string{"█", "▒", "░", "▓"}[i%4]
}

// exact reports whether a cell can show where one series ends and the next begins.
func (t *terminal) exact() bool { return t.Color && !t.ASCII }

// color is the number of a series' colour. Good and Bad differ in brightness as well.
func (t *terminal) color(series []Series, i int) int {
	const red, yellow, blue, magenta, cyan = 1, 3, 4, 5, 6
	switch series[i].Tone {
	case Good:
		return cyan
	case Bad:
		return red
	}
	return [...]int{blue, yellow, magenta, cyan}[i%4]
}

// upright and sideways are parts of a block, in eighths.
func (t *terminal) upright(eighths int) string {
	if t.ASCII {
		return [...]string{" ", ".", ".", ".", "o", "o", "o", "#", "#"}[eighths]
	}
	return [...]string{" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"}[eighths]
}

func (t *terminal) sideways(eighths int) string {
	if t.ASCII {
		return [...]string{" ", ".", ".", ".", "-", "-", "-", "#", "#"}[eighths]
	}
	return [...]string{" ", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"}[eighths]
}
