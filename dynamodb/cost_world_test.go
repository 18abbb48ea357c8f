package dynamodb

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/conformance"
	"github.com/weir-limiter/weir/internal/schema"
	"github.com/weir-limiter/weir/internal/testkit"
	"github.com/weir-limiter/weir/limiter"
)

// costResource is the resource of all reservations in these tests.
const costResource = "gpt-4o"

// costWorld is a namespace of its own on a table, with a clock that stands still unless it is
// advanced.
type costWorld struct {
	t         *testing.T
	table     *Table
	namespace string
	clock     *conformance.Clock
	tune      []func(*Options) // of all processes
	// first is the first process of the world.
	first *costProcess
}

// costProcess is a process: a limiter on a store whose calls are counted.
type costProcess struct {
	*limiter.Limiter
	t     *testing.T
	store *Store
	calls *testkit.Counter
	wire  *wire
}

// processLeases keeps leases in the process, to count the writes of bucket items alone.
func processLeases(o *Options) { o.ProcessLeases = true }

// newCostWorld returns a world whose clock is far in the future, so that DynamoDB's own expiry
// deletes nothing. The options apply to all processes of the world.
func newCostWorld(t *testing.T, table *Table, tune ...func(*Options)) *costWorld {
	t.Helper()
	start := time.Date(2040, 1, 1, 0, 0, 0, 0, time.UTC)
	s := &costWorld{
		t: t, table: table, clock: conformance.NewClock(start), tune: tune,
		namespace: "c" + strings.ToLower(weir.NewLeaseID(start).String()),
	}
	if _, _, err := table.RegisterNamespace(t.Context(), s.namespace); err != nil {
		t.Fatalf("register: %v", err)
	}
	s.first = s.join()
	return s
}

// join starts another process, without any state.
func (s *costWorld) join(tune ...func(*Options)) *costProcess {
	s.t.Helper()
	p := &costProcess{t: s.t, calls: &testkit.Counter{}, wire: newWire(s.t)}
	o := *s.table.Options
	o.Namespace, o.Principal, o.WriteTimeout = s.namespace, "test", patience
	o.HTTP = &http.Client{Transport: p.wire}
	o.Client = append(o.Client, p.calls.Install)
	o.OnError = func(err error) { s.t.Errorf("in the background: %v", err) }
	for _, f := range slices.Concat(s.tune, tune) {
		f(&o)
	}
	store, err := Open(s.t.Context(), s.table.Name, &o)
	if err != nil {
		s.t.Fatalf("open: %v", err)
	}
	p.store = store
	p.Limiter, err = limiter.New(store, &limiter.Options{Now: s.clock.Now, StoreTimeout: 2 * patience})
	if err != nil {
		s.t.Fatalf("new: %v", err)
	}
	s.t.Cleanup(func() {
		if err := p.Close(); err != nil {
			s.t.Errorf("close: %v", err)
		}
	})
	return p
}

// set replaces the limits of a place.
func (p *costProcess) set(entity, resource string, limits ...weir.Limit) {
	p.t.Helper()
	at := weir.Subject{Entity: entity, Resource: resource}
	if err := p.SetLimits(p.t.Context(), at, limits); err != nil {
		p.t.Fatalf("set limits: %v", err)
	}
}

// declare declares an entity, which cascades to its parent if it has one.
func (p *costProcess) declare(entity, parent string) {
	p.t.Helper()
	if err := p.SetEntity(p.t.Context(), entity, parent, parent != ""); err != nil {
		p.t.Fatalf("declare %s: %v", entity, err)
	}
}

// take reserves, and fails the test if it is denied.
func (p *costProcess) take(entity string, costs weir.Costs) *weir.Lease {
	p.t.Helper()
	r := &weir.Request{Entity: entity, Resource: costResource, Costs: costs}
	lease, err := p.Reserve(p.t.Context(), r)
	if err != nil {
		p.t.Fatalf("reserve %v for %s: %v", costs, entity, err)
	}
	return lease
}

// denial reserves, and fails the test unless it is denied.
func (p *costProcess) denial(entity string, costs weir.Costs) *weir.DeniedError {
	p.t.Helper()
	r := &weir.Request{Entity: entity, Resource: costResource, Costs: costs}
	_, err := p.Reserve(p.t.Context(), r)
	denied, ok := errors.AsType[*weir.DeniedError](err)
	if !ok {
		p.t.Fatalf("reserve %v for %s: got %v, want a denial", costs, entity, err)
	}
	return denied
}

// refused is like denial, but returns nothing.
func (p *costProcess) refused(entity string, costs weir.Costs) {
	p.t.Helper()
	_ = p.denial(entity, costs)
}

// settled waits until the store has no calls or writes in flight.
func (p *costProcess) settled() { p.store.running.Wait() }

// item reads a shard's item without counting the call.
func (s *costWorld) item(entity string, shard int) schema.Item {
	s.t.Helper()
	id := schema.BucketID{
		Namespace: s.first.store.config.Namespace, Entity: entity, Resource: costResource, Shard: shard,
	}
	item, err := connected(s.t, s.table).GetItem(s.t.Context(), id.Key(), true)
	if err != nil {
		s.t.Fatalf("read %s: %v", id, err)
	}
	return item
}

// bucket returns a shard's item, and fails the test if it does not exist.
func (s *costWorld) bucket(entity string, shard int) *schema.Bucket {
	s.t.Helper()
	b, err := schema.ParseBucket(s.item(entity, shard))
	if err != nil {
		s.t.Fatalf("shard %d of %s: %v", shard, entity, err)
	}
	return b
}

// perMinute returns a limit that regains its capacity each minute.
func perMinute(name string, capacity int64) weir.Limit {
	return weir.Limit{Name: name, Capacity: capacity}
}

// patience bounds the waits of a test.
const patience = 20 * time.Second

// barrier holds requests until a given number of them have come.
type barrier struct {
	mu   sync.Mutex
	left int
	open chan struct{}
}

func newBarrier(n int) *barrier { return &barrier{left: n, open: make(chan struct{})} }

// arrive counts a request that does not wait.
func (m *barrier) arrive() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.left--; m.left == 0 {
		close(m.open)
	}
}

// wait counts a request and waits for the others. It reports false if they do not come.
func (m *barrier) wait() bool {
	m.arrive()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-m.open:
		return true
	case <-timer.C:
		return false
	}
}
