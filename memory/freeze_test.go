package memory

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/conformance"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/internal/soak"
)

var freezeEpoch = time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)

// freezeStore returns a store with many subjects, several in each stripe, and many leases.
func freezeStore(t testing.TB, rng *rand.Rand, limits []weir.Limit) *freezeWorld {
	t.Helper()
	w := &freezeWorld{t: t, s: bareStore(t), rng: rng, limits: limits, now: freezeEpoch}
	for range 1000 {
		w.act()
	}
	return w
}

// freezeWorld makes random calls to a store.
type freezeWorld struct {
	t      testing.TB
	s      *SnapshotStore
	rng    *rand.Rand
	limits []weir.Limit
	now    time.Time
	leases []freezeLease
}

type freezeLease struct {
	id       weir.LeaseID
	holdings []driver.Holding
}

// act makes one random call.
func (w *freezeWorld) act() {
	w.t.Helper()
	w.now = w.now.Add(time.Duration(w.rng.IntN(20)) * time.Millisecond)
	if w.rng.IntN(2000) == 0 {
		w.now = w.now.Add(2 * time.Minute) // makes much of the state idle
	}
	if w.rng.IntN(500) == 0 {
		w.now = w.now.Add(time.Hour) // moves usage to its table
	}
	if len(w.leases) == 0 || w.rng.IntN(5) < 2 {
		w.reserve()
		return
	}
	i := w.rng.IntN(len(w.leases))
	verb := []weir.Verb{weir.VerbAdjust, weir.VerbExtend, weir.VerbComplete, weir.VerbCancel}[w.rng.IntN(4)]
	st := &Settlement{
		ID: w.leases[i].id, Verb: verb, Seq: w.rng.Int64N(100), Holdings: w.leases[i].holdings,
		Lifetime: time.Hour, Memory: time.Minute, MemorySize: 200,
	}
	for j := range st.Holdings {
		units := int64(0)
		if verb != weir.VerbCancel && st.Holdings[j].Limit.Kind != weir.Concurrency {
			units = int64(w.rng.IntN(5))
		}
		st.Totals = append(st.Totals, []driver.Part{{Units: units}})
		st.Limits = append(st.Limits, st.Holdings[j].Limit)
	}
	out, err := Settle(w.s, w.now, st)
	if err != nil {
		w.t.Fatal(err)
	}
	if w.leases[i].holdings = out.Holdings; out.Holdings == nil {
		w.leases = slices.Delete(w.leases, i, i+1)
	}
}

func (w *freezeWorld) reserve() {
	w.t.Helper()
	r := &conformance.Reservation{
		ID: weir.NewLeaseID(w.now), Lifetime: time.Hour, Memory: time.Minute, MemorySize: 200,
		Charges: []weir.Charge{{
			Entity: "e" + strconv.Itoa(w.rng.IntN(2000)), Resource: "r", Costs: weir.Costs{},
		}},
	}
	for i := range w.limits {
		r.Charges[0].Costs[w.limits[i].Name] = 1
	}
	r.Config = freezeConfig(w.limits)
	out, err := Try(w.s, w.now, r)
	if err != nil {
		w.t.Fatal(err)
	}
	if !out.Denied {
		w.leases = append(w.leases, freezeLease{r.ID, out.Holdings})
	}
}

// state returns what a snapshot has, in a form that does not depend on the order of elements.
func (w *freezeWorld) state(
	body []byte,
) (items map[weir.Subject]string, leases map[weir.LeaseID]string) {
	w.t.Helper()
	s := bareStore(w.t)
	if err := s.decode(body, snapshotVersion); err != nil {
		w.t.Fatal(err)
	}
	items, leases = map[weir.Subject]string{}, map[weir.LeaseID]string{}
	for i := range s.store.stripes {
		for _, it := range s.store.stripes[i].dense {
			c := newWriter(nil)
			c.subjectState(it)
			items[it.subject] = string(c.data)
		}
		for _, u := range s.store.stripes[i].usage.dense {
			c := newWriter(nil)
			c.subjectUsage(u)
			items[weir.Subject{Entity: "usage of " + u.subject.Entity}] = string(c.data)
		}
	}
	for id, r := range s.records.byID {
		var text strings.Builder
		fmt.Fprint(&text, r.State, r.Seq, r.SeqAt, r.Expires, r.EndedAt, r.memory)
		for i := range r.Holdings {
			fmt.Fprint(&text, r.Holdings[i].Subject, r.Holdings[i].Parts, r.Holdings[i].Pieces)
		}
		leases[id] = text.String()
	}
	return items, leases
}

// TestFrozenStateIsOfOneInstant changes a store during a snapshot, before every chunk, and compares
// the snapshot with a copy of the state at the freeze.
func TestFrozenStateIsOfOneInstant(t *testing.T) {
	t.Parallel()
	for round := range soak.Amount(20, 1000) {
		seed := rand.Uint64()
		w := freezeStore(t, rand.New(rand.NewPCG(seed, 0)), sweepLimits(t))
		want, err := w.s.snapshot(nil)
		if err != nil {
			t.Fatal(err)
		}
		f := w.s.freeze(false)
		c := newWriter(nil)
		c.varint(&f.early)
		c.count(f.items, minSubject)
		for i := range w.s.store.stripes {
			for range w.rng.IntN(8) {
				w.act()
			}
			f.items -= w.s.store.stripes[i].write(c)
		}
		c.count(f.records, minRecord)
		f.records -= w.s.records.write(c)
		c.usageHeader(&f.usage)
		c.count(f.subjects, minUsage)
		for i := range w.s.store.stripes {
			for range w.rng.IntN(8) {
				w.act()
			}
			f.subjects -= w.s.store.stripes[i].writeUsage(c)
		}
		c.count(0, minEvent)
		c.config(&keptConfig{})
		if f.items != 0 || f.records != 0 || f.subjects != 0 || c.failed {
			t.Fatalf("seed %d: got %d items, %d records and %d subjects with usage too few", seed,
				f.items, f.records, f.subjects)
		}
		wantItems, wantLeases := w.state(want)
		items, leases := w.state(c.data)
		for of, want := range wantItems {
			if items[of] != want {
				t.Fatalf("seed %d, round %d: %v: got %q, want %q", seed, round, of, items[of], want)
			}
		}
		for id, want := range wantLeases {
			if leases[id] != want {
				t.Fatalf("seed %d, round %d: %v: got %s, want %s", seed, round, id, leases[id], want)
			}
		}
		if len(items) != len(wantItems) || len(leases) != len(wantLeases) {
			t.Fatalf("seed %d, round %d: got %d items and %d leases, want %d and %d", seed, round,
				len(items), len(leases), len(wantItems), len(wantLeases))
		}
	}
}

// TestFrozenElementsMove checks that the snapshot has an element that moves to an index that the
// encoding has passed.
func TestFrozenElementsMove(t *testing.T) {
	t.Parallel()
	s := bareStore(t)
	limits := sweepLimits(t)[:1]
	p := &s.store.stripes[0]
	var subjects []weir.Subject
	for i := 0; len(subjects) < 3*chunkSize; i++ {
		takes := takesOf("e"+strconv.Itoa(i), limits)
		if s.store.stripeOf(takes[0].Entity) != 0 {
			continue
		}
		if _, err := s.store.reserveTakes(freezeEpoch, takes); err != nil {
			t.Fatal(err)
		}
		subjects = append(subjects, takes[0].Subject)
	}
	f := s.freeze(false)
	for at := range chunkSize { // as the first chunk of a snapshot does
		p.freezer.due(&p.dense[at].epoch)
	}
	for range chunkSize { // other elements move to their indexes
		p.remove(p.dense[0])
	}
	if got := p.write(newWriter(nil)) + chunkSize; got != f.items {
		t.Errorf("got %d items, want %d", got, f.items)
	}
}

// TestCallsGoOnDuringASnapshot checks that during a snapshot calls are answered unless they need
// the lock that it holds.
func TestCallsGoOnDuringASnapshot(t *testing.T) {
	t.Parallel()
	s, err := OpenSnapshot(filepath.Join(t.TempDir(), "state"), &SnapshotOptions{Every: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	w := &freezeWorld{t: t, s: s, limits: sweepLimits(t)[:1], now: freezeEpoch, rng: rand.New(rand.NewPCG(1, 1))}
	w.reserve()
	last := &s.store.stripes[stripeCount-1]
	s.callLock.Lock() // no call has a stripe locked
	frozen := s.freeze(false)
	s.callLock.Unlock()
	last.mu.Lock()
	var done atomic.Bool
	ended := make(chan error, 1)
	go func() {
		_, err := s.encode(nil, frozen)
		done.Store(true)
		ended <- err
	}()
	for entity := range 50 {
		name := "e" + strconv.Itoa(entity)
		if s.store.stripeOf(name) == stripeCount-1 {
			continue
		}
		r := &conformance.Reservation{
			ID: weir.NewLeaseID(w.now), Lifetime: time.Hour, Memory: time.Minute,
			Charges: []weir.Charge{{Entity: name, Resource: "r", Costs: weir.Costs{"a": 1}}},
			Config:  freezeConfig(w.limits),
		}
		if _, err := Try(s, w.now, r); err != nil {
			t.Error(err)
		}
	}
	if done.Load() {
		t.Error("the snapshot did not wait for the stripe")
	}
	last.mu.Unlock()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// freezeConfig returns a configuration in which all subjects have the limits.
func freezeConfig(limits []weir.Limit) func(context.Context, weir.Subject) (*weir.Config, error) {
	return func(context.Context, weir.Subject) (*weir.Config, error) {
		return &weir.Config{Levels: []weir.LevelLimits{{Level: weir.LevelSystem, Limits: limits}}}, nil
	}
}

// TestSnapshotPause prints how long calls take during a snapshot of many leases. For comparison it
// prints how long they take without a snapshot, and during one of another store, which has no lock
// in common with the calls: what is slow then too is due to the machine. It also prints how long
// all calls are stopped. It does not judge the times, because machines differ.
func TestSnapshotPause(t *testing.T) {
	leases := soak.Amount(5_000, 300_000)
	for _, entities := range []int{1, leases} {
		w, other := newPauseWorld(t, entities), newPauseWorld(t, entities)
		for range leases {
			w.reserve()
			other.reserve()
		}
		during := func(what string, done <-chan struct{}) {
			var times []time.Duration
			for going := true; going; {
				select {
				case <-done:
					going = false
				default:
				}
				times = append(times, w.call()...)
			}
			slices.Sort(times)
			n := len(times)
			t.Logf("%d leases of %d entities, %s: a call: median %v, p99 %v, p99.9 %v, longest %v of %d", leases, entities,
				what, times[n/2], times[n*99/100], times[n*999/1000], times[n-1], n)
		}
		for range 2 {
			none, cancel := context.WithTimeout(t.Context(), time.Second)
			during("no snapshot", none.Done())
			cancel()
			for what, of := range map[string]*SnapshotStore{"a snapshot": w.s, "a snapshot of another store": other.s} {
				done := make(chan struct{})
				of.callLock.Lock()
				began := time.Now()
				f := of.freeze(false)
				stopped := time.Since(began)
				of.callLock.Unlock()
				go func() {
					defer close(done)
					if _, err := of.encode(nil, f); err != nil {
						t.Error(err)
					}
				}()
				during(what, done)
				t.Logf("all calls were stopped for %v, and the copying took %v", stopped, time.Since(began).Round(time.Millisecond))
			}
		}
	}
}

// pauseWorld makes reservations for many entities in turn.
type pauseWorld struct {
	t        *testing.T
	s        *SnapshotStore
	limits   []weir.Limit
	entities int
	calls    int
}

func newPauseWorld(t *testing.T, entities int) *pauseWorld {
	t.Helper()
	w := &pauseWorld{t: t, s: bareStore(t), limits: sweepLimits(t)[:3], entities: entities}
	for i := range w.limits {
		w.limits[i].Capacity = 1 << 30
	}
	return w
}

// reserve makes a reservation.
func (w *pauseWorld) reserve() (weir.LeaseID, *Answer) {
	w.t.Helper()
	w.calls++
	r := &conformance.Reservation{
		ID: weir.NewLeaseID(freezeEpoch), Lifetime: time.Hour, Memory: time.Minute, MemorySize: 1000,
		Config: freezeConfig(w.limits), Charges: []weir.Charge{{
			Entity: "e" + strconv.Itoa(w.calls%w.entities), Resource: "r", Costs: weir.Costs{"a": 1, "b": 1, "c": 1},
		}},
	}
	out, err := Try(w.s, w.now(), r)
	if err != nil {
		w.t.Fatal(err)
	}
	return r.ID, out
}

func (w *pauseWorld) now() time.Time {
	return freezeEpoch.Add(time.Duration(w.calls) * 100 * time.Microsecond)
}

// call makes a reservation and cancels it, so that the state does not grow, and returns how long
// each took.
func (w *pauseWorld) call() []time.Duration {
	w.t.Helper()
	began := time.Now()
	id, out := w.reserve()
	reserved := time.Now()
	st := &Settlement{
		ID: id, Verb: weir.VerbCancel, Holdings: out.Holdings,
		Lifetime: time.Hour, Memory: time.Minute, MemorySize: 1000,
	}
	for i := range st.Holdings {
		st.Totals = append(st.Totals, []driver.Part{{}})
		st.Limits = append(st.Limits, st.Holdings[i].Limit)
	}
	if _, err := Settle(w.s, w.now(), st); err != nil {
		w.t.Fatal(err)
	}
	return []time.Duration{reserved.Sub(began), time.Since(reserved)}
}
