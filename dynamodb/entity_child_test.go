package dynamodb

import (
	"errors"
	"sync"
	"testing"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/admin"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/internal/schema"
)

// atTransaction calls do just before the first transaction of a process is sent, to act as another
// process.
func (p *costProcess) atTransaction(do func()) {
	first := sync.OnceFunc(do)
	p.wire.hold(func(r sentRequest) {
		if r.operation == "TransactWriteItems" {
			first()
		}
	})
}

// TestParentDeletedWhileChildIsDeclared checks that one of two callers fails if one declares a
// child while the other deletes the parent.
func TestParentDeletedWhileChildIsDeclared(t *testing.T) {
	t.Parallel()
	table := madeTable(t)
	limits := []weir.Limit{perMinute("rpm", 10)}
	for _, tt := range []struct {
		name string
		meta bool // otherwise the parent has only limits, as the Python library leaves it
	}{{"with a META", true}, {"by its limits", false}} {
		parent := func(s *costWorld) {
			if tt.meta {
				s.first.declare("top", "")
				return
			}
			c := schema.Config{Namespace: s.first.store.config.Namespace, Entity: "top", Resource: costResource}
			c.SetLimits([]schema.Limit{{Name: "rpm", Capacity: 10, Refill: 10, Seconds: 60}})
			s.first.store.put(t, c.Item())
		}
		t.Run("the child is first, "+tt.name, func(t *testing.T) {
			t.Parallel()
			s := newCostWorld(t, table)
			s.first.set("", costResource, limits...)
			parent(s)
			deleter := s.join()
			deleter.atTransaction(func() { s.first.declare("acme", "top") })
			err := deleter.DeleteEntity(t.Context(), "top")
			wantError(t, err, weir.Conflict, "entity", "is the parent of acme")
			s.first.take("acme", weir.Costs{"rpm": 1})
		})
		t.Run("the deletion is first, "+tt.name, func(t *testing.T) {
			t.Parallel()
			s := newCostWorld(t, table)
			s.first.set("", costResource, limits...)
			parent(s)
			declarer := s.join()
			declarer.atTransaction(func() {
				if err := s.first.DeleteEntity(t.Context(), "top"); err != nil {
					t.Error(err)
				}
			})
			err := declarer.SetEntity(t.Context(), "acme", "top", true)
			if tt.meta {
				wantError(t, err, weir.Invalid, "parent", "not declared")
			} else if err != nil { // the child's declaration declared it again, without limits
				t.Error(err)
			}
			s.first.take("acme", weir.Costs{"rpm": 1})
		})
	}
}

// TestDeleteSeesChildMissingFromIndex checks that a deletion sees the child that was declared last,
// and no entity that is no longer a child, even if the index is behind.
func TestDeleteSeesChildMissingFromIndex(t *testing.T) {
	t.Parallel()
	s := configured(t)
	s.mustEntity(t, "top", "", false)
	s.mustEntity(t, "acme", "top", true)
	item := s.item(t, schema.MetaKey(s.config.Namespace, "acme"))
	delete(item, schema.AttrGSI1PK)
	delete(item, schema.AttrGSI1SK)
	s.put(t, item)
	err := s.admin.DeleteEntity(t.Context(), configNow, "top")
	wantError(t, err, weir.Conflict, "entity", "is the parent of acme")
	s.mustEntity(t, "acme", "", false)
	if err := s.admin.DeleteEntity(t.Context(), configNow, "top"); err != nil {
		t.Errorf("without children: %v", err)
	}
}

// TestChildrenDoNotConflict checks that many children that write to one parent do not
// conflict.
func TestChildrenDoNotConflict(t *testing.T) {
	t.Parallel()
	s := configured(t)
	s.mustEntity(t, "top", "", false)
	const children = 5
	var all sync.WaitGroup
	for i := range children {
		all.Go(func() {
			name := string(rune('a' + i))
			if err := s.admin.WriteEntity(t.Context(), configNow, name, "top", true); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if e := s.meta(t, "top"); e.Version != children {
		t.Errorf("got version %d, want %d", e.Version, children)
	}
	if err := s.admin.DeleteEntity(t.Context(), configNow, "top"); !errors.Is(err, weir.Conflict) {
		t.Errorf("got %v, want %q", err, weir.Conflict)
	}
}

// TestPythonKeepsParents checks that the Python library can read, move and delete a parent on which
// weir has written a version and the newest child.
func TestPythonKeepsParents(t *testing.T) {
	t.Parallel()
	s := withPython(t)
	s.mustEntity(t, "top", "", false)
	s.mustEntity(t, "mid", "", false)
	s.mustEntity(t, "acme", "mid", true)
	functions := schema.Item{schema.AttrLambdaVersion: schema.String(admin.MovesSince)}
	s.also(t, schema.VersionKey(), functions) // otherwise the library refuses to change a parent
	entity := func(name string) map[string]any { return map[string]any{"entity_id": name} }
	s.judgePython(t,
		pythonStep{pyStep{"get_entity", entity("mid")}, `{"id": "mid", "parent_id": null}`},
		pythonStep{pyStep{"get_children", map[string]any{"parent_id": "mid"}}, `[{"id": "acme"}]`},
		pythonStep{pyStep{"set_parent", map[string]any{"entity_id": "acme", "parent_id": nil}}, ""},
		pythonStep{pyStep{"set_parent", map[string]any{"entity_id": "acme", "parent_id": "mid"}}, ""},
		pythonStep{pyStep{"set_parent", map[string]any{"entity_id": "mid", "parent_id": "top"}}, ""},
		pythonStep{pyStep{"create_entity", map[string]any{"entity_id": "bot", "parent_id": "mid"}}, ""},
	)
	e := s.meta(t, "mid")
	if e.Parent != "top" || e.Version != 1 || client.TextOf(e.Extra, admin.AttrNewestChild) != "acme" {
		t.Errorf("after Python's move: got %+v", e)
	}
	err := s.admin.DeleteEntity(t.Context(), configNow, "mid")
	wantError(t, err, weir.Conflict, "entity", "is the parent of acme")
	s.judgePython(t,
		pythonStep{pyStep{"delete_entity", entity("acme")}, ""},
		pythonStep{pyStep{"delete_entity", entity("bot")}, ""},
	)
	if err := s.admin.DeleteEntity(t.Context(), configNow, "mid"); err != nil {
		t.Errorf("without children: %v", err)
	}
	s.judgePython(t, pythonStep{pyStep{"get_entity", entity("mid")}, `null`})
}
