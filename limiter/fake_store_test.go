package limiter_test

import (
	"context"
	"sync"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
)

// fakeStore is a store whose answers the test decides. It has one limit, rpm, for every subject.
type fakeStore struct {
	mu      sync.Mutex
	traits  driver.Traits
	config  *weir.Config
	reserve func(ctx context.Context, p *driver.Plan) (*driver.Outcome, error)
	settle  func(ctx context.Context, u *driver.Update) (*driver.Outcome, error)

	reads, reserves, settles int
	configErr                error
}

func newFakeStore() *fakeStore {
	rpm, err := (weir.Limit{Name: "rpm", Capacity: 100}).Normalize()
	if err != nil {
		panic(err)
	}
	return &fakeStore{
		traits: driver.Traits{Kinds: []weir.Kind{weir.Bucket}, CascadeDepth: 1},
		config: &weir.Config{Levels: []weir.LevelLimits{{Level: weir.LevelSystem, Limits: []weir.Limit{rpm}}}},
	}
}

func (f *fakeStore) Traits() driver.Traits { return f.traits }

func (f *fakeStore) ReadConfig(context.Context, weir.Subject, bool) (*weir.Config, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reads++
	return f.config, f.configErr
}

func (f *fakeStore) Reserve(
	ctx context.Context, now time.Time, p *driver.Plan, out *driver.Outcome,
) error {
	f.mu.Lock()
	f.reserves++
	f.mu.Unlock()
	out.At = now.Truncate(time.Millisecond)
	for i := range p.Takes {
		t := p.Takes[i]
		out.Limits[i] = weir.LimitStatus{
			Entity: t.Entity, Resource: t.Resource, Limit: t.Limit.Name, Requested: t.Cost(),
		}
	}
	if f.reserve == nil {
		return nil
	}
	found, err := f.reserve(ctx, p)
	if err == nil {
		taken := out.Taken
		*out = *found
		out.Taken = taken
	}
	return err
}

func (f *fakeStore) Update(
	ctx context.Context, now time.Time, u *driver.Update, out *driver.Outcome,
) error {
	f.mu.Lock()
	f.settles++
	f.mu.Unlock()
	out.At = now.Truncate(time.Millisecond)
	if f.settle == nil {
		return nil
	}
	found, err := f.settle(ctx, u)
	if err == nil {
		taken := out.Taken
		*out = *found
		out.Taken = taken
	}
	return err
}

func (f *fakeStore) Status(
	context.Context, time.Time, []driver.Judged,
) ([]weir.LimitStatus, error) {
	return nil, nil
}

func (f *fakeStore) Close() error { return nil }

// clock is a clock that the test sets.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// ask is a request for one unit of rpm.
func ask() *weir.Request {
	return &weir.Request{Entity: "acme", Resource: "gpt-4o", Costs: weir.Costs{"rpm": 1}}
}
