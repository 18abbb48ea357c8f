package replay

import (
	"math/big"

	"github.com/weir-limiter/weir"
)

// callCounts is a watcher that counts the results of the calls of a replay.
type callCounts struct {
	rows   map[subjectLimit]*limitCount
	order  []*limitCount // subjects in their order, limits by name
	totals Totals        // without the figures that are computed at the end
	waits  distribution  // the retry-after of each denial, in milliseconds

	scratch big.Int
}

type subjectLimit struct{ entity, resource, limit string }

// limitCount counts attempts on one limit of one entity. All limits judge each attempt, so one
// denial counts on every limit that was exceeded.
type limitCount struct {
	subject *subject
	limit   *weir.Limit
	// admitted attempts were charged to the limit, denied ones exceeded it, and only those of them
	// exceeded no other limit. A shadow limit denies nothing: its denied attempts are those that it
	// would have denied, and only those of them that nothing else denied.
	admitted, denied, only int64
	// used is in units; in slot-milliseconds for a concurrency limit. A call counts with what it
	// reserves until it is settled.
	used big.Int
	// capacity and available are from the latest answer; capacity is 0 before the first.
	capacity, available int64
	// appeared is true if the limit was configured after the replay began. Only what answers tell is
	// known of it.
	appeared bool
}

func newCallCounts(subjects []*subject) *callCounts {
	t := &callCounts{rows: map[subjectLimit]*limitCount{}}
	t.totals.TokensAdmitted, t.totals.TokensDenied = new(big.Int), new(big.Int)
	for _, s := range subjects {
		for i := range s.limits {
			t.add(&limitCount{subject: s, limit: &s.limits[i]})
		}
	}
	return t
}

func (t *callCounts) add(c *limitCount) {
	t.rows[subjectLimit{c.subject.entity, c.subject.resource, c.limit.Name}] = c
	t.order = append(t.order, c)
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

// count counts the result of a call, once it is known. The tokens of a call that can never be
// admitted count as denied. Those of other errors count as neither, because the result of the call
// is unknown.
func (t *callCounts) count(a *Attempt, v *Decision) {
	c := &t.totals
	if a.Number == 1 {
		c.Calls++
	}
	tokens := t.scratch.SetInt64(a.Call.Tokens())
	switch {
	case v.Err != nil:
		c.Errors++
	case v.Denied != nil:
		t.waits.add(v.Denied.RetryAfter.Milliseconds())
		if v.Retries {
			return
		}
		c.Denied++
	default:
		c.Admitted++
		c.TokensAdmitted.Add(c.TokensAdmitted, tokens)
	}
	if v.Denied != nil || v.Err != nil && v.Err.Code == weir.NeverSatisfiable {
		c.TokensDenied.Add(c.TokensDenied, tokens)
	}
}

// done returns the totals with the figures that are computed at the end.
func (t *callCounts) done() Totals {
	out, calls := t.totals, big.NewInt(t.totals.Calls)
	out.AdmittedPercent = percent(big.NewInt(out.Admitted), calls)
	out.DeniedPercent = percent(big.NewInt(out.Denied), calls)
	if t.waits.total > 0 {
		out.RetryAfterP50MS, out.RetryAfterP95MS = new(t.waits.quantile(50)), new(t.waits.quantile(95))
	}
	return out
}

// row returns the count of a limit. It adds one for a limit that was configured on the server
// during the replay.
func (t *callCounts) row(s *weir.LimitStatus) *limitCount {
	if row := t.rows[subjectLimit{s.Entity, s.Resource, s.Limit}]; row != nil {
		return row
	}
	row := &limitCount{
		subject:  &subject{entity: s.Entity, resource: s.Resource},
		limit:    &weir.Limit{Name: s.Limit, Kind: s.Kind, Capacity: s.Capacity, Shadow: s.Shadow},
		appeared: true,
	}
	for _, c := range t.order {
		if c.subject.entity == s.Entity && c.subject.resource == s.Resource {
			row.subject = c.subject
			break
		}
	}
	t.add(row)
	return row
}

// charge adds the reservation of an admitted call to the use of a limit.
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

// Completed replaces the units that a call reserved with those that it used.
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
