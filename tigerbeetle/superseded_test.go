//go:build cgo

package tigerbeetle

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
)

// outdated returns two servers of one cluster with the policy allow. The limits of the first are no
// longer in force: those of the second are, with another capacity.
func outdated(t *testing.T, c *cluster, capacity int64) (old, latest *member) {
	t.Helper()
	d := func(capacity int64) *weir.Definitions {
		d := fourLimits(capacity)
		d.OnUnavailable = weir.Allow
		return d
	}
	old = c.open(d(capacity), 0)
	if _, err := old.Reserve(t.Context(), unit("m", capacity)); err != nil {
		t.Fatal(err)
	}
	latest = c.open(d(capacity+1), 0)
	err := old.store.Ready(t.Context())
	e, ok := errors.AsType[*weir.Error](err)
	if !ok || e.Code != weir.Superseded {
		t.Errorf("the older file: ready: got %v, want %v", err, weir.Superseded)
		return old, latest
	}
	// The error names both ways out, because the file in force need not be the newer one.
	for _, part := range []string{
		"version 2, put there at ", "give it the limits file in force", "put its own in force", "SIGHUP", "--put-in-force",
	} {
		if !strings.Contains(e.Reason, part) {
			t.Errorf("the older file: got %q, want it to say %q", e.Reason, part)
		}
	}
	return old, latest
}

// TestSupersededRefuses checks that superseded limits are not treated as an outage: the server
// refuses whatever the policy says, and marks each status.
func TestSupersededRefuses(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 0)
	old, latest := outdated(t, c, 10)
	admitted := 0
	for i := range 100 {
		r := unit("m", 1)
		if i%2 == 0 {
			r.LeaseID = weir.NewLeaseID(c.clock.now())
		}
		_, err := old.Reserve(t.Context(), r)
		if err == nil {
			admitted++
		} else if !errors.Is(err, weir.Superseded) || errors.Is(err, weir.Unavailable) || denied(err) {
			t.Errorf("got %v, want %v", err, weir.Superseded)
		}
	}
	if admitted != 0 {
		t.Errorf("%d of 100 admitted on a full limit", admitted)
	}
	for m, want := range map[*member]bool{old: true, latest: false} {
		statuses, err := m.Status(t.Context(), "e", "r")
		if err != nil || len(statuses) != 4 {
			t.Fatalf("status: %+v, %v", statuses, err)
		}
		for _, s := range statuses {
			if s.Superseded != want {
				t.Errorf("status of %s with capacity %d: superseded is %v", s.Limit, s.Capacity, s.Superseded)
			}
		}
	}
	if got := c.admits(latest, "m", 10); got != 1 {
		t.Errorf("the server whose limits are in force admitted %d, want 1", got)
	}
	// With its own definitions in force again, it admits.
	if err := old.store.WriteConfig(t.Context(), c.clock.now(), fourLimits(12)); err != nil {
		t.Fatal(err)
	}
	if got := c.admits(old, "m", 10); got != 1 {
		t.Errorf("with limits in force again: admitted %d, want 1", got)
	}
}

// TestRollout checks that a server whose limits were superseded admits again once it reads the file
// that is in force, and that reading its old file again supersedes the other server
// (docs/running.md).
func TestRollout(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 0)
	one, two := c.open(fourLimits(10), 0), c.open(fourLimits(10), 0)
	reads := func(m *member, capacity int64) {
		t.Helper()
		if err := m.store.WriteConfig(t.Context(), c.clock.now(), fourLimits(capacity)); err != nil {
			t.Fatal(err)
		}
	}
	admit := func(when string, want map[*member]bool) {
		t.Helper()
		for m, want := range want {
			if err := m.store.Ready(t.Context()); (err == nil) != want || err != nil && !errors.Is(err, weir.Superseded) {
				t.Errorf("%s: the first server is %v: ready: got %v, want ready %v", when, m == one, err, want)
			}
			if _, err := m.Reserve(t.Context(), unit("m", 1)); (err == nil) != want {
				t.Errorf("%s: the first server is %v: reserve: got %v, want admitted %v", when, m == one, err, want)
			}
		}
	}
	admit("the same file", map[*member]bool{one: true, two: true})
	reads(one, 20)
	admit("a new file on the first", map[*member]bool{one: true, two: false})
	reads(two, 20)
	admit("the new file on both", map[*member]bool{one: true, two: true})
	reads(two, 10) // as after a hangup signal before the new file is there
	admit("the old file read again on the second", map[*member]bool{one: false, two: true})
	reads(two, 20)
	admit("the new file on both again", map[*member]bool{one: true, two: true})
}

// TestSupersededSettles checks that leases are still settled on a superseded server, and that
// reservations that were carried out before, even by another server, are answered again.
func TestSupersededSettles(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 0)
	old, latest := outdated(t, c, 10)
	r := unit("w", 4)
	r.LeaseID = weir.NewLeaseID(c.clock.now())
	lease, err := latest.Reserve(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	again, err := old.Reserve(t.Context(), r)
	if err != nil || !again.Replay || again.ID != lease.ID {
		t.Fatalf("a lease that another server reserved: got %+v, %v; want the same", again, err)
	}
	other := unit("w", 5)
	other.LeaseID = lease.ID
	if _, err := old.Reserve(t.Context(), other); !errors.Is(err, weir.Conflict) {
		t.Errorf("with other costs: got %v, want %v", err, weir.Conflict)
	}
	if _, err := old.Adjust(t.Context(), lease.ID, 1, []weir.Costs{{"w": 6}}); err != nil {
		t.Errorf("adjust: %v", err)
	}
	if _, err := old.Extend(t.Context(), lease.ID); err != nil {
		t.Errorf("extend: %v", err)
	}
	if _, err := old.Complete(t.Context(), lease.ID, []weir.Costs{{"w": 2}}); err != nil {
		t.Errorf("complete: %v", err)
	}
	if _, err := old.Reserve(t.Context(), r); !errors.Is(err, weir.Ended) {
		t.Errorf("once it has ended: got %v, want %v", err, weir.Ended)
	}
	c.uses(latest, map[string]int64{"w": 2})
	c.pass(time.Second)
}
