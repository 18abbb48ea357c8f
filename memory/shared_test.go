package memory_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/internal/soak"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/memory"
)

// failing is a store that sometimes does not answer, and then leaves nonsense in the outcome.
type failing struct {
	driver.Store

	n atomic.Int64
}

var errLost = errors.New("lost")

func (f *failing) fails(out *driver.Outcome) bool {
	if f.n.Add(1)%11 != 0 {
		return false
	}
	for i := range out.Taken {
		out.Taken[i] = driver.Taken{Units: -1, Pieces: append(out.Taken[i].Pieces, driver.Piece{Units: 77, Until: math.MaxInt64, Mark: 5})}
	}
	return true
}

func (f *failing) Reserve(ctx context.Context, now time.Time, p *driver.Plan, out *driver.Outcome) error {
	if f.fails(out) {
		return errLost
	}
	return f.Store.Reserve(ctx, now, p, out)
}

func (f *failing) Update(ctx context.Context, now time.Time, u *driver.Update, out *driver.Outcome) error {
	if f.fails(out) {
		return errLost
	}
	return f.Store.Update(ctx, now, u, out)
}

func (f *failing) ReadConfig(
	ctx context.Context, of weir.Subject, consistent bool,
) (*weir.Config, error) {
	return f.Store.(driver.ConfigReader).ReadConfig(ctx, of, consistent)
}

type played struct {
	lease  *weir.Lease
	limits []weir.LimitStatus
	units  map[string]int64 // by entity and limit
	seq    int64
	slots  []int64
	multi  int
}

// TestLeasesShareNothing checks that concurrent calls on leases with several kinds of limits never
// show in another lease, in an earlier answer, or in what is charged.
func TestLeasesShareNothing(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"plain", "failing", "snapshot"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			leasesShareNothing(t, kind)
		})
	}
}

func leasesShareNothing(t *testing.T, kind string) {
	const capacity = 1 << 40
	d := &weir.Definitions{
		System: []weir.Limit{
			{Name: "b", Kind: weir.Bucket, Capacity: capacity, RefillAmount: 1, RefillPeriod: 24 * time.Hour},
			{Name: "m", Kind: weir.Budget, Capacity: capacity, Every: "month", Zone: "UTC"},
			{Name: "s", Kind: weir.Concurrency, Capacity: capacity, Timeout: time.Hour},
			{Name: "w", Kind: weir.Window, Capacity: capacity, Window: time.Hour},
			{Name: "x", Kind: weir.Window, Capacity: 5, Window: time.Hour, Shadow: true},
			{Name: "y", Kind: weir.Budget, Capacity: 5, Every: "month", Zone: "UTC", Shadow: true},
			{Name: "z", Kind: weir.Concurrency, Capacity: 2, Timeout: time.Hour, Shadow: true},
		},
		Entities: map[string]weir.EntityDefinition{"p": {}},
	}
	const workers = 6
	for i := range workers {
		d.Entities[fmt.Sprint("e", i)] = weir.EntityDefinition{Parent: "p", Cascade: true}
	}
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	file := filepath.Join(t.TempDir(), "snapshot")
	open := func() *limiter.Limiter { return openSharing(t, kind, file, d, now) }
	l := open()
	// Two shadow limits hardly count any more.
	for i := range workers {
		_, err := l.Reserve(t.Context(), &weir.Request{Entity: fmt.Sprint("e", i), Resource: "full", Costs: weir.Costs{"x": math.MaxInt64 - 100, "y": math.MaxInt64 - 100}})
		if err != nil {
			t.Fatal(err)
		}
	}
	var all sync.WaitGroup
	worlds := make([]*sharing, workers)
	for i := range workers {
		worlds[i] = &sharing{t: t, l: l, entity: fmt.Sprint("e", i), random: rand.New(rand.NewPCG(uint64(i), 3)), used: map[string]int64{"full/s": 1, "full/z": 1}}
		all.Go(func() { worlds[i].play(soak.Amount(1500, 30_000)) })
	}
	all.Wait()
	if kind == "snapshot" {
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		l = open()
		for _, w := range worlds {
			w.l = l
			w.check("after a restart")
		}
	}
	for _, w := range worlds {
		for len(w.live) > 0 {
			w.end(len(w.live) - 1)
		}
		w.check("at the end")
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

func openSharing(t *testing.T, kind, file string, d *weir.Definitions, now time.Time) *limiter.Limiter {
	t.Helper()
	s, err := memory.Open(&memory.Options{Definitions: d})
	if err != nil {
		t.Fatal(err)
	}
	var backend driver.Store = s
	switch kind {
	case "failing":
		backend = &failing{Store: s}
	case "snapshot":
		s, err := memory.OpenSnapshot(file, &memory.SnapshotOptions{Definitions: d, Every: time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		backend = s
	}
	l, err := limiter.New(backend, &limiter.Options{Now: func() time.Time { return now }, OnUnavailable: weir.Allow})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

type sharing struct {
	t      *testing.T
	l      *limiter.Limiter
	entity string
	random *rand.Rand
	live   []*played
	used   map[string]int64
}

var sharingNames = []string{"b", "m", "s", "w", "x", "y", "z"}

func (w *sharing) costs() weir.Costs {
	c := weir.Costs{}
	for _, n := range sharingNames {
		if w.random.IntN(2) == 0 {
			c[n] = w.random.Int64N(20)
		}
	}
	return c
}

func (w *sharing) play(n int) {
	for i := range n {
		switch k := w.random.IntN(10); {
		case len(w.live) == 0 || k < 3 && len(w.live) < 20:
			w.reserve()
		case k < 6:
			w.adjust(w.random.IntN(len(w.live)))
		case k < 8:
			p := w.live[w.random.IntN(len(w.live))]
			if _, err := w.l.Extend(w.t.Context(), p.lease.ID); err != nil && !errors.Is(err, weir.Unavailable) {
				w.t.Errorf("extend: %v", err)
			}
		default:
			w.end(w.random.IntN(len(w.live)))
		}
		if i%10 == 0 {
			w.check("on the way")
		}
	}
}

// reserve asks for one to three charges, on different resources or on the same one.
func (w *sharing) reserve() {
	p := &played{units: map[string]int64{}, multi: 1 + w.random.IntN(3)}
	r := &weir.Request{LeaseID: weir.LeaseID{}}
	if w.random.IntN(3) == 0 {
		r.LeaseID = weir.NewLeaseID(time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC))
	}
	resource := "r"
	if w.random.IntN(4) == 0 {
		resource = "full"
	}
	for range p.multi {
		r.Charges = append(r.Charges, weir.Charge{Entity: w.entity, Resource: resource, Costs: w.costs()})
	}
	lease, err := w.l.Reserve(w.t.Context(), r)
	if err != nil {
		w.t.Errorf("reserve: %v", err)
		return
	}
	p.lease, p.limits = lease, slices.Clone(lease.Limits)
	if lease.Degraded {
		if len(lease.Limits) != 0 {
			w.t.Error("a degraded lease has limits")
		}
		p.multi = 0
	}
	p.slots = make([]int64, p.multi)
	for i := range p.multi {
		for _, n := range sharingNames {
			v := r.Charges[i].Costs[n]
			if n == "s" || n == "z" {
				_, has := r.Charges[i].Costs[n]
				any := false
				for _, c := range r.Charges {
					_, h := c.Costs[n]
					any = any || h
				}
				if !has && !any && i == 0 {
					v = 1
				}
			}
			p.units[fmt.Sprint(resource, i, n)] = v
		}
	}
	p.seq = 0
	if resource == "full" {
		p.limits = slices.Clone(lease.Limits)
	}
	w.live = append(w.live, p)
	w.note(p, resource, 1)
}

func (w *sharing) note(p *played, resource string, sign int64) {
	for i := range p.multi {
		for _, n := range sharingNames {
			w.used[resource+"/"+n] += sign * p.units[fmt.Sprint(resource, i, n)]
		}
	}
}

func resourceOf(p *played) string {
	for k := range p.units {
		if k[0] == 'f' {
			return "full"
		}
	}
	return "r"
}

// adjust sets new totals for some names of each charge.
func (w *sharing) adjust(at int) {
	p := w.live[at]
	p.seq++
	resource := resourceOf(p)
	sets := make([]weir.Costs, max(p.multi, 1))
	next := map[string]int64{}
	for i := range p.multi {
		sets[i] = weir.Costs{}
		for _, n := range sharingNames {
			key := fmt.Sprint(resource, i, n)
			v := p.units[key]
			next[key] = v
			if w.random.IntN(2) == 0 {
				continue
			}
			if !w.reserved(p, i, n) {
				continue
			}
			if n == "s" || n == "z" {
				if v == 0 {
					continue
				}
				v = w.random.Int64N(v + 1)
			} else {
				v = w.random.Int64N(20)
			}
			sets[i][n], next[key] = v, v
		}
	}
	_, err := w.l.Adjust(w.t.Context(), p.lease.ID, p.seq, sets)
	if errors.Is(err, weir.Unavailable) {
		return
	}
	if err != nil {
		w.t.Errorf("adjust: %v", err)
		return
	}
	w.note(p, resource, -1)
	maps.Copy(p.units, next)
	w.note(p, resource, 1)
}

// reserved reports whether a charge stands for units of the limit.
func (w *sharing) reserved(p *played, i int, n string) bool {
	return p.units[fmt.Sprint(resourceOf(p), i, n)] > 0
}

func (w *sharing) end(at int) {
	p := w.live[at]
	resource := resourceOf(p)
	cancel := w.random.IntN(2) == 0
	var err error
	if cancel {
		_, err = w.l.Cancel(w.t.Context(), p.lease.ID)
	} else {
		_, err = w.l.Complete(w.t.Context(), p.lease.ID, nil)
	}
	if errors.Is(err, weir.Unavailable) {
		return
	}
	if err != nil {
		w.t.Errorf("end: %v", err)
	}
	w.note(p, resource, -1)
	if !cancel {
		for i := range p.multi {
			p.units[fmt.Sprint(resource, i, "s")], p.units[fmt.Sprint(resource, i, "z")] = 0, 0
		}
		w.note(p, resource, 1)
	}
	if !slices.Equal(p.lease.Limits, p.limits) {
		w.t.Errorf("an answer has changed: %v, was %v", p.lease.Limits, p.limits)
	}
	w.live = slices.Delete(w.live, at, at+1)
}

func (w *sharing) check(when string) {
	statuses, err := w.l.Status(w.t.Context(), w.entity, "r")
	if err != nil {
		w.t.Error(err)
	}
	for _, s := range w.own(statuses) {
		if got, want := s.Capacity-s.Available, w.used["r/"+s.Limit]; got != want {
			w.t.Errorf("%s: %s %s: %d are charged, want %d", when, w.entity, s.Limit, got, want)
		}
	}
	statuses, err = w.l.Status(w.t.Context(), w.entity, "full")
	if err != nil {
		w.t.Error(err)
	}
	for _, s := range w.own(statuses) {
		if s.Limit == "x" || s.Limit == "y" {
			if used := s.Capacity - s.Available; used < 0 || used < math.MaxInt64-200 {
				w.t.Errorf("%s: %s: %d used of what cannot count more", when, s.Limit, used)
			}
			continue
		}
		if got, want := s.Capacity-s.Available, w.used["full/"+s.Limit]; got != want {
			w.t.Errorf("%s: full %s %s: %d are charged, want %d", when, w.entity, s.Limit, got, want)
		}
	}
}

// own returns the statuses of the world's own entity, without those of its parent.
func (w *sharing) own(all []weir.LimitStatus) []weir.LimitStatus {
	return slices.DeleteFunc(all, func(s weir.LimitStatus) bool { return s.Entity != w.entity })
}
