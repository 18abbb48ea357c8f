package memory

import (
	"context"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
)

// usageBatch is about the number of entries of several hours that are collected at once to list
// the usage of a resource.
const usageBatch = 50_000

// ReadUsage yields the recorded usage; see [driver.UsageReader]. If none is recorded, the error
// has code [weir.Unsupported]. What is used while the list is read may be in it or not.
func (s *Store) ReadUsage(
	ctx context.Context, q *weir.UsageQuery, after *weir.Usage,
) iter.Seq2[weir.Usage, error] {
	return driver.SumUsage(func(yield func(weir.Usage, error) bool) {
		if s.usage == nil {
			yield(weir.Usage{}, weir.NewError(weir.Unsupported, "store", "", "does not record usage"))
			return
		}
		r := &usageReader{store: s, ctx: ctx, query: q, yield: yield, last: math.MaxInt32}
		r.first = math.MinInt32
		if !q.From.IsZero() {
			r.first = int64(hourOf(q.From.UnixMilli()))
		}
		if !q.To.IsZero() {
			r.last = int64(hourOf(q.To.UnixMilli()))
		}
		if q.Entity != "" {
			r.listEntity(after)
		} else {
			r.listResource(after)
		}
	}, q.Window)
}

// UsageGaps returns the times for which usage may be missing: before the record began or before
// the oldest hour kept, and after the last snapshot of a process that was killed. It never fails.
func (s *Store) UsageGaps(
	_ context.Context, now time.Time, _ *weir.UsageQuery,
) ([]weir.UsageGap, error) {
	if s.usage == nil {
		return nil, nil
	}
	return s.usage.gaps(now.UnixMilli()), nil
}

// usageReader is one reading of the usage.
type usageReader struct {
	store *Store
	//nolint:containedctx // it lives as long as one call
	ctx   context.Context
	query *weir.UsageQuery
	yield func(weir.Usage, error) bool
	// first and last bound the hours: from first on and before last.
	first, last int64
	rows        []usageRow
}

// usageRow is the usage of one limit in one hour.
type usageRow struct {
	subject weir.Subject
	limit   string
	usageEntry
}

// listEntity lists the usage of an entity, one resource after the other.
func (r *usageReader) listEntity(after *weir.Usage) {
	p := &r.store.stripes[r.store.stripeOf(r.query.Entity)]
	resources := []string{r.query.Resource}
	if r.query.Resource == "" {
		resources = p.usedResources(r.query.Entity)
	}
	for _, resource := range resources {
		first := r.first
		if after != nil && driver.CompareResources(resource, after.Resource) < 0 {
			continue
		}
		if after != nil && resource == after.Resource {
			first = max(first, int64(hourOf(after.Start.UnixMilli())))
		}
		of := weir.Subject{Entity: r.query.Entity, Resource: resource}
		r.collect(p, first, r.last, func(s weir.Subject) bool { return s == of })
		if !r.flush() {
			return
		}
	}
}

// listResource lists the usage of a resource, a few hours at a time.
func (r *usageReader) listResource(after *weir.Usage) {
	if after != nil {
		r.first = max(r.first, int64(hourOf(after.Start.UnixMilli())))
	}
	for first := r.first; first < r.last; {
		end := r.store.usage.batch(first, r.last, usageBatch)
		for i := range r.store.stripes {
			r.collect(&r.store.stripes[i], first, end,
				func(s weir.Subject) bool { return s.Resource == r.query.Resource })
		}
		if !r.flush() {
			return
		}
		first = end
	}
}

// usedResources returns, in order, the resources on which an entity of the stripe has usage.
func (p *stripe) usedResources(entity string) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var resources []string
	for _, u := range p.usage.dense {
		if u.subject.Entity == entity {
			resources = append(resources, u.subject.Resource)
		}
	}
	for _, it := range p.dense {
		if it.subject.Entity == entity {
			resources = append(resources, it.subject.Resource)
		}
	}
	slices.SortFunc(resources, driver.CompareResources)
	return slices.Compact(resources)
}

// collect appends the rows of a stripe's subjects from an hour on and before another one.
func (r *usageReader) collect(p *stripe, first, last int64, of func(weir.Subject) bool) {
	first = max(first, r.store.usage.horizon.Load())
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, u := range p.usage.dense {
		if !of(u.subject) {
			continue
		}
		for _, e := range u.entries {
			if first <= int64(e.hour) && int64(e.hour) < last {
				r.rows = append(r.rows, usageRow{u.subject, u.limits[e.limit], e})
			}
		}
	}
	for _, it := range p.dense {
		if !of(it.subject) {
			continue
		}
		for i := range it.states {
			name, use := it.states[i].name, it.states[i].use
			if use.events > 0 && first <= int64(use.hour) && int64(use.hour) < last {
				r.rows = append(r.rows, usageRow{it.subject, name, usageEntry{
					units: use.units, events: int64(use.events), hour: use.hour,
				}})
			}
		}
	}
}

// flush yields the records of the rows, and removes the rows. It reports whether to go on.
func (r *usageReader) flush() bool {
	place := func(row *usageRow) weir.Usage {
		return weir.Usage{
			Entity: row.subject.Entity, Resource: row.subject.Resource,
			Start: timeAt(int64(row.hour) * hourMS),
		}
	}
	slices.SortFunc(r.rows, func(a, b usageRow) int {
		x, y := place(&a), place(&b)
		return driver.CompareUsage(r.query, &x, &y)
	})
	for i := 0; i < len(r.rows); {
		if err := r.ctx.Err(); err != nil {
			r.yield(weir.Usage{}, err)
			return false
		}
		u := place(&r.rows[i])
		u.Window, u.Windows, u.End = weir.Hourly, 1, u.Start.Add(time.Hour)
		u.Units = make(map[string]int64)
		for of, hour := r.rows[i].subject, r.rows[i].hour; i < len(r.rows); i++ {
			row := &r.rows[i]
			if row.subject != of || row.hour != hour {
				break
			}
			u.Events = addUse(u.Events, row.events)
			u.Units[row.limit] = addUse(u.Units[row.limit], row.units)
		}
		if !r.yield(u, nil) {
			return false
		}
	}
	r.rows = r.rows[:0]
	return true
}
