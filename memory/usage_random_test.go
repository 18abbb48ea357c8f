package memory_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/soak"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/memory"
)

// usedHour is the place of a number in the tally: the usage of a limit in an hour, or the number of
// events if the limit is empty.
type usedHour struct {
	weir.Subject
	limit string
	hour  time.Time
}

// usedTally is what usage ought to be.
type usedTally map[usedHour]int64

func (u usedTally) count(of weir.Subject, limit string, now time.Time, change int64) {
	if change != 0 {
		hour := now.Truncate(time.Hour)
		u[usedHour{of, limit, hour}] += change
		u[usedHour{of, "", hour}]++
	}
}

// usedLease is a lease that the test has reserved. It has one charge, or two if it is several.
type usedLease struct {
	request *weir.Request
	at      time.Time
	several bool
	held    map[weir.Subject]weir.Costs
}

// usageWorld makes random calls and keeps the tally.
type usageWorld struct {
	t       *testing.T
	rng     *rand.Rand
	file    string
	now     time.Time
	store   *memory.SnapshotStore
	limiter *limiter.Limiter
	tally   usedTally
	leases  []*usedLease
	seq     int64
	done    map[string]int // the number of calls by their outcome
}

func usageDefinitions() *weir.Definitions {
	return &weir.Definitions{
		System: []weir.Limit{
			named("bucket", bucket(60, 60, 10*time.Minute)),
			named("window", window(100, 30*time.Minute)),
			named("slots", concurrency(12, 20*time.Minute)),
			named("budget", budget(400, "day", "UTC")),
			named("shadow", shadow(window(5, time.Hour))),
		},
		Entities: map[string]weir.EntityDefinition{
			"org": {}, "team": {Parent: "org", Cascade: true}, "bot": {Parent: "org", Cascade: true},
			"loner": {Parent: "org"},
		},
	}
}

func newUsageWorld(t *testing.T, seed uint64) *usageWorld {
	t.Helper()
	w := &usageWorld{
		t: t, rng: rand.New(rand.NewPCG(seed, 17)), file: filepath.Join(t.TempDir(), "state"),
		now: start.Add(-90 * time.Minute), tally: usedTally{}, done: map[string]int{},
	}
	w.open(w.file)
	return w
}

func (w *usageWorld) open(file string) {
	w.t.Helper()
	var err error
	w.store, err = memory.OpenSnapshot(file, &memory.SnapshotOptions{
		Definitions: usageDefinitions(), Every: 24 * time.Hour,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.limiter, err = limiter.New(w.store, &limiter.Options{Now: func() time.Time { return w.now }})
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *usageWorld) close() {
	w.t.Helper()
	if err := w.limiter.Close(); err != nil {
		w.t.Fatal(err)
	}
}

// act makes one random call.
func (w *usageWorld) act() {
	w.t.Helper()
	w.now = w.now.Add(time.Duration(w.rng.IntN(4000)) * time.Millisecond)
	switch w.rng.IntN(300) {
	case 0:
		w.now = w.now.Add(time.Duration(w.rng.IntN(120)) * time.Minute)
	case 1:
		w.now = w.now.Add(-time.Duration(w.rng.IntN(60)) * time.Second)
	}
	if len(w.leases) == 0 || w.rng.IntN(5) < 2 {
		w.reserve()
		return
	}
	i := w.rng.IntN(len(w.leases))
	w.update(w.leases[i], i)
}

func (w *usageWorld) costs() weir.Costs {
	costs := weir.Costs{}
	for _, name := range []string{"bucket", "window", "budget", "shadow"} {
		if w.rng.IntN(3) > 0 {
			costs[name] = w.rng.Int64N(5)
		}
	}
	if w.rng.IntN(2) == 0 {
		costs["slots"] = w.rng.Int64N(3)
	}
	return costs
}

func (w *usageWorld) reserve() {
	w.t.Helper()
	entities, resources := []string{"org", "team", "bot", "loner", "stranger"}, []string{"gpt", "opus"}
	l := &usedLease{at: w.now, held: map[weir.Subject]weir.Costs{}, several: w.rng.IntN(5) == 0}
	r := &weir.Request{LeaseID: weir.NewLeaseID(w.now)}
	l.request = r
	for range 1 + w.rng.IntN(2) {
		r.Charges = append(r.Charges, weir.Charge{
			Entity:   entities[w.rng.IntN(len(entities))],
			Resource: resources[w.rng.IntN(len(resources))], Costs: w.costs(),
		})
	}
	if !l.several {
		r.Charges = r.Charges[:1]
	}
	for _, c := range r.Charges {
		costs := maps.Clone(c.Costs)
		if _, named := costs["slots"]; !named {
			costs["slots"] = 0 // 1 is added below
		}
		of := []string{c.Entity}
		if c.Entity == "team" || c.Entity == "bot" {
			of = append(of, "org")
		}
		for _, entity := range of {
			s := weir.Subject{Entity: entity, Resource: c.Resource}
			if l.held[s] == nil {
				l.held[s] = weir.Costs{}
			}
			for name, n := range costs {
				l.held[s][name] += n
			}
		}
	}
	w.addSlots(l)
	if _, err := w.limiter.Reserve(w.t.Context(), r); err != nil {
		if _, denied := errors.AsType[*weir.DeniedError](err); denied {
			w.done["denied"]++
		} else if errors.Is(err, weir.Invalid) { // the clock stepped back: the ID is too old
			w.done["refused"]++
		} else {
			w.t.Fatalf("reserve %+v: %v", r, err)
		}
		return
	}
	w.done["reserved"]++
	for s, costs := range l.held {
		for name, n := range costs {
			w.tally.count(s, name, w.now, n)
		}
	}
	w.leases = append(w.leases, l)
}

// addSlots adds the slot of each subject whose charges name none.
func (w *usageWorld) addSlots(l *usedLease) {
	for s := range l.held {
		named := false
		for _, c := range l.request.Charges {
			reaches := c.Entity == s.Entity || s.Entity == "org" && (c.Entity == "team" || c.Entity == "bot")
			if _, ok := c.Costs["slots"]; ok && reaches && c.Resource == s.Resource {
				named = true
			}
		}
		if !named {
			l.held[s]["slots"] = 1
		}
	}
}

// update makes a random update of a lease, or repeats its reservation.
func (w *usageWorld) update(l *usedLease, i int) {
	w.t.Helper()
	ctx, id := w.t.Context(), l.request.LeaseID
	var totals weir.Costs
	if !l.several {
		totals = w.costs()
		for name, n := range totals {
			held, reserved := l.held[weir.Subject{
				Entity: l.request.Charges[0].Entity, Resource: l.request.Charges[0].Resource,
			}][name]
			if !reserved {
				delete(totals, name)
			} else if name == "slots" {
				totals[name] = min(n, held)
			}
		}
	}
	var err error
	verb := w.rng.IntN(6)
	switch verb {
	case 0:
		_, err = w.limiter.Reserve(ctx, l.request)
	case 1:
		_, err = w.limiter.Extend(ctx, id)
	case 2, 3:
		if l.several {
			return
		}
		w.seq++
		_, err = w.limiter.Adjust(ctx, id, w.seq, []weir.Costs{totals})
	case 4:
		_, err = w.limiter.Complete(ctx, id, one(totals))
	default:
		_, err = w.limiter.Cancel(ctx, id)
	}
	name := []string{"replayed", "extended", "adjusted", "adjusted", "completed", "cancelled"}[verb]
	switch {
	case errors.Is(err, weir.Ended), errors.Is(err, weir.UnknownLease), verb == 0 && errors.Is(err, weir.Invalid):
		w.done["expired"]++
		w.leases = slices.Delete(w.leases, i, i+1)
		return
	case err != nil:
		w.t.Fatalf("%s %+v: %v", name, l.request, err)
	}
	w.done[name]++
	if verb < 2 {
		return
	}
	for s, costs := range l.held {
		for limit, before := range costs {
			after, named := totals[limit]
			switch {
			case verb == 5:
				after = 0
			case !named:
				after = before
			}
			w.tally.count(s, limit, w.now, after-before)
			costs[limit] = after
		}
	}
	if verb > 3 {
		if _, err := w.limiter.Cancel(ctx, id); verb == 5 && err != nil { // a replay counts nothing
			w.t.Fatalf("cancel again: %v", err)
		}
		w.leases = slices.Delete(w.leases, i, i+1)
	}
}

// one returns a set of totals, or none if it is nil.
func one(totals weir.Costs) []weir.Costs {
	if totals == nil {
		return nil
	}
	return []weir.Costs{totals}
}

// listed returns what the limiter lists for a query, page by page, and checks the order.
func listed(t *testing.T, l *limiter.Limiter, q weir.UsageQuery) (usedTally, []weir.UsageGap) {
	t.Helper()
	got := usedTally{}
	var last *weir.Usage
	for q.Size = 7; ; {
		page, err := l.Usage(t.Context(), &q)
		if err != nil {
			t.Fatal(err)
		}
		for i := range page.Usage {
			u := &page.Usage[i]
			less := fmt.Sprint(u.Resource, u.Start.Unix())
			before := ""
			if last != nil {
				before = fmt.Sprint(last.Resource, last.Start.Unix())
			}
			if q.Entity == "" {
				less, before = fmt.Sprint(u.Start.Unix(), u.Entity), ""
				if last != nil {
					before = fmt.Sprint(last.Start.Unix(), last.Entity)
				}
			}
			if last != nil && less <= before {
				t.Errorf("got %s after %s", less, before)
			}
			last = u
			of := weir.Subject{Entity: u.Entity, Resource: u.Resource}
			for limit, n := range u.Units {
				got[usedHour{of, limit, u.Start}] = n
			}
			got[usedHour{of, "", u.Start}] = u.Events
		}
		if q.After = page.Next; q.After == "" {
			return got, page.Gaps
		}
	}
}

// compareUsed checks every list of usage against a tally.
func compareUsed(t *testing.T, what string, l *limiter.Limiter, tally usedTally) {
	t.Helper()
	var queries []weir.UsageQuery
	for _, entity := range []string{"org", "team", "bot", "loner", "stranger"} {
		queries = append(queries, weir.UsageQuery{Entity: entity}, weir.UsageQuery{Entity: entity, Resource: "opus"})
	}
	queries = append(queries, weir.UsageQuery{Resource: "gpt"}, weir.UsageQuery{Resource: "opus"},
		weir.UsageQuery{Resource: "gpt", From: start, To: start.Add(5 * time.Hour)})
	for _, q := range queries {
		for _, q.Window = range []weir.UsageWindow{weir.Hourly, weir.Daily, weir.Monthly} {
			if !q.From.IsZero() && q.Window != weir.Hourly {
				continue
			}
			want := usedTally{}
			for at, n := range tally {
				if (q.Entity == "" || q.Entity == at.Entity) && (q.Resource == "" || q.Resource == at.Resource) &&
					!at.hour.Before(q.From) && (q.To.IsZero() || at.hour.Before(q.To)) {
					at.hour = q.Window.Start(at.hour)
					want[at] += n
				}
			}
			got, _ := listed(t, l, q)
			if !maps.Equal(got, want) {
				for at, n := range want {
					if got[at] != n {
						t.Errorf("%s: %+v: %+v: got %d, want %d", what, q, at, got[at], n)
					}
				}
				t.Fatalf("%s: %+v: got %d numbers, want %d", what, q, len(got), len(want))
			}
		}
	}
}

// TestUsageIsWhatWasUsed makes random calls over many hours and compares the usage with a tally, to
// the unit: in the process, after a restart, and after the process was killed, when what was used
// since the last snapshot is missing.
func TestUsageIsWhatWasUsed(t *testing.T) {
	t.Parallel()
	for round := range soak.Amount(1, 20) {
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		w := newUsageWorld(t, seed)
		if round > 0 {
			w.now = w.now.AddDate(0, 0, w.rng.IntN(60))
		}
		var saved usedTally
		var latest, savedAt time.Time
		killed := filepath.Join(t.TempDir(), "killed")
		for i := range 10_000 {
			w.act()
			if w.now.After(latest) {
				latest = w.now
			}
			switch w.rng.IntN(1000) {
			case 0:
				w.close()
				w.open(w.file)
				compareUsed(t, fmt.Sprintf("seed %d, restarted after %d calls", seed, i), w.limiter, w.tally)
			case 1, 2:
				if err := w.store.WriteSnapshot(); err != nil {
					t.Fatal(err)
				}
				saved, savedAt = maps.Clone(w.tally), latest
				data, err := os.ReadFile(w.file)
				if err == nil {
					err = os.WriteFile(killed, data, 0o600)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
		}
		t.Logf("calls by outcome: %v; %d numbers of usage until %s", w.done, len(w.tally), w.now)
		compareUsed(t, fmt.Sprintf("seed %d", seed), w.limiter, w.tally)
		w.close()
		if saved == nil {
			continue // no snapshot in this round
		}
		w.open(killed)
		compareUsed(t, fmt.Sprintf("seed %d, killed", seed), w.limiter, saved)
		_, gaps := listed(t, w.limiter, weir.UsageQuery{Entity: "org"})
		last := gaps[len(gaps)-1]
		if last.From.After(savedAt) || last.From.Before(savedAt.Add(-time.Minute)) || last.To.Before(w.now) {
			t.Errorf("seed %d: got gaps %v, want the last from %s to %s", seed, gaps, savedAt, w.now)
		}
		w.close()
	}
}
