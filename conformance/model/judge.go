package model

import (
	"math/big"

	"github.com/weir-limiter/weir"
)

// verdict is what judging one take found.
type verdict struct {
	take   *Take
	state  *state // as it was judged
	known  bool   // there was a state
	fits   bool
	status weir.LimitStatus
}

// judge looks at every limit, also after one has denied (3.7). A shadow limit never denies (3.6).
func (m *Model) judge(takes []*Take, now int64) (verdicts []*verdict, denied bool) {
	for _, t := range takes {
		v := m.judgeOne(t, now)
		verdicts = append(verdicts, v)
		denied = denied || !v.fits && !t.Limit.Shadow
	}
	return verdicts, denied
}

// judgeOne: a cost n fits if what there is, is at least n (2.1 to 2.4). A cost of 0 is judged like any
// other, so it does not fit a limit in debt or over its capacity (2.6).
func (m *Model) judgeOne(t *Take, now int64) *verdict {
	v := &verdict{take: t}
	v.state, v.known = m.look(m.key(t.Subject, &t.Limit), &t.Limit, now)
	j := m.judged(t, v.state, now)
	j.Asked = mul(cost(t.Parts), num(scale(t.Limit.Kind)))
	v.fits = m.points.Fits.pass(j, j.Available.Cmp(j.Asked) >= 0)
	if !v.fits {
		j.Wait = wait(j, now)
	}
	v.status = m.status(j, v.fits)
	return v
}

func (m *Model) judged(t *Take, s *state, now int64) *Judged {
	lowered := mul(sub(num(t.Limit.Capacity), num(t.Ceiling)), num(scale(t.Limit.Kind))) // 5.3
	return &Judged{
		Take: t, Bucket: s.bucket, Pieces: m.present(s.pieces, s.seen), Now: now,
		Available: sub(m.available(&t.Limit, s), lowered), Asked: num(0),
	}
}

// wait is the time in milliseconds until a limit would hold what was asked, if nobody else came: a
// bucket, until the balance has reached the cost; the others, until enough units have returned by
// themselves (4.1, 4.2).
func wait(j *Judged, now int64) *big.Int {
	if asked := cost(j.Parts); asked.Cmp(num(j.Ceiling)) > 0 {
		return nil
	} else if left := sub(num(j.Ceiling), asked); j.Limit.Kind != weir.Bucket {
		return piecesWait(j.Pieces, left, now)
	}
	return j.Bucket.Wait(j.Want(), now)
}

// Want is the balance that a bucket must have to hold what is asked under the ceiling.
func (j *Judged) Want() *big.Int {
	return add(j.Asked, mul(sub(num(j.Limit.Capacity), num(j.Ceiling)), num(milliPerUnit)))
}

// status is what an answer says of a limit. Available units are rounded down (1.4). A plain status asks
// for nothing and is never exceeded (3.8). The wait is 0 if there is none, or none that would help.
func (m *Model) status(j *Judged, fits bool) weir.LimitStatus {
	count := scale(j.Limit.Kind)
	s := weir.LimitStatus{
		Entity: j.Entity, Resource: j.Resource, Limit: j.Limit.Name, Kind: j.Limit.Kind,
		Level: j.Level, Capacity: j.Ceiling, Shadow: j.Limit.Shadow,
		Available: units(j.Available, count), Requested: units(j.Asked, count), Exceeded: !fits,
	}
	if j.Wait != nil {
		s.RetryAfter = clamp(j.Wait)
	}
	return m.points.Status.pass(j, s)
}
