//go:build cgo

package tigerbeetle

import (
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/tigerbeetle/emulator"
)

// inMinutes runs a test on a scene in a bubble, in which time passes by itself.
func inMinutes(t *testing.T, play func(t *testing.T, u *usageScene)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		u := newUsageScene(t, 1)
		u.ledger, u.now, u.pass = emulator.New(nil), time.Now, time.Sleep
		play(t, u)
	})
}

// take reserves units of b, m and w, and a slot, for an entity, and completes at once.
func (u *usageScene) take(m *tallied, entity string, units int64) {
	u.t.Helper()
	lease, err := m.Reserve(u.t.Context(), &weir.Request{
		Entity: entity, Resource: "r", Costs: weir.Costs{"b": units, "m": units, "w": units},
	})
	if err != nil {
		u.t.Fatal(err)
	}
	if _, err := lease.Complete(u.t.Context(), nil); err != nil {
		u.t.Fatal(err)
	}
}

// TestUsageEveryMinute counts the transfers of usage: one for each limit and hour that was used,
// in one call a minute, none while nothing is used, and the rest at Close.
func TestUsageEveryMinute(t *testing.T) {
	t.Parallel()
	inMinutes(t, func(t *testing.T, u *usageScene) {
		m := u.open(0)
		wrote := func(calls, records int64) {
			t.Helper()
			synctest.Wait()
			if c, r := m.net.calls.Swap(0), m.net.records.Swap(0); c != calls || r != records {
				t.Errorf("at %s: %d calls with %d transfers, want %d with %d",
					u.now().Format(time.TimeOnly), c, r, calls, records)
			}
		}
		u.pass(3 * time.Hour)
		wrote(0, 0)
		for range 500 {
			u.take(m, "solo", 1)
			u.pass(100 * time.Millisecond)
		}
		wrote(0, 0) // 50 seconds after the first call
		u.pass(11 * time.Second)
		wrote(1, 4) // four limits of one entity, however many calls
		u.pass(3 * time.Hour)
		wrote(0, 0)
		for range 10 {
			for _, entity := range []string{"child", "solo", "e1", "e2"} { // child has a parent
				u.take(m, entity, 1)
			}
			u.pass(time.Minute + time.Second)
			wrote(1, 5*4)
		}
		u.pass(u.now().Truncate(time.Hour).Add(time.Hour - time.Second).Sub(u.now()))
		u.take(m, "solo", 1)
		u.pass(2 * time.Second)
		u.take(m, "solo", 1)
		wrote(0, 0)
		if err := m.Close(); err != nil {
			t.Error(err)
		}
		wrote(1, 2*4) // two hours
		u.pass(time.Hour)
		wrote(0, 0)
	})
}

// TestUsageRetry checks that a write whose answer was lost is repeated a minute later and counts
// once, and that a store that gave the repeat new IDs would count twice.
func TestUsageRetry(t *testing.T) {
	t.Parallel()
	for _, newIDs := range []bool{false, true} {
		inMinutes(t, func(t *testing.T, u *usageScene) {
			u.newIDs = newIDs
			m := u.open(0)
			u.take(m, "solo", 7)
			m.net.losesUsage.Store(true)
			u.pass(90 * time.Second)
			u.take(m, "solo", 5)
			u.pass(90 * time.Second)
			got := u.read(weir.UsageQuery{}, "r")[tallyKey{"solo", "r", "b", u.now().Unix() / 3600}][0]
			if want := int64(12); !newIDs && got != want || newIDs && got != want+7 {
				t.Errorf("new IDs %t: got %d units, want 12, or 19 with new IDs", newIDs, got)
			}
			if err := m.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	// The comparison with the tally catches that store too.
	u := newUsageScene(t, 1)
	u.newIDs = true
	u.play(400, false)
	if diff := u.read(weir.UsageQuery{}, "r", "other").hours(weir.Hourly).
		differences(u.written.hours(weir.Hourly)); len(diff) == 0 {
		t.Error("new IDs for each try were not noticed")
	}
}

// TestUsageOfKilledServers checks that usage equals the tally less what servers that were killed
// had counted since their last writes.
func TestUsageOfKilledServers(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		u := newUsageScene(t, seed)
		u.play(1000, true)
		got := u.read(weir.UsageQuery{}, "r", "other").hours(weir.Hourly)
		if diff := got.differences(u.written.hours(weir.Hourly)); len(diff) > 0 {
			t.Errorf("seed %d: %d differ: %q", seed, len(diff), diff[:min(len(diff), 8)])
		}
		if len(u.lost) == 0 {
			t.Errorf("seed %d: nothing was lost", seed)
		}
	}
}

// TestUsageOfAKilledServerLosesAMinute checks that a server that is killed loses at most the last
// minute.
func TestUsageOfAKilledServerLosesAMinute(t *testing.T) {
	t.Parallel()
	inMinutes(t, func(t *testing.T, u *usageScene) {
		m := u.open(0)
		total := int64(0)
		for total < 600 { // ten minutes
			u.take(m, "solo", 1)
			total++
			u.pass(time.Second)
		}
		m.store.usage.end() // as a kill: nothing is written any more
		var got int64
		for k, v := range u.read(weir.UsageQuery{}, "r") {
			if k.limit == "b" {
				got += v[0]
			}
		}
		if got > total || got < total-61 {
			t.Errorf("got %d units of %d, want all but those of the last minute", got, total)
		}
		t.Logf("got %d units of %d", got, total)
	})
}

// TestUsageOfUnknownCalls checks that a call whose answer was lost, and that is not repeated,
// counts if the cluster carried it out: what a reservation took and its withdrawal gave back, and
// what a settlement left.
func TestUsageOfUnknownCalls(t *testing.T) {
	t.Parallel()
	inMinutes(t, func(t *testing.T, u *usageScene) {
		m := u.open(0)
		kept, err := m.Reserve(t.Context(), unit("b", 10))
		if err != nil {
			t.Fatal(err)
		}
		again := unit("b", 1)
		again.LeaseID = weir.NewLeaseID(u.now())
		for _, call := range []func() error{
			func() error { _, err := kept.Complete(t.Context(), weir.Costs{"b": 4}); return err },
			func() error { _, err := m.Reserve(t.Context(), unit("b", 100)); return err },
			func() error { _, err := m.Reserve(t.Context(), again); return err },
			func() error { _, err := m.Reserve(t.Context(), again); return err },
		} {
			m.net.loses.Store(true)
			if err := call(); !errors.Is(err, weir.Unavailable) {
				t.Fatalf("got %v, want %v", err, weir.Unavailable)
			}
			u.pass(time.Millisecond)
		}
		if _, err := m.Reserve(t.Context(), again); err != nil { // now the answer arrives
			t.Fatal(err)
		}
		u.pass(2 * time.Minute)
		want := map[string]int64{"b": 4 + 1, "m": 0, "s": 1 + 1, "w": 0}
		q := &weir.UsageQuery{Entity: "e", Resource: "r"}
		page, err := m.Usage(t.Context(), q)
		if err != nil || len(page.Usage) != 1 {
			t.Fatalf("got %+v, %v", page, err)
		}
		for limit, units := range want {
			if got := page.Usage[0].Units[limit]; got != units {
				t.Errorf("%s: got %d units, want %d", limit, got, units)
			}
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestUsageDropped checks that the sums that wait are bounded, that they are written early if
// there are many, and that a page says what was not counted.
func TestUsageDropped(t *testing.T) {
	t.Parallel()
	inMinutes(t, func(t *testing.T, u *usageScene) {
		m := u.open(0)
		log := &m.store.usage
		one := func(entity uint64) []usageChange {
			return []usageChange{{usageKey{usageName{entity: entity}, 1}, usageSum{units: 1, events: 1}}}
		}
		for i := range uint64(maxUsageSums / 2) {
			log.add(u.now(), one(i+1))
		}
		u.pass(time.Second)
		if n := m.net.records.Load(); n != 0 {
			t.Errorf("%d transfers before the minute ended", n)
		}
		log.add(u.now(), one(maxUsageSums))
		u.pass(time.Second)
		if n := m.net.records.Load(); n != maxUsageSums/2+1 {
			t.Errorf("%d transfers, want %d early", n, maxUsageSums/2+1)
		}
		log.writing.Lock() // as if the cluster did not answer
		for i := range uint64(maxUsageSums + 3) {
			log.add(u.now(), one(i+1))
		}
		log.add(u.now(), one(1)) // its sum is among those that wait
		log.writing.Unlock()
		u.pass(time.Second)
		gaps, err := m.store.UsageGaps(t.Context(), u.now(), &weir.UsageQuery{})
		const reason = "this server did not count 3 changes"
		found := false
		for _, g := range gaps {
			found = found || strings.HasPrefix(g.Reason, reason)
		}
		if err != nil || !found || m.store.Stats().UsageDropped != 3 {
			t.Errorf("got %+v, %v, and %d dropped; want 3", gaps, err, m.store.Stats().UsageDropped)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestUsageBeyond64Bits checks that a sum that does not fit 64 bits is written in parts, and that
// a query that would add them says so.
func TestUsageBeyond64Bits(t *testing.T) {
	t.Parallel()
	u := newUsageScene(t, 1)
	m := u.open(-1)
	name := m.store.namespace.usageName(weir.Subject{Entity: "solo", Resource: "r"}, "b")
	add := func(units int64) {
		m.store.usage.add(u.now(), []usageChange{
			{usageKey{name, hourOf(u.now())}, usageSum{units: units, events: 1}},
		})
	}
	add(math.MaxInt64)
	add(5)
	if err := m.store.writeUsage(t.Context()); err != nil || m.net.records.Load() != 2 {
		t.Fatalf("got %d records, %v", m.net.records.Load(), err)
	}
	q := &weir.UsageQuery{Entity: "solo", Resource: "r"}
	if page, err := m.Usage(t.Context(), q); !errors.Is(err, weir.Unsupported) {
		t.Errorf("got %+v, %v, want %v", page, err, weir.Unsupported)
	}
}

// TestUsageOutage checks that Close does not wait for a cluster that does not answer, and that
// usage that waited through an outage is in the hour of its calls.
func TestUsageOutage(t *testing.T) {
	t.Parallel()
	inMinutes(t, func(t *testing.T, u *usageScene) {
		m := u.open(0)
		u.take(m, "solo", 7)
		hour := u.now().Unix() / 3600
		m.net.stuck.Store(true)
		u.pass(2 * time.Hour)
		gaps, err := m.store.UsageGaps(t.Context(), u.now(), &weir.UsageQuery{})
		if err != nil || gaps[len(gaps)-1].From.Unix()/3600 != hour {
			t.Errorf("got gaps %+v, %v, want one from the call on", gaps, err)
		}
		m.net.stuck.Store(false)
		u.pass(2 * time.Minute)
		if got := u.read(weir.UsageQuery{}, "r")[tallyKey{"solo", "r", "b", hour}][0]; got != 7 {
			t.Errorf("got %d units after the outage, want 7", got)
		}
		u.take(m, "solo", 1)
		m.net.stuck.Store(true)
		began := u.now()
		if err := m.Close(); err != nil || u.now().Sub(began) > closeTimeout {
			t.Errorf("Close took %s: %v", u.now().Sub(began), err)
		}
	})
}

// BenchmarkUsageAdd measures what counting adds to a call on four limits, from many goroutines.
func BenchmarkUsageAdd(b *testing.B) {
	s := &Store{}
	s.startUsage(b.Context())
	defer s.usage.end()
	n := newNamespace("default")
	now := time.Now()
	var changes []usageChange
	for _, limit := range []string{"b", "m", "s", "w"} {
		changes = append(changes, usageChange{
			usageKey{n.usageName(weir.Subject{Entity: "e", Resource: "r"}, limit), hourOf(now)},
			usageSum{units: 1, events: 1},
		})
	}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			s.usage.add(now, changes)
		}
	})
}
