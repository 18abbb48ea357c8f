package dynamodb

// rememberedDenial is what was too much for a limit a moment ago, so that the same is not asked of the table
// again and again. It only ever denies, never longer than it said, and at most a second.
type rememberedDenial struct {
	milli        int64 // the least that was, with what the request's own ceiling is lower
	since, until int64 // Unix ms: from when to when
	total        int64 // what all shards had together
}

// maxRefusalMS is how long a refusal is believed.
const maxRefusalMS = 1000

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
