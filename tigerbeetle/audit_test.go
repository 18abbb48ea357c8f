//go:build cgo

package tigerbeetle

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
)

// TestAudit checks that a server lists the definitions that it loaded and the versions that came
// in force, the newest first, by pages and with bounds, and that nothing else is in the audit.
func TestAudit(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 0)
	a := c.open(only("b", 10), 0)
	b := c.open(only("b", 10), 0)
	c.pass(time.Minute)
	reloaded := c.clock.now()
	ctx := weir.WithPrincipal(t.Context(), "ops")
	if err := a.store.WriteConfig(ctx, c.clock.now(), only("b", 20)); err != nil {
		t.Fatal(err)
	}
	c.pass(time.Minute)
	for range 3 { // the same version again is no event
		if err := b.store.pollOnce(t.Context(), false); err != nil {
			t.Fatal(err)
		}
	}
	list := func(m *member, q *weir.AuditQuery) (lines []string) {
		t.Helper()
		for after := ""; ; {
			q.After = after
			page, err := m.Audit(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			for i := range page.Events {
				e := &page.Events[i]
				if e.Entity != "$SYSTEM" || after != "" && e.ID >= after {
					t.Errorf("got %+v after %s", e, after)
				}
				after = e.ID
				lines = append(lines, fmt.Sprintf("%s %v %s%v%v", e.Action, e.Details["version"], e.Principal,
					e.Details["in_force"], e.Details["in_force_here"]))
			}
			if page.Next == "" {
				return lines
			}
			after = page.Next
		}
	}
	ofA := []string{
		"version_in_force 2 <nil>true", "configuration_loaded 2 opstrue<nil>",
		"version_in_force 1 <nil>true", "configuration_loaded 1 true<nil>",
	}
	ofB := append([]string{"version_in_force 2 <nil>false"}, ofA[2:]...)
	for _, tc := range []struct {
		name string
		m    *member
		q    weir.AuditQuery
		want []string
	}{
		{"the server that reloaded", a, weir.AuditQuery{}, ofA},
		{"by pages", a, weir.AuditQuery{Size: 1}, ofA},
		{"another server", b, weir.AuditQuery{}, ofB},
		{"a later one", c.open(only("b", 20), 0), weir.AuditQuery{}, []string{
			ofA[0], "configuration_loaded 2 true<nil>",
		}},
		{"from", a, weir.AuditQuery{From: reloaded}, ofA[:2]},
		{"to", a, weir.AuditQuery{To: reloaded}, ofA[2:]},
		{"an entity", a, weir.AuditQuery{At: weir.Subject{Entity: "e"}}, nil},
		{"a resource", a, weir.AuditQuery{At: weir.Subject{Resource: "r"}}, nil},
	} {
		if got := list(tc.m, &tc.q); !slices.Equal(got, tc.want) {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
		}
	}
}

// TestAuditIsBounded checks that only the newest events are kept, and that their IDs increase
// even if the clock stands or is set back.
func TestAuditIsBounded(t *testing.T) {
	t.Parallel()
	var a configAudit
	at := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	for i := range int64(2*maxAuditEvents + 7) {
		if i%100 == 0 {
			at = at.Add(-time.Second)
		}
		a.add(at, "configuration_loaded", "", map[string]any{"version": i})
	}
	if n := len(a.events); n > maxAuditEvents || n < maxAuditEvents*9/10 {
		t.Errorf("%d events are kept", n)
	}
	if got := a.events[len(a.events)-1].Details["version"]; got != int64(2*maxAuditEvents+6) {
		t.Errorf("the newest is %v", got)
	}
	if !slices.IsSortedFunc(a.events, func(a, b weir.AuditEvent) int {
		if a.ID < b.ID {
			return -1
		}
		return 1
	}) {
		t.Error("the IDs do not increase")
	}
}
