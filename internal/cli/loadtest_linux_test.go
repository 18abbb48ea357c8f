package cli

import (
	"strings"
	"testing"
)

// TestLoadtestTerminal: a terminal gets a line while a run goes on, which is taken away in the end;
// a dumb one gets nothing.
func TestLoadtestTerminal(t *testing.T) {
	t.Parallel()
	url, _ := liveServer(t, nil, nil)
	args := []string{
		"loadtest", "tenant-1", "llm", "rpm=1", "--rate", "50", "--duration", "1s", "--server", url,
	}
	shown, out := onTerminal(t, map[string]string{"TERM": "xterm", "LC_ALL": "C"}, args...)
	if !strings.Contains(shown, " %  #") || !strings.Contains(shown, " calls  ") ||
		!strings.HasSuffix(shown, "\r\x1b[K") {
		t.Errorf("got %q, want progress, taken away in the end", shown)
	}
	if !strings.Contains(out, "\nleases ") || strings.Contains(out, "\x1b") {
		t.Errorf("got\n%s\nwant the report alone", out)
	}
	if shown, _ := onTerminal(t, map[string]string{"TERM": "dumb"}, args...); shown != "" {
		t.Errorf("got %q on a dumb terminal, want nothing", shown)
	}
}
