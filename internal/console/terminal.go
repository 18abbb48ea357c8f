package console

import (
	"cmp"
	"io"
	"math/big"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/weir-limiter/weir/internal/text"
)

// The size of a terminal that does not report one.
const (
	UsualColumns = 80
	usualRows    = 24
)

// Terminal is a terminal on which progress and charts are drawn.
type Terminal struct {
	File  *os.File
	Style Style
	env   func(string) string
}

// Terminal returns the terminal of standard error, or else that of standard output. It returns nil
// if neither is a terminal, or if TERM is unset or dumb.
func (a *App) Terminal() *Terminal {
	if t := a.TerminalAt(a.Streams.Err); t != nil {
		return t
	}
	return a.TerminalAt(a.Streams.Out)
}

// TerminalAt returns the terminal that a stream leads to, or nil as Terminal does.
func (a *App) TerminalAt(stream any) *Terminal {
	if kind := a.Env("TERM"); kind == "" || kind == "dumb" {
		return nil
	}
	f, ok := stream.(*os.File)
	if !ok {
		return nil
	}
	if _, _, err := windowSize(f); err != nil {
		return nil
	}
	return &Terminal{f, Style{a.Env("NO_COLOR") == "", a.SpeaksUTF8()}, a.Env}
}

// SpeaksUTF8 reports whether the locale has the characters of which bars are drawn.
func (a *App) SpeaksUTF8() bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if locale := a.Env(name); locale != "" { // the first that is set decides
			locale = strings.ReplaceAll(strings.ToUpper(locale), "-", "")
			return strings.Contains(locale, "UTF8")
		}
	}
	return false
}

// Size returns the columns and rows to draw on. Ask before each picture, because windows are
// resized.
func (t *Terminal) Size() (columns, rows int) {
	columns, rows, _ = windowSize(t.File)
	return firstSize(columns, t.env("COLUMNS"), UsualColumns), firstSize(rows, t.env("LINES"), usualRows)
}

// windowSize returns the columns and rows of a terminal, which may be zero. It is an error if the
// file is not a terminal. It does not call f.Fd, which would make reads and writes of f block.
func windowSize(f *os.File) (columns, rows int, err error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return 0, 0, err
	}
	var failure error
	err = raw.Control(func(fd uintptr) { columns, rows, failure = term.GetSize(int(fd)) })
	return columns, rows, cmp.Or(err, failure)
}

// firstSize returns the first of the three that is a valid size.
func firstSize(told int, env string, usual int) int {
	if told > 0 {
		return told
	}
	if n, err := strconv.Atoi(env); err == nil && n > 0 {
		return n
	}
	return usual
}

// Write writes to the terminal and ignores errors, because progress is not needed.
func (t *Terminal) Write(b []byte) (int, error) { return t.File.Write(b) }

// Escape sequences.
const (
	AnsiUp      = "\x1b[%dA\r" // to the beginning of the line n lines above
	AnsiErase   = "\x1b[J"     // from here to the end of the screen
	AnsiEndLine = "\x1b[K"     // from here to the end of the line
	AnsiNoWrap  = "\x1b[?7l"   // do not show text beyond the end of a line
	AnsiWrap    = "\x1b[?7h"
	AnsiBold    = "\x1b[1m"
	AnsiRed     = "\x1b[31m"
	AnsiPlain   = "\x1b[0m"
)

// Style tells whether a terminal shows colours and block characters.
type Style struct {
	Color, Blocks bool
}

// Bar draws part of whole as a bar. A part above whole is a full bar, a negative one an empty bar.
func (look Style) Bar(part, whole *big.Int, width int64) string {
	n := int64(0)
	if whole.Sign() > 0 {
		filled := new(big.Int).Mul(part, big.NewInt(width))
		filled.Quo(filled, whole)
		switch {
		case filled.Cmp(big.NewInt(width)) >= 0:
			n = width
		case filled.Sign() > 0:
			n = filled.Int64()
		}
	}
	full, empty := "#", "-"
	if look.Blocks {
		full, empty = "█", "░"
	}
	return strings.Repeat(full, int(n)) + strings.Repeat(empty, int(width-n))
}

// ProgressEvery is the shortest time between two updates of a progress line.
const ProgressEvery = 100 * time.Millisecond

// ProgressLine is a line on a terminal that shows progress and is overwritten by each update.
type ProgressLine struct {
	To    io.Writer
	Style Style
	// Columns is called before each line. Default: 80
	Columns func() int
	Now     func() time.Time
	// Last is the time at which the line was last written.
	Last time.Time

	shown bool
}

// ProgressLine returns a line on the terminal, or nil if there is no terminal.
func (a *App) ProgressLine() *ProgressLine {
	t := a.Terminal()
	if t == nil {
		return nil
	}
	columns := func() int {
		columns, _ := t.Size()
		return columns
	}
	return &ProgressLine{To: t.File, Style: t.Style, Columns: columns, Now: time.Now}
}

// Update writes what line returns for a width, unless the line was written less than ProgressEvery
// ago.
func (l *ProgressLine) Update(line func(columns int) string) {
	now := l.Now()
	if now.Sub(l.Last) < ProgressEvery {
		return
	}
	l.Last, l.shown = now, true
	columns := UsualColumns
	if l.Columns != nil {
		columns = l.Columns()
	}
	l.write("\r" + AnsiNoWrap + text.Cut(line(columns), columns) + AnsiEndLine + AnsiWrap)
}

// Clear erases the line. It does nothing on nil.
func (l *ProgressLine) Clear() {
	if l != nil && l.shown {
		l.write("\r" + AnsiEndLine)
	}
}

func (l *ProgressLine) write(s string) {
	_, _ = io.WriteString(l.To, s) // progress is not needed
}

// Every calls tick at intervals of d until stop is called, and then end.
func Every(d time.Duration, tick func(now time.Time), end func()) (stop func()) {
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(d)
		defer ticker.Stop()
		for {
			select {
			case now := <-ticker.C:
				tick(now)
			case <-over:
				end()
				return
			}
		}
	}()
	return func() {
		close(over)
		<-ended
	}
}
