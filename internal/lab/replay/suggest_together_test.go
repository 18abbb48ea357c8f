package replay

import (
	"errors"
	"os"
	"testing"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/lab/trace"
)

// TestSuggestTogether checks that limits that deny different calls share the calls that may be
// denied. Each limit gets less than it may deny alone, and little of the whole is left over.
func TestSuggestTogether(t *testing.T) {
	t.Parallel()
	file, err := os.Open(azureTrace)
	if err != nil {
		t.Fatal(err)
	}
	trace, err := trace.Read(t.Context(), "azure.csv", file, nil)
	if err := errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
	trace.Calls = trace.Calls[:4000] // more calls would show the same
	d := &weir.Definitions{System: []weir.Limit{
		{Name: "otpm", Capacity: 8000}, {Name: "tpm", Capacity: 320_000},
	}}
	w := NewWorkload(trace, nil)
	s, err := Suggest(t.Context(), d, w, shareFor(t, "2%"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d of %d calls are denied, of %d that may; each limit may deny %s %%; %d replays",
		s.Denied, s.Calls, s.MayDeny, s.EachMayDeny, s.Replays)
	if s.MayDeny != 80 || s.Denied > s.MayDeny || s.Denied < s.MayDeny/2 {
		t.Errorf("%d are denied, and %d may be", s.Denied, s.MayDeny)
	}
	if s.EachMayDeny == "0" || s.EachMayDeny == s.Share {
		t.Errorf("each may deny %s %%, of %s %% in all", s.EachMayDeny, s.Share)
	}
	for _, l := range s.Limits {
		if l.DeniedAlone == 0 || l.DeniedTogether > l.DeniedAlone {
			t.Errorf("%s: denies %d alone, %d together", l.Limit, l.DeniedAlone,
				l.DeniedTogether)
		}
	}
}

// TestSuggestCountsOnce checks that a call that exceeds a limit twice, because both an entity and
// its parent have it, counts once.
func TestSuggestCountsOnce(t *testing.T) {
	t.Parallel()
	d := &weir.Definitions{
		System: []weir.Limit{{Name: "rpm", Capacity: 2}},
		Entities: map[string]weir.EntityDefinition{
			"acme": {}, "tenant-1": {Parent: "acme", Cascade: true},
		},
	}
	w := NewWorkload(traceOf(each(10, 0, 0, 1)...), nil)
	s, err := Suggest(t.Context(), d, w, shareFor(t, "30%"), nil)
	if err != nil {
		t.Fatal(err)
	}
	got := s.Limits[0]
	if len(s.Limits) != 1 || got.Calls != 10 || got.DeniedNow != 8 || got.SuggestedCapacity != 7 ||
		got.DeniedAlone != 3 || got.DeniedTogether != 3 || s.Denied != 3 {
		t.Errorf("got %+v, and %d denied", got, s.Denied)
	}
}
