package dynamodb

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/schema"
	"github.com/weir-limiter/weir/internal/testkit"
)

// TestConfigUnderFaults makes changes while answers are lost, calls are throttled and pages are
// short. A caller that gets an error repeats its change. Each change counts once, in the registry
// and in the audit.
func TestConfigUnderFaults(t *testing.T) {
	t.Parallel()
	var rules []testkit.FaultRule
	for _, f := range []testkit.Fault{
		testkit.LostAnswer, testkit.LostRequest, testkit.FailAfter, testkit.Throttle, testkit.Cancel,
		testkit.Unprocessed, testkit.ShortPage,
	} {
		rules = append(rules, testkit.FaultRule{Fault: f, PerMille: 100})
	}
	faults := testkit.NewFaults(&testkit.FaultOptions{Seed: 6, Rules: rules})
	s := configured(t)
	faulty := s.behind(t, faults)

	random := rand.New(rand.NewPCG(6, 6))
	entities := []string{"a", "b", "c", "d"}
	has := map[string]int64{}
	now := configNow
	for i := range 60 {
		now = now.Add(time.Second)
		e := entities[random.IntN(len(entities))]
		var limits []weir.Limit
		if has[e] = 0; random.IntN(3) > 0 {
			limits, has[e] = []weir.Limit{rate("rpm", int64(i+1))}, int64(i+1)
		}
		repeatUntilKnown(t, func() error {
			return faulty.admin.WriteLimits(t.Context(), now, weir.Subject{Entity: e, Resource: "gpt-4o"}, limits)
		})
	}
	var want []string
	for _, e := range entities {
		if has[e] > 0 {
			want = append(want, e)
		}
	}
	got, err := s.admin.Entities(t.Context(), configNow, "gpt-4o")
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("entities with limits: got %v, %v; want %v", got, err, want)
	}
	registry := s.item(t, schema.EntityConfigResourcesKey(s.config.Namespace))
	if n, err := schema.Int64(registry["gpt-4o"]); err != nil || n != int64(len(want)) {
		t.Errorf("registry: got %v, want %d", registry["gpt-4o"], len(want))
	}
	s.checkChangesOnce(t, entities)
	for i := range 30 {
		s.bucket(t, "a", "gpt-4o", i, 1)
	}
	repeatUntilKnown(t, func() error {
		err := faulty.admin.DeleteEntity(t.Context(), now, "a")
		if errors.Is(err, weir.NotFound) {
			return nil // an attempt whose answer was lost was applied
		}
		return err
	})
	if left, err := s.shardsOf(t.Context(), "a"); err != nil || len(left) > 0 {
		t.Errorf("left of a: %v, %v", left, err)
	}
	for _, r := range rules {
		t.Logf("%v: %d", r.Fault, faults.Count(r.Fault))
		if faults.Count(r.Fault) == 0 {
			t.Errorf("%v never happened", r.Fault)
		}
	}
}

// repeatUntilKnown repeats a change while its outcome is unknown.
func repeatUntilKnown(t *testing.T, change func() error) {
	t.Helper()
	var err error
	for range 20 {
		if err = change(); err == nil {
			return
		}
		if !errors.Is(err, weir.Unavailable) {
			t.Fatalf("got %v, want unavailable", err)
		}
	}
	t.Fatalf("again and again: %v", err)
}

// behind returns another store on the same namespace, with faults.
func (s *Store) behind(t *testing.T, faults *testkit.Faults) *Store {
	t.Helper()
	o := s.options
	o.HTTP = faults.HTTPClient()
	c, err := connect(t.Context(), s.client.TableName, &o)
	if err != nil {
		t.Fatal(err)
	}
	faulty := newStore(c, s.config.Namespace, s.options)
	t.Cleanup(func() { _ = faulty.Close() })
	return faulty
}

// checkChangesOnce checks that no change is in the audit twice: each was made at an instant of its
// own.
func (s *Store) checkChangesOnce(t *testing.T, entities []string) {
	t.Helper()
	for _, e := range entities {
		seen := map[string]bool{}
		for _, event := range s.audited(t, weir.Subject{Entity: e}, "") {
			what := fmt.Sprint(event.At, event.Action)
			if seen[what] {
				t.Errorf("%s: %s twice at %v", e, event.Action, event.At)
			}
			seen[what] = true
		}
	}
}
