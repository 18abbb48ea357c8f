package replay

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/weir-limiter/weir"
)

// errEnough ends a replay that has denied more than it may.
var errEnough = errors.New("more is denied than may be")

// firstTries counts the calls that were not admitted when they came, and ends the replay when they
// are more than most. It is a watcher.
type firstTries struct {
	most, calls, denied int64
	tick                func() // of each call
}

// Reserved counts a call when it comes for the first time.
func (f *firstTries) Reserved(a *Attempt, v *Verdict) error {
	if a.Try > 1 {
		return nil
	}
	f.calls++
	f.tick()
	if !v.Admitted() {
		if f.denied++; f.denied > f.most {
			return errEnough
		}
	}
	return nil
}

// Completed has nothing to count.
func (*firstTries) Completed(*Attempt) error { return nil }

// blame counts, for each declared limit, the calls that exceeded it when they came for the first
// time, for whichever entity, or that cost more than it can hold. It is a watcher.
type blame struct {
	of     map[limitKey]*declared
	sizes  []int64 // by declared limit
	denied []int64 // by declared limit
	latest []int   // the latest call that was counted there, and one more
}

func newBlame(of map[limitKey]*declared, sizes []int64) *blame {
	return &blame{of, sizes, make([]int64, len(sizes)), make([]int, len(sizes))}
}

// Reserved counts a call when it comes for the first time.
func (b *blame) Reserved(a *Attempt, v *Verdict) error {
	if a.Try > 1 || v.Admitted() {
		return nil
	}
	for i := range v.Limits {
		if s := &v.Limits[i]; s.Exceeded {
			b.count(a, b.of[limitKey{s.Entity, s.Resource, s.Limit}])
		}
	}
	if v.Fault == nil {
		return nil
	}
	for _, s := range a.payer.chain {
		for i := range s.limits {
			d := b.of[limitKey{s.entity, s.resource, s.limits[i].Name}]
			if d != nil && d.units(a.Costs) > b.sizes[d.index] {
				b.count(a, d)
			}
		}
	}
	return nil
}

func (b *blame) count(a *Attempt, d *declared) {
	if d != nil && b.latest[d.index] != a.seq+1 {
		b.latest[d.index] = a.seq + 1
		b.denied[d.index]++
	}
}

// Completed has nothing to count.
func (*blame) Completed(*Attempt) error { return nil }

// units is what costs say of the limit.
func (d *declared) units(costs weir.Costs) int64 {
	n, named := costs[d.limit.Name]
	if !named && d.limit.Kind == weir.Concurrency {
		return 1
	}
	return n
}

// needs finds what calls cost on the declared limits when all are admitted. It is a watcher.
type needs struct {
	of    map[limitKey]*declared
	total map[limitKey]int64 // units
}

// Reserved counts the cost of a call.
func (n *needs) Reserved(a *Attempt, _ *Verdict) error {
	judged := make([]*declared, 0, 8)
	for _, s := range a.payer.chain {
		for i := range s.limits {
			key := limitKey{s.entity, s.resource, s.limits[i].Name}
			d := n.of[key]
			if d == nil {
				continue
			}
			// What a call costs, and what it uses in the end, may both stand in its way.
			units := d.units(a.Costs)
			n.total[key] = addUp(n.total[key], max(units, d.units(a.Actuals)))
			d.most = max(d.most, n.total[key])
			if !slices.Contains(judged, d) {
				judged = append(judged, d)
				d.calls++
				d.over[roundUp(units)]++
			}
		}
	}
	return nil
}

// Completed has nothing to count.
func (*needs) Completed(*Attempt) error { return nil }

// admitAll is a service that has no limits.
type admitAll struct {
	weir.Service
}

// Reserve admits.
func (admitAll) Reserve(_ context.Context, r *weir.Request) (*weir.Lease, error) {
	return &weir.Lease{ID: r.LeaseID}, nil
}

// Complete has nothing to settle.
func (admitAll) Complete(
	_ context.Context, id weir.LeaseID, _ []weir.Costs,
) (*weir.Receipt, error) {
	return &weir.Receipt{LeaseID: id}, nil
}

// unbounded is for replays that count without an end.
const unbounded = math.MaxInt64
