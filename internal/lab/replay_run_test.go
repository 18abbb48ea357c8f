package lab

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/internal/lab/replay"
	"github.com/weir-limiter/weir/internal/lab/report"
)

// TestReplayInterrupted checks that an interrupted replay leaves no log behind.
func TestReplayInterrupted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	gone := &countdownContext{Context: t.Context(), left: 200} // of about 600 checks of the context
	a := &console.App{Streams: console.Streams{Err: io.Discard}, Env: noEnv}
	r := &replayRun{
		replayFlags: &replayFlags{limits: "../../examples/limits.yaml", decisions: filepath.Join(dir, "log.jsonl")},
		app:         a, trace: liveTrace(t, 300), result: report.NewResult(false),
	}
	if err := r.againstFiles(gone); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want an interruption", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("got %v, %v, want an empty folder", left, err)
	}
}

// countdownContext is a context that ends after a number of checks.
type countdownContext struct {
	context.Context

	left int
}

func (f *countdownContext) Err() error {
	if f.left--; f.left < 0 {
		return context.Canceled
	}
	return nil
}

// TestSuggestProgress checks that a line is shown at intervals, is as wide as the terminal, and is
// erased at the end.
func TestSuggestProgress(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	now := time.UnixMilli(1_000_000)
	line := &console.ProgressLine{
		To: &b, Now: func() time.Time { return now }, Columns: func() int { return 30 },
	}
	show := func(p replay.SuggestProgress) { line.Update(func(int) string { return suggestProgress(p) }) }
	line.Clear()
	if b.Len() > 0 {
		t.Errorf("got %q before anything was told", &b)
	}
	show(replay.SuggestProgress{Sized: 1, Limits: 12, Replays: 1234, Calls: 5_000_000})
	show(replay.SuggestProgress{Sized: 2, Limits: 12})
	now = now.Add(console.ProgressEvery)
	show(replay.SuggestProgress{Sized: 3, Limits: 12})
	line.Clear()
	got := strings.NewReplacer(console.AnsiNoWrap, "", console.AnsiWrap, "", console.AnsiEndLine, "|").Replace(b.String())
	if want := "\r1 of 12 limits sized, 1,234 re|" +
		"\r3 of 12 limits sized, 0 replay|\r|"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
