package conformance

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
)

// faultyStore is a store whose calls can be made to fail or to hang before they reach the store. It
// also checks that the store does not change its arguments.
type faultyStore struct {
	driver.Store
	t      T
	traits driver.Traits
	// told, if not nil, changes the configuration of a subject as the limiter reads it.
	told func(of weir.Subject, c *weir.Config)

	mu     sync.Mutex
	faults map[string]func(context.Context) error
	calls  map[string]int
}

// newFaulty wraps a store. Its traits say that it is remote, so that its calls get a timeout.
func newFaulty(t T, b driver.Store) *faultyStore {
	f := &faultyStore{Store: b, t: t, traits: b.Traits(),
		faults: map[string]func(context.Context) error{}, calls: map[string]int{}}
	f.traits.Local = false
	return f
}

// forLimiter returns the store to pass to a limiter. It implements the optional interfaces for
// leases and entities only if the wrapped store does, because the limiter discovers abilities by
// them.
func (f *faultyStore) forLimiter() driver.Store {
	leases, keeps := f.Store.(driver.LeaseRecoverer)
	keeps = keeps && !f.traits.NoLeases
	voids, _ := f.Store.(driver.LeaseVoider)
	entities, knows := f.Store.(driver.EntityReader)
	unplanned, begins := f.Store.(driver.UnplannedReserver)
	switch {
	case begins && knows && !keeps:
		return struct {
			*faultyStore
			driver.UnplannedReserver
			driver.EntityReader
		}{f, &faultyUnplanned{f, unplanned}, entities}
	case begins && knows && keeps:
		return struct {
			*faultyStore
			driver.UnplannedReserver
			driver.EntityReader
			driver.LeaseRecoverer
			driver.LeaseVoider
		}{f, &faultyUnplanned{f, unplanned}, entities, leases, voids}
	case keeps && knows:
		return struct {
			*faultyStore
			driver.LeaseRecoverer
			driver.EntityReader
		}{f, leases, entities}
	case keeps:
		return struct {
			*faultyStore
			driver.LeaseRecoverer
		}{f, leases}
	case knows:
		return struct {
			*faultyStore
			driver.EntityReader
		}{f, entities}
	}
	return f
}

// inner returns the wrapped store.
func (f *faultyStore) inner() driver.Store { return f.Store }

// fail makes the calls of a name fail until heal is called.
func (f *faultyStore) fail(name string, with error) {
	f.addFault(name, func(context.Context) error { return with })
}

// hang makes calls of a name wait until their context ends.
func (f *faultyStore) hang(name string) {
	f.addFault(name, func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	})
}

func (f *faultyStore) addFault(name string, fault func(context.Context) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults[name] = fault
}

func (f *faultyStore) clearFaults() {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.faults)
}

// counted returns how often each call was made after the previous call of counted.
func (f *faultyStore) counted() map[string]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := maps.Clone(f.calls)
	clear(f.calls)
	return c
}

func (f *faultyStore) enter(ctx context.Context, name string) error {
	f.mu.Lock()
	f.calls[name]++
	fault := f.faults[name]
	f.mu.Unlock()
	if fault == nil {
		return nil
	}
	return fault(ctx)
}

// Traits returns the store's traits, but as remote.
func (f *faultyStore) Traits() driver.Traits { return f.traits }

// Reserve implements [driver.Store].
func (f *faultyStore) Reserve(
	ctx context.Context, now time.Time, p *driver.Plan, out *driver.Outcome,
) error {
	if err := f.enter(ctx, "reserve"); err != nil {
		return err
	}
	before := p.Clone()
	err := f.Store.Reserve(ctx, now, p, out)
	if !reflect.DeepEqual(before, p) {
		f.t.Errorf("reserve changed the plan that it was handed: %v, was %v", p, before)
	}
	return err
}

// faultyUnplanned is a faultyStore whose store can reserve unplanned.
type faultyUnplanned struct {
	f         *faultyStore
	unplanned driver.UnplannedReserver
}

// ReserveUnplanned implements [driver.UnplannedReserver].
func (l *faultyUnplanned) ReserveUnplanned(
	ctx context.Context, now time.Time, u *driver.Unplanned,
) (*driver.Plan, *driver.Outcome, error) {
	if err := l.f.enter(ctx, "reserve"); err != nil {
		return nil, nil, err
	}
	costs := maps.Clone(u.Costs)
	p, out, err := l.unplanned.ReserveUnplanned(ctx, now, u)
	if !maps.Equal(costs, u.Costs) {
		l.f.t.Errorf("reserve changed the costs that it was handed: %v, were %v", u.Costs, costs)
	}
	return p, out, err
}

// KeepUnplanned implements [driver.UnplannedReserver].
func (l *faultyUnplanned) KeepUnplanned(
	ctx context.Context, now time.Time, p *driver.Plan, out *driver.Outcome,
) error {
	return l.unplanned.KeepUnplanned(ctx, now, p, out)
}

// Update implements [driver.Store].
func (f *faultyStore) Update(
	ctx context.Context, now time.Time, u *driver.Update, out *driver.Outcome,
) error {
	if err := f.enter(ctx, "settle"); err != nil {
		return err
	}
	before := *u
	before.Changes = slices.Clone(u.Changes)
	for i := range before.Changes {
		c := &before.Changes[i]
		c.Holding, c.Parts = &cloneHoldings([]driver.Holding{*c.Holding})[0], slices.Clone(c.Parts)
	}
	err := f.Store.Update(ctx, now, u, out)
	if !reflect.DeepEqual(&before, u) {
		f.t.Errorf("%s changed the update that it was handed: %v, was %v", u.Verb, u, &before)
	}
	return err
}

// Status implements [driver.Store].
func (f *faultyStore) Status(
	ctx context.Context, now time.Time, of []driver.Judged,
) ([]weir.LimitStatus, error) {
	if err := f.enter(ctx, "status"); err != nil {
		return nil, err
	}
	return f.Store.Status(ctx, now, of)
}

// Close implements [driver.Store].
func (f *faultyStore) Close() error {
	if err := f.enter(context.Background(), "close"); err != nil {
		return err
	}
	return f.Store.Close()
}

// ReadConfig implements [driver.ConfigReader]. If the store does not, nothing is configured.
func (f *faultyStore) ReadConfig(
	ctx context.Context, of weir.Subject, consistent bool,
) (*weir.Config, error) {
	if err := f.enter(ctx, "read"); err != nil {
		return nil, err
	}
	if r, ok := f.Store.(driver.ConfigReader); ok {
		c, err := r.ReadConfig(ctx, of, consistent)
		if err == nil && f.told != nil {
			f.told(of, c)
		}
		return c, err
	}
	return &weir.Config{}, nil
}

// WriteConfig implements [driver.ConfigWriter].
func (f *faultyStore) WriteConfig(ctx context.Context, now time.Time, d *weir.Definitions) error {
	if err := f.enter(ctx, "write"); err != nil {
		return err
	}
	if w, ok := f.Store.(driver.ConfigWriter); ok {
		return w.WriteConfig(ctx, now, d)
	}
	return &weir.Error{Code: weir.Unsupported}
}

// WriteLimits implements [driver.ConfigEditor].
func (f *faultyStore) WriteLimits(
	ctx context.Context, now time.Time, at weir.Subject, limits []weir.Limit,
) error {
	return f.edit(ctx, func(e driver.ConfigEditor) error {
		return e.WriteLimits(ctx, now, at, limits)
	})
}

// WritePolicy implements [driver.ConfigEditor].
func (f *faultyStore) WritePolicy(ctx context.Context, now time.Time, p weir.Policy) error {
	return f.edit(ctx, func(e driver.ConfigEditor) error { return e.WritePolicy(ctx, now, p) })
}

// WriteEntity implements [driver.ConfigEditor].
func (f *faultyStore) WriteEntity(
	ctx context.Context, now time.Time, name, parent string, cascade bool,
) error {
	return f.edit(ctx, func(e driver.ConfigEditor) error {
		return e.WriteEntity(ctx, now, name, parent, cascade)
	})
}

// DeleteEntity implements [driver.ConfigEditor].
func (f *faultyStore) DeleteEntity(ctx context.Context, now time.Time, name string) error {
	return f.edit(ctx, func(e driver.ConfigEditor) error { return e.DeleteEntity(ctx, now, name) })
}

// edit changes a piece of the store's configuration, if the store can do that.
func (f *faultyStore) edit(ctx context.Context, change func(driver.ConfigEditor) error) error {
	if err := f.enter(ctx, "write"); err != nil {
		return err
	}
	if e, ok := f.Store.(driver.ConfigEditor); ok {
		return change(e)
	}
	return &weir.Error{Code: weir.Unsupported}
}

// cloneHoldings copies everything that a holding points to, including its limit.
func cloneHoldings(holdings []driver.Holding) []driver.Holding {
	out := slices.Clone(holdings)
	for i := range out {
		limit := *out[i].Limit
		out[i].Limit = &limit
		out[i].Parts = slices.Clone(out[i].Parts)
		out[i].Pieces = slices.Clone(out[i].Pieces)
	}
	return out
}
