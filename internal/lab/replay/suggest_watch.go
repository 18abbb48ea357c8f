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

// firstAttempts counts the calls that were not admitted when they came, and ends the replay when
// they are more than most. It is a watcher.
type firstAttempts struct {
	most, calls, denied int64
	tick                func() // of each call
}

// Reserved counts a call when it comes for the first time.
func (f *firstAttempts) Reserved(a *Attempt, v *Decision) error {
	if a.Number > 1 {
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
func (*firstAttempts) Completed(*Attempt) error { return nil }

// denialsByLimit counts, for each declared limit, the calls that exceeded it when they came for the
// first time, for whichever entity, or that cost more than it can hold. It is a watcher.
type denialsByLimit struct {
	of     map[subjectLimit]*sizedLimit
	sizes  []int64 // by declared limit
	denied []int64 // by declared limit
	latest []int   // the latest call that was counted there, and one more
}

func newDenialsByLimit(of map[subjectLimit]*sizedLimit, sizes []int64) *denialsByLimit {
	return &denialsByLimit{of, sizes, make([]int64, len(sizes)), make([]int, len(sizes))}
}

// Reserved counts a call when it comes for the first time.
func (b *denialsByLimit) Reserved(a *Attempt, v *Decision) error {
	if a.Number > 1 || v.Admitted() {
		return nil
	}
	for i := range v.Limits {
		if s := &v.Limits[i]; s.Exceeded {
			b.count(a, b.of[subjectLimit{s.Entity, s.Resource, s.Limit}])
		}
	}
	if v.Err == nil {
		return nil
	}
	for _, s := range a.payer.chain {
		for i := range s.limits {
			d := b.of[subjectLimit{s.entity, s.resource, s.limits[i].Name}]
			if d != nil && d.units(a.Costs) > b.sizes[d.index] {
				b.count(a, d)
			}
		}
	}
	return nil
}

func (b *denialsByLimit) count(a *Attempt, d *sizedLimit) {
	if d != nil && b.latest[d.index] != a.seq+1 {
		b.latest[d.index] = a.seq + 1
		b.denied[d.index]++
	}
}

// Completed has nothing to count.
func (*denialsByLimit) Completed(*Attempt) error { return nil }

// units is what costs say of the limit.
func (d *sizedLimit) units(costs weir.Costs) int64 {
	n, named := costs[d.limit.Name]
	if !named && d.limit.Kind == weir.Concurrency {
		return 1
	}
	return n
}

// costCounter finds what calls cost on the declared limits when all are admitted. It is a watcher.
type costCounter struct {
	of    map[subjectLimit]*sizedLimit
	total map[subjectLimit]int64 // units
}

// Reserved counts the cost of a call.
func (n *costCounter) Reserved(a *Attempt, _ *Decision) error {
	judged := make([]*sizedLimit, 0, 8)
	for _, s := range a.payer.chain {
		for i := range s.limits {
			key := subjectLimit{s.entity, s.resource, s.limits[i].Name}
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
func (*costCounter) Completed(*Attempt) error { return nil }

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
