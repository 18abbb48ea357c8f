package dynamodb

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/admin"
	"github.com/weir-limiter/weir/internal/schema"
)

// configNow is the time of the changes in these tests.
var configNow = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

// configured returns a store on a table of its own, changed by tune.
func configured(t *testing.T, tune ...func(*Table)) *Store {
	t.Helper()
	table := localTable(t)
	for _, f := range tune {
		f(table)
	}
	if _, err := table.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	o := *table.Options
	if o.Principal == "" {
		o.Principal = "tester"
	}
	s, err := Open(t.Context(), table.Name, &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// rate returns a bucket that regains its capacity each minute.
func rate(name string, capacity int64) weir.Limit {
	return weir.Limit{
		Name: name, Kind: weir.Bucket, Capacity: capacity, RefillAmount: capacity, RefillPeriod: time.Minute,
	}
}

func (s *Store) mustSet(t *testing.T, at weir.Subject, limits ...weir.Limit) {
	t.Helper()
	if err := s.admin.WriteLimits(t.Context(), configNow, at, limits); err != nil {
		t.Fatalf("set limits at %+v: %v", at, err)
	}
}

func (s *Store) mustEntity(t *testing.T, name, parent string, cascade bool) {
	t.Helper()
	if err := s.admin.WriteEntity(t.Context(), configNow, name, parent, cascade); err != nil {
		t.Fatalf("write entity %s: %v", name, err)
	}
}

// item reads an item.
func (s *Store) item(t *testing.T, key schema.Key) schema.Item {
	t.Helper()
	item, err := s.client.GetItem(t.Context(), key, true)
	if err != nil {
		t.Fatal(err)
	}
	return item
}

// put stores an item as another program would.
func (s *Store) put(t *testing.T, item schema.Item) {
	t.Helper()
	_, err := s.client.API.PutItem(t.Context(), &ddb.PutItemInput{TableName: &s.client.TableName, Item: item})
	if err != nil {
		t.Fatal(err)
	}
}

// also adds attributes to an item.
func (s *Store) also(t *testing.T, key schema.Key, more schema.Item) {
	t.Helper()
	item := s.item(t, key)
	if item == nil {
		item = key.Item()
	}
	maps.Copy(item, more)
	s.put(t, item)
}

func truthOf(b bool) types.AttributeValue { return schema.Bool(b) }

func TestLevels(t *testing.T) {
	t.Parallel()
	s := configured(t)
	acme := weir.Subject{Entity: "acme", Resource: "gpt-4o"}
	s.mustSet(t, weir.Subject{}, rate("rpm", 4))
	s.mustSet(t, weir.Subject{Resource: "gpt-4o"}, rate("rpm", 3), rate("a-b.c_cp", 7))
	s.mustSet(t, weir.Subject{Entity: "acme", Resource: weir.DefaultResource}, rate("rpm", 2))
	s.mustSet(t, acme, rate("rpm", 1))
	for _, c := range []struct {
		of   weir.Subject
		want []weir.Level
	}{
		{acme, []weir.Level{weir.LevelEntity, weir.LevelEntityDefault, weir.LevelResource, weir.LevelSystem}},
		{weir.Subject{Entity: "acme", Resource: "o"}, []weir.Level{weir.LevelEntityDefault, weir.LevelSystem}},
		{weir.Subject{Entity: "acme", Resource: weir.DefaultResource}, []weir.Level{weir.LevelEntityDefault, weir.LevelSystem}},
		{weir.Subject{Entity: "b", Resource: "gpt-4o"}, []weir.Level{weir.LevelResource, weir.LevelSystem}},
		{weir.Subject{Resource: "gpt-4o"}, []weir.Level{weir.LevelResource, weir.LevelSystem}},
		{weir.Subject{}, []weir.Level{weir.LevelSystem}},
	} {
		config, err := s.ReadConfig(t.Context(), c.of, true)
		if err != nil {
			t.Fatal(err)
		}
		var got []weir.Level
		for _, l := range config.Levels {
			got = append(got, l.Level)
		}
		if !slices.Equal(got, c.want) || config.Known != (c.of.Entity == "acme") {
			t.Errorf("%+v: got levels %v, known %t; want %v", c.of, got, config.Known, c.want)
		}
	}
	config, err := s.ReadConfig(t.Context(), weir.Subject{Resource: "gpt-4o"}, false)
	if err != nil {
		t.Fatal(err)
	}
	want := []weir.Limit{rate("a-b.c_cp", 7), rate("rpm", 3)}
	if !slices.EqualFunc(config.Levels[0].Limits, want, weir.Limit.Same) {
		t.Errorf("got %+v, want %+v", config.Levels[0].Limits, want)
	}
}

// TestLimitsRemoved checks that removing limits leaves nothing, not even in the registries, and
// that removing limits that do not exist changes nothing.
func TestLimitsRemoved(t *testing.T) {
	t.Parallel()
	s := configured(t)
	places := []weir.Subject{
		{}, {Resource: "gpt-4o"}, {Entity: "acme", Resource: "gpt-4o"},
		{Entity: "acme", Resource: weir.DefaultResource},
	}
	for _, at := range places {
		s.mustSet(t, at)
	}
	if own, err := s.config.ReadDefinition(t.Context(), "acme"); err != nil || own.Declared() {
		t.Errorf("after removing nothing: known, or %v", err)
	}
	for range 2 {
		for _, at := range places {
			s.mustSet(t, at, rate("rpm", 5))
			s.mustSet(t, at, rate("tpm", 6)) // a second one must not count twice
		}
		registry := s.item(t, schema.EntityConfigResourcesKey(s.config.Namespace))
		for _, resource := range []string{"gpt-4o", weir.DefaultResource} {
			if n, err := schema.Int64(registry[resource]); err != nil || n != 1 {
				t.Errorf("registry of %s: got %v, want 1", resource, registry[resource])
			}
		}
		if got, err := s.admin.ConfiguredResources(t.Context(), true); err != nil ||
			!slices.Equal(got, []string{"gpt-4o"}) {
			t.Errorf("listed: got %v, %v", got, err)
		}
		for _, at := range places {
			s.mustSet(t, at)
			config, err := s.ReadConfig(t.Context(), at, true)
			if err != nil {
				t.Fatal(err)
			}
			for _, l := range config.Levels {
				for i := range l.Limits {
					if l.Limits[i].Name == "rpm" {
						t.Errorf("%+v: %s has rpm", at, l.Level)
					}
				}
			}
		}
		for _, key := range []schema.Key{
			schema.SystemConfigKey(s.config.Namespace), schema.ResourceConfigKey(s.config.Namespace, "gpt-4o"),
			schema.EntityConfigKey(s.config.Namespace, "acme", "gpt-4o"),
		} {
			if item := s.item(t, key); item != nil {
				t.Errorf("left: %v", item)
			}
		}
		s.registriesEmpty(t)
		registry = s.item(t, schema.EntityConfigResourcesKey(s.config.Namespace))
		if len(registry) != 4 || registry[schema.AttrGSI4PK] == nil {
			t.Errorf("left in the registry: %v", registry)
		}
		if list := s.item(t, schema.ResourcesKey(s.config.Namespace)); list[schema.AttrResources] != nil {
			t.Errorf("left in the list: %v", list)
		}
	}
}

func (s *Store) registriesEmpty(t *testing.T) {
	t.Helper()
	for name, list := range map[string]func(context.Context, bool) ([]string, error){
		"with limits": s.admin.ConfiguredResources, "with limits of entities": s.admin.EntityConfigResources,
	} {
		if got, err := list(t.Context(), true); err != nil || len(got) > 0 {
			t.Errorf("resources %s: got %v, %v; want none", name, got, err)
		}
	}
}

// TestLimitsKeepOtherAttributes checks that the other attributes of an item stay when its limits
// change, except schedules.
func TestLimitsKeepOtherAttributes(t *testing.T) {
	t.Parallel()
	s := configured(t)
	at := weir.Subject{Entity: "acme", Resource: "gpt-4o"}
	key := schema.EntityConfigKey(s.config.Namespace, "acme", "gpt-4o")
	s.mustSet(t, at, rate("rpm", 5))
	s.also(t, key, schema.Item{
		"disabled": truthOf(false), "cascade": truthOf(true), "note": schema.String("mine"),
		"l_rpm_sched": schema.String("x"), "sched_tz": schema.String("UTC"), "w_day_cp": schema.Number(9),
	})
	s.also(t, schema.SystemConfigKey(s.config.Namespace), schema.Item{schema.AttrRetention: schema.Number(7)})
	if _, err := s.ReadConfig(t.Context(), at, false); !errors.Is(err, weir.Unsupported) {
		t.Errorf("a schedule: got %v, want unsupported", err)
	}
	s.mustSet(t, at, rate("tpm", 6))
	s.mustSet(t, weir.Subject{}, rate("rpm", 1))
	item := s.item(t, key)
	for _, a := range []string{"disabled", "cascade", "note", "l_tpm_cp"} {
		if item[a] == nil {
			t.Errorf("%s is gone", a)
		}
	}
	for _, a := range []string{"l_rpm_cp", "l_rpm_sched", "sched_tz", "w_day_cp"} {
		if item[a] != nil {
			t.Errorf("%s is left", a)
		}
	}
	s.mustSet(t, at)
	s.mustSet(t, weir.Subject{})
	if item := s.item(t, key); item["disabled"] == nil || item["l_tpm_cp"] != nil {
		t.Errorf("after removal: got %v, want the flags alone", item)
	}
	system := s.item(t, schema.SystemConfigKey(s.config.Namespace))
	if system[schema.AttrRetention] == nil || system["l_rpm_cp"] != nil {
		t.Errorf("system after removal: got %v", system)
	}
}

func TestLimitsRefused(t *testing.T) {
	t.Parallel()
	s := configured(t)
	short := rate("rpm", 5)
	short.RefillPeriod = 1500 * time.Millisecond
	err := s.admin.WriteLimits(t.Context(), configNow, weir.Subject{}, []weir.Limit{short})
	wantError(t, err, weir.Invalid, "limits.rpm.refill_period", "whole seconds")
	err = s.admin.WriteLimits(t.Context(), configNow, weir.Subject{Entity: "acme", Resource: "GSI4PK"},
		[]weir.Limit{rate("rpm", 5)})
	wantError(t, err, weir.Invalid, "resource", "registry")
	if item := s.item(t, schema.SystemConfigKey(s.config.Namespace)); item != nil {
		t.Errorf("a refused change left %v", item)
	}
}

// TestUnusableAttributes checks that attributes that weir does not support are an error if their
// level wins, and none if it is hidden.
func TestUnusableAttributes(t *testing.T) {
	t.Parallel()
	s := configured(t)
	acme := weir.Subject{Entity: "acme", Resource: "gpt-4o"}
	key := schema.ResourceConfigKey(s.config.Namespace, "gpt-4o")
	for name, c := range map[string]struct {
		add  schema.Item
		want weir.Code
	}{
		"nothing":        {schema.Item{}, ""},
		"a schedule":     {schema.Item{"l_rpm_sched": schema.String("x")}, weir.Unsupported},
		"a window":       {schema.Item{"w_day_cp": schema.Number(1)}, weir.Unsupported},
		"soft":           {schema.Item{"l_rpm_soft": truthOf(true)}, weir.Unsupported},
		"not soft":       {schema.Item{"l_rpm_soft": truthOf(false)}, ""},
		"a quota":        {schema.Item{"l_rpm_ra": schema.Number(0)}, weir.Unsupported},
		"no number":      {schema.Item{"l_rpm_cp": schema.String("5")}, weir.Unsupported},
		"too large":      {schema.Item{"l_rpm_cp": schema.Number(1 << 60)}, weir.Unsupported},
		"too slow":       {schema.Item{"l_rpm_rp": schema.Number(1 << 60)}, weir.Unsupported},
		"disabled":       {schema.Item{"disabled": truthOf(true)}, weir.PermissionDenied},
		"not disabled":   {schema.Item{"disabled": truthOf(false)}, ""},
		"bypass":         {schema.Item{"disabled": schema.String("bypass")}, weir.Unsupported},
		"a strange word": {schema.Item{"disabled": schema.String("maybe")}, ""},
	} {
		s.mustSet(t, weir.Subject{Resource: "gpt-4o"}, rate("rpm", 5))
		s.also(t, key, c.add)
		_, err := s.ReadConfig(t.Context(), acme, true)
		if got := codeOf(err); got != c.want {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
		if _, err := s.admin.ReadEntity(t.Context(), "acme"); err != nil {
			t.Errorf("%s: reading the entity: %v", name, err)
		}
		// The entity's own limits hide the resource's limits, but not that the resource is
		// disabled.
		s.mustSet(t, acme, rate("rpm", 1))
		_, err = s.ReadConfig(t.Context(), acme, true)
		hidden := c.want
		if c.add["disabled"] == nil {
			hidden = ""
		}
		if got := codeOf(err); got != hidden {
			t.Errorf("%s, hidden: got %v, want %q", name, err, hidden)
		}
		s.mustSet(t, acme)
		if err := s.client.BatchDelete(t.Context(), []schema.Key{key}); err != nil {
			t.Fatal(err)
		}
	}
}

func codeOf(err error) weir.Code {
	if e, ok := errors.AsType[*weir.Error](err); ok {
		return e.Code
	}
	return ""
}

// TestStrongestLevelSetsAccess checks that the strongest level that sets access or cascade decides.
func TestStrongestLevelSetsAccess(t *testing.T) {
	t.Parallel()
	s := configured(t)
	s.mustSet(t, weir.Subject{}, rate("rpm", 5))
	s.mustEntity(t, "top", "", false)
	s.mustEntity(t, "acme", "top", true)
	acme := weir.Subject{Entity: "acme", Resource: "gpt-4o"}
	s.also(t, schema.ResourceConfigKey(s.config.Namespace, "gpt-4o"), schema.Item{
		"disabled": truthOf(true), "cascade": truthOf(false),
	})
	if _, err := s.ReadConfig(t.Context(), acme, false); !errors.Is(err, weir.PermissionDenied) ||
		!strings.Contains(err.Error(), "is disabled") {
		t.Errorf("got %v, want permission denied", err)
	}
	s.also(t, schema.EntityConfigKey(s.config.Namespace, "acme", "gpt-4o"), schema.Item{"disabled": truthOf(false)})
	config, err := s.ReadConfig(t.Context(), acme, false)
	if err != nil || config.Cascade || config.Parent != "top" {
		t.Errorf("got %+v, %v; want no cascade, as the resource says", config, err)
	}
	s.also(t, schema.EntityConfigKey(s.config.Namespace, "acme", weir.DefaultResource),
		schema.Item{"cascade": truthOf(true)})
	if config, err = s.ReadConfig(t.Context(), acme, false); err != nil || !config.Cascade {
		t.Errorf("got %+v, %v; want cascade, as the entity says", config, err)
	}
}

func TestPolicyOnTheTable(t *testing.T) {
	t.Parallel()
	s := configured(t)
	if err := s.admin.WritePolicy(t.Context(), configNow, weir.Allow); err != nil {
		t.Fatal(err)
	}
	s.mustSet(t, weir.Subject{}, rate("rpm", 5))
	s.mustSet(t, weir.Subject{})
	config, err := s.ReadConfig(t.Context(), weir.Subject{}, true)
	if err != nil || config.OnUnavailable != weir.Allow || len(config.Levels) != 0 {
		t.Errorf("got %+v, %v", config, err)
	}
}

// TestConflictingChangeIsPlannedAgain checks that a change that conflicts with another is planned
// again, and fails after too many plans.
func TestConflictingChangeIsPlannedAgain(t *testing.T) {
	t.Parallel()
	s := configured(t)
	key := schema.SystemConfigKey(s.config.Namespace)
	plans := 0
	write := func(capacity int64, disturb int) error {
		limits := []schema.Limit{{Name: "rpm", Capacity: capacity, Refill: 1, Seconds: 1}}
		plans = 0
		return s.admin.ChangeConfig(t.Context(), configNow, func(ctx context.Context, tx *admin.Change) error {
			plans++
			err := s.admin.PlanLimits(ctx, tx, weir.Subject{}, limits)
			if plans <= disturb {
				s.also(t, key, schema.Item{"note": schema.Number(int64(plans))})
			}
			return err
		})
	}
	if err := write(1, 2); err != nil || plans != 3 {
		t.Errorf("got %v after %d plans, want it done with the third", err, plans)
	}
	if note := s.item(t, key)["note"]; note == nil {
		t.Error("the other writer's change is lost")
	}
	if err := write(1, 0); err != nil || plans != 1 {
		t.Errorf("the same again: got %v after %d plans, want it done with the first", err, plans)
	}
	if err := write(2, admin.MaxPlans); !errors.Is(err, weir.Unavailable) || plans != admin.MaxPlans {
		t.Errorf("got %v after %d plans, want unavailable after %d", err, plans, admin.MaxPlans)
	}
}
