package limiter_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/memory"
)

// askedObserver keeps who asked in each event, with the verb and how the call ended.
type askedObserver struct{ seen []string }

// Observe implements [limiter.Observer].
func (o *askedObserver) Observe(_ context.Context, e limiter.Event) {
	var line strings.Builder
	line.WriteString(string(e.Verb))
	for _, c := range e.Charges {
		fmt.Fprintf(&line, " %s/%s%v", c.Entity, c.Resource, c.Costs)
	}
	if d, ok := errors.AsType[*weir.DeniedError](e.Err); ok {
		fmt.Fprintf(&line, " denied %v", d.Charges)
	} else if e.Err != nil {
		line.WriteString(" failed")
	}
	o.seen = append(o.seen, line.String())
}

func family(t *testing.T, o limiter.Observer) *limiter.Limiter {
	t.Helper()
	store, err := memory.Open(&memory.Options{Definitions: &weir.Definitions{
		Entities: map[string]weir.EntityDefinition{
			"acme": {Limits: map[string][]weir.Limit{weir.DefaultResource: {
				{Name: "rpm", Capacity: 10, RefillAmount: 1},
			}}},
			"team-a": {Parent: "acme", Cascade: true},
			"team-b": {Parent: "acme", Cascade: true},
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	l, err := limiter.New(store, &limiter.Options{Observer: o})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// TestEventsNameWhoAsked makes calls of each kind, in a row, because they share their memory: an
// event must not have the charges of an earlier call.
func TestEventsNameWhoAsked(t *testing.T) {
	t.Parallel()
	seen := &askedObserver{}
	l := family(t, seen)
	reserve := func(r *weir.Request) *weir.Lease {
		lease, _ := l.Reserve(t.Context(), r)
		return lease
	}
	one := func(entity string, units int64) *weir.Request {
		return &weir.Request{Entity: entity, Resource: "m", Costs: weir.Costs{"rpm": units}}
	}
	lease := reserve(one("team-a", 6))
	again := one("team-a", 6)
	again.LeaseID = lease.ID
	reserve(again)
	reserve(one("team-b", 5))
	reserve(one("no spaces", 1))
	reserve(&weir.Request{Charges: []weir.Charge{
		{Entity: "team-b", Resource: "m", Costs: weir.Costs{"rpm": 3}},
		{Entity: "acme", Resource: "m", Costs: weir.Costs{"rpm": 2}},
	}})
	reserve(one("team-b", 11))
	if _, err := lease.Complete(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"reserve team-a/m" + "map[rpm:6]",
		"reserve team-a/m" + "map[rpm:6]",
		"reserve team-b/m" + "map[rpm:5] denied [{team-b m}]",
		"reserve failed",
		"reserve team-b/m" + "map[rpm:3] acme/m" + "map[rpm:2] denied [{team-b m} {acme m}]",
		"reserve team-b/m" + "map[rpm:11] failed",
		"complete",
	}
	if !slices.Equal(seen.seen, want) {
		t.Errorf("got\n%q\nwant\n%q", seen.seen, want)
	}
}
