package memory

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
)

// TestEditCost checks that one change does not copy or check the whole configuration.
//
//nolint:paralleltest // AllocsPerRun counts what other tests allocate too.
func TestEditCost(t *testing.T) {
	d := &weir.Definitions{Entities: map[string]weir.EntityDefinition{"top": {}}}
	for i := range 20_000 {
		d.Entities[fmt.Sprint("e", i)] = weir.EntityDefinition{Parent: "top"}
	}
	s, err := Open(&Options{Definitions: d})
	if err != nil {
		t.Fatal(err)
	}
	ctx, now, n := t.Context(), time.Unix(1e9, 0), int64(0)
	rpm := func() []weir.Limit { n++; return []weir.Limit{{Name: "rpm", Capacity: n}} }
	for name, edit := range map[string]func() error{
		"an entity's limits": func() error {
			return s.WriteLimits(ctx, now, weir.Subject{Entity: "e7", Resource: "r"}, rpm())
		},
		"a resource's limits": func() error { return s.WriteLimits(ctx, now, weir.Subject{Resource: "r"}, rpm()) },
		"the system's limits": func() error { return s.WriteLimits(ctx, now, weir.Subject{}, rpm()) },
		"an entity":           func() error { return s.WriteEntity(ctx, now, "new", "top", n%2 == 0) },
		"a deletion": func() error {
			return errors.Join(s.WriteEntity(ctx, now, "old", "top", false), s.DeleteEntity(ctx, now, "old"))
		},
		"the children of one without": func() error {
			_, err := s.ListEntities(ctx, &weir.EntityQuery{Parent: "e9", Size: 10})
			return err
		},
	} {
		allocs := testing.AllocsPerRun(5, func() {
			if err := edit(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
		if allocs > 1000 {
			t.Errorf("%s: %.0f allocations with 20,000 entities, want fewer than 1,000", name, allocs)
		}
	}
}

// TestPlaceIsChecked checks that a change is checked against the entities around it, although the
// rest of the configuration is not looked at.
func TestPlaceIsChecked(t *testing.T) {
	t.Parallel()
	s, err := Open(&Options{Definitions: &weir.Definitions{Entities: map[string]weir.EntityDefinition{
		"a": {}, "b": {Parent: "a"}, "c": {Parent: "b"}, "d": {Parent: "b"},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, now := t.Context(), time.Unix(1e9, 0)
	for _, step := range []struct {
		err  error
		code weir.Code
		text string
	}{
		{s.WriteEntity(ctx, now, "a", "c", false), weir.Invalid, "which is a cycle"},
		{s.WriteEntity(ctx, now, "a", "a", false), weir.Invalid, "which is a cycle"},
		{s.WriteEntity(ctx, now, "a", "z", false), weir.Invalid, "is not declared"},
		{s.WriteEntity(ctx, now, "a", "", true), weir.Invalid, "needs a parent"},
		{s.DeleteEntity(ctx, now, "z"), weir.NotFound, "is not declared"},
		{s.DeleteEntity(ctx, now, "b"), weir.Conflict, "is the parent of c"},
		{s.DeleteEntity(ctx, now, "c"), "", ""},
		{s.DeleteEntity(ctx, now, "b"), weir.Conflict, "is the parent of d"},
		{s.WriteEntity(ctx, now, "d", "a", false), "", ""},
		{s.DeleteEntity(ctx, now, "b"), "", ""},
		{s.DeleteEntity(ctx, now, "a"), weir.Conflict, "is the parent of d"},
		{s.WriteConfig(ctx, now, &weir.Definitions{Entities: map[string]weir.EntityDefinition{
			"a": {}, "d": {}, "e": {Parent: "d"},
		}}), "", ""},
		{s.DeleteEntity(ctx, now, "a"), "", ""},
		{s.DeleteEntity(ctx, now, "d"), weir.Conflict, "is the parent of e"},
	} {
		if step.code == "" && step.err != nil ||
			step.code != "" && (!errors.Is(step.err, step.code) || !strings.Contains(step.err.Error(), step.text)) {
			t.Errorf("got %v, want %q %s", step.err, step.code, step.text)
		}
	}
}
