package bucketitem

// Denial is what was too much for a limit a moment ago, so that the same is not asked of the table
// again and again. It only ever denies, never longer than its retry-after, and at most a second.
type Denial struct {
	Milli        int64 // the least that was, with what the request's own ceiling is lower
	Since, Until int64 // Unix ms: from when to when
	Total        int64 // what all shards had together
}

// MaxDenialMS is how long a denial is remembered.
const MaxDenialMS = 1000

// RememberDenial keeps a denial of a limit.
func (p *subjectState) RememberDenial(limit string, r Denial) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.denials == nil {
		p.denials = make(map[string]Denial)
	}
	p.denials[limit] = r
}

// ForgetDenials forgets all denials, because units were refunded or definitions changed.
func (p *subjectState) ForgetDenials() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.denials = nil
}

// HasDenials reports whether any denial is remembered.
func (p *subjectState) HasDenials() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.denials) > 0
}

// RecallDenial returns the remembered denial of a limit, and whether it still counts.
func (p *subjectState) RecallDenial(limit string, now int64) (Denial, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r, ok := p.denials[limit]
	return r, ok && r.Since <= now && now < r.Until
}
