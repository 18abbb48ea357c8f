package live

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/lab/replay"
	"github.com/weir-limiter/weir/internal/lab/trace"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/memory"
)

// recordingView is an output that keeps the states that it is to show.
type recordingView struct {
	states []*replay.State
	notes  []string
	ended  bool
}

func (g *recordingView) show(s *replay.State) { g.states = append(g.states, s) }

func (g *recordingView) note(text string) { g.notes = append(g.notes, text) }

func (g *recordingView) end() { g.ended = true }

// tenCalls returns a workload of ten calls of one unit, one every second, and a limiter that admits
// four.
func tenCalls(t *testing.T) (*replay.Workload, *limiter.Limiter) {
	t.Helper()
	store, err := memory.Open(&memory.Options{Definitions: &weir.Definitions{System: []weir.Limit{
		{Name: "rpm", Kind: weir.Window, Capacity: 4, Window: time.Hour},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	lim, err := limiter.New(store, nil)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	text.WriteString("TIMESTAMP,ContextTokens,GeneratedTokens\n")
	for i := range 10 {
		fmt.Fprintf(&text, "%d,0,1\n", i)
	}
	trace, err := trace.Read(t.Context(), "t.csv", strings.NewReader(text.String()), nil)
	if err != nil {
		t.Fatal(err)
	}
	return replay.NewWorkload(trace, &replay.WorkloadOptions{
		Latency: replay.Latency{Base: 10 * time.Millisecond},
	}), lim
}

// TestWatchLive checks the states that are shown while a replay runs, and the notes about the first
// decision of each kind.
func TestWatchLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &recordingView{}
		w, lim := tenCalls(t)
		if _, err := replay.Play(t.Context(), lim, w, &replay.PlayOptions{
			Speed:    10,
			Watchers: []replay.Watcher{&FirstCalls{Out: g}},
			Watch: func(v *replay.View) (stop func()) {
				return Watch(v, g, 240*time.Millisecond) // never at the instant of a call
			},
		}); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, s := range g.states {
			r := &s.Rows[0]
			got = append(got, fmt.Sprintf("%d %%: %d+%d of %d, %d/s, %v left; ",
				percentDone(s), s.Admitted, s.Denied, s.Total, s.PerSecond, s.Left)+
				fmt.Sprintf("%s %s %d+%d %v/%v %v",
					r.Entity, r.Limit, r.Admitted, r.Denied, r.InUse, r.Capacity, r.Denies))
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
			"first denied:   tenant-1 on llm, by rpm of tenant-1; it would be admitted in 59m59.6s",
		}
		if !slices.Equal(g.notes, notes) {
			t.Errorf("got notes %q, want %q", g.notes, notes)
		}
		if !g.ended {
			t.Error("got a picture that stays, want it taken away")
		}
	})
}
