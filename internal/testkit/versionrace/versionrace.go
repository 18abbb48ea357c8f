// Package versionrace lets administrators change the same entity and the same limits at once.
package versionrace

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/change"
)

// Admin is a limiter, or the client of a server.
type Admin interface {
	Entity(ctx context.Context, name string) (*weir.EntityDefinition, error)
	ChangeEntity(
		ctx context.Context, name string, c *change.Entity, o *change.Options,
	) (version string, err error)
	Place(ctx context.Context, at weir.Subject) (*change.Place, error)
	ChangeLimits(
		ctx context.Context, at weir.Subject, limits []weir.Limit, o *change.Options,
	) (version string, err error)
}

// The race has this many rounds of this many changes each.
const (
	Rounds  = 50
	atOnce  = 20
	entity  = "raced"
	limit   = "rpm"
	initial = 1000
)

// race is a race of administrators, by name.
type race struct {
	t      *testing.T
	admins map[string]Admin
	names  []string
	at     weir.Subject
}

// Run makes 1,000 changes. In each round all administrators read, and then all change at once what
// they have read: half of them add an entry to an entity's metadata, and half of them raise a
// capacity by one. Each change must be applied or be refused as a conflict that names one of the
// administrators; at least one of each half is applied in each round, and none of those is lost.
// Each administrator's changes are in the audit under the name.
func Run(t *testing.T, admins map[string]Admin) {
	t.Helper()
	r := &race{
		t: t, admins: admins, names: slices.Sorted(maps.Keys(admins)),
		// The version of an entity covers its limits, so these are of another one.
		at: weir.Subject{Entity: "limited", Resource: "gpt-4o"},
	}
	ctx := weir.WithPrincipal(t.Context(), r.names[0])
	first := admins[r.names[0]]
	isNew := &change.Options{IfAbsent: true}
	if _, err := first.ChangeEntity(ctx, entity, &change.Entity{}, isNew); err != nil {
		t.Fatal(err)
	}
	limits := []weir.Limit{{Name: limit, Capacity: initial}}
	if _, err := first.ChangeLimits(ctx, r.at, limits, isNew); err != nil {
		t.Fatal(err)
	}
	entries, raises, refused := 0, 0, 0
	for round := range Rounds {
		e, l := r.round(round)
		if t.Failed() {
			return
		}
		if e < 1 || l < 1 {
			t.Errorf("round %d: %d and %d changes applied, want at least 1 of each", round, e, l)
		}
		entries, raises, refused = entries+e, raises+l, refused+atOnce-e-l
	}
	t.Logf("%d changes: %d and %d applied, %d refused", Rounds*atOnce, entries, raises, refused)
	e, err := first.Entity(ctx, entity)
	if err != nil || len(e.Metadata) != entries {
		t.Errorf("got %d entries and %v, want %d", len(e.Metadata), err, entries)
	}
	place, err := first.Place(ctx, r.at)
	if err != nil || len(place.Limits) != 1 || place.Limits[0].Capacity != int64(initial+raises) {
		t.Errorf("got %+v and %v, want a capacity of %d", place, err, initial+raises)
	}
}

// round makes the changes of one round, and returns how many of each half were applied.
func (r *race) round(round int) (entries, raises int) {
	changes := make([]func() error, atOnce)
	var reading sync.WaitGroup
	for i := range changes {
		reading.Go(func() { changes[i] = r.read(round, i) })
	}
	reading.Wait()
	if r.t.Failed() {
		return 0, 0
	}
	applied := make([]bool, atOnce)
	var changing sync.WaitGroup
	begin := make(chan struct{})
	for i := range changes {
		changing.Go(func() {
			<-begin
			err := changes[i]()
			if applied[i] = err == nil; !applied[i] {
				r.check(err)
			}
		})
	}
	close(begin)
	changing.Wait()
	for i := range applied {
		switch {
		case applied[i] && i%2 == 0:
			entries++
		case applied[i]:
			raises++
		}
	}
	return entries, raises
}

// read reads what change i will change, and returns the change.
func (r *race) read(round, i int) func() error {
	name := r.names[i/2%len(r.names)]
	admin, ctx := r.admins[name], weir.WithPrincipal(r.t.Context(), name)
	if i%2 == 0 {
		e, err := admin.Entity(ctx, entity)
		if err != nil {
			r.t.Error(err)
			return nil
		}
		c := change.EntityOf(e)
		c.Metadata[fmt.Sprintf("%d.%d", round, i)] = name
		return func() error {
			_, err := admin.ChangeEntity(ctx, entity, c, &change.Options{IfVersion: e.Version})
			return err
		}
	}
	place, err := admin.Place(ctx, r.at)
	if err != nil || len(place.Limits) != 1 {
		r.t.Errorf("got %+v, %v", place, err)
		return nil
	}
	limits := slices.Clone(place.Limits)
	limits[0].Capacity++
	limits[0].RefillAmount = initial - int64(i) // no two changes are the same
	return func() error {
		_, err := admin.ChangeLimits(ctx, r.at, limits, &change.Options{IfVersion: place.Version})
		return err
	}
}

// check fails the test unless an error is a conflict that says who was quicker.
func (r *race) check(err error) {
	conflict, ok := errors.AsType[*change.ConflictError](err)
	if !ok || !errors.Is(err, weir.Conflict) {
		r.t.Errorf("got %v, want a conflict", err)
		return
	}
	if conflict.Version == "" || !slices.Contains(r.names, conflict.By) || conflict.At.IsZero() {
		r.t.Errorf("got %+v, want who was quicker", conflict)
	}
}
