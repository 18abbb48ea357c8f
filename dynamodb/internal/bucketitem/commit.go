package bucketitem

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

	image *Image // nil if the item is not known
	// seenAt is the number of the latest reservation when the call was sent that the image is from.
	seenAt uint64
	// deleted is true if the item is known not to exist.
	deleted bool
	// uncertain is true after a write without an answer: the item is read before it is written
	// again, and image is as it was before that write, because it may know more than the item says.
	uncertain bool
	// removedLimits are limits that were removed from the item, as they were: leases may still
	// stand for them, and they may come back.
	removedLimits map[string]LimitImage
}

// followUps takes what a commit leaves for later writes of the item.
type followUps interface {
	// Enqueue puts an update in the item's queue.
	Enqueue(u *Update)
	// publish tells others what a commit has left, before its waiters have their answers: a caller
	// that has its answer may ask at once what the item has. written is true after a write that
	// also carried out the updates of the commit.
	publish(s *itemState, written bool)
	// requeue puts an update that failed in the queue again, after a pause.
	requeue(u *Update, err error)
}

// writer builds writes of the item.
func (s *itemState) writer() *itemWriter { return s.subject.writer(s.shard) }

// Batch is what one commit takes along.
type Batch struct {
	Waiters []*Waiter
	Updates []*Update
}

// commit writes a batch: it sends a write and lets the image of a failed condition say which write
// comes next, until everything in the batch has an answer.
type commit struct {
	*itemState
	Batch
	// sentAt is the number of the latest reservation when the call in flight was sent.
	sentAt uint64
	// config is what was read in this commit, consistently; nil if it was not.
	config *Config
	owner  owner
	// refused is true after a write was refused: another writer has changed the item.
	refused bool
	round   int
}

const (
	// MaxRounds is how many writes a reservation waits for before it is denied as contended.
	MaxRounds = 4
	// maxUpdateRounds is how many writes what is never denied tries to judge by an image.
	maxUpdateRounds = 16
)

// Commit answers a batch.
func (s *itemState) Commit(b *Batch) {
	c := &commit{itemState: s, Batch: *b}
	ctx, cancel := context.WithTimeout(context.Background(), 2*s.ns.Options.WriteTimeout)
	defer cancel()
	for ; c.pending(); c.round++ {
		if c.round >= MaxRounds && len(c.Waiters) > 0 {
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

// pending reports whether anything is left to write. Updates that change nothing are answered
// last, when those before them have been written.
func (c *commit) pending() bool {
	work := len(c.Waiters) > 0
	for _, r := range c.Updates {
		if r.itemDeleted {
			c.itemDeleted()
			r.itemDeleted = false
		}
		work = work || len(r.Deltas) > 0 || r.Refill || r.Reread
	}
	if work {
		return true
	}
	for _, r := range c.Updates {
		r.finish(nil)
	}
	c.Updates = nil
	return false
}

// now returns the latest now of the batch.
func (c *commit) now() int64 {
	now := int64(math.MinInt64)
	for _, m := range c.Waiters {
		now = max(now, m.Now)
	}
	for _, r := range c.Updates {
		now = max(now, r.Now)
	}
	return now
}

// sendWrite sends a write and handles its outcome.
func (c *commit) sendWrite(ctx context.Context, w *Write, r *Evaluation) {
	attempt, cancel := context.WithTimeout(ctx, c.ns.Options.WriteTimeout)
	defer cancel()
	c.sentAt = c.ns.Calls.Load()
	item, err := w.Send(attempt, c.ns.Client)
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
			c.config = nil // another process has given it limits that may be newer
		}
	case client.WriteConflicted: // another transaction, which may have changed anything
		c.seenAt = 0
	case client.WriteUnknown:
		c.failAmbiguous(err, w, r)
	default:
		c.failAll(client.Classify(err))
	}
}

// handleApplied takes over the item that was written, and answers the waiters that the write
// admitted.
func (c *commit) handleApplied(ctx context.Context, item schema.Item, w *Write, r *Evaluation) {
	if r == nil { // the item was not known
		c.handleColdApplied(item, w.waiters)
		return
	}
	removed := c.image
	if err := c.setImage(ctx, item, w.After); err != nil {
		c.failAll(err)
		return
	}
	c.removedLimits = rememberRemoved(c.removedLimits, removed, c.image)
	r.correctFound(c.image)
	c.answerAdmitted(r)
}

// handleColdApplied works out what the waiters of a cold write found. If the share had been full,
// it asks for a write that moves the time of the refill: otherwise the time until now would be
// credited once more.
func (c *commit) handleColdApplied(item schema.Item, waiters []*Waiter) {
	b, err := c.subject.parseItem(item)
	if err != nil {
		c.failAll(err)
		return
	}
	was := b.Copy()
	for i := range was.Limits {
		for _, m := range waiters {
			for k := range m.Takes {
				if m.Takes[k].Name == was.Limits[i].Name {
					was.Limits[i].Balance += m.Takes[k].Milli
				}
			}
		}
	}
	shards := c.subject.ShardCount()
	r := evaluate(newImage(was, nil, shards, c.now()), nil, waiters)
	c.image, c.deleted, c.seenAt = r.After.withStored(b), false, c.sentAt
	r.admitted = append(r.admitted, r.denied...)
	r.AdmittedResults = append(r.AdmittedResults, r.deniedResults...)
	c.answerAdmitted(r)
	for i := range c.image.Limits {
		l := &c.image.Limits[i]
		if l.BalanceMilli < l.StoredBalanceAt(b.RefilledMS, l.Seen, shards) {
			c.Updates = append(c.Updates, &Update{Now: l.Seen, Refill: true})
			return
		}
	}
}

// answerAdmitted answers the waiters that were charged. What a caller that has left was charged is
// refunded with the next write.
func (c *commit) answerAdmitted(r *Evaluation) {
	c.later.publish(c.itemState, true)
	for i, m := range r.admitted {
		v := r.AdmittedResults[i]
		v.Kind = Taken
		if v.Err = c.judgeError(m); v.Err != nil { // it was not known when the write was sent
			v.Kind = Failed
		}
		if !m.deliver(v) || v.Err != nil {
			c.later.Enqueue(Compensation(m.Now, m.Takes, v.Found))
		}
	}
	c.removeWaiters(r.admitted)
	for _, r := range c.Updates {
		c.updateRemoved(r)
		r.finish(nil)
	}
	c.Updates = nil
}

// answerDenied answers the waiters that do not fit the image.
func (c *commit) answerDenied(r *Evaluation) { c.removeDenied(r)() }

// removeDenied takes the waiters that do not fit the image out of the batch. deliver gives them
// their answers.
func (c *commit) removeDenied(r *Evaluation) (deliver func()) {
	denied, results := r.denied, r.deniedResults
	c.removeWaiters(denied)
	r.denied, r.deniedResults = nil, nil
	return func() {
		c.later.publish(c.itemState, false)
		for i, m := range denied {
			m.deliver(results[i])
		}
	}
}

// removeWaiters takes waiters that have their answer out of the batch.
func (c *commit) removeWaiters(gone []*Waiter) {
	if len(gone) == len(c.Waiters) {
		c.Waiters = nil
		return
	}
	is := make(map[*Waiter]bool, len(gone))
	for _, m := range gone {
		is[m] = true
	}
	c.Waiters = slices.DeleteFunc(slices.Clone(c.Waiters), func(m *Waiter) bool { return is[m] })
}

// answer gives some waiters a result and takes them out of the batch.
func (c *commit) answer(which func(*Waiter) bool, v Result) {
	left := c.Waiters[:0:0]
	for _, m := range c.Waiters {
		if which(m) {
			m.deliver(v)
			continue
		}
		left = append(left, m)
	}
	c.Waiters = left
}

// answerContended denies the reservations because other writers won every round. Updates go on.
func (c *commit) answerContended() {
	c.ns.Counts.Contended.Add(int64(len(c.Waiters)))
	c.answer(func(*Waiter) bool { return true }, Result{Kind: Contended})
}

// failAll ends the batch: nothing was written. Updates that nobody waits for are repeated later.
func (c *commit) failAll(err error) {
	c.answer(func(*Waiter) bool { return true }, Result{Kind: Failed, Err: err})
	for _, r := range c.Updates {
		if r.Done == nil && (len(r.Deltas) > 0 || r.Refill) {
			c.later.requeue(r, err)
			continue
		}
		r.finish(err)
	}
	c.Updates = nil
}

// failAmbiguous ends the batch after a write that may or may not have been applied. Each part
// takes the safe side: what was asked may be charged and is not refunded; what was refunded may be
// missing and is not refunded again.
func (c *commit) failAmbiguous(err error, w *Write, r *Evaluation) {
	c.uncertain, c.deleted, c.seenAt = true, false, 0
	waiters := w.waiters
	if r != nil {
		waiters = r.admitted
	}
	for _, m := range waiters {
		for k := range m.Takes {
			c.ns.Counts.Ambiguous(m.Takes[k].Milli)
		}
	}
	for _, r := range c.Updates {
		c.ns.countAmbiguous(r)
		switch {
		case r.Refill: // does no harm when it is done twice
			c.later.requeue(r, err)
		case r.refundsOnly() && (len(r.Deltas) > 0 || !r.Reread): // a second write might return it twice
			r.InDoubt = true
			r.finish(nil)
		default:
			r.finish(client.Classify(err))
		}
	}
	c.Updates = nil
	c.failAll(client.Classify(err))
}
