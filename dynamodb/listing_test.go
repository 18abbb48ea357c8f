package dynamodb

import (
	"slices"
	"testing"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/schema"
)

// lean makes the table lean.
func lean(t *Table) { t.Lean = true }

// listed returns all entities by reading page after page.
func (s *Store) listed(t *testing.T, q weir.EntityQuery) []string {
	t.Helper()
	var names []string
	for range 100 {
		page, err := s.admin.ListEntities(t.Context(), &q)
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Names) > q.Size {
			t.Errorf("a page of %d, at most %d were asked for", len(page.Names), q.Size)
		}
		names = append(names, page.Names...)
		if page.Next == "" {
			return names
		}
		q.After = page.Next
	}
	t.Fatal("the pages do not end")
	return nil
}

func TestLists(t *testing.T) {
	t.Parallel()
	for name, kind := range map[string]func(*Table){"full": func(*Table) {}, "lean": lean} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testLists(t, configured(t, kind))
		})
	}
}

func testLists(t *testing.T, s *Store) {
	t.Helper()
	for _, name := range []string{"a", "a-b", "a.b", "a1", "a_b", "z@z", "A", "9", "a:b"} {
		s.mustEntity(t, name, "", false)
	}
	s.mustEntity(t, "child-1", "a", true)
	s.mustEntity(t, "child-2", "a", false)
	s.mustEntity(t, "other", "a-b", false)
	s.mustSet(t, weir.Subject{Entity: "a", Resource: "gpt-4o"}, rate("rpm", 1))
	s.mustSet(t, weir.Subject{Entity: "child-2", Resource: "gpt-4o"}, rate("rpm", 1))
	s.mustSet(t, weir.Subject{Entity: "a", Resource: weir.DefaultResource}, rate("rpm", 1))
	// A configuration with only a flag has no limits.
	flag := &schema.Config{Namespace: s.config.Namespace, Entity: "other", Resource: "gpt-4o", Access: schema.AccessOn}
	s.put(t, flag.Item())
	id := s.bucket(t, "user", "gpt-4o", 0, 2)
	s.bucket(t, "user", "gpt-4o", 1, 2)
	s.bucket(t, "user", "o/1", 0, 1)
	full, err := schema.NewBucket(schema.BucketID{Namespace: s.config.Namespace, Entity: "idle", Resource: "gpt-4o"},
		configNow.UnixMilli(), []schema.Limit{{Name: "rpm", Capacity: 5, Refill: 5, Seconds: 60}})
	if err != nil {
		t.Fatal(err)
	}
	s.put(t, full.Item()) // nothing in use
	usage := schema.NewUsage(id, weir.Hourly, configNow)
	usage.Entity = "a1"
	s.put(t, usage.Item())

	all := []string{
		"9", "A", "a", "a-b", "a.b", "a1", "a:b", "a_b", "child-1", "child-2", "other", "z@z",
	}
	for _, c := range []struct {
		q    weir.EntityQuery
		want []string
	}{
		{weir.EntityQuery{}, all},
		{weir.EntityQuery{After: "a"}, all[3:]},
		{weir.EntityQuery{After: "a/"}, all[5:]},
		{weir.EntityQuery{Parent: "a"}, []string{"child-1", "child-2"}},
		{weir.EntityQuery{Parent: "a", After: "child-1"}, []string{"child-2"}},
		{weir.EntityQuery{Parent: "child-1"}, nil},
		{weir.EntityQuery{Resource: "gpt-4o"}, []string{"a", "child-2"}},
		{weir.EntityQuery{Resource: "gpt-4o", After: "a"}, []string{"child-2"}},
		{weir.EntityQuery{Resource: weir.DefaultResource}, []string{"a"}},
		{weir.EntityQuery{Parent: "a", Resource: "gpt-4o"}, []string{"child-2"}},
	} {
		for _, size := range []int{1, 2, 100} {
			c.q.Size = size
			if got := s.listed(t, c.q); !slices.Equal(got, c.want) {
				t.Errorf("%+v: got %v, want %v", c.q, got, c.want)
			}
		}
	}
	for entity, want := range map[string][]string{
		"a": {"gpt-4o"}, "user": {"gpt-4o", "o/1"}, "other": nil, "idle": nil, "nobody": nil,
	} {
		if got, err := s.admin.Resources(t.Context(), configNow, entity); err != nil || !slices.Equal(got, want) {
			t.Errorf("resources of %s: got %v, %v; want %v", entity, got, err, want)
		}
	}
	for resource, want := range map[string][]string{
		"gpt-4o": {"a", "child-2", "user"}, "o/1": {"user"}, "o": nil,
	} {
		if got, err := s.admin.Entities(t.Context(), configNow, resource); err != nil || !slices.Equal(got, want) {
			t.Errorf("entities on %s: got %v, %v; want %v", resource, got, err, want)
		}
	}
}
