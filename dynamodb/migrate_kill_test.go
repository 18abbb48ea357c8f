package dynamodb

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/internal/schema"
	"github.com/weir-limiter/weir/internal/soak"
	"github.com/weir-limiter/weir/internal/testkit"
	"github.com/weir-limiter/weir/limiter"
)

// balances are milli-units by "entity resource limit".
type balances map[string]int64

// oldBalances returns the balances of the old items.
func (w *oldTable) oldBalances() balances {
	all := make(balances)
	for _, item := range w.oldItems() {
		entity, resource := client.TextOf(item, "entity_id"), client.TextOf(item, "resource")
		if limit := client.TextOf(item, "limit_name"); limit != "" && item["tokens_milli"] != nil {
			all[entity+" "+resource+" "+limit] = w.number(item, "tokens_milli")
		}
		for name := range item {
			limit, field, ok := schema.ParseBucketAttribute(name)
			if ok && field == "tk" {
				all[entity+" "+resource+" "+limit] = w.number(item, name)
			}
		}
	}
	return all
}

// newBuckets returns the bucket items of the present layout.
func (w *oldTable) newBuckets() []*schema.Bucket {
	w.t.Helper()
	var all []*schema.Bucket
	for _, item := range w.items() {
		if client.TextOf(item, schema.AttrSK) != schema.SKState {
			continue
		}
		b, err := schema.ParseBucket(item)
		if err != nil {
			w.t.Fatal(err)
		}
		all = append(all, b)
	}
	return all
}

// newBalances returns the balances of the bucket items of the present layout.
func (w *oldTable) newBalances() balances {
	all := make(balances)
	for _, b := range w.newBuckets() {
		for i := range b.Limits {
			all[b.Entity+" "+b.Resource+" "+b.Limits[i].Name] += b.Limits[i].Balance
		}
	}
	return all
}

func (w *oldTable) number(item schema.Item, name string) int64 {
	w.t.Helper()
	n, err := schema.Int64(item[name])
	if err != nil {
		w.t.Fatal(name, err)
	}
	return n
}

// killer fails like a process that is killed: from one request on, none is sent. Of that
// request, the answer may be lost instead.
type killer struct {
	left  atomic.Int64 // requests that are still sent
	lost  bool         // the last request is sent, and its answer is lost
	kill  context.CancelFunc
	calls atomic.Int64
}

func (k *killer) RoundTrip(r *http.Request) (*http.Response, error) {
	k.calls.Add(1)
	left := k.left.Add(-1)
	if left > 0 {
		return http.DefaultTransport.RoundTrip(r)
	}
	defer k.kill()
	if left == 0 && k.lost {
		if answer, err := http.DefaultTransport.RoundTrip(r.WithContext(context.Background())); err == nil {
			_, _ = io.Copy(io.Discard, answer.Body)
			_ = answer.Body.Close()
		}
	}
	return nil, errors.New("killed")
}

// migrateKilled runs a migration that is killed at a request. It reports whether it ended before.
func (w *oldTable) migrateKilled(at int64, lost bool) (*Migration, bool) {
	w.t.Helper()
	ctx, kill := context.WithCancel(w.t.Context())
	defer kill()
	k := &killer{lost: lost, kill: kill}
	k.left.Store(at)
	table := w.table()
	table.Options.HTTP = &http.Client{Transport: k}
	m, err := table.Migrate(ctx, false, nil)
	if err == nil {
		return m, true
	}
	if ctx.Err() == nil {
		w.t.Fatalf("migration: %v", err)
	}
	return m, false
}

// migrateKilledAt runs a migration that is killed as soon as it is at a step.
func (w *oldTable) migrateKilledAt(step string) {
	w.t.Helper()
	ctx, kill := context.WithCancel(w.t.Context())
	defer kill()
	_, err := w.table().Migrate(ctx, false, func(m *Migration) {
		if m.Step == step {
			kill()
		}
	})
	if ctx.Err() == nil {
		w.t.Fatalf("the migration ended: %v", err)
	}
}

// migrationWorld is a table that is migrated while weir's writers use it.
type migrationWorld struct {
	*oldTable

	now      time.Time // of all writers, so that nothing is gained
	entities int
	stop     chan struct{}
	calls    testkit.Counter // of the writers

	mu       sync.Mutex // guards the fields below
	consumed balances   // that the writers were told
	failed   bool
	opened   int
	admitted int
	denied   int
}

// serve opens stores and makes reservations until the world stops.
func (w *migrationWorld) serve(seed uint64) error {
	r := rand.New(rand.NewPCG(seed, 1))
	for {
		select {
		case <-w.stop:
			return nil
		default:
		}
		o := w.options()
		o.Client = append(o.Client, w.calls.Install)
		s, err := Open(w.t.Context(), w.name, o)
		if errors.Is(err, weir.Unsupported) || errors.Is(err, weir.Unavailable) {
			continue // it is not locked yet, or does not have its limits yet
		}
		if err != nil {
			return err
		}
		l, err := limiter.New(s, &limiter.Options{
			Now: func() time.Time { return w.now }, StoreTimeout: time.Minute,
		})
		if err != nil {
			return err
		}
		w.mu.Lock()
		w.opened++
		w.mu.Unlock()
		for range 4 + r.IntN(12) {
			if err := w.reserve(l, r); err != nil {
				return err
			}
		}
		if err := l.Close(); err != nil {
			return err
		}
		if err := s.Close(); err != nil {
			return err
		}
	}
}

// reserve makes a reservation and settles it.
func (w *migrationWorld) reserve(l *limiter.Limiter, r *rand.Rand) error {
	ctx := w.t.Context()
	entity := "bot"
	if n := r.IntN(w.entities + 1); n < w.entities {
		entity = fmt.Sprintf("user-%d", n)
	}
	if r.IntN(8) == 0 {
		return w.expectDenial(l, &weir.Request{
			Entity: "deep", Resource: "gpt-4o", Costs: weir.Costs{"rpm": 1},
		})
	}
	if r.IntN(8) == 0 {
		all := int64(100_000)
		if entity == "bot" {
			all = 9000
		}
		return w.expectDenial(l, &weir.Request{
			Entity: entity, Resource: "gpt-4", Costs: weir.Costs{"rpm": 1, "tpm": all},
		})
	}
	costs := weir.Costs{"rpm": 1, "tpm": 1 + r.Int64N(20)}
	lease, err := l.Reserve(ctx, &weir.Request{Entity: entity, Resource: "gpt-4", Costs: costs})
	if d, ok := errors.AsType[*weir.DeniedError](err); ok && d.Contended {
		return nil // the other writers won every round
	}
	if err != nil {
		return fmt.Errorf("reserve for %s: %w", entity, err)
	}
	switch r.IntN(3) {
	case 0:
		if _, err := lease.Cancel(ctx); err != nil {
			return err
		}
		return nil
	case 1:
		costs["tpm"] = r.Int64N(40)
	}
	if _, err := lease.Complete(ctx, costs); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.admitted++
	for _, charged := range w.chargedWith(entity) {
		for limit, n := range costs {
			w.consumed[charged+" gpt-4 "+limit] += n * 1000
		}
	}
	return nil
}

// chargedWith returns the entities that a charge on one reaches.
func (*migrationWorld) chargedWith(entity string) []string {
	if entity == "bot" {
		return []string{"bot", "acme"}
	}
	return []string{entity}
}

func (w *migrationWorld) expectDenial(l *limiter.Limiter, q *weir.Request) error {
	_, err := l.Reserve(w.t.Context(), q)
	if err == nil {
		return fmt.Errorf("%s got %v, want a denial", q.Entity, q.Costs)
	}
	if _, ok := errors.AsType[*weir.DeniedError](err); !ok {
		return fmt.Errorf("%s asked for %v, want a denial: %w", q.Entity, q.Costs, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.denied++
	return nil
}

// TestMigrateKilled migrates tables of all layouts while weir's writers use them, and kills the
// migration at random requests. In the end each balance is what it was, less what was consumed.
func TestMigrateKilled(t *testing.T) {
	t.Parallel()
	for _, release := range []string{"0.6.1", "0.7.0", "0.9.1", "0.10.0"} {
		t.Run(release, func(t *testing.T) {
			t.Parallel()
			for round := range soak.Amount(1, 10) {
				t.Run(strconv.Itoa(round), func(t *testing.T) {
					migrateKilled(t, release, soak.Seed(t)+uint64(round))
				})
			}
		})
	}
}

func migrateKilled(t *testing.T, release string, seed uint64) {
	t.Helper()
	const entities, kills, writers = 60, 24, 4
	w := &migrationWorld{
		oldTable: makeOldTable(t, release, entities), now: time.Now(), entities: entities,
		stop: make(chan struct{}), consumed: make(balances),
	}
	before := w.oldBalances()
	errs := make(chan error, writers)
	for i := range writers {
		go func() {
			err := w.serve(seed + uint64(i))
			w.mu.Lock()
			w.failed = w.failed || err != nil
			w.mu.Unlock()
			errs <- err
		}()
	}
	r := rand.New(rand.NewPCG(seed, 0))
	killed, shared := 0, false
	for killed < kills {
		m, ended := w.migrateKilled(1+r.Int64N(20), r.IntN(2) == 0)
		if ended {
			t.Logf("ended after %d kills, at step %q", killed, m.Step)
			break
		}
		killed++
		if m.Step == "buckets" && !shared { // let the writers use the table before it goes on
			shared = true
			w.awaitAdmitted(10)
		}
	}
	m, err := w.table().Migrate(t.Context(), false, nil)
	if err != nil || m.Step != "done" && m.Step != "" {
		t.Errorf("got %+v and %v at the end", m, err)
	}
	w.awaitAdmitted(10) // they go on after the migration
	close(w.stop)
	for range writers {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	w.check(before)
	moved := w.calls.Snapshot()["TransactWriteItems"].Calls
	t.Logf("%d kills, %d opens, %d admitted, %d denied, %d buckets moved by writers",
		killed, w.opened, w.admitted, w.denied, moved)
	if killed < 20 || w.admitted == 0 || w.denied == 0 || moved == 0 {
		t.Error("too little happened")
	}
}

// awaitAdmitted waits for a number of further reservations, and for a denial.
func (w *migrationWorld) awaitAdmitted(n int) {
	w.mu.Lock()
	enough := w.admitted + n
	w.mu.Unlock()
	awaitTrue(w.t, func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.admitted >= enough && w.denied > 0 || w.failed
	})
}

// awaitTrue waits until a condition holds that other goroutines bring about.
func awaitTrue(t *testing.T, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatal("the test ended")
		}
	}
}

// check compares the balances with those before and what was consumed.
func (w *migrationWorld) check(before balances) {
	w.t.Helper()
	if old := w.oldItems(); len(old) > 0 {
		w.t.Errorf("%d old items are left, such as %v", len(old), schema.TypedJSON(old[0]))
	}
	after := w.newBalances()
	entities := []string{"bot gpt-4", "acme gpt-4", "deep gpt-4o"}
	for i := range w.entities {
		entities = append(entities, fmt.Sprintf("user-%d gpt-4", i))
	}
	compared := 0
	for _, key := range slices.Sorted(maps.Keys(before)) {
		if !slices.ContainsFunc(entities, func(e string) bool {
			return len(key) > len(e) && key[:len(e)+1] == e+" "
		}) {
			continue
		}
		compared++
		if got, want := after[key], before[key]-w.consumed[key]; got != want {
			w.t.Errorf("%s: got %d milli-units, want %d - %d = %d", key, got, before[key],
				w.consumed[key], want)
		}
	}
	if compared != 2*(w.entities+2)+1 {
		w.t.Errorf("compared %d balances of %v", compared, before)
	}
	if debt := after["deep gpt-4o rpm"]; debt != -93_000 {
		w.t.Errorf("got a debt of %d, want -93000", debt)
	}
}
