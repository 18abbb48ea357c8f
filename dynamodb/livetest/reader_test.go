package livetest

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb"
	"github.com/weir-limiter/weir/internal/testkit"
	"github.com/weir-limiter/weir/limiter"
)

// still is a limit that regains nothing during a test. Its name needs an alias in DynamoDB's
// expressions.
const still = "tpm.v-1"

// seen is the output of Python's readers.
type seen struct {
	Entities map[string]struct {
		Available map[string]int64
		Buckets   []struct {
			Limit              string
			TK, CP, RA, RP, TC int64
			Shards             int
		}
	}
	TotalCapacity  int64 `json:"total_capacity"`
	TotalAvailable int64 `json:"total_available"`
	Capacity       map[string][2]int64
}

// TestReaders checks that each side's readers see the other side's writes exactly.
func TestReaders(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), beginWithin)
	defer cancel()
	hundred := map[string]Limit{still: {100, 1, 86_400}, "rpm": {50, 1, 86_400}}
	f := &fleet{
		t: t, local: testkit.DynamoDB(t), venv: testkit.ZAE(t),
		scenario: scenario{
			offer: Spec{Namespace: "default", Resource: "gpt-4o"}, shards: map[string]int{"split": 2},
			world: World{
				Limits:  map[string]map[string]Limit{team: hundred, "child": hundred, "split": hundred},
				Parents: map[string]string{"child": team},
			},
		},
	}
	f.offer.Endpoint, f.offer.Table = f.local.Endpoint(), f.local.Table(t, nil)
	f.prepare(ctx)
	lim := f.openWeir(ctx)

	for _, entity := range []string{"child", "split"} {
		f.take(ctx, lim, entity, weir.Costs{still: 30, "rpm": 1}, weir.Costs{still: 36})
		f.take(ctx, lim, entity, weir.Costs{still: 4, "rpm": 1}, nil)
	}
	got := f.look(ctx, nil)
	for _, entity := range []string{team, "child", "split"} {
		if a := got.Entities[entity].Available; a[still] != 64 || a["rpm"] != 49 {
			t.Errorf("%s: Python sees %v, want 64 and 49 after weir took", entity, a)
		}
		if c := got.Capacity[entity]; c != [2]int64{100, 64} {
			t.Errorf("%s: get_resource_capacity has %v, want 100 and 64", entity, c)
		}
		f.compareBuckets(got, entity, 36_000)
	}
	if got.TotalCapacity != 300 || got.TotalAvailable != 192 {
		t.Errorf("get_resource_capacity: got %d of %d", got.TotalAvailable, got.TotalCapacity)
	}

	got = f.look(ctx, []map[string]any{
		{"entity": "child", "costs": weir.Costs{still: 10, "rpm": 1}},
		{"entity": "split", "costs": weir.Costs{still: 7, "rpm": 1}},
	})
	for entity, left := range map[string]int64{team: 54, "child": 54, "split": 57} {
		if a := got.Entities[entity].Available; a[still] != left || a["rpm"] != 48 {
			t.Errorf("%s: Python sees %v, want %d and 48", entity, a, left)
		}
		status, err := lim.Status(ctx, entity, f.offer.Resource)
		if err != nil {
			t.Fatal(err)
		}
		available := make(map[string]int64)
		for _, s := range status {
			if s.Entity == entity {
				available[s.Limit] = s.Available
			}
		}
		if want := got.Entities[entity].Available; !maps.Equal(available, want) {
			t.Errorf("%s: weir sees %v, want %v after Python took", entity, available, want)
		}
	}
}

// openWeir opens the table.
func (f *fleet) openWeir(ctx context.Context) *limiter.Limiter {
	f.t.Helper()
	config := f.local.Config()
	store, err := dynamodb.Open(ctx, f.offer.Table, &dynamodb.Options{
		Config: &config, Namespace: f.offer.Namespace,
	})
	if err != nil {
		f.t.Fatal(err)
	}
	lim, err := limiter.New(store, &limiter.Options{StoreTimeout: childTimeout})
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() {
		if err := lim.Close(); err != nil {
			f.t.Error(err)
		}
	})
	return lim
}

// take reserves, and completes with used, or cancels if used is nil.
func (f *fleet) take(
	ctx context.Context, lim *limiter.Limiter, entity string, costs, used weir.Costs,
) {
	f.t.Helper()
	lease, err := lim.Reserve(ctx, &weir.Request{
		Entity: entity, Resource: f.offer.Resource, Costs: costs,
	})
	if err != nil {
		f.t.Fatal(err)
	}
	if used == nil {
		_, err = lease.Cancel(ctx)
	} else {
		_, err = lease.Complete(ctx, used)
	}
	if err != nil {
		f.t.Fatal(err)
	}
}

// look makes Python take units, and returns what its readers then see.
func (f *fleet) look(ctx context.Context, taken []map[string]any) *seen {
	f.t.Helper()
	what, err := json.Marshal(map[string]any{
		"endpoint": f.offer.Endpoint, "table": f.offer.Table, "namespace": f.offer.Namespace,
		"resource": f.offer.Resource, "limit": still, "take": taken,
		"entities": slices.Sorted(maps.Keys(f.world.Limits)),
	})
	if err != nil {
		f.t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(f.python(ctx, "reader.py", string(what))), "\n")
	var s seen
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &s); err != nil {
		f.t.Fatal(err)
	}
	return &s
}

// compareBuckets compares the output of get_buckets with the configuration and the units taken.
func (f *fleet) compareBuckets(got *seen, entity string, consumed int64) {
	f.t.Helper()
	shards, sum, n := max(1, f.shards[entity]), int64(0), 0
	for _, b := range got.Entities[entity].Buckets {
		if b.Limit != still {
			continue
		}
		n++
		sum += b.TC
		if b.CP != 100*milli || b.RA != milli || b.RP != 86_400_000 || b.Shards != shards {
			f.t.Errorf("%s: get_buckets has %+v", entity, b)
		}
	}
	if n != shards || sum != consumed {
		f.t.Errorf("%s: get_buckets has %d items with %d consumed, want %d with %d",
			entity, n, sum, shards, consumed)
	}
}
