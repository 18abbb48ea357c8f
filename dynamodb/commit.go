package dynamodb

import (
	"context"
	"math"
	"slices"

	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/internal/schema"
)

// itemState is what a process knows of one bucket item while it writes it.
type itemState struct {
	ns      *namespaceState
	subject *subjectState
	shard   int
	later   followUps

	image *image // nil if the item is not known
	// seenAt is the number of the latest reservation when the call was sent that the image is from.
	seenAt uint64
	// deleted is true if the item is known not to exist.
	deleted bool
	// uncertain is true after a write without an answer: the item is read before it is written again,
	// and image is as it was before that write, because it may know more than the item says.
	uncertain bool
	// removedLimits are limits that were removed from the item, as they were: leases may still stand
	// for them, and they may come back.
	removedLimits map[string]limitImage
}

// followUps takes what a commit leaves for later writes of the item.
type followUps interface {
	// enqueue puts an update in the item's queue.
	enqueue(u *itemUpdate)
	// requeue puts an update that failed in the queue again, after a pause.
	requeue(u *itemUpdate, err error)
}

// writer builds writes of the item.
func (s *itemState) writer() *itemWriter { return s.subject.writer(s.shard) }

// batch is what one commit takes along.
type batch struct {
	waiters []*waiter
	updates []*itemUpdate
}

// commit writes a batch: it sends a write and lets the image of a failed condition say which write
// comes next, until everything in the batch has an answer.
type commit struct {
	*itemState
	batch
	// sentAt is the number of the latest reservation when the call in flight was sent.
	sentAt uint64
	// config is what was read in this commit, consistently; nil if it was not.
	config *itemConfig
	owner  owner
	// refused is true after a write was refused: another writer has changed the item.
	refused bool
	round   int
}

const (
	// maxRounds is how many writes a reservation waits for before it is denied as contended.
	maxRounds = 4
	// maxUpdateRounds is how many writes what is never denied tries to judge by an image.
	maxUpdateRounds = 16
)

// commit answers a batch.
func (s *itemState) commit(b *batch) {
	c := &commit{itemState: s, batch: *b}
	ctx, cancel := context.WithTimeout(context.Background(), 2*s.ns.options.writeTimeout)
	defer cancel()
	for ; c.pending(); c.round++ {
		if c.round >= maxRounds && len(c.waiters) > 0 {
			c.answerContended()
			continue
		}
		w, r, err := c.nextWrite(ctx)
		if err != nil {
			c.failAll(err)
			return
		}
		if w != nil {
			c.sendWrite(ctx, w, r)
		}
	}
}

// pending reports whether anything is left to write. Rides that change nothing wait for those that
// do: they are answered last.
func (c *commit) pending() bool {
	work := len(c.waiters) > 0
	for _, r := range c.updates {
		if r.itemDeleted {
			c.itemDeleted()
			r.itemDeleted = false
		}
		work = work || len(r.deltas) > 0 || r.refill || r.reread
	}
	if work {
		return true
	}
	for _, r := range c.updates {
		r.finish(nil)
	}
	c.updates = nil
	return false
}

// now is the latest now of all.
func (c *commit) now() int64 {
	now := int64(math.MinInt64)
	for _, m := range c.waiters {
		now = max(now, m.now)
	}
	for _, r := range c.updates {
		now = max(now, r.now)
	}
	return now
}

// sendWrite sends a write and hears what became of it.
func (c *commit) sendWrite(ctx context.Context, w *write, r *evaluation) {
	attempt, cancel := context.WithTimeout(ctx, c.ns.options.writeTimeout)
	defer cancel()
	c.sentAt = c.ns.calls.Load()
	item, err := w.send(attempt, c.ns.client)
	switch o := client.OutcomeOf(err); o.Kind {
	case client.WriteApplied:
		c.handleApplied(ctx, item, w, r)
	case client.WriteRefused:
		if w.donorUpdate != nil {
			if o.Image = cancelledItem(o.Reasons); o.Image == nil {
				return // the other shard has changed meanwhile
			}
		}
		before := c.image
		c.refused = true
		if err := c.setImage(ctx, o.Image, nil); err != nil {
			c.failAll(err)
		} else if before != nil && c.image != nil && !before.sameDefinitions(c.image) {
			c.config = nil // somebody else has brought it to what may be newer
		}
	case client.WriteConflicted: // another transaction was quicker: it may have changed anything
		c.seenAt = 0
	case client.WriteUnknown:
		c.failAmbiguous(err, w, r)
	default:
		c.failAll(client.Classify(err))
	}
}

// handleApplied answers those that went along.
func (c *commit) handleApplied(ctx context.Context, item schema.Item, w *write, r *evaluation) {
	if r == nil { // nobody knew the item
		c.handleColdApplied(item, w.waiters)
		return
	}
	removed := c.image
	if err := c.setImage(ctx, item, w.after); err != nil {
		c.failAll(err)
		return
	}
	c.removedLimits = rememberRemoved(c.removedLimits, removed, c.image)
	r.correctFound(c.image)
	c.answerAdmitted(r)
}

// handleColdApplied works out what those found who went along in a write on an item that was not known,
// and moves the time of the refill where the share had been full: otherwise the time until now
// would be credited once more.
func (c *commit) handleColdApplied(item schema.Item, went []*waiter) {
	b, err := c.subject.parseItem(item)
	if err != nil {
		c.failAll(err)
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
	shards := c.subject.shardCount()
	r := evaluate(newImage(was, nil, shards, c.now()), nil, went)
	c.image, c.deleted, c.seenAt = r.after.withStored(b), false, c.sentAt
	r.admitted, r.admittedResults = append(r.admitted, r.denied...), append(r.admittedResults, r.deniedResults...)
	c.answerAdmitted(r)
	for i := range c.image.limits {
		l := &c.image.limits[i]
		if l.balance < l.storedBalanceAt(b.RefilledMS, l.seen, shards) {
			c.updates = append(c.updates, &itemUpdate{now: l.seen, refill: true})
			return
		}
	}
}

// answerAdmitted tells those that went along that they have what they asked. Who has left gives it back
// with the next write.
func (c *commit) answerAdmitted(r *evaluation) {
	for i, m := range r.admitted {
		v := r.admittedResults[i]
		v.kind = taken
		if v.err = c.judgeError(m); v.err != nil { // it was not known when the write was sent
			v.kind = failed
		}
		if !m.deliver(v) || v.err != nil {
			c.later.enqueue(compensation(m.now, m.asks, v.found))
		}
	}
	c.removeWaiters(r.admitted)
	for _, r := range c.updates {
		c.updateRemoved(r)
		r.finish(nil)
	}
	c.updates = nil
}

// answerDenied answers those that do not fit the image.
func (c *commit) answerDenied(r *evaluation) {
	for i, m := range r.denied {
		m.deliver(r.deniedResults[i])
	}
	c.removeWaiters(r.denied)
	r.denied, r.deniedResults = nil, nil
}

// removeWaiters takes members out who have their answer.
func (c *commit) removeWaiters(gone []*waiter) {
	if len(gone) == len(c.waiters) {
		c.waiters = nil
		return
	}
	is := make(map[*waiter]bool, len(gone))
	for _, m := range gone {
		is[m] = true
	}
	c.waiters = slices.DeleteFunc(slices.Clone(c.waiters), func(m *waiter) bool { return is[m] })
}

// answer takes members out and tells them a verdict, unless they have theirs.
func (c *commit) answer(which func(*waiter) bool, v waiterResult) {
	left := c.waiters[:0:0]
	for _, m := range c.waiters {
		if which(m) {
			m.deliver(v)
			continue
		}
		left = append(left, m)
	}
	c.waiters = left
}

// answerContended ends the reservations; rides go on.
func (c *commit) answerContended() {
	c.ns.counts.contended.Add(int64(len(c.waiters)))
	c.answer(func(*waiter) bool { return true }, waiterResult{kind: contended})
}

// failAll ends everybody: nothing was written.
func (c *commit) failAll(err error) {
	c.answer(func(*waiter) bool { return true }, waiterResult{kind: failed, err: err})
	for _, r := range c.updates {
		if r.done == nil && (len(r.deltas) > 0 || r.refill) {
			c.later.requeue(r, err)
			continue
		}
		r.finish(err)
	}
	c.updates = nil
}

// failAmbiguous ends everybody where nobody knows whether the write was made. Each goes by what is safe:
// what was asked may be charged, and is not given back; what was given back may be missing, and is
// not given again.
func (c *commit) failAmbiguous(err error, w *write, r *evaluation) {
	c.uncertain, c.deleted, c.seenAt = true, false, 0
	went := w.waiters
	if r != nil {
		went = r.admitted
	}
	for _, m := range went {
		for k := range m.asks {
			c.ns.counts.ambiguous(m.asks[k].milli)
		}
	}
	for _, r := range c.updates {
		c.ns.countAmbiguous(r)
		switch {
		case r.refill: // it does no harm when it is done twice
			c.later.requeue(r, err)
		case r.refundsOnly() && (len(r.deltas) > 0 || !r.reread): // a second write might return it twice
			r.inDoubt = true
			r.finish(nil)
		default:
			r.finish(client.Classify(err))
		}
	}
	c.updates = nil
	c.failAll(client.Classify(err))
}
