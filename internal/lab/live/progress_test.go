package live

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/internal/lab/replay"
)

// TestProgress checks that each line overwrites the one before, that lines come at intervals, and
// that the last one is erased.
func TestProgress(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	now := time.Unix(0, 0)
	line := &console.ProgressLine{To: &out, Now: func() time.Time { return now }}
	p := NewProgress(line, 1000)
	for range 640 {
		now = now.Add(time.Millisecond)
		if err := p.Reserved(&replay.Attempt{Number: 1}, &replay.Decision{}); err != nil {
			t.Fatal(err)
		}
	}
	line.Clear()
	var want strings.Builder
	for _, text := range []string{
		" 12 %  ##------------------  128 of 1,000 calls  1,000/s  1s left",
		" 25 %  #####---------------  256 of 1,000 calls  1,000/s  1s left",
		" 38 %  #######-------------  384 of 1,000 calls  1,000/s  1s left",
		" 51 %  ##########----------  512 of 1,000 calls  1,000/s  1s left",
		" 64 %  ############--------  640 of 1,000 calls  1,000/s  1s left",
	} {
		want.WriteString("\r\x1b[?7l" + text + "\x1b[K\x1b[?7h")
	}
	want.WriteString("\r\x1b[K")
	if got := out.String(); got != want.String() {
		t.Errorf("got\n%q\nwant\n%q", got, want.String())
	}

	out.Reset()
	line = &console.ProgressLine{To: &out, Now: line.Now}
	p = NewProgress(line, 1000)
	for range 640 {
		if err := p.Reserved(&replay.Attempt{Number: 1}, &replay.Decision{}); err != nil {
			t.Fatal(err)
		}
	}
	line.Clear()
	if out.Len() > 0 {
		t.Errorf("got %q within no time, want nothing", out.String())
	}
	(*console.ProgressLine)(nil).Clear()
}

// TestProgressOfRetries checks that calls that come back repeatedly do not count as done, and that
// the line is updated all the same.
func TestProgressOfRetries(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	now := time.Unix(0, 0)
	line := &console.ProgressLine{To: &out, Now: func() time.Time { return now }}
	p := NewProgress(line, 1000)
	for i := range 256 {
		now = now.Add(time.Millisecond)
		if err := p.Reserved(&replay.Attempt{Number: 2}, &replay.Decision{Retries: i >= 64}); err != nil {
			t.Fatal(err)
		}
	}
	want := "\r\x1b[?7l  6 %  #-------------------  64 of 1,000 calls  500/s  2s left\x1b[K\x1b[?7h" +
		"\r\x1b[?7l  6 %  #-------------------  64 of 1,000 calls  250/s  4s left\x1b[K\x1b[?7h"
	if got := out.String(); got != want {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}

	out.Reset()
	line = &console.ProgressLine{To: &out, Now: line.Now}
	p = NewProgress(line, 1000)
	now = now.Add(console.ProgressEvery)
	for range 64 {
		if err := p.Reserved(&replay.Attempt{Number: 1}, &replay.Decision{Retries: true}); err != nil {
			t.Fatal(err)
		}
	}
	if want := "  0 of 1,000"; !strings.Contains(out.String(), want) {
		t.Errorf("got %q before any call is done, want %q in it", out.String(), want)
	}
}

// TestProgressOnlyOnATerminal checks that files, pipes and devices that are not terminals get no
// progress. Scripts test a terminal.
func TestProgressOnlyOnATerminal(t *testing.T) {
	t.Parallel()
	file, err := os.Create(filepath.Join(t.TempDir(), "err"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	device, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = device.Close() }()
	others := map[string]io.Writer{"a buffer": &bytes.Buffer{}, "a file": file, "a device": device}
	for name, w := range others {
		a := &console.App{Streams: console.Streams{Out: w, Err: w}, Env: func(string) string { return "xterm" }}
		if a.ProgressLine() != nil {
			t.Errorf("%s: got progress, want none", name)
		}
		if out, _ := NewOutput(a, nil); out != nil {
			t.Errorf("%s: got a live table, want none", name)
		}
		if out, _ := NewOutput(a, &Lines{To: w}); out == nil {
			t.Errorf("%s: got nothing, want lines if they are asked for", name)
		}
	}
}
