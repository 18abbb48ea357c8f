package memory

import (
	"math"
	"time"

	"github.com/weir-limiter/weir"
)

// The body of a snapshot has, in this order:
//
//	the newest lease time forgotten early
//	items: entity, resource, states: limit, kind, counter
//	records: ID, state, fingerprints, numbers; of a live one also holdings, answer and keys
//
// Instants are Unix milliseconds.

// The least that an element takes in a body, in bytes.
const (
	leastState   = 4
	leastItem    = 3 + leastState
	leastQueue   = 2
	leastEntry   = 2
	leastPeriod  = 3
	leastRecord  = 16 + 1 + 9
	leastHolding = 7
	leastPart    = 2
	leastPiece   = 3
	leastStatus  = 10
	leastKey     = 1
)

// encode appends all that was frozen. It fails only where a count is not what it can be: that must
// not get into a file.
func (s *SnapshotStore) encode(buffer []byte, f *frozen) ([]byte, error) {
	c := newWriter(buffer)
	c.int(&f.early)
	c.count(f.items, leastItem)
	for i := range s.store.stripes {
		f.items -= s.store.stripes[i].write(c)
	}
	c.count(f.records, leastRecord)
	f.records -= s.records.write(c)
	if !c.check(f.items == 0 && f.records == 0) {
		return buffer, errMalformed
	}
	return c.data, nil
}

// decode takes over all that a body has. The store must be empty; after an error it is of no use.
func (s *SnapshotStore) decode(body []byte) error {
	c := newReader(body)
	c.int(&s.records.early)
	for range c.count(0, leastItem) {
		it := &item{}
		c.item(it)
		hash := s.store.hashOf(it.subject)
		p := &s.store.stripes[s.store.stripeOf(it.subject.Entity)]
		if c.check(p.items.find(it.subject, hash) == nil) {
			p.ensure(it.subject, hash).states = it.states
		}
	}
	for range c.count(0, leastRecord) {
		r := &record{}
		c.record(r)
		if c.check(s.records.byID[r.ID] == nil) {
			s.records.insert(r)
		}
	}
	if !c.check(len(c.data) == 0) {
		return errMalformed
	}
	return nil
}

func (c *codec) item(it *item) {
	c.text(&it.subject.Entity)
	c.name(&it.subject.Resource)
	states := list(c, &it.states, leastState)
	c.check(len(states) > 0)
	for i := range states {
		s := &states[i]
		c.name(&s.name)
		c.kind(&s.kind)
		if c.reading {
			s.counter = newCounter(0, &weir.Limit{Kind: s.kind})
		}
		s.counter.code(c)
	}
}

func (b *bucket) code(c *codec) {
	c.positive(&b.rate.CapacityMilli)
	c.positive(&b.rate.RefillMilli)
	c.positive(&b.rate.PeriodMS)
	c.int(&b.balance)
	c.int(&b.seen)
	c.check(b.balance <= b.rate.CapacityMilli)
}

func (o *occupancy) code(c *codec) {
	c.int(&o.seen)
	queues := list(c, &o.queues, leastQueue)
	var total int64
	for i := range queues {
		q := &queues[i]
		c.positive(&q.length)
		for j := range queues[:i] {
			c.check(queues[j].length != q.length)
		}
		total = c.sum(total, q.code(c, o.seen))
	}
	if c.reading {
		o.total = total
	}
}

// code writes each instant as the distance from the one before, and returns the sum of the units.
func (q *queue) code(c *codec, last int64) (total int64) {
	if !c.reading {
		q.compact()
	}
	entries := list(c, &q.ring, leastEntry)
	for i := range entries {
		e := &entries[i]
		gap := e.until - last
		c.positive(&gap)
		if last = c.sum(last, gap); c.reading {
			e.until = last
		}
		c.positive(&e.units)
		total = c.sum(total, e.units)
	}
	return total
}

func (b *budget) code(c *codec) {
	c.int(&b.seen)
	var total int64
	for i := range list(c, &b.periods, leastPeriod) {
		p := &b.periods[i]
		c.int(&p.start)
		c.int(&p.end)
		c.natural(&p.used, math.MaxInt64)
		c.check(p.start < p.end)
		total = c.sum(total, p.used)
	}
}

var leaseStates = [...]weir.LeaseState{
	weir.LeaseLive, weir.LeaseCompleted, weir.LeaseCancelled, weir.LeaseExpired,
	weir.LeaseVoided,
}

func (c *codec) record(r *record) {
	c.bytes(r.ID[:])
	oneOf(c, &r.State, leaseStates[:])
	c.uint(&r.Fingerprint)
	c.uint(&r.EndFingerprint)
	for _, t := range []*time.Time{&r.At, &r.Expires, &r.SeqAt, &r.EndedAt} {
		c.time(t)
	}
	keyed := c.charges(r)
	c.natural(&r.Seq, math.MaxInt64)
	c.natural(&r.memory, math.MaxInt64)
	if r.State != weir.LeaseLive {
		return
	}
	for i := range list(c, &r.Holdings, leastHolding) {
		c.holding(&r.Holdings[i])
	}
	for i := range list(c, &r.Limits, leastStatus) {
		c.status(&r.Limits[i])
	}
	if keyed {
		for i := range list(c, &r.Keys, leastKey) {
			c.uint(&r.Keys[i])
		}
		c.check(len(r.Keys) == r.Charges)
	}
}

// charges is how many charges a lease has, written as a number below zero if they have keys.
func (c *codec) charges(r *record) (keyed bool) {
	n := int64(r.Charges)
	if len(r.Keys) > 0 {
		n = -n
	}
	c.int(&n)
	c.check(-math.MaxInt32 <= n && n <= math.MaxInt32)
	if c.reading && !c.failed {
		r.Charges = int(max(n, -n))
	}
	return n < 0
}

// time is an instant to the millisecond, or none.
func (c *codec) time(t *time.Time) {
	ms := int64(math.MinInt64)
	if !t.IsZero() {
		ms = t.UnixMilli()
	}
	if c.int(&ms); c.reading && ms != math.MinInt64 {
		*t = time.UnixMilli(ms)
	}
}

func (c *codec) holding(h *weir.Holding) {
	c.name(&h.Entity)
	c.name(&h.Resource)
	c.limit(&h.Limit)
	c.name((*string)(&h.Level))
	c.int(&h.Ceiling)
	for i := range list(c, &h.Parts, leastPart) {
		charge := int64(h.Parts[i].Charge)
		c.natural(&charge, math.MaxInt32)
		c.natural(&h.Parts[i].Units, math.MaxInt64)
		if c.reading {
			h.Parts[i].Charge = int(charge)
		}
	}
	for i := range list(c, &h.Pieces, leastPiece) {
		p := &h.Pieces[i]
		c.natural(&p.Units, math.MaxInt64)
		c.int(&p.Until)
		c.int(&p.Mark)
	}
}

func (c *codec) status(s *weir.LimitStatus) {
	c.name(&s.Entity)
	c.name(&s.Resource)
	c.name(&s.Limit)
	c.kind(&s.Kind)
	c.name((*string)(&s.Level))
	c.int(&s.Capacity)
	c.int(&s.Available)
	c.int(&s.Requested)
	c.flags(&s.Exceeded, &s.Shadow, &s.AtLeast)
	c.int((*int64)(&s.RetryAfter))
}
