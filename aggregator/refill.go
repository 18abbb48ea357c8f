package aggregator

import (
	"math"
	"time"

	"github.com/weir-limiter/weir/internal/schema"
	"github.com/weir-limiter/weir/internal/sharding"
)

// Refill is a write that credits a bucket item what it has gained, before a client needs it.
type Refill struct {
	// Item is the item as its last record has it.
	Item *schema.Bucket
	// AtMS is the time up to which the limits are credited, in Unix milliseconds. It is after the
	// item's RefilledMS.
	AtMS int64
	// Credits has every limit of the item, also those that get nothing: the time of the refill moves
	// for all of them.
	Credits []Credit
}

// Credit is what a refill adds to one limit.
type Credit struct {
	Limit *schema.BucketLimit
	// Milli is the amount, in milli-units.
	Milli int64
	// Least is the lowest balance with which the credit may be written. A limit that gets less than
	// it has gained was full: what it lost after the record it would have gained again since.
	Least int64
}

// refillWithin is the greatest age of a record that leads to a refill. In a backlog the items
// have changed long since.
const refillWithin = time.Minute

// trust is the time in which clients take from a limit without moving the time of the refill, in
// milliseconds. The next refill credits the gain of that time, so a refill leaves room for it.
const trust = 1000

// maxRefilled is the largest number of limits of an item that is refilled. DynamoDB allows 300
// operators in an expression, and the conditions of each limit take eight.
const maxRefilled = 35

// Refills returns the refills that are due after a batch of records, which must be in the order
// of the stream: for each item at most one, in the order of their first records.
//
// A refill is due if the batch took more of a limit than is stored now, so that the next take may
// find too little although the limit has gained more. It then credits every limit of the item. No
// limit is credited above its share of the capacity less the gain of one second: a take that
// leaves the time of the refill alone, on a limit that is full by then, is credited that time
// again by the refill after it. The limit that counts writes is credited in full.
//
// Items with an attribute by which weir does not judge get none. Nor do items with a limit that
// fills up within a second, because it has no room below that bound, and would lose its gain.
func Refills(records []*Record, now time.Time) []*Refill {
	type bucket struct{ namespace, entity, resource string }
	taken := make(map[schema.BucketID]*takes)
	shards := make(map[bucket]int)
	var order []schema.BucketID
	for _, r := range records {
		id, err := schema.ParseBucketPK(r.Key.PK)
		if err != nil || r.Key.SK != schema.SKState || now.Sub(r.At) > refillWithin {
			continue
		}
		t := taken[id]
		if t == nil {
			t = &takes{}
			taken[id], order = t, append(order, id)
		}
		t.add(r)
	}
	for id, t := range taken {
		if t.parse() {
			of := bucket{id.Namespace, id.Entity, id.Resource}
			shards[of] = max(shards[of], t.item.Shards)
		}
	}
	var due []*Refill
	for _, id := range order {
		t := taken[id]
		n := shards[bucket{id.Namespace, id.Entity, id.Resource}]
		if refill := t.refill(n, now.UnixMilli()); refill != nil {
			due = append(due, refill)
		}
	}
	return due
}

// Refilled reports whether a record is of a write that moved the time of a bucket item's refill,
// and took nothing.
func Refilled(r *Record) bool {
	if r.Kind != Modified || r.Old == nil || r.New == nil || r.Key.SK != schema.SKState {
		return false
	}
	was, err := schema.Int64(r.Old[schema.AttrRF])
	is, err2 := schema.Int64(r.New[schema.AttrRF])
	if err != nil || err2 != nil || was == is {
		return false
	}
	for name, value := range r.New {
		_, field, ok := schema.ParseBucketAttribute(name)
		if !ok || field != schema.FieldConsumed {
			continue
		}
		before, err := schema.Int64(r.Old[name])
		after, err2 := schema.Int64(value)
		if err != nil || err2 != nil || before != after {
			return false
		}
	}
	return true
}

// takes are what a batch says about one item.
type takes struct {
	last *Record
	// milli is what was taken of each limit, less refunds.
	milli Counts
	item  *schema.Bucket
}

// add adds a record. A removal forgets the ones before.
func (t *takes) add(r *Record) {
	if r.Kind == Removed || r.New == nil {
		*t = takes{}
		return
	}
	t.last = r
	if t.milli == nil {
		t.milli = make(Counts)
	}
	after, faults := counts(r.New)
	before, more := counts(r.Old)
	for _, f := range append(faults, more...) {
		delete(after, f.Limit)
	}
	for limit, n := range after {
		t.milli[limit] = added(t.milli[limit], lessened(n, before[limit]))
	}
}

// parse decodes the item. It reports whether it exists and can be read.
func (t *takes) parse() bool {
	if t.last == nil {
		return false
	}
	item, err := schema.ParseBucket(t.last.New)
	if err != nil {
		return false // Parse has reported what is malformed
	}
	t.item = item
	return true
}

// refill returns the refill of an item; nil if none is due. The bucket has that many shards.
func (t *takes) refill(shards int, now int64) *Refill {
	b := t.item
	if b == nil || len(b.Limits) > maxRefilled || !judged(b, now) {
		return nil
	}
	refill := &Refill{Item: b, AtMS: now}
	due := false
	credit := func(l *schema.BucketLimit, shards int) bool {
		c, ok := creditOf(l, shards, b.RefilledMS, now)
		refill.Credits = append(refill.Credits, c)
		taken := t.milli[l.Name]
		// If something is gained, now is after rf: rf never moves backwards.
		due = due || taken > 0 && l.Balance < taken && c.Milli > 0
		return ok
	}
	for i := range b.Limits {
		if !credit(&b.Limits[i], shards) {
			return nil
		}
	}
	if b.Writes != nil && !credit(b.Writes, 1) {
		return nil
	}
	if !due {
		return nil
	}
	return refill
}

// judged reports whether all that an item says about itself and its limits is what weir judges
// by.
func judged(b *schema.Bucket, now int64) bool {
	switch {
	case b.Stub, b.Disabled, b.Extra[schema.AttrDisabled] != nil, len(b.Unjudged) > 0:
		return false
	case b.ValidUntil != nil && *b.ValidUntil <= now, b.TTL != 0 && b.TTL <= schema.TTL(now, 0):
		return false
	case b.Writes != nil && !plain(b.Writes):
		return false
	}
	for i := range b.Limits {
		if !plain(&b.Limits[i]) {
			return false
		}
	}
	return true
}

func plain(l *schema.BucketLimit) bool { return !l.Incomplete && len(l.Unjudged) == 0 }

// creditOf returns what one of n shards is credited of a limit. It reports false if the item
// cannot be refilled ahead because of that limit.
func creditOf(l *schema.BucketLimit, n int, from, now int64) (Credit, bool) {
	share := sharding.Share(l, n)
	ceiling, second := share.CapacityMilli, share.Gain(now-trust, now)
	writes := l.Name == schema.WritesLimit
	if !writes {
		ceiling -= second
	}
	gain, room := share.WideGain(from, now), uint64(0)
	if l.Balance < ceiling {
		room = uint64(ceiling) - uint64(l.Balance) // wraps around to the difference
	}
	credit := min(gain, room)
	if !writes && ceiling <= 0 || credit > math.MaxInt64 {
		return Credit{Limit: l}, false
	}
	c := Credit{Limit: l, Milli: int64(credit), Least: math.MinInt64}
	if credit < gain && !writes {
		c.Least = lessened(l.Balance, second)
	}
	return c, true
}

// added returns a + b, or the nearest number of 64 bits.
func added(a, b int64) int64 {
	s := a + b
	switch {
	case a > 0 && b > 0 && s < 0:
		return math.MaxInt64
	case a < 0 && b < 0 && s >= 0:
		return math.MinInt64
	}
	return s
}

// lessened returns a - b, or the nearest number of 64 bits.
func lessened(a, b int64) int64 {
	d := a - b
	switch {
	case a >= 0 && b < 0 && d < 0:
		return math.MaxInt64
	case a < 0 && b > 0 && d >= 0:
		return math.MinInt64
	}
	return d
}
