package replay

import (
	"slices"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/lab/trace"
)

// TestLiveRate: calls a second are those of the last two seconds.
func TestLiveRate(t *testing.T) {
	t.Parallel()
	start := time.Unix(1000, 0)
	v := &View{player: &livePlayer{start: start}}
	var got []int64
	for i, done := range []int64{0, 10, 20, 30, 40, 40, 40, 40, 40, 41} {
		got = append(got, v.rate(sample{start.Add(time.Duration(i) * 500 * time.Millisecond), done}))
	}
	if want := []int64{0, 20, 20, 20, 20, 15, 10, 5, 0, 0}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if len(v.past) > 6 {
		t.Errorf("got %d samples kept, want those of two seconds", len(v.past))
	}
}

// TestLiveRowsGrow: a limit that appears while the replay runs gets a row in the table too.
func TestLiveRowsGrow(t *testing.T) {
	t.Parallel()
	counts := newCallCounts([]*subject{{entity: "a", limits: []weir.Limit{{Name: "rpm", Capacity: 5}}}})
	of := &boundWorkload{Workload: &Workload{calls: []trace.Call{{}}}}
	p := &livePlayer{boundWorkload: of, speed: 1, start: time.Unix(1000, 0)}
	v := newView(p, counts)
	rows := v.Take(p.start).Rows
	if len(rows) != 1 || rows[0].InUse.Sign() != 0 || rows[0].Capacity.Int64() != 5 {
		t.Errorf("got %+v, want one row with nothing in use", rows)
	}
	_ = counts.Reserved(&Attempt{Call: &trace.Call{}, Number: 1}, &Decision{Limits: []weir.LimitStatus{
		{Entity: "a", Limit: "new", Capacity: 9, Available: 2, Exceeded: true},
	}})
	rows = v.Take(p.start).Rows
	if len(rows) != 2 || rows[1].InUse.Int64() != 7 || !rows[1].Denies {
		t.Errorf("got %+v, want two rows, the second with 7 in use and a denial", rows)
	}
}
