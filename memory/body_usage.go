package memory

import (
	"encoding/json"
	"math"
)

// The smallest size of an element of usage and audit in a body, in bytes.
const (
	minUsage      = 3 + 1 + minUsageEntry
	minUsageName  = 1
	minUsageEntry = 4
	minLost       = 2
	minEvent      = 16 + 6
)

// usageHeader is what a snapshot has of a usageHours.
type usageHeader struct {
	began, horizon, latest int64
	// ended reports that the process ended with this snapshot, so that nothing follows it.
	ended bool
	lost  []lostTime
}

// header returns what a snapshot has. h may be nil.
func (h *usageHours) header(ended bool) usageHeader {
	if h == nil {
		return usageHeader{began: noTime, horizon: math.MinInt64, latest: noTime, ended: ended}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return usageHeader{
		began: h.began, horizon: h.horizon.Load(), latest: h.latest, ended: ended,
		lost: append([]lostTime(nil), h.lost...),
	}
}

func (c *codec) usageHeader(u *usageHeader) {
	c.varint(&u.began)
	c.varint(&u.horizon)
	c.varint(&u.latest)
	c.flags(&u.ended)
	c.check(u.horizon == math.MinInt64 || u.horizon == int64(int32(u.horizon)))
	for i := range list(c, &u.lost, minLost) {
		c.varint(&u.lost[i].from)
		c.varint(&u.lost[i].to)
		c.check(u.lost[i].to == noTime || u.lost[i].to >= u.lost[i].from)
	}
}

// hourUse encodes what was used in the hour of the latest call. An empty one has only its number
// of events.
func (c *codec) hourUse(u *hourUse) {
	if c.reading && c.version < 2 {
		return
	}
	events, hour := int64(u.events), int64(u.hour)
	c.natural(&events, math.MaxUint32)
	if events == 0 || c.failed {
		return
	}
	c.varint(&hour)
	c.varint(&u.units)
	c.check(hour == int64(int32(hour)))
	if c.reading {
		u.hour, u.events = int32(hour), uint32(events)
	}
}

// subjectUsage encodes each hour as the difference from the one before.
func (c *codec) subjectUsage(u *subjectUsage) {
	c.text(&u.subject.Entity)
	c.name(&u.subject.Resource)
	for i := range list(c, &u.limits, minUsageName) {
		c.name(&u.limits[i])
		for _, before := range u.limits[:i] {
			c.check(before != u.limits[i])
		}
	}
	before := usageEntry{hour: math.MinInt32, limit: -1}
	for i := range list(c, &u.entries, minUsageEntry) {
		e := &u.entries[i]
		gap, limit := uint64(int64(e.hour)-int64(before.hour)), int64(e.limit)
		c.uvarint(&gap)
		c.natural(&limit, int64(len(u.limits)-1))
		c.varint(&e.units)
		c.positive(&e.events)
		hour := int64(before.hour) + int64(gap&math.MaxUint32)
		if !c.check(gap <= math.MaxUint32 && hour <= math.MaxInt32) {
			return
		}
		if c.reading {
			e.hour, e.limit = int32(hour), int32(limit)
		}
		c.check(compareEntries(before, *e) < 0)
		before = *e
	}
	c.check(len(u.entries) > 0)
}

// decodeUsage loads the usage. A store that records none reads it and forgets it.
func (s *SnapshotStore) decodeUsage(c *codec) {
	var header usageHeader
	c.usageHeader(&header)
	h := s.store.usage
	if h != nil {
		h.began, h.latest, h.lost = header.began, header.latest, header.lost
		h.horizon.Store(header.horizon)
		if !header.ended && header.latest != noTime {
			h.lose(header.latest)
		}
	}
	for range c.count(0, minUsage) {
		u := &subjectUsage{}
		c.subjectUsage(u)
		if t := &s.store.stripes[s.store.stripeOf(u.subject.Entity)].usage; h != nil && !c.failed {
			c.check(t.subjects[u.subject] == nil)
			t.load(u)
		}
	}
}

// load adds the usage of a subject, apart from hours that have been dropped.
func (t *usageTable) load(u *subjectUsage) {
	for _, e := range u.entries {
		t.insert(u.subject, u.limits[e.limit], e)
	}
}

// writeUsage encodes the frozen usage of the stripe and returns the number of subjects.
func (p *stripe) writeUsage(c *codec) (n int) {
	t := &p.usage
	for at, more := 0, true; more; {
		c.grow(chunkBytes)
		p.mu.Lock()
		last := min(t.freezer.end, len(t.dense))
		for left := chunkEntries; at < last && left > 0; at++ {
			if u := t.dense[at]; t.freezer.due(&u.epoch) {
				c.subjectUsage(u)
				n++
				left -= len(u.entries)
			}
		}
		var kept []*subjectUsage
		if more = at < last; !more {
			kept = t.freezer.finish()
		}
		p.mu.Unlock()
		for _, u := range kept {
			c.subjectUsage(u)
			n++
		}
	}
	return n
}

// event encodes an event of the audit.
func (c *codec) event(e *auditEvent) {
	c.bytes(e.id[:])
	c.varint(&e.at)
	c.name(&e.action)
	c.name(&e.entity)
	c.name(&e.resource)
	c.name(&e.principal)
	details := string(e.details)
	c.text(&details)
	if c.reading && details != "" {
		e.details = []byte(details)
		c.check(json.Valid(e.details))
	}
}

// decodeAudit loads the audit.
func (s *SnapshotStore) decodeAudit(c *codec) {
	for range c.count(0, minEvent) {
		var e auditEvent
		c.event(&e)
		if c.check(string(e.id[:]) > string(s.store.audit.last[:])) {
			s.store.audit.append(e)
		}
	}
}
