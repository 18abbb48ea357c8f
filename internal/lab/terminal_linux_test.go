package lab

import (
	"strings"
	"sync"
	"testing"

	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/internal/testkit"
	"github.com/weir-limiter/weir/internal/testkit/liveserver"
)

// onTerminal runs the program with standard error on a terminal, and returns what the terminal
// shows, and standard output.
func onTerminal(t *testing.T, env map[string]string, args ...string) (shown, out string) {
	t.Helper()
	outside, inside := testkit.OpenTerminal(t, 72, 30)
	var read strings.Builder
	var reader sync.WaitGroup
	reader.Go(func() {
		buffer := make([]byte, 4096)
		for {
			n, err := outside.Read(buffer)
			read.Write(buffer[:n])
			if err != nil { // the other end is closed
				return
			}
		}
	})
	var results strings.Builder
	streams := console.Streams{In: strings.NewReader(""), Out: &results, Err: inside}
	code := runE(t.Context(), args, streams, func(name string) string { return env[name] })
	_ = inside.Close()
	reader.Wait()
	if code != console.ExitDone {
		t.Fatalf("got exit code %d, want 0: %s", code, read.String())
	}
	return read.String(), results.String()
}

// TestTerminal checks that a terminal shows a picture while a replay runs and nothing of it
// afterwards, that a dumb terminal shows nothing, and that colours and blocks depend on the
// environment.
func TestTerminal(t *testing.T) {
	t.Parallel()
	url, _ := liveserver.Start(t, nil, nil)
	live := []string{
		"replay", liveTrace(t, 60), "--server", url, "--speed", "120", "--entities", "2", "--seed", "1",
	}
	const heads = "ENTITY    LIMIT     KIND         ADMITTED  DENIED  USED NOW"
	for _, c := range []struct {
		name    string
		env     map[string]string
		wants   []string
		unwants []string
	}{
		{
			"with everything", map[string]string{"TERM": "xterm", "LANG": "en_US.UTF-8"},
			[]string{" %  █", " of 60 calls  ", "\x1b[1m" + heads},
			nil,
		},
		{
			"without colors and blocks",
			map[string]string{"TERM": "xterm", "NO_COLOR": "1", "LC_ALL": "C", "LANG": "en_US.UTF-8"},
			[]string{" %  #", "\n" + heads},
			[]string{"█", "░", "\x1b[1m", "\x1b[31m"},
		},
		{"dumb", map[string]string{"TERM": "dumb"}, nil, []string{"%", "\x1b"}},
		{"of no kind", nil, nil, []string{"%", "\x1b"}},
	} {
		shown, out := onTerminal(t, c.env, live...)
		for _, want := range c.wants {
			if !strings.Contains(shown, want) {
				t.Errorf("%s: got %q, want %q in it", c.name, shown, want)
			}
		}
		for _, unwanted := range c.unwants {
			if strings.Contains(shown, unwanted) {
				t.Errorf("%s: got %q, want no %q in it", c.name, shown, unwanted)
			}
		}
		if c.wants != nil && !strings.HasSuffix(shown, "\r\x1b[J") {
			t.Errorf("%s: got %q, want the picture taken away in the end", c.name, shown)
		}
		if !strings.Contains(out, "\nsent  60 calls, ") || strings.Contains(out, "\x1b") {
			t.Errorf("%s: got\n%s\nwant the report alone on standard output", c.name, out)
		}
	}
}

// TestLoadtestTerminal checks that a terminal shows a line during a run, which is erased at the
// end, and that a dumb terminal shows nothing.
func TestLoadtestTerminal(t *testing.T) {
	t.Parallel()
	url, _ := liveserver.Start(t, nil, nil)
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
