package cli

import (
	"math/big"
	"slices"

	"github.com/weir-limiter/weir"
)

// tally counts what became of the calls of a replay.
type tally struct {
	rows   map[limitKey]*limitCount
	order  []*limitCount // subjects in their order, limits by name
	totals totalCount
	waits  []int64 // the retry-after of each denial, in milliseconds
}

type limitKey struct{ entity, limit string }

// limitCount counts for one limit of one entity. Requests are judged by all limits at once, so that
// one denial counts on every limit that was exceeded.
type limitCount struct {
	subject *subject
	limit   *weir.Limit
	// admitted and denied are requests that the limit was charged for, and that exceeded it; only
	// are those that exceeded no other limit. Shadow limits deny nothing: there denied is what they
	// would have, and only is what nothing else denied.
	admitted, denied, only int64
	// used is in units; in slot-milliseconds for a concurrency limit.
	used big.Int
	// capacity and available are the latest figures that an answer had; capacity is 0 before one.
	capacity, available int64
	// appeared is true for a limit that nobody knew of when the replay began. Its definition is
	// known only as far as an answer tells it.
	appeared bool
}

// totalCount counts requests.
type totalCount struct {
	calls, admitted, denied, faults int64
	// The tokens of calls that can never be admitted count as denied; those of other errors as
	// neither, since nobody knows.
	tokensAdmitted, tokensDenied big.Int
}

func newTally(subjects []*subject) *tally {
	t := &tally{rows: map[limitKey]*limitCount{}}
	for _, s := range subjects {
		for i := range s.limits {
			row := &limitCount{subject: s, limit: &s.limits[i]}
			t.rows[limitKey{s.entity, row.limit.Name}] = row
			t.order = append(t.order, row)
		}
	}
	return t
}

func (t *tally) reserved(a *attempt, v *verdict) error {
	t.totals.calls++
	tokens := big.NewInt(a.call.tokens())
	switch {
	case v.fault != nil:
		t.totals.faults++
	case v.denied != nil:
		t.totals.denied++
		t.waits = append(t.waits, v.denied.RetryAfter.Milliseconds())
	default:
		t.totals.admitted++
		t.totals.tokensAdmitted.Add(&t.totals.tokensAdmitted, tokens)
	}
	if v.denied != nil || v.fault != nil && v.fault.Code == weir.NeverSatisfiable {
		t.totals.tokensDenied.Add(&t.totals.tokensDenied, tokens)
	}
	enforced := 0
	for i := range v.limits {
		if s := &v.limits[i]; s.Exceeded && !s.Shadow {
			enforced++
		}
	}
	for i := range v.limits {
		s := &v.limits[i]
		row := t.row(s)
		row.capacity, row.available = s.Capacity, s.Available
		if v.denied == nil {
			row.admitted++
			row.charge(a, s.Requested)
		}
		if s.Exceeded {
			row.denied++
			if s.Shadow && enforced == 0 || !s.Shadow && enforced == 1 {
				row.only++
			}
		}
	}
	return nil
}

// row returns where a limit is counted. Limits appear while a replay runs where somebody changes
// what a server has configured.
func (t *tally) row(s *weir.LimitStatus) *limitCount {
	key := limitKey{s.Entity, s.Limit}
	row := t.rows[key]
	if row == nil {
		row = &limitCount{
			subject:  t.subject(s),
			limit:    &weir.Limit{Name: s.Limit, Kind: s.Kind, Capacity: s.Capacity, Shadow: s.Shadow},
			appeared: true,
		}
		t.rows[key] = row
		t.order = append(t.order, row)
	}
	return row
}

// subject returns the entity that a limit belongs to.
func (t *tally) subject(s *weir.LimitStatus) *subject {
	for _, c := range t.order {
		if c.subject.entity == s.Entity {
			return c.subject
		}
	}
	return &subject{entity: s.Entity, resource: s.Resource, tenant: noTenant}
}

// charge adds what an admitted call uses of a limit.
func (c *limitCount) charge(a *attempt, units int64) {
	used := big.NewInt(units)
	if c.limit.Kind == weir.Concurrency {
		held := a.endMS - a.call.atMS
		if !c.appeared {
			held = min(held, c.limit.Timeout.Milliseconds())
		}
		used.Mul(used, big.NewInt(held))
	}
	c.used.Add(&c.used, used)
}

func (t *tally) completed(*attempt) error { return nil }

// quantile returns the smallest wait that p percent of the waits do not exceed; 0 without any.
func quantile(sorted []int64, p int) int64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[(len(sorted)*p+99)/100-1]
}

// sortedWaits returns the waits in ascending order.
func (t *tally) sortedWaits() []int64 { return slices.Sorted(slices.Values(t.waits)) }
