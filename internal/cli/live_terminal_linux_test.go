package cli

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"unsafe"
)

// openTerminal returns both ends of a terminal of that size: what is written to the second one is
// read from the first.
func openTerminal(t *testing.T, columns, rows uint16) (outside, inside *os.File) {
	t.Helper()
	outside, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("there are no terminals here: %v", err)
	}
	t.Cleanup(func() { _ = outside.Close() })
	fd := outside.Fd()
	control := func(request uintptr, at unsafe.Pointer) {
		t.Helper()
		_, _, failure := syscall.Syscall(syscall.SYS_IOCTL, fd, request, uintptr(at))
		if failure != 0 {
			t.Fatal(failure)
		}
	}
	var number, locked int32
	control(syscall.TIOCSPTLCK, unsafe.Pointer(&locked))
	control(syscall.TIOCGPTN, unsafe.Pointer(&number))
	size := [4]uint16{rows, columns}
	control(syscall.TIOCSWINSZ, unsafe.Pointer(&size))
	inside, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("there are no terminals here: %v", err)
	}
	t.Cleanup(func() { _ = inside.Close() })
	return outside, inside
}

// onTerminal runs the program with its errors on a terminal, and returns what that shows, and what
// went to standard output.
func onTerminal(t *testing.T, env map[string]string, args ...string) (shown, out string) {
	t.Helper()
	outside, inside := openTerminal(t, 72, 30)
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
	streams := Streams{strings.NewReader(""), &results, inside}
	code := Run(t.Context(), args, streams, func(name string) string { return env[name] })
	_ = inside.Close()
	reader.Wait()
	if code != exitDone {
		t.Fatalf("got exit code %d, want 0: %s", code, read.String())
	}
	return read.String(), results.String()
}

// TestTerminal: a terminal gets a picture while a replay runs, and nothing of it is left; a dumb
// one gets nothing, and colors and blocks go to those that want them.
func TestTerminal(t *testing.T) {
	t.Parallel()
	url, _ := liveServer(t, nil, nil)
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

// TestTerminalSize: a terminal tells its own size; one that has none is as large as the environment
// or custom says.
func TestTerminalSize(t *testing.T) {
	t.Parallel()
	_, sized := openTerminal(t, 72, 30)
	_, unsized := openTerminal(t, 0, 0)
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
		a := &app{
			streams: Streams{Err: &strings.Builder{}, Out: c.file},
			env:     func(name string) string { return c.env[name] },
		}
		terminal := a.terminal()
		if terminal == nil {
			t.Fatal("got no terminal, want the one that results go to")
		}
		columns, rows := terminal.size()
		if got := [2]int{columns, rows}; got != c.want {
			t.Errorf("%v: got %v, want %v", c.env, got, c.want)
		}
	}
}
