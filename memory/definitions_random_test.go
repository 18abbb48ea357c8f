package memory_test

import (
	"maps"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/change"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/manifest"
	"github.com/weir-limiter/weir/memory"
)

// definitionsOf reads the entities of a limiter, as an export does.
func definitionsOf(t *rapid.T, l *limiter.Limiter) *weir.Definitions {
	page, err := l.Entities(t.Context(), &weir.EntityQuery{Size: 1000})
	if err != nil {
		t.Fatal(err)
	}
	d := &weir.Definitions{Entities: map[string]weir.EntityDefinition{}}
	for _, name := range page.Names {
		e, err := l.Entity(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		d.Entities[name] = *e
	}
	return d
}

func openAdministered(t *rapid.T) *limiter.Limiter {
	store, err := memory.Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	l, err := limiter.New(store, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// valueOf generates values of metadata, of all types that the Python library may write.
func valueOf(depth int) *rapid.Generator[any] {
	plain := []*rapid.Generator[any]{
		rapid.String().AsAny(), rapid.Bool().AsAny(), rapid.Int64().AsAny(), rapid.Just[any](nil),
	}
	if depth > 0 {
		list := rapid.SliceOfN(valueOf(depth-1), 0, 3)
		plain = append(plain, rapid.Custom(func(t *rapid.T) any { return append([]any{}, list.Draw(t, "list")...) }),
			rapid.MapOfN(rapid.StringN(1, 5, -1), valueOf(depth-1), 0, 3).AsAny())
	}
	return rapid.OneOf(plain...)
}

// TestExportOfNames sets random names and metadata, writes them as a limits file, parses the
// file, and applies it to another store, by one write and by a change of each entity. Nothing is
// lost, and the versions are the same.
func TestExportOfNames(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		first := openAdministered(t)
		for _, name := range rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z][a-z0-9_.:/-]{0,8}`), 0, 4, rapid.ID).Draw(t, "names") {
			c := &change.Entity{
				Name:     new(rapid.StringN(0, 20, -1).Filter(isName).Draw(t, "name")),
				Metadata: rapid.MapOfN(rapid.StringN(1, 10, -1), valueOf(2), 0, 4).Draw(t, "metadata"),
			}
			if _, err := first.ChangeEntity(t.Context(), name, c, nil); err != nil {
				t.Fatal(err)
			}
		}
		exported := definitionsOf(t, first)
		file, err := manifest.Format("default", exported)
		if err != nil {
			t.Fatal(err)
		}
		m, err := manifest.Parse("limits.yaml", file)
		if err != nil {
			t.Fatalf("%v in\n%s", err, file)
		}
		second, third := openAdministered(t), openAdministered(t)
		if err := second.Configure(t.Context(), m.Definitions); err != nil {
			t.Fatal(err)
		}
		for _, name := range slices.Sorted(maps.Keys(m.Definitions.Entities)) {
			e := m.Definitions.Entities[name]
			if _, err := third.ChangeEntity(t.Context(), name, change.EntityOf(&e), &change.Options{IfAbsent: true}); err != nil {
				t.Fatal(err)
			}
		}
		for _, l := range []*limiter.Limiter{second, third} {
			if got := definitionsOf(t, l); !reflect.DeepEqual(got, exported) {
				t.Fatalf("got %+v, want %+v, from\n%s", got, exported, file)
			}
		}
	})
}

// isName reports whether a text has no control characters.
func isName(s string) bool {
	c := &change.Entity{Name: &s}
	_, err := c.Normalize()
	return err == nil
}
