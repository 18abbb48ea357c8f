package memory_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/memory"
)

// The abilities that the limiter may discover on a store, and those that it must not.
var (
	_ driver.Store         = (*memory.Store)(nil)
	_ driver.ConfigReader  = (*memory.Store)(nil)
	_ driver.ConfigWriter  = (*memory.Store)(nil)
	_ driver.SubjectLister = (*memory.Store)(nil)
)

func TestStoreDoesNotRecoverLeases(t *testing.T) {
	t.Parallel()
	if _, ok := newWorld(t).store.(driver.LeaseRecoverer); ok {
		t.Error("a store without a file says that it recovers leases")
	}
}

func TestOpenRefusesMistakes(t *testing.T) {
	t.Parallel()
	d := &weir.Definitions{System: []weir.Limit{{Name: "x"}, {Name: "y", Kind: "sieve", Capacity: 1}}}
	_, err := memory.Open(&memory.Options{Definitions: d})
	if !errors.Is(err, weir.Invalid) || !strings.Contains(err.Error(), "system.limits.y.kind") {
		t.Errorf("got %v, want both mistakes named", err)
	}
	if _, err = memory.Open(nil); err != nil {
		t.Errorf("without options: got %v", err)
	}
}

func TestWriteConfig(t *testing.T) {
	t.Parallel()
	w := newWorld(t, bucket(10, 10, time.Minute))
	bad := &weir.Definitions{System: []weir.Limit{{Name: "x"}}}
	writer := w.store.(driver.ConfigWriter)
	if err := writer.WriteConfig(context.Background(), start, bad); !errors.Is(err, weir.Invalid) {
		t.Errorf("got %v, want %v", err, weir.Invalid)
	}
	w.take(10)
	w.configure(named("y", bucket(1, 1, time.Minute)))
	if got := w.status(); len(got) != 1 || got[0].Limit != "y" || got[0].Available != 1 {
		t.Errorf("status: got %+v, want a full y", got)
	}
}

func TestReadConfig(t *testing.T) {
	t.Parallel()
	d := families(bucket(10, 10, time.Minute))
	d.OnUnavailable = weir.Allow
	store, err := memory.Open(&memory.Options{Definitions: d})
	if err != nil {
		t.Fatal(err)
	}
	got, err := store.ReadConfig(context.Background(), weir.Subject{Entity: "a", Resource: "r"}, false)
	if err != nil || got.Parent != "parent" || !got.Cascade || !got.Known ||
		got.OnUnavailable != weir.Allow || len(got.Levels) != 1 || got.Levels[0].Limits[0].Name != "x" {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestStatusChangesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, four()...)
	w.at(0).reserve(charge(each(10)))
	w.at(day*2).availableIs(10, 10, 10, 10)
	w.at(1).availableIs(0, 0, 0, 0) // no call has come on the second day
	got := w.status()[1]
	want := weir.LimitStatus{
		Entity: subjectEntity, Resource: subjectResource, Limit: "b", Kind: weir.Window,
		Level: weir.LevelSystem, Capacity: 10,
	}
	if got != want {
		t.Errorf("status: got %+v, want %+v", got, want)
	}
}

func TestResources(t *testing.T) {
	t.Parallel()
	own := []weir.Limit{named("y", window(1, time.Minute))}
	store, err := memory.Open(&memory.Options{Definitions: &weir.Definitions{
		System: []weir.Limit{bucket(10, 10, time.Minute), named("z", concurrency(1, time.Hour)),
			named("d", budget(1, "day", ""))},
		Entities: map[string]weir.EntityDefinition{
			subjectEntity: {Limits: map[string][]weir.Limit{
				"own": own, weir.DefaultResource: own, "none": nil,
			}},
			"free": {},
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, store: store, now: start}
	check := func(entity string, want ...string) {
		t.Helper()
		got, err := store.Resources(context.Background(), w.now, entity)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: got %v, %v; want %v", entity, got, err, want)
		}
	}
	check(subjectEntity, "own")
	check("nobody")
	w.reserve(weir.Charge{Entity: "free", Resource: "b", Costs: x(1)})
	l := w.reserve(weir.Charge{Entity: "free", Resource: "a", Costs: x(1)})
	check("free", "a", "b")
	w.at(6_000).cancel(l)
	check("free", "b") // the bucket is full again, the slot is still held
	w.reserve(weir.Charge{Entity: "free", Resource: "c", Costs: weir.Costs{"d": 1, "z": 0}})
	check("free", "b", "c")
	w.at(3_600_000)
	check("free", "c") // until the day ends
	w.at(day)
	check("free")
	if err := store.Close(); err != nil {
		t.Errorf("close: got %v", err)
	}
}
