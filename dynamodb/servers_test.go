package dynamodb

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/conformance"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/internal/soak"
	"github.com/weir-limiter/weir/limiter"
)

// TestServersRandomOperations makes random operations, each on one of three servers, and compares
// every answer with the model, which knows nothing of servers.
func TestServersRandomOperations(t *testing.T) {
	t.Parallel()
	seed := soak.Seed(t)
	h := serversHarness(t, seed, true, nil)
	h.NoConfigure = true
	conformance.RandomOperations(t, h, seed, soak.Amount(3000, 20_000))
}

// TestServersConfigured is like [TestServersRandomOperations], and changes the configuration too.
// The seed is fixed, because there is a rare difference: a server that does not know that another
// one has ended a lease charges it and gives back. If the capacity was raised just then, the limit
// counts as used under the new one, and is not full as an unused limit is.
func TestServersConfigured(t *testing.T) {
	t.Parallel()
	conformance.RandomOperations(t, serversHarness(t, 5, true, nil), 5, 2000)
}

// TestServersNeedLeasesInTable checks that the operations of [TestServersRandomOperations] tell
// servers that share their leases from servers that do not.
func TestServersNeedLeasesInTable(t *testing.T) {
	t.Parallel()
	h := serversHarness(t, 1, true, func(o *Options) { o.ProcessLeases = true })
	if d := conformance.FirstDifference(t, h, 1, 500); d == "" {
		t.Error("leases are kept in the process, and no answer is wrong")
	}
}

// serversHarness opens worlds of three servers on one namespace. If shareBuckets is set, they share
// what they remember of bucket items, which is not exact: a denial is remembered for a second, and
// an item does not say when each limit was used last. All that they know of leases is then from the
// table alone.
func serversHarness(
	t *testing.T, seed uint64, shareBuckets bool, tune func(o *Options),
) conformance.Harness {
	t.Helper()
	stores := harness(t, tune)
	var first *Store // of the world that is being opened
	open := stores.Open
	stores.Open = func(t conformance.T, s conformance.Setup) driver.Store {
		t.Helper()
		b := open(t, s)
		first = b.(*Store)
		return b
	}
	h := stores.Service(t)
	h.SeveralServers = true
	h.NoSkew = true // a server does not know a later time that another one has seen
	openWorld := h.Open
	h.Open = func(t conformance.T, s conformance.Setup) conformance.World {
		t.Helper()
		// Each world chooses the same servers in turn, so that a script fails each time.
		w := &servers{random: rand.New(rand.NewPCG(seed, 0))}
		w.World = openWorld(t, s)
		w.all = append(w.all, w.World)
		s.Options.Now, s.Options.StoreTimeout = w.Now, stores.StoreTimeout
		for range 2 {
			o := first.options
			other, err := Open(t.Context(), first.client.TableName, &o)
			if err != nil {
				t.Fatalf("open another server: %v", err)
			}
			if shareBuckets {
				other.buckets, other.admin = first.buckets, first.admin
			}
			l, err := limiter.New(other, &s.Options)
			if err != nil {
				t.Fatalf("open a limiter: %v", err)
			}
			w.all, w.others = append(w.all, l), append(w.others, l)
		}
		return w
	}
	return h
}

// servers are three limiters on stores of one namespace. Each call goes to one of them; a change of
// the configuration to the first one.
type servers struct {
	conformance.World // the first server, with the clock

	all    []weir.Service
	others []*limiter.Limiter
	mu     sync.Mutex
	random *rand.Rand
}

// one returns the server of the next call.
func (w *servers) one() weir.Service {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.all[w.random.IntN(len(w.all))]
}

func (w *servers) Reserve(ctx context.Context, r *weir.Request) (*weir.Lease, error) {
	return w.one().Reserve(ctx, r)
}

func (w *servers) Adjust(
	ctx context.Context, id weir.LeaseID, seq int64, totals []weir.Costs,
) (*weir.Receipt, error) {
	return w.one().Adjust(ctx, id, seq, totals)
}

func (w *servers) Complete(
	ctx context.Context, id weir.LeaseID, actuals []weir.Costs,
) (*weir.Receipt, error) {
	return w.one().Complete(ctx, id, actuals)
}

func (w *servers) Cancel(ctx context.Context, id weir.LeaseID) (*weir.Receipt, error) {
	return w.one().Cancel(ctx, id)
}

func (w *servers) Extend(ctx context.Context, id weir.LeaseID) (*weir.Receipt, error) {
	return w.one().Extend(ctx, id)
}

func (w *servers) Status(ctx context.Context, entity, resource string) ([]weir.LimitStatus, error) {
	return w.one().Status(ctx, entity, resource)
}

// Explain reads the configuration on all servers. A limiter that settles a lease does not read it.
func (w *servers) Explain(ctx context.Context, entity, resource string) (*weir.Explanation, error) {
	for _, s := range w.all[1:] {
		_, _ = s.Explain(ctx, entity, resource) // the first one answers the same
	}
	return w.all[0].Explain(ctx, entity, resource)
}

// Configure replaces the definitions on the first server. The others then read them again, as they do
// once their caches are too old.
func (w *servers) Configure(d *weir.Definitions) error {
	err := w.World.Configure(d)
	for _, l := range w.others {
		l.DropCache()
	}
	return err
}

// Close closes all servers.
func (w *servers) Close() error {
	err := w.World.Close()
	for _, l := range w.others {
		err = errors.Join(err, l.Close())
	}
	return err
}
