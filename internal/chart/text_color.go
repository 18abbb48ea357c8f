package chart

import (
	"strconv"
	"strings"
)

// uncolored is where the terminal's own colour stays.
const uncolored = -1

// run is a text in one colour on another one.
type run struct {
	text        string
	color, back int
}

// paint gives a text a colour, where there are colours.
func (t *terminal) paint(text string, color int) string {
	if !t.Color || text == "" {
		return text
	}
	return run{text, color, uncolored}.escaped()
}

// painted joins runs, with as few escape sequences as that takes.
func (t *terminal) painted(runs []run) string {
	var b strings.Builder
	for len(runs) > 0 {
		n := 1
		for n < len(runs) && runs[n].color == runs[0].color && runs[n].back == runs[0].back {
			n++
		}
		whole := runs[0]
		for _, r := range runs[1:n] {
			whole.text += r.text
		}
		runs = runs[n:]
		if t.Color && whole.color != uncolored {
			whole.text = whole.escaped()
		}
		b.WriteString(whole.text)
	}
	return b.String()
}

// escaped is a run as a terminal understands it.
func (r run) escaped() string {
	back := ""
	if r.back != uncolored {
		back = ";4" + strconv.Itoa(r.back)
	}
	return "\x1b[3" + strconv.Itoa(r.color) + back + "m" + r.text + "\x1b[0m"
}
