package model

import (
	"math/big"
	"time"

	"github.com/weir-limiter/weir"
)

// verdict is what judging one take found.
type verdict struct {
	take   *Take
	state  *state // as it was judged
	known  bool   // the state was there
	fits   bool
	status weir.LimitStatus
}

// judge looks at every limit, also after one has denied (3.7).
func (m *Model) judge(takes []*Take, now int64) (verdicts []*verdict, denied bool) {
	for _, t := range takes {
		v := m.judgeOne(t, now)
		verdicts = append(verdicts, v)
		denied = denied || m.rules.Denies(&t.Limit, v.fits)
		if !m.rules.JudgeOn(denied) {
			break
		}
	}
	return verdicts, denied
}

// judgeOn: all limits are judged, also after one has denied (3.7).
func judgeOn(bool) bool { return true }

// denies: a shadow limit never denies (3.6).
func denies(l *weir.Limit, fits bool) bool { return !fits && !l.Shadow }

// stamps: a state remembers the latest instant it has seen, whatever the answer was (1.3). One that
// was forgotten stays so (8.4).
func stamps(_, known bool) bool { return known }

func (m *Model) judgeOne(t *Take, now int64) *verdict {
	v := &verdict{take: t}
	k := m.rules.KeyOf(t.Subject, &t.Limit)
	v.state, v.known = m.look(k, &t.Limit, now)
	scale := num(scale(t.Limit.Kind))
	lowered := mul(sub(num(t.Limit.Capacity), num(t.Ceiling)), scale)
	available := sub(m.rules.available(&t.Limit, v.state), lowered)
	asked := m.rules.slotted(&t.Limit, m.rules.Cost(t.Parts))
	v.fits = m.rules.Fits(t.Limit.Kind, available, mul(asked, scale))
	v.status = m.status(t, available)
	v.status.Requested = asked.Int64()
	v.status.Exceeded = !v.fits
	if !v.fits {
		v.status.RetryAfter = m.wait(v, asked, now)
	}
	return v
}

// slotted is a cost in the counts of its limit (2.3).
func (r *Rules) slotted(l *weir.Limit, cost *big.Int) *big.Int {
	if l.Kind != weir.Concurrency || !cost.IsInt64() {
		return cost
	}
	return num(r.Slots(cost.Int64()))
}

func (m *Model) status(t *Take, available *big.Int) weir.LimitStatus {
	return weir.LimitStatus{
		Entity: t.Entity, Resource: t.Resource, Limit: t.Limit.Name, Kind: t.Limit.Kind,
		Level: t.Level, Capacity: t.Ceiling, Shadow: t.Limit.Shadow,
		Available: m.rules.Units(available, scale(t.Limit.Kind)),
	}
}

// wait is until a limit would hold what was asked, if nobody else came (4.1, 4.2); 0 for a shadow
// limit that can never hold it.
func (m *Model) wait(v *verdict, asked *big.Int, now int64) time.Duration {
	t := v.take
	left := sub(num(t.Ceiling), asked)
	if left.Sign() < 0 {
		return 0
	}
	if ms := m.waitMS(v, left, now); ms != nil {
		return m.rules.Clamp(ms)
	}
	return 0
}

func (m *Model) waitMS(v *verdict, left *big.Int, now int64) *big.Int {
	l := &v.take.Limit
	if l.Kind == weir.Bucket {
		want := mul(sub(num(l.Capacity), left), num(milliPerUnit))
		return m.rules.BucketWait(v.state.bucket, want, now)
	}
	var pieces []Piece
	for _, p := range v.state.pieces {
		if !m.rules.Returned(p, v.state.seen) {
			pieces = append(pieces, *p)
		}
	}
	if l.Kind == weir.Budget {
		return m.rules.BudgetWait(pieces, left, now)
	}
	return m.rules.PiecesWait(pieces, left, now)
}

// retryAfter: the longest of the exceeded limits' waits; shadow limits do not count (4.1).
func retryAfter(limits []weir.LimitStatus) time.Duration {
	var longest time.Duration
	for _, s := range limits {
		if s.Exceeded && !s.Shadow {
			longest = max(longest, s.RetryAfter)
		}
	}
	return longest
}

// denial: a denial is no other error.
func denial(d *weir.DeniedError) error { return d }

// takesAnyway: all costs are taken, or none is (3.1).
func takesAnyway(*Take, bool) bool { return false }

// sparesUncounted: a shadow limit holds nobody up (3.6, 7.11).
func sparesUncounted(l *weir.Limit) bool { return l.Shadow }

// reported: an admitted reservation reports what is available after it (3.8).
func reported(_, after weir.LimitStatus) weir.LimitStatus { return after }
