package limiter_test

import (
	"context"
	"errors"
	"testing"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/change"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/memory"
)

// TestLastChange checks whom a conflict names, after changes that the version does not cover, and
// after a limits file was loaded.
func TestLastChange(t *testing.T) {
	t.Parallel()
	rpm := func(n int64) []weir.Limit { return []weir.Limit{{Name: "rpm", Capacity: n}} }
	onGPT := weir.Subject{Entity: "acme", Resource: "gpt"}
	set := func(at weir.Subject, n int64) func(context.Context, *limiter.Limiter) error {
		return func(ctx context.Context, l *limiter.Limiter) error { return l.SetLimits(ctx, at, rpm(n)) }
	}
	allow := func(ctx context.Context, l *limiter.Limiter) error { return l.SetPolicy(ctx, weir.Allow) }
	load := func(d *weir.Definitions) func(context.Context, *limiter.Limiter) error {
		return func(ctx context.Context, l *limiter.Limiter) error { return l.Configure(ctx, d) }
	}
	for name, c := range map[string]struct {
		at     weir.Subject
		alice  func(context.Context, *limiter.Limiter) error
		bob    func(context.Context, *limiter.Limiter) error
		action string
		by     string
	}{
		"a policy alone": {weir.Subject{}, set(weir.Subject{}, 1), allow, "limits_set", "alice"},
		"limits of the system": {
			weir.Subject{}, set(weir.Subject{}, 1), set(weir.Subject{}, 2), "limits_set", "bob",
		},
		"a file with another system": {
			weir.Subject{}, set(weir.Subject{}, 1), load(&weir.Definitions{System: rpm(2)}), "configuration_loaded", "bob",
		},
		"a file with another resource": {
			weir.Subject{}, set(weir.Subject{}, 1),
			load(&weir.Definitions{System: rpm(1), Resources: map[string][]weir.Limit{"o3": rpm(1)}}), "limits_set", "alice",
		},
		"a file without the entity": {onGPT, set(onGPT, 1), load(&weir.Definitions{}), "configuration_loaded", "bob"},
		"a file without the entity, all of it": {
			weir.Subject{Entity: "acme"}, set(onGPT, 1), load(&weir.Definitions{}), "configuration_loaded", "bob",
		},
		"a file without the resource": {
			weir.Subject{Resource: "o3"}, set(weir.Subject{Resource: "o3"}, 1), load(&weir.Definitions{}),
			"configuration_loaded", "bob",
		},
		"a file with the same entities": {
			weir.Subject{Entity: "acme", Resource: "gpt"}, set(onGPT, 1),
			load(&weir.Definitions{System: rpm(3), Entities: map[string]weir.EntityDefinition{
				"acme": {Limits: map[string][]weir.Limit{"gpt": rpm(1)}},
			}}), "limits_set", "alice",
		},
		"an entity on another resource": {
			onGPT, set(onGPT, 1), set(weir.Subject{Entity: "acme", Resource: "o3"}, 1), "limits_set", "alice",
		},
	} {
		got := conflictAfter(t, c.at, c.alice, c.bob)
		if got == nil || got.Action != c.action || got.By != c.by {
			t.Errorf("%s: got %+v, want %s by %s", name, got, c.action, c.by)
		}
	}
}

// conflictAfter lets alice and bob make a change each on a store in memory, and returns the
// conflict of a third change with an old version; nil if there is none.
func conflictAfter(
	t *testing.T, at weir.Subject, alice, bob func(context.Context, *limiter.Limiter) error,
) *change.ConflictError {
	t.Helper()
	store, err := memory.Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	l, err := limiter.New(store, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	if err := alice(weir.WithPrincipal(t.Context(), "alice"), l); err != nil {
		t.Fatal(err)
	}
	if err := bob(weir.WithPrincipal(t.Context(), "bob"), l); err != nil {
		t.Fatal(err)
	}
	o := &change.Options{IfVersion: "old"}
	if at.Entity != "" && at.Resource == "" {
		_, err = l.ChangeEntity(t.Context(), at.Entity, &change.Entity{Name: new("new")}, o)
	} else {
		_, err = l.ChangeLimits(t.Context(), at, []weir.Limit{{Name: "rpm", Capacity: 9}}, o)
	}
	got, _ := errors.AsType[*change.ConflictError](err)
	return got
}
