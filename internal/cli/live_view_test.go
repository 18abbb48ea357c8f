package cli

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/memory"
)

// gallery keeps what it is shown.
type gallery struct {
	states []*liveState
	notes  []string
	ended  bool
}

func (g *gallery) show(s *liveState) { g.states = append(g.states, s) }
func (g *gallery) note(text string)  { g.notes = append(g.notes, text) }
func (g *gallery) end()              { g.ended = true }

// tenCalls plays ten calls of one unit, one every hundred milliseconds, against a limit of four.
func tenCalls(t *testing.T) (*player, *tally) {
	t.Helper()
	store, err := memory.Open(&memory.Options{Definitions: &weir.Definitions{System: []weir.Limit{
		{Name: "rpm", Kind: weir.Window, Capacity: 4, Window: time.Hour},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	limiter, err := weir.New(store, nil)
	if err != nil {
		t.Fatal(err)
	}
	var calls []call
	for i := range 10 {
		calls = append(calls, call{i + 2, int64(i) * 1000, 0, 1})
	}
	return playerOver(t, limiter, 10, liveWorkload(t, limiter, "10ms", calls...))
}

// TestWatchLive: what is shown while a replay runs, and the first decisions of each kind as lines.
func TestWatchLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gallery{}
		p, counts := tenCalls(t)
		p.watchers = append(p.watchers, &firsts{out: g})
		stop := watchLive(newLiveView(p, counts), g, 240*time.Millisecond) // never when a call is sent
		if err := p.play(t.Context()); err != nil {
			t.Fatal(err)
		}
		stop()
		var got []string
		for _, s := range g.states {
			r := &s.rows[0]
			got = append(got, fmt.Sprintf("%d %%: %d+%d of %d, %d/s, %v left; ",
				s.percent(), s.admitted, s.denied, s.total, s.perSecond, s.left)+
				fmt.Sprintf("%s %s %d+%d %v/%v %v",
					r.entity, r.limit, r.admitted, r.denied, r.used, r.capacity, r.denies))
		}
		want := []string{
			"30 %: 3+0 of 10, 12/s, 660ms left; tenant-1 rpm 3+0 3/4 false",
			"50 %: 4+1 of 10, 10/s, 420ms left; tenant-1 rpm 4+1 4/4 true",
			"80 %: 4+4 of 10, 11/s, 180ms left; tenant-1 rpm 4+4 4/4 true",
		}
		if !slices.Equal(got, want) {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		notes := []string{
			"first admitted: tenant-1 on llm, rpm=1",
			"first denied:   tenant-1 on llm, by rpm of tenant-1; it would fit in 59m59.6s",
		}
		if !slices.Equal(g.notes, notes) {
			t.Errorf("got notes %q, want %q", g.notes, notes)
		}
		if !g.ended {
			t.Error("got a picture that stays, want it taken away")
		}
	})
}

// TestLiveRate: calls a second are those of the last two seconds.
func TestLiveRate(t *testing.T) {
	t.Parallel()
	start := time.Unix(1000, 0)
	v := &liveView{player: &player{start: start}}
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
	counts := newTally([]*subject{{entity: "a", limits: []weir.Limit{{Name: "rpm", Capacity: 5}}}})
	p := &player{workload: &workload{calls: []call{{}}}, speed: 1, start: time.Unix(1000, 0)}
	v := newLiveView(p, counts)
	rows := v.take(p.start).rows
	if len(rows) != 1 || rows[0].used.Sign() != 0 || rows[0].capacity.Int64() != 5 {
		t.Errorf("got %+v, want one row with nothing in use", rows)
	}
	_ = counts.reserved(&attempt{call: &call{}}, &verdict{limits: []weir.LimitStatus{
		{Entity: "a", Limit: "new", Capacity: 9, Available: 2, Exceeded: true},
	}})
	rows = v.take(p.start).rows
	if len(rows) != 2 || rows[1].used.Int64() != 7 || !rows[1].denies {
		t.Errorf("got %+v, want two rows, the second with 7 in use and a denial", rows)
	}
}
