package report

import (
	"bytes"
	"math"
	"math/big"
	"slices"
	"testing"

	"github.com/weir-limiter/weir/internal/lab/replay"
)

// TestSpanText checks that spans are written in whole seconds, and are never negative, however long
// they are.
func TestSpanText(t *testing.T) {
	t.Parallel()
	for ms, want := range map[int64]string{
		0: "0s", 499: "0s", 3_436_000: "57m16s", 8_639_999_999_000: "2399999h59m59s",
		8_640_000_000_000: "100,000 days", 253_402_300_799_999: "2,932,896 days",
	} {
		if got := spanText(ms); got != want {
			t.Errorf("%d ms: got %q, want %q", ms, got, want)
		}
	}
}

// TestLiveReportFoot checks the lines about calls that were neither admitted nor denied.
func TestLiveReportFoot(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	liveFoot(&b, &replay.LiveReport{
		Sent: 1234, Late: 5, LateMaxMS: 1500, Unsettled: 1, Degraded: 2,
		Errors:  map[string]int64{"unavailable": 1200, "conflict": 1},
		Stopped: "one; two",
	})
	want := `errors are not denials: 1 conflict, 1,200 unavailable
1 lease could not be settled
2 calls were admitted without being charged: the store did not answer
sent  1,234 calls, 5 more than 20ms late, at most 1.5s
stopped early: one; two
`
	if got := b.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestCompareRows(t *testing.T) {
	t.Parallel()
	bucket := &replay.LimitReport{
		Entity: "acme", Limit: "rpm", Kind: "bucket", Admitted: 1234, Denied: 5, Used: big.NewInt(1), UsedPercent: "1.5",
	}
	shadow := &replay.LimitReport{Entity: "acme", Limit: "rpm", Kind: "window", Shadow: true, Admitted: 34, Denied: 7}
	for _, tt := range []struct {
		name string
		row  *replay.LimitCompared
		want []string
	}{
		{"both", &replay.LimitCompared{Limit: "rpm", First: bucket, Second: bucket}, []string{
			"acme", "rpm", "bucket", "1,234", "1,234", "0", "5", "5", "0", "1.5", "1.5",
		}},
		{"another kind", &replay.LimitCompared{Limit: "rpm", First: bucket, Second: shadow}, []string{
			"acme", "rpm", "bucket, B: window *", "1,234", "34", "-1,200", "5", "7", "+2", "1.5", "-",
		}},
		{"only the first", &replay.LimitCompared{Limit: "rpm", First: bucket}, []string{
			"acme", "rpm", "bucket, only A", "1,234", "-", "", "5", "-", "", "1.5", "-",
		}},
		{"only the second", &replay.LimitCompared{Limit: "rpm", Second: shadow}, []string{
			"acme", "rpm", "window *, only B", "-", "34", "", "-", "7", "", "-", "-",
		}},
	} {
		o := &Result{
			Report:  &replay.Report{Resource: "llm"},
			Compare: &replay.Comparison{Limits: []*replay.LimitCompared{tt.row}},
		}
		table, stars := o.limitsTable(true)
		if !slices.Equal(table.Rows[0], tt.want) {
			t.Errorf("%s: got %q, want %q", tt.name, table.Rows[0], tt.want)
		}
		if want := tt.row.Second == shadow; stars != want {
			t.Errorf("%s: got a shadow limit %v, want %v", tt.name, stars, want)
		}
		if len(table.Heads) != len(tt.want) {
			t.Errorf("%s: got %d heads, want %d", tt.name, len(table.Heads), len(tt.want))
		}
	}
}

func TestDistributionOfSizes(t *testing.T) {
	t.Parallel()
	a, b := newHistogram([]int64{0, 10, 100}), newHistogram([]int64{0, 10, 100})
	if d := distribution("none", "ms", namedHistogram{"a", a}, namedHistogram{"b", b}); d != nil {
		t.Errorf("got %+v of nothing, want nil", d)
	}
	for _, n := range []int64{1, 10, 11, 1000, math.MaxInt64} {
		a.add(n)
	}
	b.add(100)
	for _, tt := range []struct {
		of         []namedHistogram
		bounds     []int64
		first, end []int64
	}{
		{[]namedHistogram{{"a", a}}, []int64{10, 100}, []int64{2, 1, 2}, []int64{2, 1, 2}},
		{[]namedHistogram{{"b", b}}, []int64{100}, []int64{1}, []int64{1}},
		{[]namedHistogram{{"b", b}, {"a", a}}, []int64{10, 100}, []int64{0, 1, 0}, []int64{2, 1, 2}},
	} {
		d := distribution("some", "ms", tt.of...)
		last := d.Series[len(d.Series)-1]
		if !slices.Equal(d.Bounds, tt.bounds) || !slices.Equal(d.Series[0].Values, tt.first) ||
			!slices.Equal(last.Values, tt.end) {
			t.Errorf("got %v with %v, want %v with %v and %v", d.Bounds, d.Series, tt.bounds, tt.first, tt.end)
		}
	}
	for _, bounds := range [][]int64{tokenBounds(), waitBounds()} {
		if !slices.IsSorted(bounds) || len(slices.Compact(slices.Clone(bounds))) != len(bounds) {
			t.Errorf("%d do not ascend", bounds)
		}
	}
}
