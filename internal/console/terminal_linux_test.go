package console

import (
	"os"
	"strings"
	"testing"

	"github.com/weir-limiter/weir/internal/testkit"
)

// TestTerminalSize checks that a terminal reports its own size, and that one without a size has
// that of the environment or the default.
func TestTerminalSize(t *testing.T) {
	t.Parallel()
	_, sized := testkit.OpenTerminal(t, 72, 30)
	_, unsized := testkit.OpenTerminal(t, 0, 0)
	for _, c := range []struct {
		file *os.File
		env  map[string]string
		want [2]int
	}{
		{sized, map[string]string{"TERM": "vt100"}, [2]int{72, 30}},
		{sized, map[string]string{"TERM": "vt100", "COLUMNS": "99", "LINES": "9"}, [2]int{72, 30}},
		{unsized, map[string]string{"TERM": "vt100"}, [2]int{80, 24}},
		{unsized, map[string]string{"TERM": "vt100", "COLUMNS": "99", "LINES": "x"}, [2]int{99, 24}},
	} {
		a := &App{
			Streams: Streams{Err: &strings.Builder{}, Out: c.file},
			Env:     func(name string) string { return c.env[name] },
		}
		terminal := a.Terminal()
		if terminal == nil {
			t.Fatal("got no terminal, want the one that results go to")
		}
		columns, rows := terminal.Size()
		if got := [2]int{columns, rows}; got != c.want {
			t.Errorf("%v: got %v, want %v", c.env, got, c.want)
		}
	}
}
