package dynamodb

import (
	"testing"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/tables"
	"github.com/weir-limiter/weir/internal/schema"
	"github.com/weir-limiter/weir/namespace"
)

// erase deletes items without conditions.
func erase(t *testing.T, c *tables.Table, keys ...schema.Key) {
	t.Helper()
	if err := c.BatchDelete(t.Context(), keys); err != nil {
		t.Fatal(err)
	}
}

// restore writes both registry items of a namespace as the Python library recovers it, without
// checking for a purge.
func restore(t *testing.T, c *tables.Table, n *namespace.Namespace, back bool) {
	t.Helper()
	item := &schema.Namespace{
		ID: n.ID, Name: n.Name, Status: schema.StatusActive, CreatedAt: n.CreatedAt,
	}
	putItem(t, c.Client, item.Item())
	if back {
		item.Reverse = true
		putItem(t, c.Client, item.Item())
	}
}

// wantOrphans checks the namespaces without a name, written as "ID name status".
func wantOrphans(t *testing.T, table *Table, want ...string) {
	t.Helper()
	all, err := table.OrphanNamespaces(t.Context())
	if err != nil || len(all) != len(want) {
		t.Errorf("orphans: got %+v, %v; want %q", all, err, want)
		return
	}
	for i, n := range all {
		if got := n.ID + " " + n.Name + " " + n.Status; got != want[i] {
			t.Errorf("orphans: got %q, want %q", got, want[i])
		}
	}
}

// TestNamespaceWithoutReverseItem deletes the item that leads from the ID to the name. A namespace
// that a name leads to is still not purged, and its deletion creates the item again.
func TestNamespaceWithoutReverseItem(t *testing.T) {
	t.Parallel()
	table := madeTable(t)
	ctx := t.Context()
	c := connected(t, table)
	n := register(t, table, "prod")
	fill(t, c, n.ID, 3)
	items := under(t, c, n.ID)
	erase(t, c, schema.NamespaceIDKey(n.ID))

	deleted, err := table.PurgeNamespace(ctx, n.ID, true, nil)
	wantError(t, err, weir.Conflict, "namespace_id", "run weir namespace delete prod")
	if left := under(t, c, n.ID); deleted != 0 || left != items {
		t.Errorf("the purge deleted %d items and left %d of %d", deleted, left, items)
	}
	gone, err := table.DeleteNamespace(ctx, "prod")
	if err != nil {
		t.Fatal(err)
	}
	if all, err := table.OrphanNamespaces(ctx); err != nil || len(all) != 1 || all[0] != *gone {
		t.Errorf("orphans: got %+v, %v; want %+v", all, err, gone)
	}
	if back, err := table.RecoverNamespace(ctx, n.ID); err != nil || *back != *n {
		t.Errorf("recover: got %+v, %v; want %+v", back, err, n)
	}
	checkAlike(t, c, "prod", "default")
	if _, err := table.DeleteNamespace(ctx, "prod"); err != nil {
		t.Fatal(err)
	}
	if deleted, err := table.PurgeNamespace(ctx, n.ID, false, nil); err != nil || deleted != int64(items) {
		t.Errorf("purge: got %d, %v; want %d", deleted, err, items)
	}
	wantOrphans(t, table)
}

// TestNamespaceRecoveredDuringPurge checks that a purge removes a registration only if its status
// is still purging.
func TestNamespaceRecoveredDuringPurge(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		meanwhile func(*testing.T, *tables.Table, *namespace.Namespace)
		refused   bool
		orphan    string // its status afterwards
	}{
		"nothing": {meanwhile: func(*testing.T, *tables.Table, *namespace.Namespace) {}},
		"recovered": {meanwhile: func(t *testing.T, c *tables.Table, n *namespace.Namespace) {
			restore(t, c, n, true)
		}, refused: true},
		"half recovered": {meanwhile: func(t *testing.T, c *tables.Table, n *namespace.Namespace) {
			restore(t, c, n, false)
		}, refused: true, orphan: "purging"},
		"recovered and deleted": {meanwhile: func(t *testing.T, c *tables.Table, n *namespace.Namespace) {
			restore(t, c, n, true)
			if _, err := c.DeleteNamespace(t.Context(), n.Name); err != nil {
				t.Error(err)
			}
		}, refused: true, orphan: "deleted"},
		"purged": {meanwhile: func(t *testing.T, c *tables.Table, n *namespace.Namespace) {
			erase(t, c, schema.NamespaceIDKey(n.ID))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			table := madeTable(t)
			c := connected(t, table)
			n := register(t, table, "prod")
			fill(t, c, n.ID, 3)
			if _, err := table.DeleteNamespace(t.Context(), "prod"); err != nil {
				t.Fatal(err)
			}
			asked := false
			_, err := table.PurgeNamespace(t.Context(), n.ID, false, func(int64) {
				if !asked {
					tc.meanwhile(t, c, n)
				}
				asked = true
			})
			if !tc.refused {
				if err != nil {
					t.Error(err)
				}
				wantOrphans(t, table)
				return
			}
			wantError(t, err, weir.Conflict, "namespace_id", "was recovered by another program")
			if tc.orphan != "" {
				wantOrphans(t, table, n.ID+" prod "+tc.orphan)
			}
			if tc.orphan != "deleted" {
				found, err := table.Namespace(t.Context(), "prod")
				if err != nil || *found != *n {
					t.Errorf("got %+v, %v; want %+v", found, err, n)
				}
				finishPurge(t, table, n)
			}
		})
	}
}

// finishPurge deletes a namespace that was recovered during a purge, and purges it.
func finishPurge(t *testing.T, table *Table, n *namespace.Namespace) {
	t.Helper()
	_, err := table.PurgeNamespace(t.Context(), n.ID, false, nil)
	wantError(t, err, weir.Conflict, "namespace_id", "run weir namespace delete "+n.Name)
	if _, err := table.DeleteNamespace(t.Context(), n.Name); err != nil {
		t.Error(err)
	}
	if _, err := table.PurgeNamespace(t.Context(), n.ID, false, nil); err != nil {
		t.Error(err)
	}
	wantOrphans(t, table)
}

// TestNamespaceWithoutName checks a registry item without a name, as the Python library may leave
// it. The namespace is listed and can be purged. It can be recovered only if a name leads to it.
func TestNamespaceWithoutName(t *testing.T) {
	t.Parallel()
	table := madeTable(t)
	ctx := t.Context()
	c := connected(t, table)
	n := register(t, table, "prod")
	fill(t, c, n.ID, 3)
	stub := func(status string) {
		item := schema.NamespaceIDKey(n.ID).Item()
		item[schema.AttrStatus] = schema.String(status)
		putItem(t, c.Client, item)
	}
	stub(schema.StatusActive)
	wantOrphans(t, table)
	_, err := table.RecoverNamespace(ctx, n.ID)
	wantError(t, err, weir.Conflict, "namespace_id", "is active")
	stub(schema.StatusDeleted)
	if back, err := table.RecoverNamespace(ctx, n.ID); err != nil || back.Name != "prod" {
		t.Errorf("recover: got %+v, %v", back, err)
	}

	for _, status := range []string{schema.StatusDeleted, schema.StatusActive} {
		fill(t, c, n.ID, 3)
		erase(t, c, schema.NamespaceKey("prod"))
		stub(status)
		if all, err := table.Namespaces(ctx); err != nil || len(all) != 1 {
			t.Errorf("list: got %+v, %v", all, err)
		}
		listed := map[string]string{schema.StatusActive: "lost"}[status]
		if listed == "" {
			listed = status
		}
		wantOrphans(t, table, n.ID+"  "+listed)
		_, err = table.RecoverNamespace(ctx, n.ID)
		wantError(t, err, weir.Conflict, "namespace_id", "run weir namespace purge "+n.ID)
		if deleted, err := table.PurgeNamespace(ctx, n.ID, false, nil); err != nil || deleted != 7 {
			t.Errorf("purge: got %d, %v; want 7", deleted, err)
		}
		wantOrphans(t, table)
	}
}

// TestLostNamespaceIsNotPurged checks that a lost namespace is not purged by its ID, and that the
// error says what to do.
func TestLostNamespaceIsNotPurged(t *testing.T) {
	t.Parallel()
	table := madeTable(t)
	c := connected(t, table)
	n := register(t, table, "prod")
	erase(t, c, schema.NamespaceKey("prod"))
	_, err := table.PurgeNamespace(t.Context(), n.ID, false, nil)
	wantError(t, err, weir.Conflict, "namespace_id", "run weir namespace recover "+n.ID+
		", and then weir namespace delete prod")
	if _, err := table.RecoverNamespace(t.Context(), n.ID); err != nil {
		t.Error(err)
	}
	finishPurge(t, table, n)
}

// TestNamespaceNameIsFreeAfterDeletion checks that a name is free if its item says that it is
// deleted. The error of opening it says to register it, which works; the old data stays under its
// ID.
func TestNamespaceNameIsFreeAfterDeletion(t *testing.T) {
	t.Parallel()
	for _, status := range []string{schema.StatusDeleted, schema.StatusPurging} {
		t.Run(status, func(t *testing.T) {
			t.Parallel()
			table := madeTable(t)
			c := connected(t, table)
			old := &schema.Namespace{
				ID: "AAAAAAAAAAA", Name: "prod", Status: status, CreatedAt: "2026-01-01T00:00:00Z",
			}
			putItem(t, c.Client, old.Item())
			o := *table.Options
			o.Namespace = "prod"
			_, err := Open(t.Context(), table.Name, &o)
			wantError(t, err, weir.NotFound, "store.namespace", "run weir namespace register prod")
			n := register(t, table, "prod")
			if n.ID == old.ID || n.Status != "active" {
				t.Errorf("got %+v", n)
			}
			s, err := Open(t.Context(), table.Name, &o)
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil || s.config.Namespace != n.ID {
				t.Errorf("got namespace %s, %v; want %s", s.config.Namespace, err, n.ID)
			}
			wantOrphans(t, table, "AAAAAAAAAAA prod deleted")
		})
	}
}
