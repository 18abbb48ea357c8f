package report

import (
	"math/big"
	"slices"
	"testing"

	"github.com/weir-limiter/weir/internal/lab/replay"
)

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
		rows, stars := limitsRows([]*replay.LimitCompared{tt.row}, false)
		if !slices.Equal(rows[0], tt.want) {
			t.Errorf("%s: got %q, want %q", tt.name, rows[0], tt.want)
		}
		if want := tt.row.Second == shadow; stars != want {
			t.Errorf("%s: got a shadow limit %v, want %v", tt.name, stars, want)
		}
		if heads := limitsHeads(false, true); len(heads) != len(tt.want) {
			t.Errorf("%s: got %d heads, want %d", tt.name, len(heads), len(tt.want))
		}
	}
}
