//go:build cgo

package tigerbeetle

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	tb "github.com/tigerbeetle/tigerbeetle-go"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/tigerbeetle/internal/client"
)

const (
	// maxHourQueries is the largest number of hours that are read by a query each, which takes as
	// long as reading some thousand records. More hours, or those without a bound, are read in the
	// order in which they were written.
	maxHourQueries = 24
	// earlyHours is by how much the clock of a caller may be ahead of the cluster's, so that its
	// records are found by the time at which they were written.
	earlyHours = 24
)

// ReadUsage yields the usage of one entity, in the order of a [weir.UsagePage], as far as servers
// have written it. It fails with [weir.Unsupported] if the query names no entity, because the
// cluster has only hashes of names. A resource or limit whose name this server does not know is
// named unknown- and the hash; the query of a resource or limit by its name finds it. Every call
// reads all usage of the entity within the bounds of q.
func (s *Store) ReadUsage(
	ctx context.Context, q *weir.UsageQuery, after *weir.Usage,
) iter.Seq2[weir.Usage, error] {
	return driver.SumUsage(func(yield func(weir.Usage, error) bool) {
		hours, err := s.readHours(ctx, q, after)
		if err != nil {
			yield(weir.Usage{}, err)
			return
		}
		for _, u := range hours {
			if !yield(*u, nil) {
				return
			}
		}
	}, q.Window)
}

// readHours returns the hours of one entity, in order.
func (s *Store) readHours(
	ctx context.Context, q *weir.UsageQuery, after *weir.Usage,
) ([]*weir.Usage, error) {
	if err := s.enter(false); err != nil {
		return nil, err
	}
	defer s.exit()
	if q.Entity == "" {
		return nil, weir.NewError(weir.Unsupported, "entity", "",
			"must be given: the TigerBeetle ledger has only hashes of names, so it cannot list entities")
	}
	r := &usageReader{
		s: s, q: q, names: s.usageNames(q, after), hours: make(map[usageHour]*weir.Usage),
		from: q.From, to: q.To,
	}
	if after != nil && q.Resource != "" && after.Start.After(r.from) {
		r.from = after.Start
	}
	if err := r.read(ctx); err != nil {
		return nil, err
	}
	return slices.SortedFunc(maps.Values(r.hours), func(a, b *weir.Usage) int {
		return driver.CompareUsage(q, a, b)
	}), nil
}

// usageHour identifies an hour of one resource.
type usageHour struct {
	resource string
	hour     uint32
}

// usageReader sums the records of one entity.
type usageReader struct {
	s        *Store
	q        *weir.UsageQuery
	names    *usageNames
	from, to time.Time
	hours    map[usageHour]*weir.Usage
}

// read reads the records between the bounds: by a query for each hour if these are few, otherwise
// all that were written after the first bound.
func (r *usageReader) read(ctx context.Context) error {
	filter := tb.QueryFilter{
		// The hash includes the namespace. To intersect more indexes takes twice as long.
		UserData64: usageEntity(r.s.namespace.payerHash(r.q.Entity)),
		Limit:      uint32(r.s.ledger.MaxEvents()),
	}
	if !r.from.IsZero() && !r.to.IsZero() && r.to.Sub(r.from) <= maxHourQueries*time.Hour {
		for at := r.from; at.Before(r.to); at = at.Add(time.Hour) {
			filter.UserData32 = hourOf(at)
			if err := r.query(ctx, filter); err != nil {
				return err
			}
		}
		return nil
	}
	if early := r.from.Add(-earlyHours * time.Hour).UnixNano(); !r.from.IsZero() && early > 0 {
		filter.TimestampMin = uint64(early)
	}
	return r.query(ctx, filter)
}

// query adds the records that a filter selects, page by page.
func (r *usageReader) query(ctx context.Context, filter tb.QueryFilter) error {
	for {
		found, err := r.s.ledger.QueryTransfers(ctx, filter)
		if err != nil {
			return client.Unavailable(err)
		}
		for i := range found {
			if err := r.add(&found[i]); err != nil {
				return err
			}
		}
		if len(found) < int(filter.Limit) {
			return nil
		}
		filter.TimestampMin = found[len(found)-1].Timestamp + 1
	}
}

// add adds a record to its hour.
func (r *usageReader) add(t *tb.Transfer) error {
	if t.Code != codeUsage && t.Code != codeOverdrawn {
		return nil
	}
	c := r.s.namespace.usageOf(t)
	start := time.Unix(int64(c.hour)*3600, 0).UTC()
	resource, limit := r.names.of(c.name)
	if start.Before(r.from) || !r.to.IsZero() && !start.Before(r.to) ||
		r.q.Resource != "" && resource != r.q.Resource {
		return nil
	}
	at := usageHour{resource, c.hour}
	u := r.hours[at]
	if u == nil {
		u = &weir.Usage{
			Entity: r.q.Entity, Resource: resource, Window: weir.Hourly,
			Start: start, End: start.Add(time.Hour), Units: make(map[string]int64), Windows: 1,
		}
		r.hours[at] = u
	}
	if c.overdrawn > 0 {
		if u.Overdrawn == nil {
			u.Overdrawn = make(map[string]int64)
		}
		u.Overdrawn[limit] += c.overdrawn
		return nil
	}
	sum, fits := usageSum{units: u.Units[limit], events: u.Events}.plus(c.usageSum)
	if !fits {
		return weir.NewError(weir.Unsupported, "usage", limit,
			"the sum of an hour does not fit 64 bits")
	}
	u.Units[limit], u.Events = sum.units, sum.events
	return nil
}

// UsageGaps returns the times for which usage may be missing: before the namespace had records of
// usage, the last minutes of servers that were killed, the last minute of all others, and what
// this server did not count.
func (s *Store) UsageGaps(
	ctx context.Context, now time.Time, _ *weir.UsageQuery,
) ([]weir.UsageGap, error) {
	if err := s.enter(false); err != nil {
		return nil, err
	}
	defer s.exit()
	gaps, err := s.unrecordedGaps(ctx, now)
	if err != nil {
		return nil, err
	}
	every := s.usage.every
	if every <= 0 {
		every = usageEvery
	}
	span := every.String()
	if every == usageEvery {
		span = "minute"
	}
	gaps = append(gaps, weir.UsageGap{To: now, Reason: "if a server was killed in this time, what " +
		"it counted in the last " + span + " before that is missing, and stays so"})
	u := &s.usage
	u.mu.Lock()
	defer u.mu.Unlock()
	from := now.Add(-every)
	if !u.oldest.IsZero() && u.oldest.Before(from) {
		from = u.oldest
	}
	if dropped := u.dropped.Load(); dropped > 0 {
		gaps = append(gaps, weir.UsageGap{From: u.from, To: u.to.Add(1), Reason: fmt.Sprintf(
			"this server did not count %d changes, because too much waited to be written", dropped)})
	}
	gaps = append(gaps, weir.UsageGap{From: from, To: now.Add(1), Reason: "a server writes what " +
		"it has counted every " + span + " and when it is closed, so the latest usage of each server " +
		"may not be written yet"})
	slices.SortStableFunc(gaps, func(a, b weir.UsageGap) int {
		return cmp.Or(a.From.Compare(b.From), a.To.Compare(b.To))
	})
	return gaps, nil
}

// unrecordedGaps returns the time before the namespace had records of usage, if it is older.
func (s *Store) unrecordedGaps(ctx context.Context, now time.Time) ([]weir.UsageGap, error) {
	n := &s.namespace
	found, err := s.accounts(ctx, []tb.Uint128{n.vault, n.usage})
	if err != nil {
		return nil, err
	}
	vault, usage := found[n.vault], found[n.usage]
	switch {
	case vault == nil:
		return nil, nil
	case usage == nil:
		return []weir.UsageGap{{To: now, Reason: "no server of this namespace records usage"}}, nil
	}
	since := time.Unix(0, int64(usage.Timestamp)).UTC()
	if since.Sub(time.Unix(0, int64(vault.Timestamp))) < time.Second { // they were made together
		return nil, nil
	}
	const reason = "no server of this namespace recorded usage yet"
	return []weir.UsageGap{{To: since, Reason: reason}}, nil
}

var _ driver.UsageReader = (*Store)(nil)
