package cli

import (
	"os"
	"strconv"
	"strings"
)

// The size of a terminal of which nobody says how large it is.
const (
	usualColumns = 80
	usualRows    = 24
)

// terminal is where people watch.
type terminal struct {
	file  *os.File
	style style
	env   func(string) string
}

// terminal returns the terminal that errors go to, otherwise the one that results go to; nil if
// neither is one, or if it is a dumb one or nobody says which one it is.
func (a *app) terminal() *terminal {
	if t := a.terminalAt(a.streams.Err); t != nil {
		return t
	}
	return a.terminalAt(a.streams.Out)
}

// terminalAt returns the terminal that a stream is; nil as with terminal.
func (a *app) terminalAt(stream any) *terminal {
	if kind := a.env("TERM"); kind == "" || kind == "dumb" {
		return nil
	}
	f, ok := stream.(*os.File)
	if !ok {
		return nil
	}
	if _, _, ok := windowSize(f); !ok {
		return nil
	}
	return &terminal{f, style{a.env("NO_COLOR") == "", a.speaksUTF8()}, a.env}
}

// speaksUTF8 says whether the locale has the characters that bars are drawn of.
func (a *app) speaksUTF8() bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if locale := a.env(name); locale != "" { // the first that is set decides
			locale = strings.ReplaceAll(strings.ToUpper(locale), "-", "")
			return strings.Contains(locale, "UTF8")
		}
	}
	return false
}

// size returns the columns and rows to draw on. It is asked before each picture, since people drag
// their windows.
func (t *terminal) size() (columns, rows int) {
	columns, rows, _ = windowSize(t.file)
	return orElse(columns, t.env("COLUMNS"), usualColumns), orElse(rows, t.env("LINES"), usualRows)
}

// orElse returns the first of three that is a size.
func orElse(told int, env string, usual int) int {
	if told > 0 {
		return told
	}
	if n, err := strconv.Atoi(env); err == nil && n > 0 {
		return n
	}
	return usual
}

// Write writes to the terminal. What cannot be shown is no loss.
func (t *terminal) Write(b []byte) (int, error) { return t.file.Write(b) }
