package lab

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/internal/lab/loadtest"
)

// TestLoadtestTable checks the report as text.
func TestLoadtestTable(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	q := loadtest.Quantiles{P50: 1234 * time.Nanosecond, P90: 98765 * time.Nanosecond, P95: ms, P99: 123456 * time.Microsecond,
		P999: 12345 * ms, Max: 61 * time.Second}
	m := &loadtest.Report{
		Options: loadtest.Options{
			Duration: 10 * time.Second, Warmup: time.Second, Concurrency: 1, Rate: 1000, Seed: 7,
			Think: loadtest.DurationRange{Least: ms, Most: 2 * ms},
		},
		Elapsed: 2 * time.Second, Served: 4 * time.Second,
		Rows: []loadtest.Row{
			{Verb: loadtest.Reserve, Result: loadtest.Admitted, Count: 1000, Latency: q},
			{Verb: loadtest.Reserve, Result: loadtest.Failed, Count: 30, Latency: q},
		},
		DeniedBy: []loadtest.DeniedCount{
			{DeniedBy: loadtest.DeniedBy{Resource: "llm", Limit: "r\x1bpm", Kind: weir.Bucket, Parent: true}, Count: 1500},
			{DeniedBy: loadtest.DeniedBy{Contended: true}, Count: 2},
		},
		Errors:  []loadtest.ErrorCount{{Verb: loadtest.Reserve, Code: weir.Unavailable, Count: 30}},
		Planned: 2000, Started: 1030, Unsent: 970, Late: 5, LateMax: 1234567 * time.Nanosecond, Degraded: 1,
		Taken: 1000, Settled: 990, Left: 10, Stopped: context.Canceled,
	}
	texts := []string{"a llm", "b", "c", "d", "e", "f", "g", "h", "i", "j"}
	var b bytes.Buffer
	newLoadtestReport(m, "http://x", texts).table(&b)
	want := `server     http://x
requests   a llm
           b
           c
           d
           e
           f
           g
           h
           and 2 more
open loop  1,000 calls a second, at most 1 request in progress
measured   2s of 10s after 1s of warm-up, think 1ms..2ms
seed       7

LATENCY  RESULT    COUNT  PER SECOND     P50     P90  P95    P99   P99.9   MAX
reserve  admitted  1,000         250  1.23µs  98.8µs  1ms  123ms  12.35s  1m1s
reserve  failed       30         7.5  1.23µs  98.8µs  1ms  123ms  12.35s  1m1s

SERVICE  RESULT    COUNT  PER SECOND  P50  P90  P95  P99  P99.9  MAX
reserve  admitted  1,000         250   0s   0s   0s   0s     0s   0s
reserve  failed       30         7.5   0s   0s   0s   0s     0s   0s

DENIED BY      RESOURCE  KIND    OF      DENIED
r\x1bpm        llm       bucket  parent   1,500
other writers                                 2

calls     1,030, 258 a second: 1,000 admitted, 0 denied, 30 failed
planned   2,000, 1,000 a second: 970 never sent, 5 more than 20ms late, at most 2ms
errors    reserve: 30 unavailable
degraded  1 call was admitted without being charged: the store did not answer
leases    1,000 taken, 990 settled, 10 left
stopped   interrupted
`
	if got := b.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestLoadLine checks the line of progress, including at the beginning and the end of a run.
func TestLoadLine(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		p    loadtest.Progress
		want string
	}{
		{loadtest.Progress{Total: 10 * time.Second}, "  0 %  ----------  0 calls  0/s  0 denied  0 failed  10s left"},
		{
			loadtest.Progress{Elapsed: 2500 * time.Millisecond, Total: 10 * time.Second, Calls: 2500, Denied: 3, Failed: 1},
			" 25 %  ##--------  2,500 calls  1,000/s  3 denied  1 failed  8s left",
		},
		{
			loadtest.Progress{Elapsed: 11 * time.Second, Total: 10 * time.Second, Calls: 5},
			"100 %  ##########  5 calls  0.5/s  0 denied  0 failed  settling",
		},
	} {
		if got := loadLine((console.Style{}), c.p); got != c.want {
			t.Errorf("got  %q\nwant %q", got, c.want)
		}
	}
}
