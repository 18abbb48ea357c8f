package lab

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/internal/lab/replay"
)

// TestSuggestProgress: a line now and then, as wide as the terminal, that goes away in the end.
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
