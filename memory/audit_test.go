package memory_test

import (
	"context"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/memory"
)

// audited returns the events at a place, newest first.
func audited(t *testing.T, store driver.Store, q *weir.AuditQuery) []weir.AuditEvent {
	t.Helper()
	var events []weir.AuditEvent
	for e, err := range store.(driver.AuditReader).ReadAudit(context.Background(), q) {
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
	return events
}

// actions returns the actions of events, the oldest first, with who made them.
func actions(events []weir.AuditEvent) []string {
	var out []string
	for _, e := range slices.Backward(events) {
		out = append(out, fmt.Sprintf("%s %s %s", e.Principal, e.Action, e.Resource))
	}
	return out
}

// must fails the test if one of several calls failed.
func must(t *testing.T, errs ...error) {
	t.Helper()
	for i, err := range errs {
		if err != nil {
			t.Fatalf("call %d: %v", i, err)
		}
	}
}

// administer makes changes of every sort, and each of them a second time, which changes nothing.
func administer(t *testing.T, s driver.Store, now time.Time) {
	t.Helper()
	ann, bob := weir.WithPrincipal(t.Context(), "ann"), weir.WithPrincipal(t.Context(), "bob")
	e := s.(driver.ConfigEditor)
	own := weir.Subject{Entity: "team", Resource: "gpt"}
	rpm := []weir.Limit{named("rpm", bucket(10, 10, time.Minute))}
	for range 2 {
		must(t, e.WriteEntity(ann, now, "org", "", false), e.WriteEntity(ann, now, "bot", "", false))
	}
	for range 2 {
		must(t, e.WriteLimits(bob, now, own, rpm)) // declares the entity
	}
	for range 2 {
		must(t, e.WriteEntity(ann, now, "team", "org", true))
	}
	for range 2 {
		must(t, e.WriteLimits(bob, now, own, nil))
	}
	must(t, e.DeleteEntity(bob, now, "bot"))
	if err := e.DeleteEntity(bob, now, "bot"); err == nil {
		t.Fatal("deleted twice: got no error")
	}
	for range 2 {
		must(t, e.WriteLimits(ann, now, weir.Subject{Resource: "gpt"}, rpm))
	}
	for range 2 {
		must(t, e.WriteLimits(t.Context(), now, weir.Subject{}, rpm), e.WritePolicy(t.Context(), now, weir.Allow))
	}
	must(t, e.WriteLimits(ann, now, weir.Subject{}, nil))
}

// TestAudit checks the events of every sort of change, in the process and after a restart.
func TestAudit(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "state")
	w := snapshotWorld(t, file)
	w.at(1234)
	administer(t, w.store, w.now)
	at := start.Add(time.Second)
	for range 2 {
		for _, tc := range []struct {
			at   weir.Subject
			want []string
		}{
			{weir.Subject{}, []string{
				" limits_set ", " limits_set ", "ann limits_deleted ",
			}},
			{weir.Subject{Resource: "gpt"}, []string{"ann limits_set gpt"}},
			{weir.Subject{Resource: "other"}, nil},
			{weir.Subject{Entity: "org"}, []string{"ann entity_created "}},
			{weir.Subject{Entity: "bot"}, []string{"ann entity_created ", "bob entity_deleted "}},
			{weir.Subject{Entity: "team"}, []string{
				"bob entity_created ", "bob limits_set gpt", "ann entity_parent_changed ", "bob limits_deleted gpt",
			}},
			{weir.Subject{Entity: "team", Resource: "gpt"}, []string{"bob limits_set gpt", "bob limits_deleted gpt"}},
		} {
			events := audited(t, w.store, &weir.AuditQuery{At: tc.at})
			if got := actions(events); !slices.Equal(got, tc.want) {
				t.Errorf("%+v: got %q, want %q", tc.at, got, tc.want)
			}
			for i, e := range events {
				if i > 0 && e.ID >= events[i-1].ID || !e.At.Equal(at) {
					t.Errorf("%+v: got %+v at %d", tc.at, e, i)
				}
			}
		}
		w.restart(t, file)
	}
	w.close()
}

func TestAuditDetails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	administer(t, w.store, w.now)
	must(t, w.store.(driver.ConfigEditor).WriteLimits(t.Context(), w.now, weir.Subject{Resource: "all"}, []weir.Limit{
		named("a", bucket(5, 1, 1500*time.Millisecond)), named("b", window(6, time.Minute)),
		named("c", shadow(concurrency(7, time.Hour))), named("d", budget(8, "month", "Europe/Berlin")),
	}))
	rpm := map[string]any{"name": "rpm", "capacity": int64(10), "refill_amount": int64(10),
		"refill_period_seconds": int64(60)}
	for _, tc := range []struct {
		at     weir.Subject
		action string
		want   map[string]any
	}{
		{weir.Subject{Entity: "bot"}, "entity_created",
			map[string]any{"name": "bot", "parent_id": nil, "cascade": false}},
		{weir.Subject{Entity: "bot"}, "entity_deleted", nil},
		{weir.Subject{Entity: "team"}, "entity_parent_changed",
			map[string]any{"old_parent_id": nil, "parent_id": "org", "cascade": true}},
		{weir.Subject{Entity: "team"}, "limits_set", map[string]any{"limits": []any{rpm}}},
		{weir.Subject{Entity: "team"}, "limits_deleted", nil},
		{weir.Subject{}, "limits_set", map[string]any{"limits": []any{rpm}, "on_unavailable": "allow"}},
		{weir.Subject{}, "limits_deleted", map[string]any{"limits": []any{"rpm"}, "on_unavailable": "allow"}},
	} {
		events := audited(t, w.store, &weir.AuditQuery{At: tc.at})
		i := slices.IndexFunc(events, func(e weir.AuditEvent) bool { return e.Action == tc.action })
		if i < 0 || !reflect.DeepEqual(events[i].Details, tc.want) {
			t.Errorf("%+v, %s: got %+v, want details %v", tc.at, tc.action, events, tc.want)
		}
	}
	got := fmt.Sprint(audited(t, w.store, &weir.AuditQuery{At: weir.Subject{Resource: "all"}})[0].Details)
	want := "map[limits:[" +
		"map[capacity:5 name:a refill_amount:1 refill_period_seconds:1.500] " +
		"map[capacity:6 kind:window name:b window_seconds:60] " +
		"map[capacity:7 enforce:false kind:concurrency name:c timeout_seconds:3600] " +
		"map[capacity:8 every:month kind:budget name:d zone:Europe/Berlin]]]"
	if got != want {
		t.Errorf("kinds: got %s, want %s", got, want)
	}
}

// TestAuditOfAWholeConfiguration checks that a reload is one event, with counts, and none if nothing
// has changed.
func TestAuditOfAWholeConfiguration(t *testing.T) {
	t.Parallel()
	w := newWorld(t, named("x", window(1, time.Minute)))
	rpm := []weir.Limit{named("rpm", bucket(10, 10, time.Minute))}
	old := &weir.Definitions{
		Resources: map[string][]weir.Limit{"gone": rpm, "kept": rpm},
		Entities: map[string]weir.EntityDefinition{
			"kept": {}, "gone": {}, "moved": {}, "changed": {Limits: map[string][]weir.Limit{"r": rpm}},
		},
	}
	changed := &weir.Definitions{
		Resources: map[string][]weir.Limit{"kept": rpm, "new": rpm},
		Entities: map[string]weir.EntityDefinition{
			"kept": {}, "new": {}, "new2": {}, "moved": {Parent: "kept"}, "changed": {},
		},
	}
	c := w.store.(driver.ConfigWriter)
	for _, d := range []*weir.Definitions{old, old, changed, changed} {
		must(t, c.WriteConfig(weir.WithPrincipal(t.Context(), "root"), w.now, d))
	}
	events := audited(t, w.store, &weir.AuditQuery{})
	if got := actions(events); !slices.Equal(got, []string{"root configuration_loaded ", "root configuration_loaded "}) {
		t.Fatalf("got %q, want two events", got)
	}
	counts := func(added, changed, removed int64) map[string]any {
		return map[string]any{"added": added, "changed": changed, "removed": removed}
	}
	for i, want := range []map[string]any{
		{"system_changed": false, "resources": counts(1, 0, 1), "entities": counts(2, 2, 1)},
		{"system_changed": true, "resources": counts(2, 0, 0), "entities": counts(4, 0, 0)},
	} {
		if !reflect.DeepEqual(events[i].Details, want) {
			t.Errorf("event %d: got %v, want %v", i, events[i].Details, want)
		}
	}
}

// TestAuditPages checks the bounds of a query, the bound of the audit, and IDs of events within one
// millisecond and after a clock that stepped back.
func TestAuditPages(t *testing.T) {
	t.Parallel()
	s, err := memory.Open(&memory.Options{AuditEvents: 8})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 12 {
		at := start.Add(time.Duration(i/4) * time.Second)
		if i == 11 {
			at = start
		}
		policy := []weir.Policy{weir.Allow, weir.Block}[i%2]
		must(t, s.WritePolicy(t.Context(), at, policy))
	}
	all := audited(t, s, &weir.AuditQuery{})
	if len(all) != 8 {
		t.Fatalf("got %d events, want the last 8", len(all))
	}
	for i := range all[1:] {
		if all[i+1].ID >= all[i].ID {
			t.Errorf("got ID %s before %s", all[i].ID, all[i+1].ID)
		}
	}
	second := start.Add(time.Second)
	for _, tc := range []struct {
		name string
		q    weir.AuditQuery
		want []weir.AuditEvent
	}{
		{"after the third", weir.AuditQuery{After: all[2].ID}, all[3:]},
		{"after the last", weir.AuditQuery{After: all[7].ID}, nil},
		{"from", weir.AuditQuery{From: second.Add(time.Millisecond)}, all[1:4]},
		{"to", weir.AuditQuery{To: second}, all[:1]},
		{"between", weir.AuditQuery{From: second, To: second.Add(time.Second)}, all[4:]},
	} {
		if got := audited(t, s, &tc.q); !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s: got %v, want %v", tc.name, actions(got), actions(tc.want))
		}
	}
	for _, err := range s.ReadAudit(t.Context(), &weir.AuditQuery{After: "x"}) {
		(&world{t: t}).isError(err, weir.Invalid, "after")
	}
	all[0].Details["on_unavailable"] = "changed by a caller"
	if got := audited(t, s, &weir.AuditQuery{})[0].Details["on_unavailable"]; got != "block" {
		t.Errorf("after a caller changed the details: got %v, want block", got)
	}
}
