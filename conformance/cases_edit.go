package conformance

import (
	"slices"
	"strings"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/limiter"
)

// editWorld is a world with a limiter whose store can change its configuration a piece at a time.
type editWorld struct {
	*caseWorld
	limiter *limiter.Limiter
}

// editCases returns the cases of lines 8.7 and 9.3. They are left out if the store's configuration
// cannot be edited.
func editCases() []storeCase {
	b := only(weir.Bucket)
	deep := Needs{Kinds: b.Kinds, Depth: 1}
	lists := Needs{Kinds: b.Kinds, Lists: true}
	return []storeCase{
		{"each place is set, read and removed alone", "8.7", b, onEditor(placesAlone)},
		{"limits set in a place take effect with the next call", "8.7", b, onEditor(setTakesEffect)},
		{"limits that are wrong change nothing", "8.7", b, onEditor(wrongEdit)},
		{"the policy is set and read", "8.7", b, onEditor(policyEdited)},
		{"an entity keeps its limits when its parent changes", "9.3", deep, onEditor(entityKeepsLimits)},
		{"a parent takes effect with the next call", "9.3", deep, onEditor(parentTakesEffect)},
		{"wrong parents are refused", "9.3", deep, onEditor(wrongParents)},
		{"a deleted entity is gone", "9.3", deep, onEditor(entityDeleted)},
		{"entities are listed in pages", "9.3", b, onEditor(entitiesListed)},
		{"a resource's users are listed", "9.3", lists, onEditor(usersListed)},
	}
}

func onEditor(play func(e *editWorld)) func(T, StoreHarness) {
	return func(t T, h StoreHarness) {
		t.Helper()
		set := Setup{Start: begin(), Definitions: systemLimits(slowLimit(weir.Bucket, "n", 10))}
		store := h.Open(t, set)
		_, edits := store.(driver.ConfigEditor)
		_, reads := store.(driver.EntityReader)
		w := h.world(t, set, store)
		defer func() {
			if err := w.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		}()
		if !edits || !reads {
			t.Skipf("the store's configuration cannot be changed a piece at a time")
		}
		play(&editWorld{&caseWorld{T: t, World: w, h: h.Service(t)}, w.Limiter})
	}
}

// set makes limits the only ones at a place.
func (e *editWorld) set(entity, resource string, limits ...weir.Limit) {
	e.Helper()
	e.ok(e.limiter.SetLimits(e.Context(), weir.Subject{Entity: entity, Resource: resource}, limits))
}

func (e *editWorld) declare(name, parent string, cascade bool) {
	e.Helper()
	e.ok(e.limiter.SetEntity(e.Context(), name, parent, cascade))
}

func (e *editWorld) ok(err error) {
	e.Helper()
	if err != nil {
		e.Fatalf("got %v, want no error", err)
	}
}

// capacities returns the capacities that are set at a place.
func (e *editWorld) capacities(entity, resource string) []int64 {
	e.Helper()
	limits, err := e.limiter.Limits(e.Context(), weir.Subject{Entity: entity, Resource: resource})
	e.ok(err)
	var out []int64
	for i := range limits {
		out = append(out, limits[i].Capacity)
	}
	return out
}

func (e *editWorld) same(what string, got, want []int64) {
	e.Helper()
	if !slices.Equal(got, want) {
		e.Fatalf("%s: got %v, want %v", what, got, want)
	}
}

func placesAlone(e *editWorld) {
	places := []weir.Subject{
		{}, {Resource: resource}, {Entity: "a", Resource: weir.DefaultResource},
		{Entity: "a", Resource: resource},
	}
	for i, p := range places {
		e.set(p.Entity, p.Resource, slowLimit(weir.Bucket, "n", int64(i)+20), slowLimit(weir.Bucket, "m", 5))
	}
	for i, p := range places {
		e.same("each place has its own", e.capacities(p.Entity, p.Resource), []int64{5, int64(i) + 20})
	}
	// Changing the limits that were read does not change the configuration.
	limits, err := e.limiter.Limits(e.Context(), weir.Subject{})
	e.ok(err)
	limits[0].Capacity = 99
	for i := len(places) - 1; i >= 0; i-- {
		p := places[i]
		e.equal("the strongest level's capacity", e.of(e.statuses("a"), "a", "n").Capacity, int64(i)+20)
		e.set(p.Entity, p.Resource)
		e.same("a place without limits", e.capacities(p.Entity, p.Resource), nil)
	}
	e.fail(weir.NoLimits, ask("a", cost(1)))
	e.set("ghost", resource)
	_, err = e.limiter.Entity(e.Context(), "ghost")
	e.refused(weir.NotFound, err)
}

func setTakesEffect(e *editWorld) {
	e.admit(ask("a", cost(7)))
	e.set("", "", slowLimit(weir.Bucket, "n", 20))
	e.expectAvailable("a", cost(3)) // a bucket keeps its balance
	e.admit(ask("b", cost(20)))
	e.set("a", resource, slowLimit(weir.Bucket, "n", 2))
	e.admit(ask("a", cost(2)))
	e.deny(ask("a", cost(1)))
	e.set("a", resource, slowLimit(weir.Bucket, "other", 4))
	e.fail(weir.UnknownLimit, ask("a", cost(1)))
	e.admit(ask("a", weir.Costs{"other": 4}))
	e.set("", resource, slowLimit(weir.Bucket, "n", 1))
	e.fail(weir.NeverSatisfiable, ask("b", cost(2)))
}

func wrongEdit(e *editWorld) {
	n := slowLimit(weir.Bucket, "n", 10)
	for _, wrong := range [][]weir.Limit{
		{{Name: "n", Capacity: 0}}, {n, n}, {{Name: "no name", Capacity: 1}}, {{Name: "n", Kind: "x", Capacity: 1}},
	} {
		for _, at := range []weir.Subject{{}, {Resource: resource}, {Entity: "a", Resource: resource}} {
			e.refused(weir.Invalid, e.limiter.SetLimits(e.Context(), at, wrong))
		}
	}
	for _, at := range []weir.Subject{
		{Entity: "a"}, {Entity: "a b", Resource: resource}, {Resource: "a b"},
		{Resource: weir.DefaultResource}, {Entity: "a", Resource: "x#"},
	} {
		e.refused(weir.Invalid, e.limiter.SetLimits(e.Context(), at, []weir.Limit{n}))
		_, err := e.limiter.Limits(e.Context(), at)
		e.refused(weir.Invalid, err)
	}
	e.same("the system's limits", e.capacities("", ""), []int64{10})
	_, err := e.limiter.Entity(e.Context(), "a")
	e.refused(weir.NotFound, err)
	e.admit(ask("a", cost(10)))
	e.deny(ask("a", cost(1)))
}

func policyEdited(e *editWorld) {
	for _, want := range []weir.Policy{weir.Allow, weir.Block} {
		e.ok(e.limiter.SetPolicy(e.Context(), want))
		got, err := e.limiter.Policy(e.Context())
		e.ok(err)
		e.equal("the policy", got, want)
	}
	e.refused(weir.Invalid, e.limiter.SetPolicy(e.Context(), "perhaps"))
	e.same("the system's limits", e.capacities("", ""), []int64{10})
}

func entityKeepsLimits(e *editWorld) {
	e.declare("p", "", false)
	e.set("a", resource, slowLimit(weir.Bucket, "n", 3)) // declares the entity
	e.declare("a", "p", true)
	got, err := e.limiter.Entity(e.Context(), "a")
	e.ok(err)
	if got.Parent != "p" || !got.Cascade || len(got.Limits) != 1 || len(got.Limits[resource]) != 1 {
		e.Fatalf("got %+v, want the parent and the limits", got)
	}
	e.set("a", resource)
	got, err = e.limiter.Entity(e.Context(), "a")
	e.ok(err)
	if got.Parent != "p" || !got.Cascade || len(got.Limits[resource]) != 0 {
		e.Fatalf("got %+v, want the parent without limits", got)
	}
}

func parentTakesEffect(e *editWorld) {
	e.declare("p", "", false)
	e.admit(ask("a", cost(1)))
	e.expectAvailable("p", cost(10))
	e.declare("a", "p", true)
	e.admit(ask("a", cost(2)))
	e.expectAvailable("p", cost(8))
	e.declare("a", "p", false)
	e.admit(ask("a", cost(3)))
	e.expectAvailable("p", cost(8))
	e.expectAvailable("a", cost(4))
}

func wrongParents(e *editWorld) {
	ctx := e.Context()
	for _, name := range []string{"p", "a", "b"} {
		e.declare(name, "", false)
	}
	e.declare("a", "p", true)
	for _, parent := range []string{"nobody", "a"} {
		err := e.refused(weir.Invalid, e.limiter.SetEntity(ctx, "a", parent, false))
		e.equal("the field", err.Field+" "+err.Value, "parent "+parent)
	}
	for _, cascade := range []bool{false, true} { // a cycle, not a cascade that is too deep
		err := e.refused(weir.Invalid, e.limiter.SetEntity(ctx, "p", "a", cascade))
		e.equal("the field", err.Field+" "+err.Value, "parent a")
		e.equal("names a cycle", strings.Contains(err.Reason, "cycle"), true)
	}
	e.refused(weir.Invalid, e.limiter.SetEntity(ctx, "b", "", true))
	e.refused(weir.Invalid, e.limiter.SetEntity(ctx, "a b", "p", true))
	e.refused(weir.Invalid, e.limiter.SetEntity(ctx, "b", "p p", true))
	// The option allows one level: b may not cascade to a, which cascades to p, and p, to which a
	// cascades, may not cascade to b.
	e.refused(weir.Invalid, e.limiter.SetEntity(ctx, "b", "a", true))
	e.refused(weir.Invalid, e.limiter.SetEntity(ctx, "p", "b", true))
	e.declare("b", "a", false)
	e.declare("p", "", false)
	e.admit(ask("a", cost(4)))
	e.expectAvailable("p", cost(6))
	e.expectAvailable("b", cost(10))
}

func entityDeleted(e *editWorld) {
	ctx := e.Context()
	e.declare("p", "", false)
	e.declare("a", "p", true)
	e.set("a", resource, slowLimit(weir.Bucket, "n", 3))
	e.refused(weir.Conflict, e.limiter.DeleteEntity(ctx, "p"))
	lease := e.admit(ask("a", cost(3)))
	e.expectAvailable("p", cost(7))
	e.ok(e.limiter.DeleteEntity(ctx, "a"))
	e.refused(weir.NotFound, e.limiter.DeleteEntity(ctx, "a"))
	_, err := e.limiter.Entity(ctx, "a")
	e.refused(weir.NotFound, err)
	e.complete(lease, cost(1))
	e.expectAvailable("p", cost(9))
	e.equal("the system's capacity", e.of(e.statuses("a"), "a", "n").Capacity, 10)
	e.ok(e.limiter.DeleteEntity(ctx, "p"))
	e.refused(weir.NotFound, e.limiter.DeleteEntity(ctx, "nobody"))
	e.refused(weir.Invalid, e.limiter.DeleteEntity(ctx, "a b"))
}

func entitiesListed(e *editWorld) {
	e.declare("p", "", false)
	for _, name := range []string{"d", "b", "a", "c", "e"} {
		e.declare(name, "p", false)
	}
	e.set("b", resource, slowLimit(weir.Bucket, "n", 3))
	e.set("d", weir.DefaultResource, slowLimit(weir.Bucket, "n", 3))
	list := func(q weir.EntityQuery) []string {
		var all []string
		for range 10 {
			page, err := e.limiter.Entities(e.Context(), &q)
			e.ok(err)
			if len(page.Names) > max(q.Size, 1) && q.Size > 0 {
				e.Fatalf("got a page of %d, want at most %d", len(page.Names), q.Size)
			}
			all = append(all, page.Names...)
			if q.After = page.Next; q.After == "" {
				return all
			}
		}
		e.Fatalf("got no end")
		return nil
	}
	for _, c := range []struct {
		query weir.EntityQuery
		want  []string
	}{
		{weir.EntityQuery{}, []string{"a", "b", "c", "d", "e", "p"}},
		{weir.EntityQuery{Size: 2}, []string{"a", "b", "c", "d", "e", "p"}},
		{weir.EntityQuery{Parent: "p", Size: 4}, []string{"a", "b", "c", "d", "e"}},
		{weir.EntityQuery{Parent: "a"}, nil},
		{weir.EntityQuery{Resource: resource, Size: 1}, []string{"b"}},
		{weir.EntityQuery{Resource: weir.DefaultResource}, []string{"d"}},
		{weir.EntityQuery{Parent: "p", Resource: resource}, []string{"b"}},
	} {
		if got := list(c.query); !slices.Equal(got, c.want) {
			e.Fatalf("%+v: got %v, want %v", c.query, got, c.want)
		}
	}
	for _, wrong := range []weir.EntityQuery{{Size: -1}, {Size: 1001}, {Parent: "a b"}, {Resource: "x#"}} {
		_, err := e.limiter.Entities(e.Context(), &wrong)
		e.refused(weir.Invalid, err)
	}
}

func usersListed(e *editWorld) {
	users := func() []string {
		statuses, err := e.limiter.Capacity(e.Context(), resource)
		e.ok(err)
		var names []string
		for _, st := range statuses {
			names = append(names, st.Entity)
		}
		return names
	}
	if got := users(); len(got) > 0 {
		e.Fatalf("got %v, want nobody", got)
	}
	e.admit(ask("b", cost(4)))
	e.set("a", resource, slowLimit(weir.Bucket, "n", 3))
	e.set("c", "elsewhere", slowLimit(weir.Bucket, "n", 3))
	if got := users(); !slices.Equal(got, []string{"a", "b"}) {
		e.Fatalf("got %v, want a and b", got)
	}
	statuses, err := e.limiter.Capacity(e.Context(), resource)
	e.ok(err)
	e.equal("what b has left", e.of(statuses, "b", "n").Available, int64(6))
	_, err = e.limiter.Capacity(e.Context(), "x#")
	e.refused(weir.Invalid, err)
}
