package dynamodb

import (
	"math"
	"slices"
)

// refusal is what was too much for a limit a moment ago, so that the same is not asked of the table
// again and again. It only ever denies, never longer than it said, and at most a second.
type refusal struct {
	milli        int64 // the least that was, with what the request's own ceiling is lower
	since, until int64 // Unix ms: from when to when
	total        int64 // what all shards had together
}

// maxRefusalMS is how long a refusal is believed.
const maxRefusalMS = 1000

// remember keeps what denied a journey. Of a bucket with several shards it also keeps what limits
// had that did not deny, since no image tells.
func (j *journey) remember() {
	for _, e := range j.errands {
		if e.found.ruling != denied || len(e.found.found) < len(e.asks) {
			continue
		}
		for k := range e.asks {
			st := &j.out.Limits[e.asks[k].holding]
			r := refusal{milli: math.MaxInt64, since: j.now, total: e.found.found[k].balance}
			switch {
			case st.Exceeded && st.RetryAfter > 0:
				r.milli = e.asks[k].milli + e.asks[k].lowered
				r.until = j.now + min(st.RetryAfter.Milliseconds(), maxRefusalMS)
			case e.found.others != nil:
				r.until = j.now + maxRefusalMS
			default:
				continue
			}
			if e.found.others != nil {
				r.total += e.found.others[k]
			}
			e.spot.refuse(e.asks[k].name, r)
		}
	}
}

func (p *spot) refuse(limit string, r refusal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refused == nil {
		p.refused = make(map[string]refusal)
	}
	p.refused[limit] = r
}

// forgive forgets refusals, since something was given back or defined anew.
func (p *spot) forgive() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refused = nil
}

// refusing reports whether anything is remembered.
func (p *spot) refusing() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.refused) > 0
}

// remembered is what is remembered of a limit, if it still counts.
func (p *spot) remembered(limit string, now int64) (refusal, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r, ok := p.refused[limit]
	return r, ok && r.since <= now && now < r.until
}

// refusedBefore denies a journey by what is remembered, if all its items are known, so that the
// answer can say what each limit has.
func (j *journey) refusedBefore() bool {
	refuses := func(e *errand) bool { return e.spot.refusing() }
	if j.blind || !slices.ContainsFunc(j.errands, refuses) {
		return false // as nearly always: nothing need be looked at
	}
	denies := false
	for _, e := range j.errands {
		denied, known := e.recall(j.now)
		if !known {
			return false
		}
		denies = denies || denied
	}
	for _, e := range j.errands {
		if denies {
			for k := range e.asks {
				e.spot.line(0).note(sighting{name: e.asks[k].name, now: j.now, denied: true})
			}
		} else {
			e.found = verdict{}
		}
	}
	return denies
}

// recall judges an errand by what is remembered. It is not known where an image does not tell what
// the limits have, or, with several shards, nothing is remembered of one.
func (e *errand) recall(now int64) (denies, known bool) {
	m := e.spot.line(0).expected()
	if m == nil {
		return false, false
	}
	e.found = verdict{ruling: taken, shards: m.shards}
	for k := range e.asks {
		a := &e.asks[k]
		c := m.limit(a.name)
		r, ok := e.spot.remembered(a.name, now)
		if c == nil || c.Incomplete || a.limit != nil && !c.is(a.limit) || m.shards > 1 && !ok {
			return false, false
		}
		found, shards := *c, m.shards
		if shards > 1 { // as if all of them were one
			shards = 1
			found.balance, found.seen, found.rate = r.total, r.since, shareOf(&c.BucketLimit, shards)
		}
		found.touch(now, shards)
		e.found.found = append(e.found.found, found)
		if found.balance < a.milli+a.lowered {
			e.found.ruling, denies = denied, denies || ok && a.milli+a.lowered >= r.milli
		}
	}
	return denies, true
}
