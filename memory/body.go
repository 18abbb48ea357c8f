package memory

import (
	"math"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/kernel"
)

// The body of a snapshot has, in this order:
//
//	the newest lease time forgotten early
//	items: entity, resource, states: limit, kind, counter
//	records: ID, state, fingerprints, numbers; of a live one also holdings, answer and keys
//	the record of usage: its begin, its oldest hour, the latest call, times that were lost
//	usage: entity, resource, names of limits, entries: hour, limit, units, events
//	audit: ID, time, action, places, principal, details
//	configuration, if it is the store's own: the system's, resources, entities; what is managed
//
// In version 1 a state has no usage, and the body ends after the records. In version 2 it ends
// after the audit. Instants are Unix
// milliseconds, hours are counted from the Unix epoch.

// The smallest size of an element in a body, in bytes.
const (
	minState   = 4
	minSubject = 3 + minState
	minQueue   = 2
	minEntry   = 2
	minPeriod  = 3
	minRecord  = 16 + 1 + 9
	minHolding = 7
	minPart    = 2
	minPiece   = 3
	minStatus  = 10
	minKey     = 1
)

// encode appends the frozen state. It fails only if the number of elements is not the number at the
// freeze, which is a defect and must not get into a file.
func (s *SnapshotStore) encode(buffer []byte, f *snapshotHeader) ([]byte, error) {
	c := newWriter(buffer)
	c.varint(&f.early)
	c.count(f.items, minSubject)
	for i := range s.store.stripes {
		f.items -= s.store.stripes[i].write(c)
	}
	c.count(f.records, minRecord)
	f.records -= s.records.write(c)
	c.usageHeader(&f.usage)
	c.count(f.subjects, minUsage)
	for i := range s.store.stripes {
		f.subjects -= s.store.stripes[i].writeUsage(c)
	}
	// The configuration may be newer than the rest: then the next snapshot is due already.
	config, audit := s.store.kept()
	for i := range list(c, &audit, minEvent) {
		c.event(&audit[i])
	}
	c.config(&config)
	if !c.check(f.items == 0 && f.records == 0 && f.subjects == 0) {
		return buffer, errMalformed
	}
	return c.data, nil
}

// decode loads a body of a version into the store, which must be empty. After an error the store is
// unusable.
func (s *SnapshotStore) decode(body []byte, version uint32) error {
	c := newReader(body, version)
	c.varint(&s.records.horizon)
	for range c.count(0, minSubject) {
		it := &subjectState{}
		c.subjectState(it)
		hash := s.store.hashOf(it.subject)
		p := &s.store.stripes[s.store.stripeOf(it.subject.Entity)]
		if c.check(p.items.find(it.subject, hash) == nil) {
			p.load(it, hash)
		}
	}
	for range c.count(0, minRecord) {
		r := &leaseRecord{}
		c.record(r)
		if c.check(s.records.byID[r.ID] == nil) {
			s.records.insert(r)
		}
	}
	if version > 1 {
		s.decodeUsage(c)
		s.decodeAudit(c)
	}
	if version > 2 {
		if err := s.decodeConfig(c); err != nil {
			return err
		}
	}
	if !c.check(len(c.data) == 0) {
		return errMalformed
	}
	return nil
}

func (c *codec) subjectState(it *subjectState) {
	c.text(&it.subject.Entity)
	c.name(&it.subject.Resource)
	states := list(c, &it.states, minState)
	c.check(len(states) > 0)
	for i := range states {
		s := &states[i]
		c.name(&s.name)
		c.kind(&s.kind)
		if c.reading {
			s.counter = newCounter(0, &weir.Limit{Kind: s.kind})
		}
		c.counter(s.counter)
		c.hourUse(&s.use)
	}
}

func (c *codec) counter(of kernel.Counter) {
	switch of := of.(type) {
	case *kernel.Window:
		c.occupancy(&of.Occupancy)
	case *kernel.Concurrency:
		c.occupancy(&of.Occupancy)
	case *kernel.Budget:
		c.budget(of)
	case *kernel.Bucket:
		c.bucket(of)
	}
}

func (c *codec) bucket(b *kernel.Bucket) {
	c.positive(&b.Rate.CapacityMilli)
	c.positive(&b.Rate.RefillMilli)
	c.positive(&b.Rate.PeriodMS)
	c.varint(&b.BalanceMilli)
	c.varint(&b.SeenMS)
	c.check(b.BalanceMilli <= b.Rate.CapacityMilli)
}

func (c *codec) occupancy(o *kernel.Occupancy) {
	c.varint(&o.SeenMS)
	queues := list(c, &o.Queues, minQueue)
	var total int64
	for i := range queues {
		q := &queues[i]
		c.positive(&q.LengthMS)
		for j := range queues[:i] {
			c.check(queues[j].LengthMS != q.LengthMS)
		}
		total = c.sum(total, c.queue(&q.Queue, o.SeenMS))
	}
}

// queue encodes each instant as the difference from the one before, and returns the sum of the
// units.
func (c *codec) queue(q *kernel.Queue, last int64) (total int64) {
	entries := q.Entries()
	for i := range list(c, &entries, minEntry) {
		e := &entries[i]
		gap := e.UntilMS - last
		c.positive(&gap)
		if last = c.sum(last, gap); c.reading {
			e.UntilMS = last
		}
		c.positive(&e.Units)
		total = c.sum(total, e.Units)
	}
	if c.reading && !c.failed {
		*q = kernel.NewQueue(entries)
	}
	return total
}

func (c *codec) budget(b *kernel.Budget) {
	c.varint(&b.SeenMS)
	var total int64
	for i := range list(c, &b.Periods, minPeriod) {
		p := &b.Periods[i]
		c.varint(&p.StartMS)
		c.varint(&p.EndMS)
		c.natural(&p.Used, math.MaxInt64)
		c.check(p.StartMS < p.EndMS)
		total = c.sum(total, p.Used)
	}
}

var leaseStates = [...]driver.LeaseState{
	driver.LeaseLive, driver.LeaseCompleted, driver.LeaseCancelled, driver.LeaseExpired,
	driver.LeaseVoided,
}

func (c *codec) record(r *leaseRecord) {
	c.bytes(r.ID[:])
	oneOf(c, &r.State, leaseStates[:])
	c.uvarint(&r.Fingerprint)
	c.uvarint(&r.EndFingerprint)
	for _, t := range []*time.Time{&r.At, &r.Expires, &r.SeqAt, &r.EndedAt} {
		c.time(t)
	}
	keyed := c.charges(r)
	c.natural(&r.Seq, math.MaxInt64)
	c.natural(&r.memory, math.MaxInt64)
	if r.State != driver.LeaseLive {
		return
	}
	for i := range list(c, &r.Holdings, minHolding) {
		c.holding(&r.Holdings[i])
	}
	for i := range list(c, &r.Limits, minStatus) {
		c.status(&r.Limits[i])
	}
	if keyed {
		for i := range list(c, &r.Keys, minKey) {
			c.uvarint(&r.Keys[i])
		}
		c.check(len(r.Keys) == r.Charges)
	}
}

// charges encodes the number of charges of a lease, negated if they have keys, and reports whether
// they have.
func (c *codec) charges(r *leaseRecord) (keyed bool) {
	n := int64(r.Charges)
	if len(r.Keys) > 0 {
		n = -n
	}
	c.varint(&n)
	c.check(-math.MaxInt32 <= n && n <= math.MaxInt32)
	if c.reading && !c.failed {
		r.Charges = int(max(n, -n))
	}
	return n < 0
}

// time encodes an instant in milliseconds, or MinInt64 for a zero time.
func (c *codec) time(t *time.Time) {
	ms := int64(math.MinInt64)
	if !t.IsZero() {
		ms = t.UnixMilli()
	}
	if c.varint(&ms); c.reading && ms != math.MinInt64 {
		*t = time.UnixMilli(ms)
	}
}

func (c *codec) holding(h *driver.Holding) {
	c.name(&h.Entity)
	c.name(&h.Resource)
	c.limit(&h.Limit)
	c.name((*string)(&h.Level))
	c.varint(&h.Ceiling)
	for i := range list(c, &h.Parts, minPart) {
		charge := int64(h.Parts[i].Charge)
		c.natural(&charge, math.MaxInt32)
		c.natural(&h.Parts[i].Units, math.MaxInt64)
		if c.reading {
			h.Parts[i].Charge = int(charge)
		}
	}
	for i := range list(c, &h.Pieces, minPiece) {
		p := &h.Pieces[i]
		c.natural(&p.Units, math.MaxInt64)
		c.varint(&p.Until)
		c.varint(&p.Mark)
	}
}

func (c *codec) status(s *weir.LimitStatus) {
	c.name(&s.Entity)
	c.name(&s.Resource)
	c.name(&s.Limit)
	c.kind(&s.Kind)
	c.name((*string)(&s.Level))
	c.varint(&s.Capacity)
	c.varint(&s.Available)
	c.varint(&s.Requested)
	c.flags(&s.Exceeded, &s.Shadow, &s.AtLeast)
	c.varint((*int64)(&s.RetryAfter))
}
