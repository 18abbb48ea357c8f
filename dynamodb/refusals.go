package dynamodb

import (
	"math"
	"slices"
)

// rememberedDenial is what was too much for a limit a moment ago, so that the same is not asked of the table
// again and again. It only ever denies, never longer than it said, and at most a second.
type rememberedDenial struct {
	milli        int64 // the least that was, with what the request's own ceiling is lower
	since, until int64 // Unix ms: from when to when
	total        int64 // what all shards had together
}

// maxRefusalMS is how long a refusal is believed.
const maxRefusalMS = 1000

// rememberDenials keeps what denied a journey. Of a bucket with several shards it also keeps what limits
// had that did not deny, since no image tells.
func (j *reserveOp) rememberDenials() {
	for _, e := range j.itemCharges {
		if e.found.kind != denied || len(e.found.found) < len(e.takes) {
			continue
		}
		for k := range e.takes {
			st := &j.out.Limits[e.takes[k].holding]
			r := rememberedDenial{milli: math.MaxInt64, since: j.now, total: e.found.found[k].balance}
			switch {
			case st.Exceeded && st.RetryAfter > 0:
				r.milli = e.takes[k].milli + e.takes[k].belowCapacity
				r.until = j.now + min(st.RetryAfter.Milliseconds(), maxRefusalMS)
			case e.found.others != nil:
				r.until = j.now + maxRefusalMS
			default:
				continue
			}
			if e.found.others != nil {
				r.total += e.found.others[k]
			}
			e.state.rememberDenial(e.takes[k].name, r)
		}
	}
}

func (p *subjectState) rememberDenial(limit string, r rememberedDenial) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.denials == nil {
		p.denials = make(map[string]rememberedDenial)
	}
	p.denials[limit] = r
}

// forgetDenials forgets refusals, since something was given back or defined anew.
func (p *subjectState) forgetDenials() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.denials = nil
}

// hasDenials reports whether anything is remembered.
func (p *subjectState) hasDenials() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.denials) > 0
}

// rememberedDenial is what is remembered of a limit, if it still counts.
func (p *subjectState) rememberedDenial(limit string, now int64) (rememberedDenial, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r, ok := p.denials[limit]
	return r, ok && r.since <= now && now < r.until
}

// deniedFromMemory denies a journey by what is remembered, if all its items are known, so that the
// answer can say what each limit has.
func (j *reserveOp) deniedFromMemory() bool {
	refuses := func(e *itemCharge) bool { return e.state.hasDenials() }
	if j.unplanned || !slices.ContainsFunc(j.itemCharges, refuses) {
		return false // as nearly always: nothing need be looked at
	}
	denies := false
	for _, e := range j.itemCharges {
		denied, known := e.judgeFromMemory(j.now)
		if !known {
			return false
		}
		denies = denies || denied
	}
	for _, e := range j.itemCharges {
		if denies {
			for k := range e.takes {
				e.state.queue(0).noteSeen(seenLimit{name: e.takes[k].name, now: j.now, denied: true})
			}
		} else {
			e.found = waiterResult{}
		}
	}
	return denies
}

// judgeFromMemory judges an errand by what is remembered. It is not known where an image does not tell what
// the limits have, or, with several shards, nothing is remembered of one.
func (e *itemCharge) judgeFromMemory(now int64) (denies, known bool) {
	m := e.state.queue(0).expectedImage()
	if m == nil {
		return false, false
	}
	e.found = waiterResult{kind: taken, shards: m.shards}
	for k := range e.takes {
		a := &e.takes[k]
		c := m.limit(a.name)
		r, ok := e.state.rememberedDenial(a.name, now)
		if c == nil || c.Incomplete || a.limit != nil && !c.matches(a.limit) || m.shards > 1 && !ok {
			return false, false
		}
		found, shards := *c, m.shards
		if shards > 1 { // as if all of them were one
			shards = 1
			found.balance, found.seen, found.rate = r.total, r.since, shareOf(&c.BucketLimit, shards)
		}
		found.touch(now, shards)
		e.found.found = append(e.found.found, found)
		if found.balance < a.milli+a.belowCapacity {
			e.found.kind, denies = denied, denies || ok && a.milli+a.belowCapacity >= r.milli
		}
	}
	return denies, true
}
