package report

import (
	"bytes"
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

// TestLiveReportFoot: what is said of the calls that were neither admitted nor denied.
func TestLiveReportFoot(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	liveFoot(&b, &replay.LiveReport{
		Sent: 1234, Late: 5, LateMaxMS: 1500, Unsettled: 1, Degraded: 2,
		Errors:  map[string]int64{"unavailable": 1200, "conflict": 1},
		Stopped: "one; two",
	})
	want := `errors are no denials: 1 conflict, 1,200 unavailable
1 lease could not be settled
2 calls were admitted without being charged: the store did not answer
sent  1,234 calls, 5 more than 20ms late, at most 1.5s
stopped early: one; two
`
	if got := b.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
