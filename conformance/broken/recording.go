package broken

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
)

// Recording returns a store that records the limits by which each subject was last reserved. It
// reserves unplanned by these records, whatever is configured now, and its configuration has
// versions. It has no faults.
func Recording(b driver.Store) driver.Store { return newRecording(b) }

// recording is a [driver.UnplannedReserver] over a store in the process.
type recording struct {
	fullStore

	mu      sync.Mutex
	records map[weir.Subject]driver.Judged
	version uint64 // counts the changes of the configuration

	// What may be wrong:
	keepsUnplanned, chargesStale, takesStale, pretends, takesMore bool
}

func newRecording(b driver.Store) *recording {
	return &recording{fullStore: b.(fullStore), records: make(map[weir.Subject]driver.Judged)}
}

// recordings returns stores that are wrong in what they do without a plan, or with a plan that is
// stale.
func recordings() []StoreVariant {
	wrap := func(spoil func(r *recording)) func(driver.Store) driver.Store {
		return func(b driver.Store) driver.Store {
			r := newRecording(b)
			spoil(r)
			return r
		}
	}
	return []StoreVariant{
		{Name: "what was taken without a plan is not given back", Breaks: "seam",
			Wrap: wrap(func(r *recording) { r.keepsUnplanned = true })},
		{Name: "a store says that it took without a plan, and did not", Breaks: "seam",
			Wrap: wrap(func(r *recording) { r.pretends = true })},
		{Name: "without a plan one unit more is taken", Breaks: "seam",
			Wrap: wrap(func(r *recording) { r.takesMore = true })},
		{Name: "what is stale is charged", Breaks: "seam",
			Wrap: wrap(func(r *recording) { r.chargesStale = true })},
		{Name: "a plan that is stale is taken", Breaks: "seam",
			Wrap: wrap(func(r *recording) { r.takesStale = true })},
	}
}

// Elsewhere returns the store inside a [Recording], through which its configuration can be changed
// as another process would.
func Elsewhere(b driver.Store) driver.Store { return b.(*recording).fullStore }

// Traits returns the traits of a remote store. It has only buckets, because other kinds are updated
// under the definition in force, for which a limiter does not wait.
func (r *recording) Traits() driver.Traits {
	t := r.fullStore.Traits()
	t.Local, t.Kinds = false, []weir.Kind{weir.Bucket}
	return t
}

func (r *recording) ReadConfig(
	ctx context.Context, of weir.Subject, consistent bool,
) (*weir.Config, error) {
	r.mu.Lock()
	version := r.version
	r.mu.Unlock()
	c, err := r.fullStore.ReadConfig(ctx, of, consistent)
	if err != nil {
		return nil, err
	}
	c = new(*c)
	c.Version = version
	return c, nil
}

// ReserveUnplanned takes by the records of the subject and of its ancestors.
func (r *recording) ReserveUnplanned(
	ctx context.Context, now time.Time, u *driver.Unplanned,
) (*driver.Plan, *driver.Outcome, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := &driver.Plan{
		ID: u.ID, New: u.New, Fingerprint: u.Fingerprint, Charges: 1, Keys: u.Keys,
		Lifetime: u.Lifetime, Memory: u.Memory, MemorySize: u.MemorySize,
	}
	for of := u.Subject; of.Entity != "" && len(p.Subjects) < 8; {
		j, known := r.records[of]
		if !known {
			return nil, nil, nil
		}
		p.Subjects = append(p.Subjects, j)
		p.Takes = append(p.Takes, recorded(&j, u.Costs)...)
		of.Entity = j.Parent
	}
	for i := range p.Takes {
		if t := p.Takes[i]; t.Cost() > t.Ceiling { // left to the plan
			return nil, nil, nil
		}
	}
	out := p.Outcome()
	if len(p.Takes) == 0 {
		return nil, nil, nil
	}
	asked := p.Clone()
	if r.takesMore {
		asked.Takes[0].Parts = []driver.Part{{Units: p.Takes[0].Cost() + 1}}
	}
	err := r.fullStore.Reserve(ctx, now, asked, out)
	if err != nil || out.Denied {
		return nil, nil, err
	}
	if r.pretends {
		r.cancel(ctx, now, p, out)
	}
	return p, out, nil
}

// KeepUnplanned keeps the lease of which ReserveUnplanned has told the store.
func (r *recording) KeepUnplanned(
	context.Context, time.Time, *driver.Plan, *driver.Outcome,
) error {
	return nil
}

// recorded returns what costs take of a subject by its record.
func recorded(j *driver.Judged, costs weir.Costs) []*driver.Take {
	var takes []*driver.Take
	for i := range j.Limits {
		l := &j.Limits[i]
		if units, named := costs[l.Name]; named {
			takes = append(takes, &driver.Take{
				Subject: j.Subject, Limit: l, Ceiling: l.Capacity, Parts: []driver.Part{{Units: units}},
			})
		}
	}
	return takes
}

// cancel gives back what was taken.
func (r *recording) cancel(ctx context.Context, now time.Time, p *driver.Plan, out *driver.Outcome) {
	u := &driver.Update{ID: p.ID, Verb: weir.VerbCancel, Lifetime: p.Lifetime}
	holdings := p.Holdings(out)
	for i := range holdings {
		h := &holdings[i]
		parts := []driver.Part{{}}
		u.Changes = append(u.Changes, driver.Change{Holding: h, Limit: h.Limit, From: h.Cost(), Parts: parts})
	}
	_ = r.fullStore.Update(ctx, now, u, u.Outcome())
}

func (r *recording) Reserve(
	ctx context.Context, now time.Time, p *driver.Plan, out *driver.Outcome,
) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	stale := slices.ContainsFunc(p.Subjects, func(j driver.Judged) bool { return j.Version < r.version })
	if stale && !r.takesStale {
		if r.chargesStale {
			_ = r.fullStore.Reserve(ctx, now, p, p.Outcome())
		}
		out.Denied, out.Contended = true, true
		return &driver.StaleError{}
	}
	for _, j := range p.Subjects {
		r.records[j.Subject] = j
	}
	return r.fullStore.Reserve(ctx, now, p, out)
}

func (r *recording) Update(
	ctx context.Context, now time.Time, u *driver.Update, out *driver.Outcome,
) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if u.Unplanned && r.keepsUnplanned {
		return nil
	}
	for i := range u.Changes {
		r.redefine(u.Changes[i].Holding.Subject, u.Changes[i].Limit)
	}
	return r.fullStore.Update(ctx, now, u, out)
}

// redefine records the definition by which a limit is updated.
func (r *recording) redefine(of weir.Subject, l *weir.Limit) {
	j := r.records[of]
	j.Limits = slices.Clone(j.Limits)
	for i := range j.Limits {
		if j.Limits[i].Name == l.Name {
			j.Limits[i] = *l
			r.records[of] = j
		}
	}
}

// changed counts a change of the configuration that was made, or may have been made.
func (r *recording) changed(err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.version++
	return err
}

func (r *recording) WriteConfig(ctx context.Context, now time.Time, d *weir.Definitions) error {
	return r.changed(r.fullStore.WriteConfig(ctx, now, d))
}

func (r *recording) WriteLimits(
	ctx context.Context, now time.Time, at weir.Subject, limits []weir.Limit,
) error {
	return r.changed(r.fullStore.WriteLimits(ctx, now, at, limits))
}

func (r *recording) WriteEntity(
	ctx context.Context, now time.Time, name, parent string, cascade bool,
) error {
	return r.changed(r.fullStore.WriteEntity(ctx, now, name, parent, cascade))
}

func (r *recording) DeleteEntity(ctx context.Context, now time.Time, name string) error {
	return r.changed(r.fullStore.DeleteEntity(ctx, now, name))
}
