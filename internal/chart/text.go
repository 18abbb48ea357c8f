package chart

import (
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/weir-limiter/weir/internal/text"
)

// TextOptions describe the abilities of a terminal. Nil means all defaults.
type TextOptions struct {
	// Width is the number of cells of a line, 20 to 400. Default: 80
	Width int
	// Height is the number of lines of the plot itself, 1 to 50. Default: 8
	Height int
	// ASCII draws without block characters. Default: block characters
	ASCII bool
	// Color draws in colours, by escape sequences. Default: none
	Color bool
}

// WriteText draws a figure on a terminal. Lines have no trailing spaces and are not wider than the
// options allow. It writes nothing if the figure is nil. The error is the writer's.
func WriteText(w io.Writer, f Figure, o *TextOptions) error {
	t := newTerminal(o)
	if f != nil {
		f.text(t)
	}
	_, err := io.WriteString(w, t.b.String())
	return err
}

// lineBuffer collects lines.
type lineBuffer struct {
	TextOptions

	b strings.Builder
}

func newTerminal(o *TextOptions) *lineBuffer {
	t := &lineBuffer{}
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

// line writes a line, cut to the width. It must not contain escape sequences.
func (t *lineBuffer) line(parts ...string) {
	text := strings.TrimRight(strings.Join(parts, ""), " ")
	t.b.WriteString(strings.TrimRight(shorten(text, t.Width, t.ASCII), " ") + "\n")
}

// safe returns a text of the caller with invisible characters escaped, shortened to at most a
// number of cells.
func (t *lineBuffer) safe(text string, most int) string {
	return strings.TrimRight(shorten(printable(text, t.ASCII), most, t.ASCII), " ")
}

// heading writes the title, the keys of the series to its right or below it, and the note.
func (t *lineBuffer) heading(title, note string, series []Series) {
	title = t.safe(title, t.Width)
	var keys []string
	width := -2 // of the keys with two spaces between them
	for i := range series {
		if name := t.safe(series[i].Name, t.Width-2); name != "" {
			keys = append(keys, t.paint(t.fill(i), t.color(series, i))+" "+name)
			width += 4 + text.Width(name)
		}
	}
	if len(keys) > 0 && width <= t.Width {
		keys = []string{strings.Join(keys, "  ")}
	}
	if len(keys) == 1 && text.Width(title)+2+width <= t.Width {
		t.b.WriteString(text.Left(title, t.Width-width))
	} else if title != "" {
		t.line(title)
	}
	for _, key := range keys {
		t.b.WriteString(key + "\n")
	}
	if note != "" {
		t.line(t.safe(note, t.Width))
	}
}

// fill returns the mark of a series by its index. In colours all marks are full blocks.
func (t *lineBuffer) fill(i int) string {
	if t.exact() {
		return "█"
	}
	if t.ASCII {
		return [...]string{"#", "!", "+", "="}[i%4]
	}
	return [...]string{"█", "▒", "░", "▓"}[i%4]
}

// exact reports whether a cell can show two series in two colours.
func (t *lineBuffer) exact() bool { return t.Color && !t.ASCII }

// color returns the colour of a series. Good and Bad differ in brightness too.
func (t *lineBuffer) color(series []Series, i int) int {
	const red, yellow, blue, magenta, cyan = 1, 3, 4, 5, 6
	switch series[i].Tone {
	case Good:
		return cyan
	case Bad:
		return red
	}
	return [...]int{blue, yellow, magenta, cyan}[i%4]
}

// upright and sideways are blocks of some eighths of a cell.
func (t *lineBuffer) upright(eighths int) string {
	if t.ASCII {
		return [...]string{" ", ".", ".", ".", "o", "o", "o", "#", "#"}[eighths]
	}
	return [...]string{" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"}[eighths]
}

func (t *lineBuffer) sideways(eighths int) string {
	if t.ASCII {
		return [...]string{" ", ".", ".", ".", "-", "-", "-", "#", "#"}[eighths]
	}
	return [...]string{" ", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"}[eighths]
}

// uncolored is the terminal's own colour.
const uncolored = -1

// coloredText is a text in one colour on another.
type coloredText struct {
	text        string
	color, back int
}

// paint colours a text if the terminal has colours.
func (t *lineBuffer) paint(text string, color int) string {
	return t.painted([]coloredText{{text, color, uncolored}})
}

// painted joins texts with as few escape sequences as possible.
func (t *lineBuffer) painted(runs []coloredText) string {
	var b strings.Builder
	for len(runs) > 0 {
		text, color, back := "", runs[0].color, runs[0].back
		for len(runs) > 0 && runs[0].color == color && runs[0].back == back {
			text, runs = text+runs[0].text, runs[1:]
		}
		if t.Color && color != uncolored && text != "" {
			text = "m" + text + "\x1b[0m"
			if back != uncolored {
				text = ";4" + strconv.Itoa(back) + text
			}
			text = "\x1b[3" + strconv.Itoa(color) + text
		}
		b.WriteString(text)
	}
	return b.String()
}

// printable escapes invisible characters and, for ASCII, all characters outside of ASCII.
func printable(s string, ascii bool) string {
	s = text.Printable(s)
	if !ascii {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if r < utf8.RuneSelf {
			b.WriteRune(r)
		} else {
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		}
	}
	return b.String()
}

// shorten cuts a text to a number of cells.
func shorten(s string, most int, ascii bool) string {
	if ascii {
		return text.ShortenWith(s, most, "~")
	}
	return text.Shorten(s, most)
}
