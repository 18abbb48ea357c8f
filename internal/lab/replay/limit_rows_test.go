package replay

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/lab/trace"
)

// TestLimitReports checks that up to eight entities have rows of their own, and that more of them
// share a row if they have the same limit, tenants and parents separately.
func TestLimitReports(t *testing.T) {
	t.Parallel()
	rpm := weir.Limit{Name: "rpm", Kind: weir.Bucket, Capacity: 5, RefillAmount: 5, RefillPeriod: time.Minute}
	shadow := rpm
	shadow.Shadow = true
	slots := weir.Limit{Name: "rpm", Kind: weir.Concurrency, Capacity: 2, Timeout: time.Minute}
	many := func(n int, tenant bool) (subjects []*subject) {
		for i := range n {
			s := &subject{entity: fmt.Sprintf("parent-%d", i), limits: []weir.Limit{rpm}}
			if tenant {
				s.entity, s.caller = TenantName(i), true
			}
			subjects = append(subjects, s)
		}
		return subjects
	}
	odd := many(10, true)
	odd[3].limits = []weir.Limit{shadow}
	odd[4].limits = []weir.Limit{slots, {Name: "usd", Kind: weir.Bucket, Capacity: 1,
		RefillAmount: 1, RefillPeriod: time.Minute}}
	for _, c := range []struct {
		name     string
		subjects []*subject
		want     []string
	}{
		{"few", append(many(1, true), many(2, false)...), []string{
			"tenant-1 1 rpm bucket 5", "parent-0 1 rpm bucket 5", "parent-1 1 rpm bucket 5",
		}},
		{"many tenants", append(many(9, true), many(1, false)...), []string{
			"tenants 9 rpm bucket 45", "parent-0 1 rpm bucket 5",
		}},
		{"many parents", append(many(2, true), many(9, false)...), []string{
			"tenant-1 1 rpm bucket 5", "tenant-2 1 rpm bucket 5", "parents 9 rpm bucket 45",
		}},
		{"tenants with other limits", odd, []string{
			"tenants 8 rpm bucket 40", "tenants 1 rpm bucket shadow 5", "tenants 1 rpm concurrency 0",
			"tenants 1 usd bucket 1",
		}},
	} {
		var got []string
		for _, r := range limitReports(newCallCounts(c.subjects), timeRange{}) {
			kind := string(r.Kind)
			if r.Shadow {
				kind += " shadow"
			}
			got = append(got, fmt.Sprintf("%s%s %d %s %s %v",
				r.Entity, r.Group, r.Entities, r.Limit, kind, r.Available))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

// TestCallCounts checks that one denial counts on every limit that was exceeded, and that only a
// limit that denies alone counts as the only one.
func TestCallCounts(t *testing.T) {
	t.Parallel()
	limits := []weir.Limit{{Name: "a"}, {Name: "b"}, {Name: "s", Shadow: true}}
	tally := newCallCounts([]*subject{{entity: "e", limits: limits}})
	reserve := func(denied bool, exceeded string) {
		v := &Decision{}
		if denied {
			v.Denied = &weir.DeniedError{}
		}
		for _, l := range limits {
			v.Limits = append(v.Limits, weir.LimitStatus{
				Entity: "e", Limit: l.Name, Requested: 3, Shadow: l.Shadow,
				Exceeded: slices.Contains([]byte(exceeded), l.Name[0]),
			})
		}
		if err := tally.Reserved(&Attempt{Call: &trace.Call{Input: 1}, Number: 1}, v); err != nil {
			t.Fatal(err)
		}
	}
	reserve(false, "")
	reserve(false, "s")
	reserve(true, "a")
	reserve(true, "as")
	reserve(true, "ab")
	reserve(true, "abs")
	for name, want := range map[string]string{"a": "2 4 2 6", "b": "2 2 0 6", "s": "2 3 1 6"} {
		row := tally.rows[subjectLimit{"e", "", name}]
		if got := fmt.Sprint(row.admitted, row.denied, row.only, " ", &row.used); got != want {
			t.Errorf("%s: got admitted, denied, only and used %s, want %s", name, got, want)
		}
	}
	if got := tally.totals; got.Calls != 6 || got.Admitted != 2 || got.Denied != 4 {
		t.Errorf("got %d calls, %d admitted, %d denied, want 6, 2 and 4", got.Calls, got.Admitted, got.Denied)
	}
}
