package cli

import (
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/internal/lab/replay"
	"github.com/weir-limiter/weir/internal/text"
)

// screen shows a replay on a terminal: a bar and a table, drawn again and again in the same place.
type screen struct {
	to    io.Writer
	size  func() (columns, rows int)
	style console.Style

	mu    sync.Mutex
	drawn int // lines
}

func newScreen(t *console.Terminal) *screen {
	return &screen{to: t, size: t.Size, style: t.Style}
}

// show draws the picture anew.
func (s *screen) show(state *replay.State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	columns, rows := s.size()
	lines := render(s.style, state, columns, rows)
	var b strings.Builder
	b.WriteString(console.AnsiNoWrap)
	s.back(&b)
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
func (s *screen) note(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	s.back(&b)
	b.WriteString(console.AnsiErase + text + "\r\n")
	s.drawn = 0
	s.write(b.String())
}

// end takes the picture away.
func (s *screen) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.drawn > 0 {
		var b strings.Builder
		s.back(&b)
		s.write(b.String() + console.AnsiErase)
		s.drawn = 0
	}
}

// back goes to where the picture begins.
func (s *screen) back(b *strings.Builder) {
	if s.drawn > 0 {
		fmt.Fprintf(b, console.AnsiUp, s.drawn)
	}
}

func (s *screen) write(text string) {
	_, _ = io.WriteString(s.to, text) // what cannot be shown is no loss
}
