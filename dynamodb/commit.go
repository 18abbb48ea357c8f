package dynamodb

import (
	"context"
	"math"
	"slices"

	"github.com/weir-limiter/weir/internal/schema"
)

// commit is one turn of a line: write, and let the image of a refused condition say which write
// comes next, until everybody in the batch has an answer.
type commit struct {
	*line
	members []*member
	rides   []*ride
	// sending is the number of the latest reservation when the call under way was sent.
	sending uint64
	// read are the terms as they were read in this turn, consistently; nil if they were not.
	read  *terms
	owner owner
	// refused is true once a write was refused: another one has changed the item.
	refused bool
	round   int
}

const (
	// maxRounds is how many writes a reservation waits for before it is denied as contended.
	maxRounds = 4
	// maxRideRounds is how many writes what is never denied tries to go by an image.
	maxRideRounds = 16
)

// commit answers a batch.
func (l *line) commit(b *batch) {
	c := &commit{line: l, members: b.members, rides: b.rides}
	ctx, cancel := context.WithTimeout(context.Background(), 2*l.store.options.WriteTimeout)
	defer cancel()
	for ; c.pending(); c.round++ {
		if c.round >= maxRounds && len(c.members) > 0 {
			c.contend()
			continue
		}
		w, r, err := c.next(ctx)
		if err != nil {
			c.fail(err)
			return
		}
		if w != nil {
			c.make(ctx, w, r)
		}
	}
}

// pending reports whether anything is left to write. Rides that change nothing wait for those that
// do: they are answered last.
func (c *commit) pending() bool {
	work := len(c.members) > 0
	for _, r := range c.rides {
		if r.forget {
			c.lose()
			r.forget = false
		}
		work = work || len(r.changes) > 0 || r.refill || r.reread
	}
	if work {
		return true
	}
	for _, r := range c.rides {
		r.finish(nil)
	}
	c.rides = nil
	return false
}

// now is the latest now of all.
func (c *commit) now() int64 {
	now := int64(math.MinInt64)
	for _, m := range c.members {
		now = max(now, m.now)
	}
	for _, r := range c.rides {
		now = max(now, r.now)
	}
	return now
}

// next decides which write comes next. Nil is none: then somebody was answered, or something was
// read.
func (c *commit) next(ctx context.Context) (*write, *reckoning, error) {
	switch {
	case c.doubtful:
		return nil, nil, c.look(ctx)
	case c.gone, c.image != nil && c.image.item.Stub:
		return c.nextBlank(ctx)
	case c.image == nil && (c.store.options.NoSpeculation || len(c.rides) > 0 || len(named(c.members)) > maxDefined):
		return nil, nil, c.look(ctx)
	case c.image == nil:
		return c.cold(alike(c.members), c.now()), nil, nil
	case c.round > maxRideRounds:
		c.dropRereads()
		if !c.pending() {
			return nil, nil, nil
		}
		return c.force(c.rides), reckon(c.image, c.rides, nil), nil
	case (c.store.options.NoSpeculation || c.image.restricted()) && !c.current(c.members):
		return nil, nil, c.look(ctx) // one that was switched off may be on again
	}
	return c.nextKnown(ctx)
}

// current reports whether the image is of an instant at which all these members were under way, so
// that who does not fit it is denied.
func (c *commit) current(members []*member) bool {
	for _, m := range members {
		if m.number > c.seenAt {
			return false
		}
	}
	return c.seenAt > 0
}

// look reads the item.
func (c *commit) look(ctx context.Context) error {
	c.sending = c.store.calls.Load()
	item, err := c.store.getItem(ctx, c.id().Key(), true)
	if err != nil {
		return err
	}
	return c.learn(ctx, item, nil)
}

// learn takes in the item as it is now. Of a write that was made, leads is the image that it led
// to.
func (c *commit) learn(ctx context.Context, item schema.Item, leads *image) error {
	c.doubtful = false
	if item == nil {
		c.image, c.gone, c.seenAt = nil, true, c.sending
		return nil
	}
	b, err := c.spot.parse(item)
	if err != nil {
		c.image = nil
		return err
	}
	if leads == nil {
		leads = c.image
	}
	c.image, c.gone, c.seenAt = learn(b, leads, c.spot.count(), c.now()), false, c.sending
	c.crowd(ctx)
	return nil
}

// nextKnown goes by the image.
func (c *commit) nextKnown(ctx context.Context) (*write, *reckoning, error) {
	c.refuse()
	c.limitRefunds()
	c.refuseRides()
	if len(c.members) == 0 && len(c.rides) > 0 && c.image.restricted() { // only counted on
		return c.force(c.rides), reckon(c.image, c.rides, nil), nil
	}
	if n := c.spot.count(); n > c.image.shards {
		c.image = learn(c.image.item, c.image, n, c.now())
	}
	if c.read == nil && (c.differs() || c.image.lapsed(c.now())) {
		return nil, nil, c.readTerms(ctx)
	}
	if c.read != nil {
		c.answerStale()
	}
	if !c.pending() {
		return nil, nil, nil
	}
	base := c.image
	if c.read != nil && !c.read.fulfilled(base) {
		base = base.adapt(c.read, c.ghosts)
	}
	r := reckon(base, c.rides, c.members)
	if len(r.short) > 0 && c.current(r.short) {
		if base, r = c.nextDenied(base, r); r == nil {
			return nil, nil, nil
		}
	}
	if len(r.fits) == 0 && len(c.rides) == 0 { // only the item itself may deny
		if len(r.short[0].asks) > maxDefined {
			return nil, nil, c.look(ctx)
		}
		return c.cold(r.short[:1], c.now()), nil, nil
	}
	if len(r.short) > 0 { // they are judged by what this write returns
		r = reckon(base, c.rides, r.fits)
	}
	if base == c.image && !c.forced() && base.commutes(r) && (!c.store.options.NoSpeculation || c.round > 1) {
		return c.speculative(base, r), r, nil
	}
	t := c.read
	if t == nil {
		if t = c.agreed(); t == nil && base.item.TTL != 0 && base.item.TTL <= seconds(r.latest) ||
			t != nil && !t.fulfilled(base) {
			return nil, nil, c.readTerms(ctx)
		}
	}
	return c.normal(c.image, r, t), r, nil
}

// nextDenied denies those that are short, and returns what the next write goes by; no reckoning if
// there is none.
func (c *commit) nextDenied(base *image, r *reckoning) (*image, *reckoning) {
	now := c.now()
	c.deny(r)
	if c.pending() {
		return base, r
	}
	adapted := base != c.image && !c.read.standing
	c.image = c.image.noting(r.after)
	if !adapted {
		return base, nil
	}
	// From now on the limits gain under what was read. Only the item can tell that to others.
	c.rides = append(c.rides, &ride{now: now, reread: true})
	return r.after, reckon(r.after, c.rides, nil)
}

// forced reports whether a ride asks for the time of the refill to move.
func (c *commit) forced() bool {
	for _, r := range c.rides {
		if r.refill || r.reread {
			return true
		}
	}
	return false
}

// make sends a write and hears what became of it.
func (c *commit) make(ctx context.Context, w *write, r *reckoning) {
	attempt, cancel := context.WithTimeout(ctx, c.store.options.WriteTimeout)
	defer cancel()
	c.sending = c.store.calls.Load()
	item, err := w.send(attempt, c.store)
	switch o := outcomeOf(err); o.kind {
	case writeApplied:
		c.applied(ctx, item, w, r)
	case writeRefused:
		if w.beside != nil {
			if o.image = refusedItem(o.reasons); o.image == nil {
				return // the other shard has changed meanwhile
			}
		}
		before := c.image
		c.refused = true
		if err := c.learn(ctx, o.image, nil); err != nil {
			c.fail(err)
		} else if before != nil && c.image != nil && !before.sameTerms(c.image) {
			c.read = nil // somebody else has brought it to what may be newer
		}
	case writeConflicted: // another transaction was quicker: it may have changed anything
		c.seenAt = 0
	case writeUnknown:
		c.unknown(err, w, r)
	default:
		c.fail(classify(err))
	}
}

// applied answers those that went along.
func (c *commit) applied(ctx context.Context, item schema.Item, w *write, r *reckoning) {
	if r == nil { // nobody knew the item
		c.appliedCold(item, w.went)
		return
	}
	removed := c.image
	if err := c.learn(ctx, item, w.leads); err != nil {
		c.fail(err)
		return
	}
	c.ghosts = bury(c.ghosts, removed, c.image)
	r.correct(c.image)
	c.conclude(r)
}

// appliedCold works out what those found who went along in a write on an item that was not known,
// and moves the time of the refill where the share had been full: otherwise the time until now
// would be credited once more.
func (c *commit) appliedCold(item schema.Item, went []*member) {
	b, err := c.spot.parse(item)
	if err != nil {
		c.fail(err)
		return
	}
	was := b.Copy()
	for i := range was.Limits {
		for _, m := range went {
			for k := range m.asks {
				if m.asks[k].name == was.Limits[i].Name {
					was.Limits[i].Balance += m.asks[k].milli
				}
			}
		}
	}
	shards := c.spot.count()
	r := reckon(learn(was, nil, shards, c.now()), nil, went)
	c.image, c.gone, c.seenAt = r.after.storing(b), false, c.sending
	r.fits, r.fitting = append(r.fits, r.short...), append(r.fitting, r.lacking...)
	c.conclude(r)
	for i := range c.image.limits {
		l := &c.image.limits[i]
		if l.balance < l.lazy(b.RefilledMS, l.seen, shards) {
			c.rides = append(c.rides, &ride{now: l.seen, refill: true})
			return
		}
	}
}

// conclude tells those that went along that they have what they asked. Who has left gives it back
// with the next write.
func (c *commit) conclude(r *reckoning) {
	for i, m := range r.fits {
		v := r.fitting[i]
		v.ruling = taken
		if v.err = c.objection(m); v.err != nil { // it was not known when the write was sent
			v.ruling = failed
		}
		if !m.tell(v) || v.err != nil {
			c.submit(nil, compensation(m.now, m.asks, v.found))
		}
	}
	c.dismiss(r.fits)
	for _, r := range c.rides {
		c.haunt(r)
		r.finish(nil)
	}
	c.rides = nil
}

// deny answers those that do not fit the image.
func (c *commit) deny(r *reckoning) {
	for i, m := range r.short {
		m.tell(r.lacking[i])
	}
	c.dismiss(r.short)
	r.short, r.lacking = nil, nil
}

// dismiss takes members out who have their answer.
func (c *commit) dismiss(gone []*member) {
	if len(gone) == len(c.members) {
		c.members = nil
		return
	}
	is := make(map[*member]bool, len(gone))
	for _, m := range gone {
		is[m] = true
	}
	c.members = slices.DeleteFunc(slices.Clone(c.members), func(m *member) bool { return is[m] })
}

// answer takes members out and tells them a verdict, unless they have theirs.
func (c *commit) answer(which func(*member) bool, v verdict) {
	left := c.members[:0:0]
	for _, m := range c.members {
		if which(m) {
			m.tell(v)
			continue
		}
		left = append(left, m)
	}
	c.members = left
}

// contend ends the reservations; rides go on.
func (c *commit) contend() {
	c.store.counts.contended.Add(int64(len(c.members)))
	c.answer(func(*member) bool { return true }, verdict{ruling: contended})
}

// fail ends everybody: nothing was written.
func (c *commit) fail(err error) {
	c.answer(func(*member) bool { return true }, verdict{ruling: failed, err: err})
	for _, r := range c.rides {
		if r.done == nil && (len(r.changes) > 0 || r.refill) {
			c.later(r, err)
			continue
		}
		r.finish(err)
	}
	c.rides = nil
}

// unknown ends everybody where nobody knows whether the write was made. Each goes by what is safe:
// what was asked may be charged, and is not given back; what was given back may be missing, and is
// not given again.
func (c *commit) unknown(err error, w *write, r *reckoning) {
	c.doubtful, c.gone, c.seenAt = true, false, 0
	went := w.went
	if r != nil {
		went = r.fits
	}
	for _, m := range went {
		for k := range m.asks {
			c.store.counts.ambiguous(m.asks[k].milli)
		}
	}
	for _, r := range c.rides {
		for _, ch := range r.changes {
			c.store.counts.ambiguous(max(ch.milli, -ch.milli))
		}
		switch {
		case r.refill: // it does no harm when it is done twice
			c.later(r, err)
		case r.refunds() && (len(r.changes) > 0 || !r.reread): // a second write might return it twice
			r.inDoubt = true
			r.finish(nil)
		default:
			r.finish(classify(err))
		}
	}
	c.rides = nil
	c.fail(classify(err))
}
