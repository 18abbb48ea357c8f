package live

import (
	"bytes"
	"fmt"
	"io"
	"math/big"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/internal/lab/replay"
	"github.com/weir-limiter/weir/internal/text"
)

// liveScreen shows a replay on a terminal: a bar and a table, redrawn in the same place.
type liveScreen struct {
	to    io.Writer
	size  func() (columns, rows int)
	style console.Style

	mu    sync.Mutex
	drawn int // number of lines
}

func newScreen(t *console.Terminal) *liveScreen {
	return &liveScreen{to: t, size: t.Size, style: t.Style}
}

// show redraws the picture.
func (s *liveScreen) show(state *replay.State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	columns, rows := s.size()
	lines := render(s.style, state, columns, rows)
	var b strings.Builder
	b.WriteString(console.AnsiNoWrap)
	s.moveUp(&b)
	for _, l := range lines {
		text := text.Cut(l.text, columns)
		if s.style.Color && l.ansi != "" {
			text = l.ansi + text + console.AnsiPlain
		}
		b.WriteString(text + console.AnsiEndLine + "\r\n")
	}
	b.WriteString(console.AnsiErase + console.AnsiWrap)
	s.drawn = len(lines)
	s.write(b.String())
}

// note writes a line that stays, above the picture.
func (s *liveScreen) note(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	s.moveUp(&b)
	b.WriteString(console.AnsiErase + text + "\r\n")
	s.drawn = 0
	s.write(b.String())
}

// end erases the picture.
func (s *liveScreen) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.drawn > 0 {
		var b strings.Builder
		s.moveUp(&b)
		s.write(b.String() + console.AnsiErase)
		s.drawn = 0
	}
}

// moveUp moves the cursor to the beginning of the picture.
func (s *liveScreen) moveUp(b *strings.Builder) {
	if s.drawn > 0 {
		fmt.Fprintf(b, console.AnsiUp, s.drawn)
	}
}

func (s *liveScreen) write(text string) {
	_, _ = io.WriteString(s.to, text) // a closed terminal does not stop the replay
}

// styledLine is a line of a picture.
type styledLine struct {
	text string
	ansi string // the escape sequence of its style; empty for none
}

// render lays out the bar, the sums, and as many rows of the table as fit.
func render(look console.Style, state *replay.State, columns, rows int) []styledLine {
	sums := fmt.Sprintf("%s admitted, %s denied", text.FormatInt(state.Admitted), text.FormatInt(state.Denied))
	if state.Errors > 0 {
		sums += ", " + text.Plural(int(state.Errors), "error", "errors")
	}
	if state.Late > 0 {
		sums += fmt.Sprintf(", %s sent late", text.FormatInt(state.Late))
	}
	lines := []styledLine{{text: headline(look, state, columns)}, {text: sums}}
	// The cursor needs a line below the picture.
	room := rows - len(lines) - 1
	if room < 3 {
		return lines[:max(min(len(lines), rows-1), 0)]
	}
	lines = append(lines, styledLine{})
	shown, hidden := state.Rows, 0
	if room -= 2; len(shown) > room { // an empty line and the heads
		shown = shown[:max(room-1, 0)]
		hidden = len(state.Rows) - len(shown)
	}
	for i, text := range liveTable(look, shown, columns) {
		line := styledLine{text: text}
		switch {
		case i == 0:
			line.ansi = console.AnsiBold
		case shown[i-1].Denies && !shown[i-1].Shadow:
			line.ansi = console.AnsiRed
		}
		lines = append(lines, line)
	}
	if hidden > 0 {
		lines = append(lines, styledLine{text: "and " + text.Plural(hidden, "limit", "limits") + " more"})
	}
	return lines
}

// headline returns the part that is done as text, with a bar if there is room for one.
func headline(look console.Style, s *replay.State, columns int) string {
	share := fmt.Sprintf("%3d %%", percentDone(s))
	rest := fmt.Sprintf("%s of %s calls  %s/s  %v left", text.FormatInt(s.Done), text.FormatInt(s.Total),
		text.FormatInt(s.PerSecond), (s.Left + time.Second - 1).Truncate(time.Second))
	long := share + "  " + look.Bar(big.NewInt(s.Done), big.NewInt(s.Total), 20) + "  " + rest
	if text.Width(long) <= columns {
		return long
	}
	return share + "  " + rest
}

// percentDone returns the part of the calls that is done, rounded down.
func percentDone(s *replay.State) int64 { return s.Done * 100 / max(s.Total, 1) }

// liveTable lays out the rows, with as many columns as fit. The first line has the heads.
func liveTable(look console.Style, rows []replay.StateRow, columns int) []string {
	const longest = 24
	var lines []string
	for left := range 4 { // number of columns to leave out: the bar, the kind, the admitted calls
		t := text.Table{}
		add := func(entity, limit, kind, admitted string, rest ...string) {
			cells := []string{entity, limit}
			if left < 2 {
				cells = append(cells, kind)
			}
			if left < 3 {
				cells = append(cells, admitted)
			}
			if cells = append(cells, rest[:3]...); left < 1 {
				cells = append(cells, rest[3])
			}
			t.Add(cells...)
		}
		add("ENTITY", "LIMIT", "KIND", ">ADMITTED", ">DENIED", ">USED NOW", ">OF", " ")
		t.Heads, t.Rows = t.Rows[0], nil
		for i := range rows {
			r := &rows[i]
			limit := r.Limit
			if r.Shadow {
				limit += " *"
			}
			add(text.Shorten(replay.RowEntity(r.LimitReport), longest), text.Shorten(limit, longest),
				string(r.Kind), text.FormatInt(r.Admitted), text.FormatInt(r.Denied),
				text.FormatBig(r.InUse), text.FormatBig(r.Capacity), look.Bar(r.InUse, r.Capacity, 10))
		}
		var b bytes.Buffer
		t.Write(&b)
		lines = strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
		if !slices.ContainsFunc(lines, func(l string) bool { return text.Width(l) > columns }) {
			break
		}
	}
	return lines
}
