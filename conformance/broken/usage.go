package broken

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
)

// UsageStores returns stores that record usage wrongly. Breaks is the line of docs/semantics.md.
// Wrap needs a right store that is a [driver.UsageReader] at once.
func UsageStores() []StoreVariant {
	var stores []StoreVariant
	for _, v := range slices.Concat(countingStores(), eventStores(), usageListingStores()) {
		stores = append(stores, StoreVariant{Name: v.name, Breaks: v.breaks,
			Wrap: func(b driver.Store) driver.Store {
				s := &wrongUsage{
					fullStore: b.(fullStore), right: b.(driver.UsageReader), at: make(map[weir.LeaseID]time.Time),
				}
				v.spoil(s)
				return s
			}})
	}
	return stores
}

type usageVariant struct {
	name, breaks string
	spoil        func(s *wrongUsage)
}

// wrongUsage is a store whose usage can be changed. What it adds is kept beside the right
// store's.
type wrongUsage struct {
	fullStore
	right driver.UsageReader

	mu    sync.Mutex
	extra []weir.Usage
	at    map[weir.LeaseID]time.Time // when each lease was reserved

	// The functions may be nil.
	reserved func(now time.Time, p *driver.Plan, out *driver.Outcome)
	updated  func(now time.Time, u *driver.Update, out *driver.Outcome)
	listed   func(q *weir.UsageQuery, records []weir.Usage) []weir.Usage
	windows  func(q *weir.UsageQuery) weir.UsageWindow
}

func (s *wrongUsage) Reserve(
	ctx context.Context, now time.Time, p *driver.Plan, out *driver.Outcome,
) error {
	if err := s.fullStore.Reserve(ctx, now, p, out); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at[p.ID] = now
	if s.reserved != nil {
		s.reserved(now, p, out)
	}
	return nil
}

func (s *wrongUsage) Update(
	ctx context.Context, now time.Time, u *driver.Update, out *driver.Outcome,
) error {
	if err := s.fullStore.Update(ctx, now, u, out); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.updated != nil {
		s.updated(now, u, out)
	}
	return nil
}

// add adds to the usage of a limit.
func (s *wrongUsage) add(now time.Time, of weir.Subject, limit string, units, events int64) {
	s.extra = append(s.extra, weir.Usage{
		Entity: of.Entity, Resource: of.Resource, Window: weir.Hourly,
		Start: weir.Hourly.Start(now), End: weir.Hourly.End(now),
		Events: events, Units: map[string]int64{limit: units},
	})
}

// ReadUsage yields the right store's usage with what was added.
func (s *wrongUsage) ReadUsage(
	ctx context.Context, q *weir.UsageQuery, after *weir.Usage,
) iter.Seq2[weir.Usage, error] {
	hourly := *q
	hourly.Window = weir.Hourly
	var records []weir.Usage
	for u, err := range s.right.ReadUsage(ctx, &hourly, nil) {
		if err != nil {
			return func(yield func(weir.Usage, error) bool) { yield(u, err) }
		}
		records = append(records, u)
	}
	records = s.added(q, records)
	if s.listed != nil {
		records = s.listed(q, records)
	}
	window := q.Window
	if s.windows != nil {
		window = s.windows(q)
	}
	return driver.SumUsage(func(yield func(weir.Usage, error) bool) {
		for _, u := range records {
			if !yield(u, nil) {
				return
			}
		}
	}, window)
}

// added returns records with what was added to them.
func (s *wrongUsage) added(q *weir.UsageQuery, records []weir.Usage) []weir.Usage {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, u := range s.extra {
		if q.Entity != "" && u.Entity != q.Entity || q.Resource != "" && u.Resource != q.Resource ||
			!q.From.IsZero() && u.Start.Before(q.From) || !q.To.IsZero() && !u.Start.Before(q.To) {
			continue
		}
		i := slices.IndexFunc(records, func(r weir.Usage) bool {
			return r.Entity == u.Entity && r.Resource == u.Resource && r.Start.Equal(u.Start)
		})
		if i < 0 {
			records = append(records, u)
			records[len(records)-1].Units = make(map[string]int64)
			i = len(records) - 1
		}
		_ = records[i].Add(&u)
		records[i].Windows = 1
	}
	slices.SortStableFunc(records, func(a, b weir.Usage) int { return driver.CompareUsage(q, &a, &b) })
	return records
}

// UsageGaps returns the gaps of the right store.
func (s *wrongUsage) UsageGaps(
	ctx context.Context, now time.Time, q *weir.UsageQuery,
) ([]weir.UsageGap, error) {
	return s.right.UsageGaps(ctx, now, q)
}

// onTakes adds to the usage of each take of a reservation.
func onTakes(
	change func(p *driver.Plan, t *driver.Take, out *driver.Outcome) (units, events int64),
) func(*wrongUsage) {
	return func(s *wrongUsage) {
		s.reserved = func(now time.Time, p *driver.Plan, out *driver.Outcome) {
			for _, t := range p.Takes {
				if units, events := change(p, t, out); units != 0 || events != 0 {
					s.add(now, t.Subject, t.Limit.Name, units, events)
				}
			}
		}
	}
}

// onChanges adds to the usage of each change of an update, given by how much it changes the
// usage.
func onChanges(
	change func(u *driver.Update, c *driver.Change, used int64) (units, events int64),
) func(*wrongUsage) {
	return func(s *wrongUsage) {
		s.updated = func(now time.Time, u *driver.Update, out *driver.Outcome) {
			for i := range u.Changes {
				c := &u.Changes[i]
				if units, events := change(u, c, usedBy(c, &out.Taken[i])); units != 0 || events != 0 {
					s.add(now, c.Holding.Subject, c.Limit.Name, units, events)
				}
			}
		}
	}
}

// usedBy returns by how much a change has changed the usage of its limit.
func usedBy(c *driver.Change, taken *driver.Taken) int64 {
	if taken.Units != c.To {
		return 0 // a shadow limit keeps what it could count
	}
	return c.Used - c.From
}

// countingStores returns stores that count the wrong units.
func countingStores() []usageVariant {
	return []usageVariant{
		{"a refund counts in the hour of the reservation", "13.1", func(s *wrongUsage) {
			s.updated = func(now time.Time, u *driver.Update, out *driver.Outcome) {
				for i := range u.Changes {
					c := &u.Changes[i]
					if n := usedBy(c, &out.Taken[i]); n < 0 {
						s.add(now, c.Holding.Subject, c.Limit.Name, -n, -1)
						s.add(s.at[u.ID], c.Holding.Subject, c.Limit.Name, n, 1)
					}
				}
			}
		}},
		{"an adjust counts all that the lease stands for", "13.1",
			onChanges(func(u *driver.Update, c *driver.Change, _ int64) (units, events int64) {
				if u.Verb == weir.VerbAdjust {
					return c.From, 0
				}
				return 0, 0
			})},
		{"only the first charge on a limit counts", "13.1",
			onTakes(func(_ *driver.Plan, t *driver.Take, _ *driver.Outcome) (units, events int64) {
				return t.Parts[0].Units - t.Cost(), 0
			})},
		{"a denied request counts", "13.2",
			onTakes(func(_ *driver.Plan, t *driver.Take, out *driver.Outcome) (units, events int64) {
				if out.Denied {
					return t.Cost(), 1
				}
				return 0, 0
			})},
		{"a shadow limit does not count", "13.2",
			onTakes(func(_ *driver.Plan, t *driver.Take, _ *driver.Outcome) (units, events int64) {
				if t.Limit.Shadow {
					return -t.Cost(), -1
				}
				return 0, 0
			})},
		{"an ancestor's usage is forgotten", "13.3",
			onTakes(func(p *driver.Plan, t *driver.Take, _ *driver.Outcome) (units, events int64) {
				if slices.ContainsFunc(p.Subjects, func(j driver.Judged) bool { return j.Parent == t.Entity }) {
					return -t.Cost(), -1
				}
				return 0, 0
			})},
	}
}

// eventStores returns stores that count the wrong slots or events.
func eventStores() []usageVariant {
	return []usageVariant{
		{"slots that return are refunds", "13.4",
			onChanges(func(_ *driver.Update, c *driver.Change, _ int64) (units, events int64) {
				return c.To - c.Used, 0
			})},
		{"a complete takes all slots for used", "13.4",
			onChanges(func(_ *driver.Update, c *driver.Change, _ int64) (units, events int64) {
				if c.Used > c.To {
					return c.From - c.Used, 0
				}
				return 0, 0
			})},
		{"a cancel gives no slots back", "13.4",
			onChanges(func(u *driver.Update, c *driver.Change, used int64) (units, events int64) {
				if u.Verb == weir.VerbCancel && c.Limit.Kind == weir.Concurrency {
					return -used, 0
				}
				return 0, 0
			})},
		{"an update that changes nothing is an event", "13.5",
			onChanges(func(_ *driver.Update, _ *driver.Change, used int64) (units, events int64) {
				if used == 0 {
					return 0, 1
				}
				return 0, 0
			})},
		{"all limits of a request are one event", "13.5",
			onTakes(func(p *driver.Plan, t *driver.Take, _ *driver.Outcome) (units, events int64) {
				if t != p.Takes[0] {
					return 0, -1
				}
				return 0, 0
			})},
	}
}

// usageListingStores returns stores that list usage wrongly.
func usageListingStores() []usageVariant {
	listing := func(
		change func(q *weir.UsageQuery, records []weir.Usage) []weir.Usage,
	) func(*wrongUsage) {
		return func(s *wrongUsage) { s.listed = change }
	}
	return []usageVariant{
		{"usage is sorted by time before the resource", "13.6",
			listing(func(_ *weir.UsageQuery, records []weir.Usage) []weir.Usage {
				slices.SortStableFunc(records, func(a, b weir.Usage) int {
					return cmp.Or(a.Start.Compare(b.Start), cmp.Compare(a.Entity, b.Entity))
				})
				return records
			})},
		{"usage of a resource is sorted by entity", "13.6",
			listing(func(q *weir.UsageQuery, records []weir.Usage) []weir.Usage {
				if q.Entity == "" {
					slices.SortStableFunc(records,
						func(a, b weir.Usage) int { return cmp.Compare(a.Entity, b.Entity) })
				}
				return records
			})},
		{"the first hour is left out", "13.6",
			listing(func(_ *weir.UsageQuery, records []weir.Usage) []weir.Usage {
				return records[min(1, len(records)):]
			})},
		{"a month is listed by days", "13.6", func(s *wrongUsage) {
			s.windows = func(q *weir.UsageQuery) weir.UsageWindow {
				if q.Window == weir.Monthly {
					return weir.Daily
				}
				return q.Window
			}
		}},
	}
}
