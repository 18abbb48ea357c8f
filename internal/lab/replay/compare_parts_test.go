package replay

import (
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/weir-limiter/weir"
)

func newFault() *weir.Error { return &weir.Error{Code: weir.NeverSatisfiable} }

// TestCompareLimits checks that rows of the same entity, resource and name are paired, those of one
// kind first.
func TestCompareLimits(t *testing.T) {
	t.Parallel()
	rows := func(words string) []*LimitReport {
		var out []*LimitReport
		for word := range strings.FieldsSeq(words) {
			p := strings.Split(word, "/")
			out = append(out, &LimitReport{
				Entity: p[0], Limit: p[1], Kind: weir.Kind(p[2]), Used: new(big.Int),
			})
		}
		return out
	}
	for _, tt := range []struct{ name, first, second, want string }{
		{"the same", "a/x/bucket b/y/window", "a/x/bucket b/y/window", "a/x:bucket=bucket b/y:window=window"},
		{"only in one", "a/x/bucket a/z/bucket", "a/y/bucket a/z/bucket", "a/x:bucket= a/y:=bucket a/z:bucket=bucket"},
		{"nothing in common", "a/x/bucket", "b/x/bucket", "a/x:bucket= b/x:=bucket"},
		{"none", "", "", ""},
		{"none in the first", "", "a/x/bucket", "a/x:=bucket"},
		{"none in the second", "a/x/bucket", "", "a/x:bucket="},
		{"another kind", "a/x/bucket", "a/x/window", "a/x:bucket=window"},
		{
			"several kinds of one name", "a/x/bucket a/x/window a/x/budget", "a/x/window a/x/concurrency",
			"a/x:bucket=concurrency a/x:window=window a/x:budget=",
		},
		{"another order", "a/x/bucket a/y/bucket", "a/y/bucket a/w/bucket a/x/bucket",
			"a/w:=bucket a/x:bucket=bucket a/y:bucket=bucket"},
	} {
		var got []string
		for _, l := range compareLimits(rows(tt.first), rows(tt.second)) {
			kind := func(r *LimitReport) string {
				if r == nil {
					return ""
				}
				return string(r.Kind)
			}
			got = append(got, l.Entity+"/"+l.Limit+":"+kind(l.First)+"="+kind(l.Second))
		}
		if text := strings.Join(got, " "); text != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, text, tt.want)
		}
	}
}

// TestAlignTimelines checks that intervals become as long as the longer ones, and that no count is
// lost.
func TestAlignTimelines(t *testing.T) {
	t.Parallel()
	line := func(stepMS int64, arrived ...int64) *Timeline {
		l := &Timeline{FromMS: 7, IntervalMS: stepMS}
		for _, n := range arrived {
			l.Intervals = append(l.Intervals, Interval{Arrived: n, TokensAsked: 10 * n})
		}
		l.Limits = []*LimitTimeline{{Denied: slices.Clone(arrived), PeakUse: slices.Clone(arrived)}}
		return l
	}
	for _, tt := range []struct {
		name          string
		a, b          *Timeline
		step          int64
		first, second []int64
	}{
		{"alike", line(5, 1, 2, 3), line(5, 4, 5, 6), 5, []int64{1, 2, 3}, []int64{4, 5, 6}},
		{"the first is shorter", line(5, 1), line(5, 4, 5), 5, []int64{1, 0}, []int64{4, 5}},
		{"the second is finer", line(20, 1, 2), line(5, 1, 2, 3, 4, 5), 20, []int64{1, 2}, []int64{10, 5}},
		{"the first is finer", line(5, 1, 2, 3), line(10, 9), 10, []int64{3, 3}, []int64{9, 0}},
	} {
		before := slices.Clone(tt.a.Intervals)
		peaks := slices.Clone(tt.a.Limits[0].PeakUse)
		first, second := AlignTimelines(tt.a, tt.b)
		for _, s := range []struct {
			got  *Timeline
			want []int64
		}{{first, tt.first}, {second, tt.second}} {
			var arrived []int64
			for _, n := range s.got.Intervals {
				arrived = append(arrived, n.Arrived)
				if n.TokensAsked != 10*n.Arrived {
					t.Errorf("%s: %d tokens of %d calls", tt.name, n.TokensAsked, n.Arrived)
				}
			}
			row := s.got.Limits[0]
			if !slices.Equal(row.Denied, arrived) || len(row.PeakUse) != len(arrived) {
				t.Errorf("%s: the limit has %d and %d", tt.name, row.Denied, row.PeakUse)
			}
			if !slices.Equal(arrived, s.want) || s.got.IntervalMS != tt.step || s.got.FromMS != 7 {
				t.Errorf("%s: got %d each %d from %d, want %d each %d",
					tt.name, arrived, s.got.IntervalMS, s.got.FromMS, s.want, tt.step)
			}
		}
		if !slices.Equal(before, tt.a.Intervals) || !slices.Equal(peaks, tt.a.Limits[0].PeakUse) {
			t.Errorf("%s: the timeline itself has changed", tt.name)
		}
	}
}
