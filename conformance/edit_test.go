package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/conformance"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/memory"
)

// changeRecorder is a store that records the changes made to it.
type changeRecorder struct {
	*memory.Store
	steps []string
}

func (d *changeRecorder) note(err error, format string, args ...any) error {
	d.steps = append(d.steps, fmt.Sprintf(format, args...))
	return err
}

func (d *changeRecorder) WriteLimits(
	ctx context.Context, now time.Time, at weir.Subject, limits []weir.Limit,
) error {
	return d.note(d.Store.WriteLimits(ctx, now, at, limits),
		"limits %s/%s %d", at.Entity, at.Resource, len(limits))
}

func (d *changeRecorder) WritePolicy(ctx context.Context, now time.Time, p weir.Policy) error {
	return d.note(d.Store.WritePolicy(ctx, now, p), "policy %s", p)
}

func (d *changeRecorder) WriteEntity(
	ctx context.Context, now time.Time, name, parent string, cascade bool,
) error {
	return d.note(d.Store.WriteEntity(ctx, now, name, parent, cascade),
		"entity %s %s %v", name, parent, cascade)
}

func (d *changeRecorder) DeleteEntity(ctx context.Context, now time.Time, name string) error {
	return d.note(d.Store.DeleteEntity(ctx, now, name), "delete %s", name)
}

func openChangeRecorder(t *testing.T, depth int) (*changeRecorder, *limiter.Limiter) {
	t.Helper()
	m, err := memory.Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	d := &changeRecorder{Store: m}
	l, err := limiter.New(d, &limiter.Options{CascadeDepth: depth})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return d, l
}

// family returns entities given as "name parent" or "name parent cascade"; "-" means no parent.
func family(of ...string) *weir.Definitions {
	d := &weir.Definitions{Entities: map[string]weir.EntityDefinition{}}
	for _, text := range of {
		var name, parent string
		var cascade bool
		if _, err := fmt.Sscanf(text, "%s %s %t", &name, &parent, &cascade); err != nil {
			panic(err)
		}
		if parent == "-" {
			parent = ""
		}
		d.Entities[name] = weir.EntityDefinition{Parent: parent, Cascade: cascade}
	}
	return d
}

func TestEditTakesFewestSteps(t *testing.T) {
	t.Parallel()
	rpm := func(capacity int64) []weir.Limit {
		return []weir.Limit{{Name: "rpm", Capacity: capacity}}
	}
	placed := family("a - false")
	placed.System, placed.Resources = rpm(1), map[string][]weir.Limit{"x": rpm(2), "y": rpm(3)}
	placed.Entities["a"] = weir.EntityDefinition{Limits: map[string][]weir.Limit{"x": rpm(4)}}
	moved := family("a - false")
	moved.OnUnavailable = weir.Allow
	moved.Resources = map[string][]weir.Limit{"x": rpm(2), "y": rpm(5), "z": nil}
	moved.Entities["a"] = weir.EntityDefinition{Limits: map[string][]weir.Limit{"y": rpm(4)}}
	for _, c := range []struct {
		name     string
		from, to *weir.Definitions
		steps    []string
	}{
		{"nothing", placed, placed, nil},
		{"everything is new", &weir.Definitions{}, placed, []string{
			"limits / 1", "limits /x 1", "limits /y 1", "entity a  false", "limits a/x 1"}},
		{"places", placed, moved, []string{
			"policy allow", "limits / 0", "limits /y 1", "limits a/x 0", "limits a/y 1"}},
		{"parents come before children", &weir.Definitions{},
			family("a b true", "b c false", "c - false"),
			[]string{"entity c  false", "entity b c false", "entity a b true"}},
		{"children go before parents", family("a b true", "b c false", "c - false"),
			&weir.Definitions{}, []string{"delete a", "delete b", "delete c"}},
		{"a child moves before its parent goes", family("a b true", "b - false"),
			family("a c true", "c - false"),
			[]string{"entity c  false", "entity a c true", "delete b"}},
		{"parent and child change places", family("a b true", "b - false"),
			family("b a true", "a - false"), []string{"entity a  false", "entity b a true"}},
		{"a chain turns round", family("a b false", "b c false", "c - false"),
			family("c b false", "b a false", "a - false"),
			[]string{"entity a  false", "entity b a false", "entity c b false"}},
		{"no entity cascades too far in between", family("a b true", "b - false", "c - false"),
			family("a - false", "b c true", "c - false"),
			[]string{"entity a  false", "entity b c true"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			store, l := openChangeRecorder(t, 1)
			if err := conformance.EditInto(t.Context(), l, c.from); err != nil {
				t.Fatal(err)
			}
			store.steps = nil
			if err := conformance.Edit(t.Context(), l, c.from, c.to); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(store.steps, c.steps) {
				t.Errorf("got steps %q, want %q", store.steps, c.steps)
			}
		})
	}
}

// TestEditReachesTheTarget edits between the configurations of generated scripts, in every order of
// two.
func TestEditReachesTheTarget(t *testing.T) {
	t.Parallel()
	h := memoryHarness()
	for seed := range uint64(3) {
		s := conformance.Generate(t, &h, seed, 1000)
		_, l := openChangeRecorder(t, 8)
		was := &weir.Definitions{}
		for i := range s.Sets {
			for j := range s.Sets {
				for _, k := range []int{i, j} {
					to := s.Sets[k].Definitions
					if err := conformance.Edit(t.Context(), l, was, to); err != nil {
						t.Fatalf("seed %d: %v", seed, err)
					}
					arrived(t, l, to)
					was = to
				}
			}
		}
	}
}

// arrived compares the configuration with definitions.
func arrived(t *testing.T, l *limiter.Limiter, want *weir.Definitions) {
	t.Helper()
	normal, err := want.Normalize()
	if err != nil {
		t.Fatal(err)
	}
	page, err := l.Entities(t.Context(), nil)
	if err != nil || len(page.Names) != len(normal.Entities) {
		t.Fatalf("got entities %v, %v, want %d", page, err, len(normal.Entities))
	}
	for name, e := range normal.Entities {
		got, err := l.Entity(t.Context(), name)
		if err != nil || got.Parent != e.Parent || got.Cascade != e.Cascade {
			t.Fatalf("got entity %s %+v, %v, want %+v", name, got, err, e)
		}
		for resource := range got.Limits {
			placed(t, l, weir.Subject{Entity: name, Resource: resource}, e.Limits[resource])
		}
		for resource, limits := range e.Limits {
			placed(t, l, weir.Subject{Entity: name, Resource: resource}, limits)
		}
	}
	placed(t, l, weir.Subject{}, normal.System)
	for resource, limits := range normal.Resources {
		placed(t, l, weir.Subject{Resource: resource}, limits)
	}
}

func placed(t *testing.T, l *limiter.Limiter, at weir.Subject, want []weir.Limit) {
	t.Helper()
	got, err := l.Limits(t.Context(), at)
	if err != nil || len(got) != len(want) || len(got) > 0 && !reflect.DeepEqual(got, want) {
		t.Fatalf("at %+v: got %v, %v, want %v", at, got, err, want)
	}
}

// TestEditRefuses checks that mistakes in the definitions are found before the first step.
func TestEditRefuses(t *testing.T) {
	t.Parallel()
	store, l := openChangeRecorder(t, 1)
	from := family("a - false")
	if err := conformance.EditInto(t.Context(), l, from); err != nil {
		t.Fatal(err)
	}
	store.steps = nil
	for _, to := range []*weir.Definitions{
		family("a b false", "b a false"), family("a nobody true"),
		{System: []weir.Limit{{Name: "rpm", Capacity: -1}}},
	} {
		if err := conformance.Edit(t.Context(), l, from, to); !errors.Is(err, weir.Invalid) {
			t.Errorf("got %v, want %q", err, weir.Invalid)
		}
	}
	if len(store.steps) > 0 {
		t.Errorf("wrong definitions led to the steps %q", store.steps)
	}
}
