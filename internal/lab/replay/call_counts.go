package replay

import (
	"math/big"

	"github.com/weir-limiter/weir"
)

// callCounts counts what became of the calls of a replay.
type callCounts struct {
	rows   map[subjectLimit]*limitCount
	order  []*limitCount // subjects in their order, limits by name
	totals totalCount
	waits  distribution // the retry-after of each denial, in milliseconds

	scratch big.Int
}

type subjectLimit struct{ entity, resource, limit string }

// limitCount counts attempts on one limit of one entity. They are judged by all limits at once, so
// that one denial counts on every limit that was exceeded.
type limitCount struct {
	subject *subject
	limit   *weir.Limit
	// admitted and denied are attempts that the limit was charged for, and that exceeded it; only
	// are those that exceeded no other limit. Shadow limits deny nothing: there denied is what they
	// would have, and only is what nothing else denied.
	admitted, denied, only int64
	// used is in units; in slot-milliseconds for a concurrency limit. What a call reserves counts
	// until it is settled.
	used big.Int
	// capacity and available are the latest figures that an answer had; capacity is 0 before one.
	capacity, available int64
	// appeared reports whether the limit was configured after the replay began. Its definition is
	// known only as far as an answer tells it.
	appeared bool
}

// totalCount counts calls. One that comes back is not denied yet.
type totalCount struct {
	calls, admitted, denied, faults int64
	// The tokens of calls that can never be admitted count as denied; those of other errors as
	// neither, because it is unknown what became of them.
	tokensAdmitted, tokensDenied big.Int
}

func newCallCounts(subjects []*subject) *callCounts {
	t := &callCounts{rows: map[subjectLimit]*limitCount{}}
	for _, s := range subjects {
		for i := range s.limits {
			row := &limitCount{subject: s, limit: &s.limits[i]}
			t.rows[subjectLimit{s.entity, s.resource, row.limit.Name}] = row
			t.order = append(t.order, row)
		}
	}
	return t
}

// Reserved counts an attempt.
func (t *callCounts) Reserved(a *Attempt, v *Decision) error {
	t.count(a, v)
	enforced := 0
	for i := range v.Limits {
		if s := &v.Limits[i]; s.Exceeded && !s.Shadow {
			enforced++
		}
	}
	for i := range v.Limits {
		s := &v.Limits[i]
		row := t.row(s)
		row.capacity, row.available = s.Capacity, s.Available
		if v.Denied == nil {
			row.admitted++
			t.charge(row, a, s.Requested)
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

// count counts what became of a call, once that is known.
func (t *callCounts) count(a *Attempt, v *Decision) {
	if a.Number == 1 {
		t.totals.calls++
	}
	tokens := t.scratch.SetInt64(a.Call.Tokens())
	switch {
	case v.Err != nil:
		t.totals.faults++
	case v.Denied != nil:
		t.waits.add(v.Denied.RetryAfter.Milliseconds())
		if v.Retries {
			return
		}
		t.totals.denied++
	default:
		t.totals.admitted++
		t.totals.tokensAdmitted.Add(&t.totals.tokensAdmitted, tokens)
	}
	if v.Denied != nil || v.Err != nil && v.Err.Code == weir.NeverSatisfiable {
		t.totals.tokensDenied.Add(&t.totals.tokensDenied, tokens)
	}
}

// row returns where a limit is counted. Limits appear while a replay runs if someone changes
// what a server has configured.
func (t *callCounts) row(s *weir.LimitStatus) *limitCount {
	key := subjectLimit{s.Entity, s.Resource, s.Limit}
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
func (t *callCounts) subject(s *weir.LimitStatus) *subject {
	for _, c := range t.order {
		if c.subject.entity == s.Entity && c.subject.resource == s.Resource {
			return c.subject
		}
	}
	return &subject{entity: s.Entity, resource: s.Resource}
}

// charge adds what an admitted call reserves of a limit.
func (t *callCounts) charge(c *limitCount, a *Attempt, units int64) {
	used := t.scratch.SetInt64(units)
	if c.limit.Kind == weir.Concurrency {
		held := a.EndMS - a.AtMS
		if !c.appeared {
			held = min(held, c.limit.Timeout.Milliseconds())
		}
		used.Mul(used, big.NewInt(held))
	}
	c.used.Add(&c.used, used)
}

// Completed puts what a call used in the place of what it reserved.
func (t *callCounts) Completed(a *Attempt) error {
	if a.Estimate == a.Call.Output {
		return nil
	}
	for name, used := range a.Actuals {
		change := t.scratch.SetInt64(used)
		change.Sub(change, big.NewInt(a.Costs[name]))
		for _, s := range a.payer.chain {
			row := t.rows[subjectLimit{s.entity, s.resource, name}]
			if row != nil && row.limit.Kind != weir.Concurrency {
				row.used.Add(&row.used, change)
			}
		}
	}
	return nil
}
