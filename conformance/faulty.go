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

// faultyStore is a store on which calls can be made to fail, or to hang, before they reach the
// store. It also watches that a store leaves alone what it was handed.
type faultyStore struct {
	driver.Store
	t      T
	traits driver.Traits
	// told changes what is configured for a subject, as the limiter is told; nil leaves it.
	told func(of weir.Subject, c *weir.Config)

	mu     sync.Mutex
	faults map[string]func(context.Context) error
	calls  map[string]int
}

// newFaulty wraps a store. Its calls count as remote, so that they get a timeout.
func newFaulty(t T, b driver.Store) *faultyStore {
	f := &faultyStore{Store: b, t: t, traits: b.Traits(),
		faults: map[string]func(context.Context) error{}, calls: map[string]int{}}
	f.traits.Local = false
	return f
}

// backend is what to give to a limiter: it keeps leases, and knows its entities, exactly if the
// store does.
func (f *faultyStore) backend() driver.Store {
	leases, keeps := f.Store.(driver.LeaseRecoverer)
	entities, knows := f.Store.(driver.EntityReader)
	unplanned, begins := f.Store.(driver.UnplannedReserver)
	switch {
	case begins && knows && !keeps:
		return struct {
			*faultyStore
			driver.UnplannedReserver
			driver.EntityReader
		}{f, &faultyUnplanned{f, unplanned}, entities}
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

// inner is the store itself.
func (f *faultyStore) inner() driver.Store { return f.Store }

// fail makes calls of a name fail until heal.
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

// counted is how often each call was made, since it was last asked.
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

// Traits are the store's, but remote.
func (f *faultyStore) Traits() driver.Traits { return f.traits }

// Reserve fulfils [driver.Store].
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

// faultyUnplanned is the same of a store that can reserve without a plan.
type faultyUnplanned struct {
	f         *faultyStore
	unplanned driver.UnplannedReserver
}

// ReserveUnplanned fulfils [driver.UnplannedReserver].
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

// Update fulfils [driver.Store].
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

// Status fulfils [driver.Store].
func (f *faultyStore) Status(
	ctx context.Context, now time.Time, of []driver.Judged,
) ([]weir.LimitStatus, error) {
	if err := f.enter(ctx, "status"); err != nil {
		return nil, err
	}
	return f.Store.Status(ctx, now, of)
}

// Close fulfils [driver.Store].
func (f *faultyStore) Close() error {
	if err := f.enter(context.Background(), "close"); err != nil {
		return err
	}
	return f.Store.Close()
}

// ReadConfig fulfils [driver.ConfigReader]. A store that is none has nothing configured.
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

// WriteConfig fulfils [driver.ConfigWriter].
func (f *faultyStore) WriteConfig(ctx context.Context, now time.Time, d *weir.Definitions) error {
	if err := f.enter(ctx, "write"); err != nil {
		return err
	}
	if w, ok := f.Store.(driver.ConfigWriter); ok {
		return w.WriteConfig(ctx, now, d)
	}
	return &weir.Error{Code: weir.Unsupported}
}

// WriteLimits fulfils [driver.ConfigEditor].
func (f *faultyStore) WriteLimits(
	ctx context.Context, now time.Time, at weir.Subject, limits []weir.Limit,
) error {
	return f.edit(ctx, func(e driver.ConfigEditor) error {
		return e.WriteLimits(ctx, now, at, limits)
	})
}

// WritePolicy fulfils [driver.ConfigEditor].
func (f *faultyStore) WritePolicy(ctx context.Context, now time.Time, p weir.Policy) error {
	return f.edit(ctx, func(e driver.ConfigEditor) error { return e.WritePolicy(ctx, now, p) })
}

// WriteEntity fulfils [driver.ConfigEditor].
func (f *faultyStore) WriteEntity(
	ctx context.Context, now time.Time, name, parent string, cascade bool,
) error {
	return f.edit(ctx, func(e driver.ConfigEditor) error {
		return e.WriteEntity(ctx, now, name, parent, cascade)
	})
}

// DeleteEntity fulfils [driver.ConfigEditor].
func (f *faultyStore) DeleteEntity(ctx context.Context, now time.Time, name string) error {
	return f.edit(ctx, func(e driver.ConfigEditor) error { return e.DeleteEntity(ctx, now, name) })
}

// edit changes a piece of the store's configuration, if it can.
func (f *faultyStore) edit(ctx context.Context, change func(driver.ConfigEditor) error) error {
	if err := f.enter(ctx, "write"); err != nil {
		return err
	}
	if e, ok := f.Store.(driver.ConfigEditor); ok {
		return change(e)
	}
	return &weir.Error{Code: weir.Unsupported}
}

func cloneCharges(charges []weir.Charge) []weir.Charge {
	out := slices.Clone(charges)
	for i := range out {
		out[i].Costs = maps.Clone(out[i].Costs)
	}
	return out
}

// cloneHoldings copies all that a holding has of its own, the limit included.
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
