package conformance_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/conformance"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/memory"
)

// minimalStore is a store that can do less than memory: it has buckets, one ancestor, no shadow
// limits, and a configuration that is changed a piece at a time. It complains of everything that it
// has not said it can do.
type minimalStore struct {
	*memory.Store
	t conformance.T
}

// minimalAbilities hides what memory can do and a minimal store cannot.
type minimalAbilities struct {
	driver.Store
	driver.ConfigReader
	driver.ConfigEditor
	driver.EntityReader
	driver.SubjectLister
}

func (s *minimalStore) Traits() driver.Traits {
	return driver.Traits{Kinds: []weir.Kind{weir.Bucket}, CascadeDepth: 1, NoShadow: true}
}

// checkLimits reports limits that the limiter should have refused.
func (s *minimalStore) checkLimits(limits []weir.Limit) {
	for i := range limits {
		if limits[i].Kind != weir.Bucket || limits[i].Shadow {
			s.t.Errorf("the store got the limit %+v", limits[i])
		}
	}
}

func (s *minimalStore) Reserve(
	ctx context.Context, now time.Time, p *driver.Plan, out *driver.Outcome,
) error {
	if n, most := len(p.Subjects), 2*p.Charges; n > most {
		s.t.Errorf("the store got a plan over %d subjects for %d charges", n, p.Charges)
	}
	for i := range p.Subjects {
		s.checkLimits(p.Subjects[i].Limits)
	}
	return s.Store.Reserve(ctx, now, p, out)
}

func (s *minimalStore) WriteLimits(
	ctx context.Context, now time.Time, at weir.Subject, limits []weir.Limit,
) error {
	s.checkLimits(limits)
	for i := range limits {
		if limits[i].RefillPeriod%time.Second != 0 {
			s.t.Errorf("the store got a period of %v", limits[i].RefillPeriod)
		}
	}
	return s.Store.WriteLimits(ctx, now, at, limits)
}

// minimalLeeway returns the leeway of a minimal store.
func minimalLeeway() conformance.Leeway {
	return conformance.Leeway{
		WholeSeconds: true, MayContend: true, NotAtomicAcrossEntities: true,
	}
}

// openMinimalStore opens a minimal store. wrap, which may be nil, makes it wrong.
func openMinimalStore(
	wrap func(*minimalStore) driver.Store,
) func(conformance.T, conformance.Setup) driver.Store {
	return func(t conformance.T, s conformance.Setup) driver.Store {
		t.Helper()
		m, err := memory.Open(nil)
		if err != nil {
			t.Fatalf("open: %v", err)
		}
		bare := &minimalStore{m, t}
		var b driver.Store = bare
		if wrap != nil {
			b = wrap(bare)
		}
		store := &minimalAbilities{b, bare, bare, bare, bare}
		conformance.Define(t, store, s)
		return store
	}
}

// TestServiceOnMinimalStore runs the whole suite on a store that can do less, leaving out what it
// cannot do.
func TestServiceOnMinimalStore(t *testing.T) {
	t.Parallel()
	conformance.TestStore(t,
		conformance.StoreHarness{Open: openMinimalStore(nil), Leeway: minimalLeeway()})
}

// TestMinimalStoreReachesEveryOutcome checks that random operations meet each outcome that a
// minimal store can have, often.
func TestMinimalStoreReachesEveryOutcome(t *testing.T) {
	t.Parallel()
	h := conformance.StoreHarness{Open: openMinimalStore(nil), Leeway: minimalLeeway()}.Service(t)
	table := conformance.RandomOperations(t, h, seedOf(t), 14_000)
	t.Logf("\n%s", table)
	if rare := table.Rare(&h, 5); len(rare) > 0 {
		t.Errorf("met less than five times: %q", rare)
	}
}

// TestMinimalStoreRefuses checks that the limiter refuses what such a store cannot do, wherever it
// comes from.
func TestMinimalStoreRefuses(t *testing.T) {
	t.Parallel()
	store := openMinimalStore(nil)(t,
		conformance.Setup{Start: time.Unix(1e9, 0), Definitions: &weir.Definitions{}})
	l, err := limiter.New(store, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	for field, limit := range map[string]weir.Limit{
		"limits.n.kind":    {Name: "n", Kind: weir.Window, Capacity: 1, Window: time.Minute},
		"limits.n.enforce": {Name: "n", Capacity: 1, Shadow: true},
	} {
		err := l.SetLimits(t.Context(), weir.Subject{}, []weir.Limit{limit})
		e, ok := errors.AsType[*weir.Error](err)
		if !ok || e.Code != weir.Unsupported || e.Field != field {
			t.Errorf("got %v, want %q of %s", err, weir.Unsupported, field)
		}
	}
	if traits := store.Traits(); slices.Contains(traits.Kinds, weir.Window) || traits.Local {
		t.Errorf("got traits %+v", traits)
	}
}
