package model

import (
	"cmp"
	"context"
	"math/big"
	"slices"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
)

// Reserve implements [weir.Service].
func (m *Model) Reserve(_ context.Context, r *weir.Request) (*weir.Lease, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.readClock()
	content, err := m.content(r)
	if err != nil {
		return nil, m.notes.fail("reserve", err)
	}
	m.advanceTable(now)
	id, brought := r.LeaseID, !r.LeaseID.IsZero()
	if !brought {
		id = m.newID(m.now())
	}
	// A known lease is answered before its ID is checked against the horizon and before any limit
	// is judged (6.1).
	m.expire()
	e := m.call(id)
	state, same := stateOf(e), e != nil && m.same(e.content, content)
	switch reaction := m.react(TableCell{Verb: weir.VerbReserve, State: state, Same: same}); reaction {
	case Replay:
		m.notes.set("reserve", "replay")
		return m.handle(e, now), nil
	case Do:
	default:
		return nil, m.notes.fail("reserve", refusal(reaction, state))
	}
	if brought {
		if err := m.checkID(id); err != nil {
			return nil, m.notes.fail("reserve", err)
		}
	}
	return m.reserve(id, content, now)
}

// reserve judges every limit and takes everything or nothing (3.1).
func (m *Model) reserve(id weir.LeaseID, content *Content, now int64) (*weir.Lease, error) {
	takes, err := m.plan(content)
	if err != nil {
		return nil, m.notes.fail("reserve", err)
	}
	verdicts, denied := m.judge(takes, now)
	m.stamp(verdicts, denied)
	holdings, err := m.takeAll(m.taking(takes, verdicts, denied), now)
	if denied {
		return nil, m.notes.fail("reserve", m.denial(id, content, verdicts))
	}
	if err != nil {
		return nil, m.notes.fail("reserve", err)
	}
	m.notes.set("reserve", "admitted")
	return m.handle(m.newLease(id, content, holdings, reported(verdicts, holdings), now), now), nil
}

// taking returns the takes to carry out: all of them, or none (3.1).
func (m *Model) taking(takes []*Take, verdicts []*judgement, denied bool) []*Take {
	j := &JudgedRequest{Takes: takes, Denied: denied, Lock: &m.mu}
	for _, v := range verdicts {
		j.Fits = append(j.Fits, v.fits)
	}
	if denied {
		takes = nil
	}
	return m.points.Taking.pass(j, takes)
}

// stamp moves the states that were judged to now: a state remembers the latest instant that it has
// seen, whatever the answer was (1.3). A forgotten state stays forgotten until something is taken
// (8.4).
func (m *Model) stamp(verdicts []*judgement, denied bool) {
	for _, v := range verdicts {
		if m.points.SetSeen.pass(SeenUpdate{denied, v.known}, v.known) {
			m.store(m.key(v.take.Subject, &v.take.Limit), v.state)
		}
	}
}

// denial returns the answer to a denied request: the status of every limit judged, and the longest
// wait of the exceeded limits, not counting shadow limits (4.1, 4.4). It names who asked (4.5).
func (m *Model) denial(id weir.LeaseID, content *Content, verdicts []*judgement) *weir.DeniedError {
	d := &weir.DeniedError{LeaseID: id}
	for _, c := range content.Charges {
		d.Charges = append(d.Charges, weir.Subject{Entity: c.Entity, Resource: c.Resource})
	}
	for _, v := range verdicts {
		s := v.status
		if s.Exceeded && !s.Shadow {
			s.RetryLikely = m.likely(v)
			d.RetryAfter = max(d.RetryAfter, cmp.Or(s.RetryLikely, s.RetryAfter))
		}
		d.Limits = append(d.Limits, s)
	}
	return d
}

// reported returns the statuses in the answer to an admitted reservation: what is available after
// it (3.8).
func reported(verdicts []*judgement, holdings []*Holding) []weir.LimitStatus {
	limits := make([]weir.LimitStatus, len(verdicts))
	for i, v := range verdicts {
		limits[i] = v.status
		limits[i].Available = sub(num(v.status.Available), holdings[i].counted()).Int64()
	}
	return limits
}

// newLease adds a lease to the table.
func (m *Model) newLease(
	id weir.LeaseID, content *Content, holdings []*Holding, limits []weir.LimitStatus, now int64,
) *lease {
	e := &lease{
		id: id, state: driver.LeaseLive, content: content, at: now, expires: m.expires(now, holdings),
		holdings: holdings, limits: limits,
	}
	m.table.live = append(m.table.live, e)
	return e
}

// handle returns the caller's lease.
func (m *Model) handle(e *lease, now int64) *weir.Lease {
	return (&weir.Lease{
		ID: e.id, ReservedAt: timeAt(e.at), Expires: timeAt(e.expires), HoldsUntil: m.holdsUntil(e, now),
		Limits: slices.Clone(e.limits),
	}).Bind(m)
}

// holdsUntil returns when the first of a lease's slots returns by itself; zero without slots.
func (m *Model) holdsUntil(e *lease, now int64) time.Time {
	var first time.Time
	for _, h := range e.holdings {
		if h.Limit.Kind != weir.Concurrency {
			continue
		}
		for _, p := range h.Pieces {
			if p.Units > 0 && !m.returned(p, now) && (first.IsZero() || timeAt(p.Until).Before(first)) {
				first = timeAt(p.Until)
			}
		}
	}
	return first
}

// judgement is the result of judging one take.
type judgement struct {
	take   *Take
	state  *state // as it was judged
	known  bool   // there was a state
	fits   bool
	status weir.LimitStatus
}

// judge judges every limit, even after one has denied (3.7). A shadow limit never denies (3.6).
func (m *Model) judge(takes []*Take, now int64) (verdicts []*judgement, denied bool) {
	for _, t := range takes {
		v := m.judgeOne(t, now)
		verdicts = append(verdicts, v)
		denied = denied || !v.fits && !t.Limit.Shadow
	}
	return verdicts, denied
}

// judgeOne judges one limit. A cost fits if at least as much is available (2.1 to 2.4). A cost of 0
// is judged like any other: it does not fit a limit in debt or over its capacity (2.6).
func (m *Model) judgeOne(t *Take, now int64) *judgement {
	v := &judgement{take: t}
	v.state, v.known = m.stateAt(m.key(t.Subject, &t.Limit), &t.Limit, now)
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

// wait returns the time in milliseconds until a limit would hold what was asked if no other call
// came, or nil if it never would (4.1): for a bucket, until the balance has reached the cost; for
// the other kinds, until enough units have returned by themselves (4.2).
func wait(j *Judged, now int64) *big.Int {
	if asked := cost(j.Parts); asked.Cmp(num(j.Ceiling)) > 0 {
		return nil
	} else if left := sub(num(j.Ceiling), asked); j.Limit.Kind != weir.Bucket {
		return piecesWait(j.Pieces, left, now)
	}
	return j.Bucket.Wait(j.Want(), now)
}

// Want returns the balance that a bucket needs for the take to fit under its ceiling.
func (j *Judged) Want() *big.Int {
	return add(j.Asked, mul(sub(num(j.Limit.Capacity), num(j.Ceiling)), num(milliPerUnit)))
}

// status returns the status of a limit in an answer. Available units are rounded down (1.4). A
// plain status asks for nothing and is never exceeded (3.8). RetryAfter is 0 if waiting does not
// help.
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
