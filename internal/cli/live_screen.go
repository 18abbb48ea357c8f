package cli

import (
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/weir-limiter/weir/internal/lab/replay"
	"github.com/weir-limiter/weir/internal/text"
)

// What a terminal understands.
const (
	ansiUp      = "\x1b[%dA\r" // to the beginning of the line so many lines above
	ansiErase   = "\x1b[J"     // from here to the end of the screen
	ansiEndLine = "\x1b[K"     // from here to the end of the line
	ansiNoWrap  = "\x1b[?7l"   // what does not fit into a line is not shown
	ansiWrap    = "\x1b[?7h"
	ansiBold    = "\x1b[1m"
	ansiRed     = "\x1b[31m"
	ansiPlain   = "\x1b[0m"
)

// screen shows a replay on a terminal: a bar and a table, drawn again and again in the same place.
type screen struct {
	to    io.Writer
	size  func() (columns, rows int)
	style style

	mu    sync.Mutex
	drawn int // lines
}

func newScreen(t *terminal) *screen {
	return &screen{to: t, size: t.size, style: t.style}
}

// show draws the picture anew.
func (s *screen) show(state *replay.State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	columns, rows := s.size()
	lines := s.style.picture(state, columns, rows)
	var b strings.Builder
	b.WriteString(ansiNoWrap)
	s.back(&b)
	for _, l := range lines {
		text := text.Cut(l.text, columns)
		if s.style.color && l.ansi != "" {
			text = l.ansi + text + ansiPlain
		}
		b.WriteString(text + ansiEndLine + "\r\n")
	}
	b.WriteString(ansiErase + ansiWrap)
	s.drawn = len(lines)
	s.write(b.String())
}

// note writes a line that stays, above the picture.
func (s *screen) note(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	s.back(&b)
	b.WriteString(ansiErase + text + "\r\n")
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
		s.write(b.String() + ansiErase)
		s.drawn = 0
	}
}

// back goes to where the picture begins.
func (s *screen) back(b *strings.Builder) {
	if s.drawn > 0 {
		fmt.Fprintf(b, ansiUp, s.drawn)
	}
}

func (s *screen) write(text string) {
	_, _ = io.WriteString(s.to, text) // what cannot be shown is no loss
}
