package broken

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
)

// StoreVariant is a right store made wrong, or a limiter that handles its store wrongly.
type StoreVariant struct {
	// Name and Breaks are as in [Variant]; "seam" stands for docs/new-backend.md.
	Name, Breaks string
	// Wrap returns the wrong store around a right one; nil if the store is right.
	Wrap func(driver.Store) driver.Store
	// Front is the wrong front of the limiter, or nil.
	Front Wrapper
}

// storeVariant is a store with a wrong method. Its function runs for each store.
type storeVariant struct {
	name, breaks string
	apply        func(s *wrongStore)
}

// Stores returns all wrong stores, and the limiters with wrong fronts.
func Stores() []StoreVariant {
	var stores []StoreVariant
	for _, b := range slices.Concat(takingStores(), updateStores(), readingStores(),
		placingStores(), namingStores(), listingStores()) {
		stores = append(stores, StoreVariant{Name: b.name, Breaks: b.breaks, Wrap: wrap(b.apply)})
	}
	stores = append(stores, recordings()...)
	for _, f := range limiterFronts() {
		stores = append(stores, StoreVariant{Name: f.name, Breaks: f.breaks, Front: wrapWith(f.spoil)})
	}
	return stores
}

// fullStore is a store with every ability that a variant can get wrong.
type fullStore interface {
	driver.Store
	driver.ConfigReader
	driver.ConfigWriter
	driver.ConfigEditor
	driver.EntityReader
	driver.SubjectLister
}

// wrongStore is a store whose methods can be replaced. Each function is the right store's until
// spoil replaces it.
type wrongStore struct {
	fullStore
	reserve  func(ctx context.Context, now time.Time, p *driver.Plan, out *driver.Outcome) error
	settle   func(ctx context.Context, now time.Time, u *driver.Update, out *driver.Outcome) error
	status   statusOf
	read     func(ctx context.Context, of weir.Subject, consistent bool) (*weir.Config, error)
	set      func(ctx context.Context, now time.Time, at weir.Subject, limits []weir.Limit) error
	declare  func(ctx context.Context, now time.Time, name, parent string, cascade bool) error
	remove   func(ctx context.Context, now time.Time, name string) error
	list     func(ctx context.Context, q *weir.EntityQuery) (*weir.EntityPage, error)
	entities func(ctx context.Context, now time.Time, resource string) ([]string, error)
}

type statusOf func(
	ctx context.Context, now time.Time, of []driver.Judged,
) ([]weir.LimitStatus, error)

// wrap returns a function that makes a wrong store of a right one. The right one has every ability
// except to recover leases.
func wrap(spoil func(s *wrongStore)) func(driver.Store) driver.Store {
	return func(b driver.Store) driver.Store {
		r := b.(fullStore)
		s := &wrongStore{
			fullStore: r, reserve: r.Reserve, settle: r.Update, status: r.Status, read: r.ReadConfig,
			set: r.WriteLimits, declare: r.WriteEntity, remove: r.DeleteEntity,
			list: r.ListEntities, entities: r.Entities,
		}
		spoil(s)
		return s
	}
}

func (s *wrongStore) Reserve(ctx context.Context, now time.Time, p *driver.Plan, out *driver.Outcome) error {
	return s.reserve(ctx, now, p, out)
}

func (s *wrongStore) Update(ctx context.Context, now time.Time, u *driver.Update, out *driver.Outcome) error {
	return s.settle(ctx, now, u, out)
}

func (s *wrongStore) Status(
	ctx context.Context, now time.Time, of []driver.Judged,
) ([]weir.LimitStatus, error) {
	return s.status(ctx, now, of)
}

func (s *wrongStore) ReadConfig(
	ctx context.Context, of weir.Subject, consistent bool,
) (*weir.Config, error) {
	return s.read(ctx, of, consistent)
}

func (s *wrongStore) WriteLimits(
	ctx context.Context, now time.Time, at weir.Subject, limits []weir.Limit,
) error {
	return s.set(ctx, now, at, limits)
}

func (s *wrongStore) WriteEntity(
	ctx context.Context, now time.Time, name, parent string, cascade bool,
) error {
	return s.declare(ctx, now, name, parent, cascade)
}

func (s *wrongStore) DeleteEntity(ctx context.Context, now time.Time, name string) error {
	return s.remove(ctx, now, name)
}

func (s *wrongStore) ListEntities(ctx context.Context, q *weir.EntityQuery) (*weir.EntityPage, error) {
	return s.list(ctx, q)
}

func (s *wrongStore) Entities(ctx context.Context, now time.Time, resource string) ([]string, error) {
	return s.entities(ctx, now, resource)
}

// storeOutcome is the result of a store's Reserve or Update.
type storeOutcome struct {
	now    time.Time
	plan   *driver.Plan
	update *driver.Update
	*driver.Outcome
	err error
}

// reserving changes the outcome of each reservation.
func reserving(change func(o *storeOutcome)) func(s *wrongStore) {
	return func(s *wrongStore) {
		s.reserve = func(ctx context.Context, now time.Time, p *driver.Plan, out *driver.Outcome) error {
			o := &storeOutcome{now: now, plan: p, Outcome: out}
			o.err = s.fullStore.Reserve(ctx, now, p, out)
			change(o)
			return o.err
		}
	}
}

// taking changes the outcome of each reservation that did not fail.
func taking(change func(o *storeOutcome)) func(s *wrongStore) {
	return reserving(func(o *storeOutcome) {
		if o.err == nil {
			change(o)
		}
	})
}

// settled changes the outcome of each update.
func settled(change func(o *storeOutcome)) func(s *wrongStore) {
	return func(s *wrongStore) {
		s.settle = func(ctx context.Context, now time.Time, u *driver.Update, out *driver.Outcome) error {
			o := &storeOutcome{now: now, update: u, Outcome: out}
			o.err = s.fullStore.Update(ctx, now, u, out)
			change(o)
			return o.err
		}
	}
}

// planning changes the plan that a store is given. The statuses of takes that are left out are
// those of unused limits.
func planning(change func(p *driver.Plan) []*driver.Take) func(s *wrongStore) {
	return func(s *wrongStore) {
		s.reserve = func(ctx context.Context, now time.Time, p *driver.Plan, out *driver.Outcome) error {
			c := *p
			c.Takes = change(p)
			o := c.Outcome()
			if err := s.fullStore.Reserve(ctx, now, &c, o); err != nil {
				return err
			}
			limits, taken := out.Limits, out.Taken
			*out = *o
			out.Limits, out.Taken = limits, taken
			for i := range p.Takes {
				t := p.Takes[i]
				j := slices.IndexFunc(c.Takes, func(c *driver.Take) bool {
					return c.Subject == t.Subject && c.Limit.Name == t.Limit.Name
				})
				if j >= 0 {
					out.Limits[i], out.Taken[i] = o.Limits[j], o.Taken[j]
					continue
				}
				out.Limits[i] = weir.LimitStatus{Entity: t.Entity, Resource: t.Resource, Limit: t.Limit.Name,
					Kind: t.Limit.Kind, Level: t.Level, Capacity: t.Ceiling, Available: t.Ceiling,
					Requested: t.Cost()}
			}
			return nil
		}
	}
}

// takingStores returns stores whose Reserve is wrong.
func takingStores() []storeVariant {
	return []storeVariant{
		{"what was taken is in another order", "3.2", taking(func(o *storeOutcome) { slices.Reverse(o.Taken) })},
		{"a denied outcome has no statuses", "seam", taking(func(o *storeOutcome) {
			if o.Denied {
				clear(o.Limits)
			}
		})},
		{"an outcome has nanoseconds", "1.2", taking(func(o *storeOutcome) { o.At = o.now })},
		{"the parts are added up in place", "seam", reserving(func(o *storeOutcome) {
			for i := range o.plan.Takes {
				o.plan.Takes[i].Parts[0].Units = o.plan.Takes[i].Cost()
			}
		})},
		{"a kind is declared and not enforced", "2.2", planning(func(p *driver.Plan) []*driver.Take {
			return slices.DeleteFunc(slices.Clone(p.Takes),
				func(t *driver.Take) bool { return t.Limit.Kind == weir.Window })
		})},
		{"ancestors are declared and not charged", "9.1", planning(func(p *driver.Plan) []*driver.Take {
			return slices.DeleteFunc(slices.Clone(p.Takes), func(t *driver.Take) bool {
				return slices.ContainsFunc(p.Subjects, func(j driver.Judged) bool { return j.Parent == t.Entity })
			})
		})},
		{"what applied first applies for good", "O2: default changes", firstForGood},
		{"what was taken under other limits is kept", "8.2", takenByBefore},
	}
}

// updateStores returns stores whose Update is wrong.
func updateStores() []storeVariant {
	return []storeVariant{
		{"parts are changed in place", "seam", settled(func(o *storeOutcome) {
			for i := range o.update.Changes {
				copy(o.update.Changes[i].Holding.Parts, o.update.Changes[i].Parts)
			}
		})},
		{"pieces are changed in place", "seam", settled(func(o *storeOutcome) {
			for i := range o.update.Changes {
				for j := range o.update.Changes[i].Holding.Pieces {
					o.update.Changes[i].Holding.Pieces[j].Until++
				}
			}
		})},
		{"a settle that fails is applied to the first limit", "7.10", func(s *wrongStore) {
			s.settle = func(ctx context.Context, now time.Time, u *driver.Update, out *driver.Outcome) error {
				err := s.fullStore.Update(ctx, now, u, out)
				if err != nil && len(u.Changes) > 1 {
					c := *u
					c.Changes = u.Changes[:1]
					_ = s.fullStore.Update(ctx, now, &c, c.Outcome())
				}
				return err
			}
		}},
		{"a settle that fails is said to be done", "7.11", settled(func(o *storeOutcome) {
			if o.err != nil {
				o.err = nil
				o.At = o.now.Truncate(time.Millisecond)
				for i := range o.Taken {
					o.Taken[i] = driver.Taken{
						Units: o.update.Changes[i].From, Pieces: o.update.Changes[i].Holding.Pieces,
					}
				}
			}
		})},
	}
}

// reservingStatus makes a status reserve units of each limit that it reports.
func reservingStatus(units int64) func(s *wrongStore) {
	return func(s *wrongStore) {
		s.status = func(
			ctx context.Context, now time.Time, of []driver.Judged,
		) ([]weir.LimitStatus, error) {
			for i := range of {
				use(ctx, s.fullStore, now, of[i], units)
			}
			return s.fullStore.Status(ctx, now, of)
		}
	}
}

// use reserves units of each limit of a subject, slots aside if there are no units.
func use(ctx context.Context, b driver.Store, now time.Time, j driver.Judged, units int64) {
	p := &driver.Plan{
		ID: weir.NewLeaseID(now), New: true, Charges: 1, Subjects: []driver.Judged{j}, Lifetime: time.Hour,
	}
	for i := range j.Limits {
		if l := &j.Limits[i]; units > 0 || l.Kind != weir.Concurrency {
			p.Takes = append(p.Takes, &driver.Take{
				Subject: j.Subject, Limit: l, Level: j.Level, Ceiling: l.Capacity,
				Parts: []driver.Part{{Units: units}},
			})
		}
	}
	_ = b.Reserve(ctx, now, p, p.Outcome())
}

// readingStores returns stores that report the wrong things.
func readingStores() []storeVariant {
	return []storeVariant{
		{"a status charges", "seam", reservingStatus(1)},
		{"a status counts as a use", "8.4", reservingStatus(0)},
		{"an extend counts as a use of buckets", "8.4", func(s *wrongStore) {
			s.settle = func(ctx context.Context, now time.Time, u *driver.Update, out *driver.Outcome) error {
				if u.Verb == weir.VerbExtend {
					for i := range u.Changes {
						h := u.Changes[i].Holding
						use(ctx, s.fullStore, now, driver.Judged{
							Subject: h.Subject, Level: h.Level, Limits: []weir.Limit{*u.Changes[i].Limit},
						}, 0)
					}
				}
				return s.fullStore.Update(ctx, now, u, out)
			}
		}},
		{"statuses are sorted", "seam", func(s *wrongStore) {
			s.status = func(
				ctx context.Context, now time.Time, of []driver.Judged,
			) ([]weir.LimitStatus, error) {
				sorted := slices.Clone(of)
				slices.SortFunc(sorted, func(a, b driver.Judged) int { return strings.Compare(a.Entity, b.Entity) })
				return s.fullStore.Status(ctx, now, sorted)
			}
		}},
		{"the configuration is read once", "8.1", func(s *wrongStore) {
			var mu sync.Mutex
			known := map[weir.Subject]*weir.Config{}
			reading(func(of weir.Subject, c *weir.Config) *weir.Config {
				mu.Lock()
				defer mu.Unlock()
				if known[of] == nil {
					known[of] = c
				}
				return known[of]
			})(s)
		}},
		{"the policy is not read", "10.2", reading(func(_ weir.Subject, c *weir.Config) *weir.Config {
			c.OnUnavailable = ""
			return c
		})},
	}
}

// reading changes the configuration of a subject as the store reads it.
func reading(change func(of weir.Subject, c *weir.Config) *weir.Config) func(s *wrongStore) {
	return func(s *wrongStore) {
		s.read = func(ctx context.Context, of weir.Subject, consistent bool) (*weir.Config, error) {
			c, err := s.fullStore.ReadConfig(ctx, of, consistent)
			if err != nil {
				return nil, err
			}
			return change(of, new(*c)), nil
		}
	}
}
