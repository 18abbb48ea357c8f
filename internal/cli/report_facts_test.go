package cli

import (
	"testing"

	"github.com/weir-limiter/weir/internal/lab/replay"
)

// TestReplaySpan: spans are told in whole seconds, and are never negative, however long they are.
func TestReplaySpan(t *testing.T) {
	t.Parallel()
	for ms, want := range map[int64]string{
		0: "0s", 499: "0s", 3_436_000: "57m16s", 8_639_999_999_000: "2399999h59m59s",
		8_640_000_000_000: "100,000 days", 253_402_300_799_999: "2,932,896 days",
	} {
		if got := replaySpan(&replay.Report{SpanMS: ms}); got != want {
			t.Errorf("%d ms: got %q, want %q", ms, got, want)
		}
	}
}
