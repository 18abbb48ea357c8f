package dynamodb

import (
	"bytes"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/bucketitem"
	"github.com/weir-limiter/weir/internal/testkit"
	"github.com/weir-limiter/weir/limiter"
)

// faultClock is the clock of all limiters of a test. It stands still unless it is advanced.
type faultClock struct{ ms atomic.Int64 }

// newFaultClock returns a clock at a whole second near the real time, so that DynamoDB's own expiry
// does not delete the items.
func newFaultClock() *faultClock {
	c := &faultClock{}
	c.ms.Store(time.Now().Unix() * 1000)
	return c
}

func (c *faultClock) now() time.Time { return time.UnixMilli(c.ms.Load()).UTC() }

func (c *faultClock) advance(d time.Duration) { c.ms.Add(d.Milliseconds()) }

// trap is a fault for the next requests with an operation and a text in the body, as many as it is
// set for.
type trap struct {
	fault           testkit.Fault
	code            string
	operation, text string
	left            atomic.Int64
	seen            atomic.Int64 // matching requests, hit or not
	skip            atomic.Int64 // the number of matching requests to let pass first
	// struck, if not nil, has room for one value and receives it with the first hit.
	struck chan struct{}
}

// set makes the trap hit n requests.
func (p *trap) set(n int64) { p.left.Store(n) }

func (p *trap) rule() testkit.FaultRule {
	match := func(r *testkit.FaultRequest) bool {
		if p.operation != "" && r.Operation != p.operation || !bytes.Contains(r.Body, []byte(p.text)) {
			return false
		}
		if p.seen.Add(1) <= p.skip.Load() || p.left.Add(-1) < 0 {
			return false
		}
		select {
		case p.struck <- struct{}{}:
		default:
		}
		return true
	}
	return testkit.FaultRule{Fault: p.fault, Code: p.code, PerMille: 1000, Match: match}
}

// faultSide is one process: a limiter on a store whose transport injects faults.
type faultSide struct {
	name    string
	store   *Store
	limiter *limiter.Limiter
	faults  *testkit.Faults
	wire    *faultWire
}

// faultWorld is a table with a clock and the processes that use it.
type faultWorld struct {
	table *Table
	clock *faultClock
	eye   *Store // without faults
}

func newFaultWorld(t *testing.T) *faultWorld {
	t.Helper()
	w := &faultWorld{table: madeTable(t), clock: newFaultClock()}
	o := *w.table.Options
	o.Principal = "tester"
	s, err := Open(t.Context(), w.table.Name, &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	w.eye = s
	return w
}

// side opens a process. Unless the options say otherwise, its timeouts allow for a slow machine.
func (w *faultWorld) side(
	t *testing.T, name string, o Options, l limiter.Options, faults *testkit.FaultOptions,
) *faultSide {
	t.Helper()
	s := &faultSide{name: name, wire: newFaultWire()}
	below := testkit.FaultOptions{}
	if faults != nil {
		below = *faults
	}
	if below.Base == nil {
		below.Base = http.DefaultTransport.(*http.Transport).Clone()
	}
	below.Base = &wireLayer{wire: s.wire, next: below.Base}
	s.faults = testkit.NewFaults(&below)
	o.Config, o.Endpoint = w.table.Options.Config, w.table.Options.Endpoint
	o.HTTP = &http.Client{Transport: s.faults}
	o.Client = append(slices.Clone(o.Client), s.wire.install)
	if o.WriteTimeout == 0 {
		o.WriteTimeout = time.Minute
	}
	store, err := Open(t.Context(), w.table.Name, &o)
	if err != nil {
		t.Fatal(err)
	}
	l.Now = w.clock.now
	if l.StoreTimeout == 0 {
		l.StoreTimeout = time.Minute
	}
	if s.limiter, err = limiter.New(store, &l); err != nil {
		t.Fatal(err)
	}
	s.store = store
	t.Cleanup(func() { _ = s.limiter.Close() })
	return s
}

// trapped opens a process whose only faults are traps, which are set later.
func (w *faultWorld) trapped(t *testing.T, l limiter.Options, traps ...*trap) *faultSide {
	t.Helper()
	return w.trappedIn(t, Options{}, l, traps...)
}

// trappedIn is like trapped, with options of the store.
func (w *faultWorld) trappedIn(
	t *testing.T, s Options, l limiter.Options, traps ...*trap,
) *faultSide {
	t.Helper()
	o := &testkit.FaultOptions{}
	for _, p := range traps {
		o.Rules = append(o.Rules, p.rule())
	}
	return w.side(t, "trapped", s, l, o)
}

// faultResource is the resource of all charges in these tests.
const faultResource = "gpt-4o"

// limits sets the limits of an entity on the resource, or of the resource if entity is empty.
func (w *faultWorld) limits(t *testing.T, entity string, limits ...weir.Limit) {
	t.Helper()
	w.eye.mustSet(t, weir.Subject{Entity: entity, Resource: faultResource}, limits...)
}

// perSecond returns a bucket with a refill per second.
func perSecond(name string, capacity, refill int64) weir.Limit {
	return weir.Limit{
		Name: name, Kind: weir.Bucket, Capacity: capacity, RefillAmount: refill, RefillPeriod: time.Second,
	}
}

// taken returns the sums of tc and of tk of a limit over the items of a bucket, in milli-units.
func (w *faultWorld) taken(t *testing.T, entity, limit string) (consumed, balance int64) {
	t.Helper()
	for _, m := range w.images(t, entity) {
		if m == nil {
			continue
		}
		if c := m.Limit(limit); c != nil {
			consumed += c.Consumed
			balance += c.Balance
		}
	}
	return consumed, balance
}

// images reads the items of a bucket, one for each shard.
func (w *faultWorld) images(t *testing.T, entity string) []*bucketitem.Image {
	t.Helper()
	p := w.eye.buckets.Subject(weir.Subject{Entity: entity, Resource: faultResource})
	defer p.Release()
	now := w.clock.now().UnixMilli()
	images, err := p.ReadShards(t.Context(), now)
	for err == nil && images[0] != nil && images[0].Item.Shards > len(images) {
		p.RaiseShards(images[0].Item.Shards)
		images, err = p.ReadShards(t.Context(), now)
	}
	if err != nil {
		t.Fatalf("read the bucket of %s: %v", entity, err)
	}
	return images
}

// wantTaken checks the units taken by the table.
func (w *faultWorld) wantTaken(t *testing.T, entity, limit string, units int64) {
	t.Helper()
	consumed, _ := w.taken(t, entity, limit)
	if consumed != units*1000 {
		t.Errorf("%s %s: the table says that %d milli-units are taken, want %d", entity, limit,
			consumed, units*1000)
	}
}
