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
	// Wrap makes the wrong store of a right one; nil where the store is not what is wrong.
	Wrap func(weir.Backend) weir.Backend
	// Front is what is wrong in front of the limiter, or nil.
	Front Front
}

// store is a right store with something wrong in its methods. A nil function is the right one.
type store struct {
	weir.Backend
	weir.ConfigReader
	weir.ConfigWriter
	weir.ConfigEditor
	weir.EntityReader
	weir.SubjectLister
	reserve func(ctx context.Context, now time.Time, r *weir.Reservation) (*weir.Outcome, error)
	settle  func(ctx context.Context, now time.Time, s *weir.Settlement) (*weir.Outcome, error)
	status  func(ctx context.Context, now time.Time, of []weir.Subject, resolve weir.Resolver) (
		[]weir.LimitStatus, error)
	read func(ctx context.Context, s weir.Subject) (*weir.Config, error)

	set      func(ctx context.Context, now time.Time, at weir.Subject, limits []weir.Limit) error
	declare  func(ctx context.Context, now time.Time, name, parent string, cascade bool) error
	remove   func(ctx context.Context, now time.Time, name string) error
	list     func(ctx context.Context, q *weir.EntityQuery) (*weir.EntityPage, error)
	entities func(ctx context.Context, now time.Time, resource string) ([]string, error)
}

// of wraps a store that has every ability but to recover leases.
func of(spoil func(s *store)) func(weir.Backend) weir.Backend {
	return func(b weir.Backend) weir.Backend {
		s := &store{Backend: b}
		s.ConfigReader, _ = b.(weir.ConfigReader)
		s.ConfigWriter, _ = b.(weir.ConfigWriter)
		s.ConfigEditor, _ = b.(weir.ConfigEditor)
		s.EntityReader, _ = b.(weir.EntityReader)
		s.SubjectLister, _ = b.(weir.SubjectLister)
		spoil(s)
		return s
	}
}

func (s *store) Reserve(
	ctx context.Context,
	now time.Time,
	r *weir.Reservation,
) (*weir.Outcome, error) {
	if s.reserve != nil {
		return s.reserve(ctx, now, r)
	}
	return s.Backend.Reserve(ctx, now, r)
}

func (s *store) Settle(
	ctx context.Context,
	now time.Time,
	set *weir.Settlement,
) (*weir.Outcome, error) {
	if s.settle != nil {
		return s.settle(ctx, now, set)
	}
	return s.Backend.Settle(ctx, now, set)
}

func (s *store) Status(
	ctx context.Context, now time.Time, subjects []weir.Subject, resolve weir.Resolver,
) ([]weir.LimitStatus, error) {
	if s.status != nil {
		return s.status(ctx, now, subjects, resolve)
	}
	return s.Backend.Status(ctx, now, subjects, resolve)
}

func (s *store) ReadConfig(ctx context.Context, subject weir.Subject) (*weir.Config, error) {
	if s.read != nil {
		return s.read(ctx, subject)
	}
	return s.ConfigReader.ReadConfig(ctx, subject)
}

func (s *store) WriteLimits(
	ctx context.Context, now time.Time, at weir.Subject, limits []weir.Limit,
) error {
	if s.set != nil {
		return s.set(ctx, now, at, limits)
	}
	return s.ConfigEditor.WriteLimits(ctx, now, at, limits)
}

func (s *store) WriteEntity(
	ctx context.Context, now time.Time, name, parent string, cascade bool,
) error {
	if s.declare != nil {
		return s.declare(ctx, now, name, parent, cascade)
	}
	return s.ConfigEditor.WriteEntity(ctx, now, name, parent, cascade)
}

func (s *store) DeleteEntity(ctx context.Context, now time.Time, name string) error {
	if s.remove != nil {
		return s.remove(ctx, now, name)
	}
	return s.ConfigEditor.DeleteEntity(ctx, now, name)
}

func (s *store) ListEntities(ctx context.Context, q *weir.EntityQuery) (*weir.EntityPage, error) {
	if s.list != nil {
		return s.list(ctx, q)
	}
	return s.EntityReader.ListEntities(ctx, q)
}

func (s *store) Entities(ctx context.Context, now time.Time, resource string) ([]string, error) {
	if s.entities != nil {
		return s.entities(ctx, now, resource)
	}
	return s.SubjectLister.Entities(ctx, now, resource)
}

// Stores returns the stores that are wrong in one respect each.
func Stores() []Store {
	return slices.Concat(
		takingStores(), planningStores(), settlingStores(), readingStores(), placingStores(),
		namingStores(), listingStores(), limiters())
}

// takingStores are wrong in Reserve.
func takingStores() []Store {
	answered := func(change func(now time.Time, out *weir.Outcome)) func(weir.Backend) weir.Backend {
		return of(func(s *store) {
			s.reserve = func(ctx context.Context, now time.Time, r *weir.Reservation) (*weir.Outcome, error) {
				out, err := s.Backend.Reserve(ctx, now, r)
				if err == nil {
					change(now, out)
				}
				return out, err
			}
		})
	}
	return []Store{
		{Name: "holdings are in another order", Breaks: "seam", Wrap: answered(
			func(_ time.Time, out *weir.Outcome) { slices.Reverse(out.Holdings) })},
		{Name: "a denied outcome has holdings", Breaks: "seam", Wrap: answered(
			func(_ time.Time, out *weir.Outcome) {
				if out.Denied {
					out.Holdings = make([]weir.Holding, len(out.Limits))
				}
			})},
		{Name: "an outcome has nanoseconds", Breaks: "1.2", Wrap: answered(
			func(now time.Time, out *weir.Outcome) { out.At = now })},
		{
			Name:   "an error of the plan means that the store is gone",
			Breaks: "seam",
			Wrap: of(func(s *store) {
				s.reserve = func(ctx context.Context, now time.Time, r *weir.Reservation) (*weir.Outcome, error) {
					out, err := s.Backend.Reserve(ctx, now, r)
					if err != nil {
						return nil, &weir.Error{Code: weir.Unavailable}
					}
					return out, nil
				}
			}),
		},
		{Name: "what applied first applies for good", Breaks: "O2: default changes",
			Wrap: of(firstForGood)},
		{Name: "what was taken under other limits is kept", Breaks: "O2: default changes",
			Wrap: of(takenByBefore)},
		{Name: "a parent that is not declared is charged, whatever the traits say",
			Breaks: "a parent that is not declared", Wrap: of(anyParent)},
		{Name: "the plan is made under a lock", Breaks: "seam", Wrap: of(locked)},
		{Name: "the charges are added up in place", Breaks: "seam", Wrap: of(func(s *store) {
			s.reserve = func(ctx context.Context, now time.Time, r *weir.Reservation) (*weir.Outcome, error) {
				out, err := s.Backend.Reserve(ctx, now, r)
				for i := range r.Charges {
					for name := range r.Charges[i].Costs {
						r.Charges[i].Costs[name] = 0
					}
				}
				return out, err
			}
		})},
	}
}

// planningStores are wrong in how they make the plan.
func planningStores() []Store {
	without := func(change func(r *weir.Resolved)) func(weir.Backend) weir.Backend {
		return of(func(s *store) {
			s.reserve = func(ctx context.Context, now time.Time, r *weir.Reservation) (*weir.Outcome, error) {
				c := *r
				c.Resolve = func(ctx context.Context, of weir.Subject, m weir.ResolveMode) (*weir.Resolved, error) {
					known, err := r.Resolve(ctx, of, m)
					if err != nil {
						return nil, err
					}
					res := *known
					change(&res)
					return &res, nil
				}
				return s.Backend.Reserve(ctx, now, &c)
			}
		})
	}
	return []Store{
		{Name: "a kind is declared and not enforced", Breaks: "2.2", Wrap: without(
			func(r *weir.Resolved) {
				r.Limits = slices.DeleteFunc(slices.Clone(r.Limits),
					func(l weir.Limit) bool { return l.Kind == weir.Window })
			})},
		{Name: "ancestors are declared and not charged", Breaks: "9.1", Wrap: without(
			func(r *weir.Resolved) { r.Parent = "" })},
	}
}

// locked holds one lock for all, while the plan is made too.
func locked(s *store) {
	var mu sync.Mutex
	s.reserve = func(ctx context.Context, now time.Time, r *weir.Reservation) (*weir.Outcome, error) {
		mu.Lock()
		defer mu.Unlock()
		return s.Backend.Reserve(ctx, now, r)
	}
	s.status = func(
		ctx context.Context, now time.Time, of []weir.Subject, resolve weir.Resolver,
	) ([]weir.LimitStatus, error) {
		mu.Lock()
		defer mu.Unlock()
		return s.Backend.Status(ctx, now, of, resolve)
	}
}

// settlingStores are wrong in Settle.
func settlingStores() []Store {
	settling := func(f func(s *store, ctx context.Context, now time.Time, set *weir.Settlement) (
		*weir.Outcome, error)) func(weir.Backend) weir.Backend {
		return of(func(s *store) {
			s.settle = func(ctx context.Context, now time.Time, set *weir.Settlement) (*weir.Outcome, error) {
				return f(s, ctx, now, set)
			}
		})
	}
	return []Store{
		{Name: "parts are changed in place", Breaks: "seam", Wrap: settling(
			func(s *store, ctx context.Context, now time.Time, set *weir.Settlement) (*weir.Outcome, error) {
				out, err := s.Backend.Settle(ctx, now, set)
				for i := range set.Totals {
					copy(set.Holdings[i].Parts, set.Totals[i])
				}
				return out, err
			})},
		{Name: "pieces are changed in place", Breaks: "seam", Wrap: settling(
			func(s *store, ctx context.Context, now time.Time, set *weir.Settlement) (*weir.Outcome, error) {
				out, err := s.Backend.Settle(ctx, now, set)
				for i := range set.Holdings {
					for j := range set.Holdings[i].Pieces {
						set.Holdings[i].Pieces[j].Until++
					}
				}
				return out, err
			})},
		{Name: "a settle that fails is applied to the first limit", Breaks: "7.10", Wrap: settling(
			func(s *store, ctx context.Context, now time.Time, set *weir.Settlement) (*weir.Outcome, error) {
				out, err := s.Backend.Settle(ctx, now, set)
				if err != nil && len(set.Holdings) > 1 {
					c := *set
					c.Holdings, c.Totals, c.Limits = set.Holdings[:1], set.Totals[:1], set.Limits[:1]
					_, _ = s.Backend.Settle(ctx, now, &c)
				}
				return out, err
			})},
		{Name: "a settle that fails is said to be done", Breaks: "7.11", Wrap: settling(
			func(s *store, ctx context.Context, now time.Time, set *weir.Settlement) (*weir.Outcome, error) {
				out, err := s.Backend.Settle(ctx, now, set)
				if err != nil {
					out = &weir.Outcome{At: now.Truncate(time.Millisecond), Holdings: set.Holdings}
					return out, nil //nolint:nilerr // that is what is wrong with it
				}
				return out, nil
			})},
	}
}

// readingStores are wrong in what they tell.
func readingStores() []Store {
	return []Store{
		{Name: "a status charges", Breaks: "seam", Wrap: of(func(s *store) {
			s.status = func(
				ctx context.Context, now time.Time, of []weir.Subject, resolve weir.Resolver,
			) ([]weir.LimitStatus, error) {
				for _, subject := range of {
					_, _ = s.Backend.Reserve(ctx, now, &weir.Reservation{ID: weir.NewLeaseID(now), Depth: 8,
						Charges: []weir.Charge{{Entity: subject.Entity, Resource: subject.Resource,
							Costs: weir.Costs{"n": 1}}}, Resolve: resolve})
				}
				return s.Backend.Status(ctx, now, of, resolve)
			}
		})},
		{Name: "statuses are sorted", Breaks: "seam", Wrap: of(func(s *store) {
			s.status = func(
				ctx context.Context, now time.Time, of []weir.Subject, resolve weir.Resolver,
			) ([]weir.LimitStatus, error) {
				sorted := slices.Clone(of)
				slices.SortFunc(
					sorted,
					func(a, b weir.Subject) int { return strings.Compare(a.Entity, b.Entity) },
				)
				return s.Backend.Status(ctx, now, sorted, resolve)
			}
		})},
		{Name: "the configuration is read once", Breaks: "8.1", Wrap: of(func(s *store) {
			var mu sync.Mutex
			known := map[weir.Subject]*weir.Config{}
			s.read = func(ctx context.Context, subject weir.Subject) (*weir.Config, error) {
				mu.Lock()
				defer mu.Unlock()
				if known[subject] == nil {
					c, err := s.ConfigReader.ReadConfig(ctx, subject)
					if err != nil {
						return nil, err
					}
					known[subject] = c
				}
				return known[subject], nil
			}
		})},
		{Name: "the policy is not read", Breaks: "10.2", Wrap: of(func(s *store) {
			s.read = func(ctx context.Context, subject weir.Subject) (*weir.Config, error) {
				c, err := s.ConfigReader.ReadConfig(ctx, subject)
				if err != nil {
					return nil, err
				}
				plain := *c
				plain.OnUnavailable = ""
				return &plain, nil
			}
		})},
	}
}
