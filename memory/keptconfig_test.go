package memory

import (
	"context"
	"errors"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/change"
	"github.com/weir-limiter/weir/driver/declare"
)

// keptLimits are of every kind.
func keptLimits() []weir.Limit {
	return []weir.Limit{
		{Name: "day", Kind: weir.Window, Capacity: 5, Window: time.Hour},
		{Name: "money", Kind: weir.Budget, Capacity: 5, Every: "month", Zone: "Europe/Berlin", Shadow: true},
		{Name: "rpm", Capacity: 5, RefillAmount: 2},
		{Name: "slots", Kind: weir.Concurrency, Capacity: 5, Timeout: time.Minute},
	}
}

// configureKept makes changes of every sort.
func configureKept(ctx context.Context, s *SnapshotStore, now time.Time) error {
	title, limits := "Ünïcode", keptLimits()
	_, err := s.ChangeEntity(ctx, now, "child", &change.Entity{}, change.Options{})
	err = errors.Join(err,
		s.WritePolicy(ctx, now, weir.Allow),
		s.WriteLimits(ctx, now, weir.Subject{}, limits[:1]),
		s.WriteLimits(ctx, now, weir.Subject{Resource: "r"}, limits),
		s.WriteLimits(ctx, now, weir.Subject{Entity: "child", Resource: weir.DefaultResource}, limits),
		s.WriteEntity(ctx, now, "top", "", false),
		s.WriteDeclared(ctx, now, &declare.Record{}, &declare.Record{
			Managed: declare.Managed{
				System: true, Policy: true, Resources: []string{"r"}, Entities: []string{"child", "top"},
				Limits: map[string][]string{"child": {weir.DefaultResource}},
			},
			Hash: "sha256:00", AppliedAt: now, AppliedBy: "ann", Again: []string{"old"},
			Apply: &declare.Mark{ID: "mark", By: "bob", At: now},
		}))
	_, changed := s.ChangeEntity(ctx, now, "child", &change.Entity{
		Parent: "top", Cascade: true, Name: &title,
		Metadata: map[string]any{"plan": "gold", "seats": int64(7)},
	}, change.Options{})
	return errors.Join(err, changed)
}

// TestConfigurationInFile checks that a store has the configuration that single changes have made
// and the record of what a limits file manages after it was opened again, and that one that was
// given as a whole is not in the file.
func TestConfigurationInFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "state")
	ctx, now := t.Context(), time.Unix(1e9, 0).UTC()
	open := func(o *SnapshotOptions) *SnapshotStore {
		t.Helper()
		s, err := OpenSnapshot(file, o)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	shut := func(s *SnapshotStore, errs ...error) {
		t.Helper()
		if err := errors.Join(errors.Join(errs...), s.Close()); err != nil {
			t.Fatal(err)
		}
	}
	s, limits := open(nil), keptLimits()
	if s.OwnLimits() {
		t.Error("a new file has limits")
	}
	shut(s, configureKept(ctx, s, now))
	want, record := s.store.config.Load().whole(), s.store.declared

	s = open(nil)
	if got := s.store.config.Load().whole(); !reflect.DeepEqual(got, want) || !s.OwnLimits() {
		t.Errorf("opened again: got %+v, want %+v", got, want)
	}
	got := s.store.declared
	got.AppliedAt, got.Apply.At = got.AppliedAt.UTC(), got.Apply.At.UTC()
	if !reflect.DeepEqual(got, record) {
		t.Errorf("the record: got %+v, want %+v", got, record)
	}
	if err := s.DeleteEntity(ctx, now, "top"); !errors.Is(err, weir.Conflict) {
		t.Errorf("deleting a parent after a restart: got %v", err)
	}
	shut(s)
	for _, readOnly := range []bool{true, false} {
		s = open(&SnapshotOptions{Definitions: &weir.Definitions{System: limits[2:3]}, ReadOnly: readOnly})
		if d := s.store.config.Load().whole(); !s.OwnLimits() || len(d.Entities) > 0 || len(d.System) != 1 {
			t.Errorf("with definitions: got %+v, want those, and that the file has others", d)
		}
		shut(s)
	}
	s = open(nil)
	if !s.OwnLimits() {
		t.Error("a store that was opened with definitions and changed nothing has changed the file")
	}
	shut(s, s.WriteConfig(ctx, now, &weir.Definitions{System: limits[2:3]}),
		s.WritePolicy(ctx, now, weir.Allow))
	s = open(nil)
	if d := s.store.config.Load().whole(); s.OwnLimits() || len(d.System) > 0 || d.OnUnavailable != weir.Block {
		t.Errorf("after another configuration was given: got %+v, want none", d)
	}
	shut(s)
}
