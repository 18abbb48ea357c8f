package dynamodb

import "slices"

// refusal is what was too much for a limit a moment ago, so that the same is not asked of the table
// again and again. It only ever denies, never longer than it said, and at most a second.
type refusal struct {
	milli        int64 // the least that was, with what the request's own ceiling is lower
	since, until int64 // Unix ms: from when to when
	others       int64 // what the other shards had
}

// maxRefusalMS is how long a refusal is believed.
const maxRefusalMS = 1000

// remember keeps what denied a journey.
func (j *journey) remember() {
	for _, e := range j.errands {
		if e.found.ruling != denied {
			continue
		}
		for k := range e.asks {
			st := &j.out.Limits[e.asks[k].holding]
			if !st.Exceeded || st.RetryAfter <= 0 {
				continue
			}
			r := refusal{milli: e.asks[k].milli + e.asks[k].lowered, since: j.now}
			r.until = j.now + min(st.RetryAfter.Milliseconds(), maxRefusalMS)
			if e.found.others != nil {
				r.others = e.found.others[k]
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

// refuses reports whether an ask is too much by what is remembered.
func (p *spot) refuses(a *ask, now int64) (refusal, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r, ok := p.refused[a.name]
	return r, ok && r.since <= now && now < r.until && a.milli+a.lowered >= r.milli
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
		m := e.spot.line(0).expected()
		if m == nil {
			return false
		}
		e.found = verdict{ruling: taken, shards: m.shards}
		for k := range e.asks {
			a := &e.asks[k]
			c := m.limit(a.name)
			if c == nil || c.Incomplete || a.limit != nil && !c.is(a.limit) {
				return false
			}
			found := *c
			found.touch(j.now, m.shards)
			e.found.found = append(e.found.found, found)
			r, ok := e.spot.refuses(a, j.now)
			e.found.others = append(e.found.others, r.others)
			if found.balance+r.others < a.milli+a.lowered {
				e.found.ruling, denies = denied, denies || ok
			}
		}
	}
	for _, e := range j.errands {
		if denies {
			for k := range e.asks {
				e.spot.line(0).note(e.asks[k].name, j.now, nil)
			}
		} else {
			e.found = verdict{}
		}
	}
	return denies
}
