package broken

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weir-limiter/weir"
)

// Store is a wrong store, made of a right one, or a limiter that is wrong about its store.
type Store struct {
	// Name and Breaks are as in [Variant]; "seam" is docs/new-backend.md.
	Name, Breaks string
	// Wrap makes the wrong store of a right one; nil if the store is not what is wrong.
	Wrap func(weir.Backend) weir.Backend
	// Front is what is wrong in front of the limiter, or nil.
	Front Front
}

// broken is a store with something wrong in its methods. Its function runs for each store.
type broken struct {
	name, breaks string
	spoil        func(s *store)
}

// Stores returns the stores that are wrong in one respect each, and the limiters.
func Stores() []Store {
	var stores []Store
	for _, b := range slices.Concat(takingStores(), settlingStores(), readingStores(),
		placingStores(), namingStores(), listingStores()) {
		stores = append(stores, Store{Name: b.name, Breaks: b.breaks, Wrap: wrap(b.spoil)})
	}
	for _, f := range limiterFronts() {
		stores = append(stores, Store{Name: f.name, Breaks: f.breaks, Front: put(f.spoil)})
	}
	return stores
}

// right is a store with the abilities in which one can be wrong.
type right interface {
	weir.Backend
	weir.ConfigReader
	weir.ConfigWriter
	weir.ConfigEditor
	weir.EntityReader
	weir.SubjectLister
}

// store is a right store with something wrong in its methods. Each function is the right one until
// it is replaced.
type store struct {
	right
	reserve  func(ctx context.Context, now time.Time, r *weir.Reservation) (*weir.Outcome, error)
	settle   func(ctx context.Context, now time.Time, s *weir.Settlement) (*weir.Outcome, error)
	status   statusOf
	read     func(ctx context.Context, s weir.Subject) (*weir.Config, error)
	set      func(ctx context.Context, now time.Time, at weir.Subject, limits []weir.Limit) error
	declare  func(ctx context.Context, now time.Time, name, parent string, cascade bool) error
	remove   func(ctx context.Context, now time.Time, name string) error
	list     func(ctx context.Context, q *weir.EntityQuery) (*weir.EntityPage, error)
	entities func(ctx context.Context, now time.Time, resource string) ([]string, error)
}

type statusOf func(
	ctx context.Context, now time.Time, of []weir.Judged,
) ([]weir.LimitStatus, error)

// wrap makes a wrong store of a right one that has every ability but to recover leases.
func wrap(spoil func(s *store)) func(weir.Backend) weir.Backend {
	return func(b weir.Backend) weir.Backend {
		r := b.(right)
		s := &store{
			right: r, reserve: r.Reserve, settle: r.Settle, status: r.Status, read: r.ReadConfig,
			set: r.WriteLimits, declare: r.WriteEntity, remove: r.DeleteEntity,
			list: r.ListEntities, entities: r.Entities,
		}
		spoil(s)
		return s
	}
}

func (s *store) Reserve(ctx context.Context, now time.Time, r *weir.Reservation) (*weir.Outcome, error) {
	return s.reserve(ctx, now, r)
}

func (s *store) Settle(ctx context.Context, now time.Time, set *weir.Settlement) (*weir.Outcome, error) {
	return s.settle(ctx, now, set)
}

func (s *store) Status(
	ctx context.Context, now time.Time, of []weir.Judged,
) ([]weir.LimitStatus, error) {
	return s.status(ctx, now, of)
}

func (s *store) ReadConfig(ctx context.Context, of weir.Subject) (*weir.Config, error) {
	return s.read(ctx, of)
}

func (s *store) WriteLimits(
	ctx context.Context, now time.Time, at weir.Subject, limits []weir.Limit,
) error {
	return s.set(ctx, now, at, limits)
}

func (s *store) WriteEntity(
	ctx context.Context, now time.Time, name, parent string, cascade bool,
) error {
	return s.declare(ctx, now, name, parent, cascade)
}

func (s *store) DeleteEntity(ctx context.Context, now time.Time, name string) error {
	return s.remove(ctx, now, name)
}

func (s *store) ListEntities(ctx context.Context, q *weir.EntityQuery) (*weir.EntityPage, error) {
	return s.list(ctx, q)
}

func (s *store) Entities(ctx context.Context, now time.Time, resource string) ([]string, error) {
	return s.entities(ctx, now, resource)
}

// outcome is what a store made of a reservation or a settlement.
type outcome struct {
	now         time.Time
	reservation *weir.Reservation
	settlement  *weir.Settlement
	*weir.Outcome
	err error
}

// reserving changes the outcome of each reservation.
func reserving(change func(o *outcome)) func(s *store) {
	return func(s *store) {
		s.reserve = func(ctx context.Context, now time.Time, r *weir.Reservation) (*weir.Outcome, error) {
			o := &outcome{now: now, reservation: r}
			o.Outcome, o.err = s.right.Reserve(ctx, now, r)
			change(o)
			return o.Outcome, o.err
		}
	}
}

// taking changes the outcome of each reservation that did not fail.
func taking(change func(o *outcome)) func(s *store) {
	return reserving(func(o *outcome) {
		if o.err == nil {
			change(o)
		}
	})
}

// settled changes the outcome of each settlement.
func settled(change func(o *outcome)) func(s *store) {
	return func(s *store) {
		s.settle = func(ctx context.Context, now time.Time, set *weir.Settlement) (*weir.Outcome, error) {
			o := &outcome{now: now, settlement: set}
			o.Outcome, o.err = s.right.Settle(ctx, now, set)
			change(o)
			return o.Outcome, o.err
		}
	}
}

// resolving changes what applies to a subject, as a reservation is told it.
func resolving(change func(of weir.Subject, r *weir.Resolved) *weir.Resolved) func(s *store) {
	return func(s *store) {
		s.reserve = func(ctx context.Context, now time.Time, r *weir.Reservation) (*weir.Outcome, error) {
			c := *r
			c.Resolve = func(ctx context.Context, of weir.Subject, m weir.ResolveMode) (*weir.Resolved, error) {
				known, err := r.Resolve(ctx, of, m)
				if err != nil || known == nil {
					return known, err
				}
				return change(of, new(*known)), nil
			}
			return s.right.Reserve(ctx, now, &c)
		}
	}
}

// takingStores are wrong in Reserve.
func takingStores() []broken {
	return []broken{
		{"holdings are in another order", "seam", taking(func(o *outcome) { slices.Reverse(o.Holdings) })},
		{"a denied outcome has holdings", "seam", taking(func(o *outcome) {
			if o.Denied {
				o.Holdings = make([]weir.Holding, len(o.Limits))
			}
		})},
		{"an outcome has nanoseconds", "1.2", taking(func(o *outcome) { o.At = o.now })},
		{"an error of the plan means that the store is gone", "seam", reserving(func(o *outcome) {
			if o.err != nil {
				o.err = refused(weir.Unavailable)
			}
		})},
		{"the charges are added up in place", "seam", reserving(func(o *outcome) {
			for _, c := range o.reservation.Charges {
				for name := range c.Costs {
					c.Costs[name] = 0
				}
			}
		})},
		{"a kind is declared and not enforced", "2.2", resolving(
			func(_ weir.Subject, r *weir.Resolved) *weir.Resolved {
				r.Limits = slices.DeleteFunc(slices.Clone(r.Limits),
					func(l weir.Limit) bool { return l.Kind == weir.Window })
				return r
			})},
		{"ancestors are declared and not charged", "9.1", resolving(
			func(_ weir.Subject, r *weir.Resolved) *weir.Resolved {
				r.Parent = ""
				return r
			})},
		{"what applied first applies for good", "O2: default changes", firstForGood},
		{"what was taken under other limits is kept", "O2: default changes", takenByBefore},
		{"a parent that is not declared is charged, whatever the traits say",
			"a parent that is not declared", anyParent},
		{"the plan is made under a lock", "seam", locked},
	}
}

// locked holds one lock for all, while the plan is made too.
func locked(s *store) {
	var mu sync.Mutex
	s.reserve = func(ctx context.Context, now time.Time, r *weir.Reservation) (*weir.Outcome, error) {
		mu.Lock()
		defer mu.Unlock()
		return s.right.Reserve(ctx, now, r)
	}
	s.status = func(
		ctx context.Context, now time.Time, of []weir.Judged,
	) ([]weir.LimitStatus, error) {
		mu.Lock()
		defer mu.Unlock()
		return s.right.Status(ctx, now, of)
	}
}

// settlingStores are wrong in Settle.
func settlingStores() []broken {
	return []broken{
		{"parts are changed in place", "seam", settled(func(o *outcome) {
			for i := range o.settlement.Totals {
				copy(o.settlement.Holdings[i].Parts, o.settlement.Totals[i])
			}
		})},
		{"pieces are changed in place", "seam", settled(func(o *outcome) {
			for i := range o.settlement.Holdings {
				for j := range o.settlement.Holdings[i].Pieces {
					o.settlement.Holdings[i].Pieces[j].Until++
				}
			}
		})},
		{"a settle that fails is applied to the first limit", "7.10", func(s *store) {
			s.settle = func(ctx context.Context, now time.Time, set *weir.Settlement) (*weir.Outcome, error) {
				out, err := s.right.Settle(ctx, now, set)
				if err != nil && len(set.Holdings) > 1 {
					c := *set
					c.Holdings, c.Totals, c.Limits = set.Holdings[:1], set.Totals[:1], set.Limits[:1]
					_, _ = s.right.Settle(ctx, now, &c)
				}
				return out, err
			}
		}},
		{"a settle that fails is said to be done", "7.11", settled(func(o *outcome) {
			if o.err != nil {
				o.err = nil
				o.Outcome = &weir.Outcome{
					At: o.now.Truncate(time.Millisecond), Holdings: o.settlement.Holdings,
				}
			}
		})},
	}
}

// resolves gives a reservation the limits that a status was asked for.
func resolves(j weir.Judged) weir.Resolver {
	return func(context.Context, weir.Subject, weir.ResolveMode) (*weir.Resolved, error) {
		return &weir.Resolved{Level: j.Level, Limits: j.Limits}, nil
	}
}

// readingStores are wrong in what they tell.
func readingStores() []broken {
	return []broken{
		{"a status charges", "seam", func(s *store) {
			s.status = func(
				ctx context.Context, now time.Time, of []weir.Judged,
			) ([]weir.LimitStatus, error) {
				for _, subject := range of {
					_, _ = s.right.Reserve(ctx, now, &weir.Reservation{ID: weir.NewLeaseID(now), Depth: 8,
						Charges: []weir.Charge{{Entity: subject.Entity, Resource: subject.Resource,
							Costs: weir.Costs{"n": 1}}}, Resolve: resolves(subject)})
				}
				return s.right.Status(ctx, now, of)
			}
		}},
		{"statuses are sorted", "seam", func(s *store) {
			s.status = func(
				ctx context.Context, now time.Time, of []weir.Judged,
			) ([]weir.LimitStatus, error) {
				sorted := slices.Clone(of)
				slices.SortFunc(sorted, func(a, b weir.Judged) int { return strings.Compare(a.Entity, b.Entity) })
				return s.right.Status(ctx, now, sorted)
			}
		}},
		{"the configuration is read once", "8.1", func(s *store) {
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

// reading changes what is configured for a subject, as the store tells it.
func reading(change func(of weir.Subject, c *weir.Config) *weir.Config) func(s *store) {
	return func(s *store) {
		s.read = func(ctx context.Context, of weir.Subject) (*weir.Config, error) {
			c, err := s.right.ReadConfig(ctx, of)
			if err != nil {
				return nil, err
			}
			return change(of, new(*c)), nil
		}
	}
}
