//go:build cgo

package tigerbeetle

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	tb "github.com/tigerbeetle/tigerbeetle-go"

	"github.com/weir-limiter/weir"
)

// byLimit returns the tally by entity and limit alone.
func (y tally) byLimit() tally {
	out := tally{}
	for k, v := range y.hours(weir.Hourly) {
		out.add(tally{{entity: k.entity, limit: k.limit}: v})
	}
	return out
}

// TestUsageWithoutNames checks that usage whose resource or limit the server does not know is
// listed under a name with the hash, that the sums of an entity and limit stay the same, and that
// a query finds it by the name or by what stands for it.
func TestUsageWithoutNames(t *testing.T) {
	t.Parallel()
	u := newUsageScene(t, 1)
	u.play(500, false)
	got := u.read(weir.UsageQuery{}, "") // all resources, none of which the new server knows
	if diff := got.byLimit().differences(u.written.byLimit()); len(diff) > 0 {
		t.Errorf("%d differ: %q", len(diff), diff[:min(len(diff), 8)])
	}
	for k := range got {
		if !strings.HasPrefix(k.resource, "unknown-") {
			t.Errorf("%+v has a resource that the server cannot know", k)
		}
		again := u.read(weir.UsageQuery{}, k.resource)
		if len(again) == 0 || again[k] != got[k] {
			t.Errorf("%s by its name: got %v, want %v", k.resource, again[k], got[k])
		}
		break
	}
	d := u.d
	u.d = &weir.Definitions{} // the server does not know the limits either
	m := u.open(-1)
	for _, limit := range []string{"", "b"} {
		q := &weir.UsageQuery{Entity: "solo", Resource: "r", Limit: limit, Size: 1}
		page, err := m.Usage(t.Context(), q)
		if err != nil || len(page.Usage) != 1 {
			t.Fatalf("got %+v, %v", page, err)
		}
		r := &page.Usage[0]
		hour := r.Start.Unix() / 3600
		want := u.written[tallyKey{"solo", "r", "b", hour}][0]
		if r.Units[unknownName(nameHash("b"))] != want && r.Units["b"] != want {
			t.Errorf("got %+v, want %d units of b", r.Units, want)
		}
		if _, named := r.Units["b"]; named != (limit == "b") {
			t.Errorf("limit %q: got %v", limit, r.Units)
		}
	}
	u.d = d
}

// TestUsageOfSeenNames checks that a server knows the names that its callers used, and that a
// server whose definitions have a resource knows it.
func TestUsageOfSeenNames(t *testing.T) {
	t.Parallel()
	u := newUsageScene(t, 1)
	u.d.Resources = map[string][]weir.Limit{"declared": u.d.System}
	first := u.open(-1)
	for _, resource := range []string{"declared", "seen"} {
		r := unit("b", 3)
		r.Resource = resource
		if _, err := first.Reserve(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	if err := first.store.writeUsage(t.Context()); err != nil {
		t.Fatal(err)
	}
	seen := first.store.namespace.usageName(weir.Subject{Entity: "e", Resource: "seen"}, "")
	hidden := unknownName(seen.resource)
	for _, tc := range []struct {
		m    *tallied
		want string
	}{{first, "declared seen"}, {u.open(-1), "declared " + hidden}} {
		page, err := tc.m.Usage(t.Context(), &weir.UsageQuery{Entity: "e"})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for i := range page.Usage {
			got = append(got, page.Usage[i].Resource)
		}
		if strings.Join(got, " ") != tc.want {
			t.Errorf("got %q, want %q", got, tc.want)
		}
	}
}

// TestUsageOfAllEntities checks that a query without an entity is refused with the reason.
func TestUsageOfAllEntities(t *testing.T) {
	t.Parallel()
	u := newUsageScene(t, 1)
	_, err := u.open(-1).Usage(t.Context(), &weir.UsageQuery{Resource: "r"})
	if !errors.Is(err, weir.Unsupported) || !strings.Contains(err.Error(), "only hashes of names") {
		t.Errorf("got %v, want %v and the reason", err, weir.Unsupported)
	}
}

// TestUsageBounds checks that the same hours are read by a query for each hour, in the order of
// writing, and without bounds, also if they were written late.
func TestUsageBounds(t *testing.T) {
	t.Parallel()
	u := newUsageScene(t, 1)
	m := u.open(-1)
	begin := u.now().Truncate(time.Hour)
	for hour := range int64(60) {
		u.take(m, "solo", hour+1)
		u.pass(time.Hour)
	}
	u.pass(300 * time.Hour)
	if err := m.store.writeUsage(t.Context()); err != nil {
		t.Fatal(err)
	}
	at := func(hour int64) time.Time { return begin.Add(time.Duration(hour) * time.Hour) }
	for _, tc := range []struct{ from, to int64 }{
		{0, 24}, {10, 11}, {10, 34}, {10, 35}, {0, 60}, {59, 60}, {60, 70}, {50, 900},
	} {
		q := weir.UsageQuery{From: at(tc.from), To: at(tc.to)}
		var got, want int64
		for k, v := range u.read(q, "r") {
			if k.limit == "b" {
				got += v[0]
			}
		}
		for hour := tc.from; hour < min(tc.to, 60); hour++ {
			want += hour + 1
		}
		if got != want {
			t.Errorf("hours %d to %d: got %d units, want %d", tc.from, tc.to, got, want)
		}
	}
}

// TestUsageOverdrawn checks that a shadow limit that a reservation or an adjust leaves in debt is
// counted each time, and other limits are not.
func TestUsageOverdrawn(t *testing.T) {
	t.Parallel()
	u := newUsageScene(t, 1)
	m := u.open(-1)
	lease, err := m.Reserve(t.Context(), &weir.Request{
		Entity: "solo", Resource: "r", Costs: weir.Costs{"b": 1, "x": 8}, // x has 10
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []int64{10, 12, 14} {
		if _, err := lease.Adjust(t.Context(), weir.Costs{"x": x, "b": 3000}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := m.Reserve(t.Context(), &weir.Request{
		Entity: "solo", Resource: "r", Costs: weir.Costs{"x": 1},
	}); err != nil {
		t.Fatal(err)
	}
	if err := m.store.writeUsage(t.Context()); err != nil {
		t.Fatal(err)
	}
	page, err := m.Usage(t.Context(), &weir.UsageQuery{Entity: "solo"})
	if err != nil || len(page.Usage) != 1 {
		t.Fatalf("got %+v, %v", page, err)
	}
	if r := &page.Usage[0]; r.Overdrawn["x"] != 3 || len(r.Overdrawn) != 1 || r.Units["x"] != 15 {
		t.Errorf("got %+v, want 15 units of x, overdrawn three times", r)
	}
}

// TestUsageGaps checks for which times usage may be missing: the last minute of all servers, that
// of killed ones, and the time before the namespace had records.
func TestUsageGaps(t *testing.T) {
	t.Parallel()
	u := newUsageScene(t, 1)
	began := u.now()
	n := newNamespace("default")
	if _, err := u.ledger.CreateAccounts(t.Context(), []tb.Account{ // by an earlier release of weir
		{ID: n.vault, Ledger: n.ledger, Code: codeVault},
		{ID: n.register, Ledger: n.ledger, Code: codeRegister},
	}); err != nil {
		t.Fatal(err)
	}
	only, err := OpenLedger(t.Context(), &usageNet{Ledger: u.ledger}, &Options{
		Poll: -1, Now: u.now, ReadOnly: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	if gaps, err := only.UsageGaps(t.Context(), u.now(), nil); err != nil || len(gaps) != 3 ||
		!strings.Contains(gaps[0].Reason+gaps[1].Reason, "no server of this namespace records usage") {
		t.Errorf("without records: got %+v, %v", gaps, err)
	}
	u.pass(24 * time.Hour)
	since := u.now()
	m := u.open(0)
	u.pass(24 * time.Hour)
	u.take(m, "solo", 1)
	u.pass(10 * time.Second)
	page, err := m.Usage(t.Context(), &weir.UsageQuery{Entity: "solo"})
	if err != nil || len(page.Gaps) != 3 {
		t.Fatalf("got %+v, %v", page, err)
	}
	now := u.now()
	for i, want := range []struct {
		from, to time.Time
		reason   string
	}{
		{time.Time{}, since, "recorded usage yet"},
		{time.Time{}, now, "killed"},
		{now.Add(-time.Minute), now, "may not be written yet"},
	} {
		g := page.Gaps[i]
		if !g.From.Equal(want.from) || g.To.Sub(want.to).Abs() > time.Second ||
			!strings.Contains(g.Reason, want.reason) {
			t.Errorf("gap %d: got %+v, want %+v", i, g, want)
		}
	}
	page, err = m.Usage(t.Context(), &weir.UsageQuery{
		Entity: "solo", From: began, To: since.Add(time.Hour),
	})
	if err != nil || len(page.Gaps) != 2 {
		t.Errorf("before the last minute: got %+v, %v, want two gaps", page.Gaps, err)
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
}

// TestUsageOfUncountedUnits checks that units that a shadow limit cannot count are not in usage:
// those of a reservation, and those of an adjust.
func TestUsageOfUncountedUnits(t *testing.T) {
	t.Parallel()
	u := newUsageScene(t, 1)
	m := u.open(-1)
	const most = math.MaxInt64 / 1000
	use := func(units int64) *weir.Lease {
		t.Helper()
		lease, err := m.Reserve(t.Context(), &weir.Request{
			Entity: "solo", Resource: "r", Costs: weir.Costs{"x": units},
		})
		if err != nil {
			t.Fatal(err)
		}
		return lease
	}
	use(most - 5)
	uncounted, small := use(most-5), use(1)
	if _, err := small.Adjust(t.Context(), weir.Costs{"x": most}); err != nil {
		t.Fatal(err)
	}
	for _, l := range []*weir.Lease{uncounted, small} {
		if _, err := l.Cancel(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.store.writeUsage(t.Context()); err != nil {
		t.Fatal(err)
	}
	page, err := m.Usage(t.Context(), &weir.UsageQuery{Entity: "solo", Limit: "x"})
	if err != nil || len(page.Usage) != 1 || page.Usage[0].Units["x"] != most-5 {
		t.Errorf("got %+v, %v, want %d units of x", page, err, int64(most-5))
	}
}

// earlierRelease writes the fingerprint of the request in the place of the entity's hash, as
// releases without usage did.
type earlierRelease struct{ *usageNet }

func (e earlierRelease) CreateTransfers(
	ctx context.Context, all []tb.Transfer,
) ([]tb.CreateTransferResult, error) {
	all = slices.Clone(all)
	var fingerprint uint64
	for i := range all {
		switch t := &all[i]; t.Code {
		case codeLease:
			fingerprint = t.UserData64
		case codeCheck, codeTake:
			if t.Flags&(flagPost|flagVoid) == 0 {
				t.UserData64 = fingerprint
			}
		}
	}
	return e.usageNet.CreateTransfers(ctx, all)
}

// TestUsageOfEarlierReleases checks that a lease that an earlier release reserved is settled on a
// server that does not know its names, and that its usage is then counted for no entity.
func TestUsageOfEarlierReleases(t *testing.T) {
	t.Parallel()
	u := newUsageScene(t, 1)
	cluster := u.ledger
	u.ledger = earlierRelease{&usageNet{Ledger: cluster}}
	lease, err := u.open(-1).Reserve(t.Context(), unit("b", 10))
	if err != nil {
		t.Fatal(err)
	}
	u.ledger = cluster
	m := u.open(-1)
	if _, err := m.Complete(t.Context(), lease.ID, []weir.Costs{{"b": 4}}); err != nil {
		t.Fatal(err)
	}
	if err := m.Close(); err != nil || m.net.records.Load() != 0 {
		t.Errorf("%d records, %v", m.net.records.Load(), err)
	}
	statuses, err := u.open(-1).Status(t.Context(), "e", "r")
	if err != nil || statuses[0].Available != 2000-4 {
		t.Errorf("got %+v, %v, want 4 units of b in use", statuses, err)
	}
}
