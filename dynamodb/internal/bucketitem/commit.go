package bucketitem

import (
	"context"
	"math"
	"slices"

	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/internal/schema"
)

// itemState is the state that the process keeps of one bucket item to write it.
type itemState struct {
	ns      *namespaceState
	subject *subjectState
	shard   int
	later   followUps

	image *Image // nil if the item is not known
	// seenAt is the number of the latest reservation at the time at which the call was sent that
	// returned the image. 0 means that no reservation may be denied by the image.
	seenAt uint64
	// deleted is true if the item is known not to exist.
	deleted bool
	// uncertain is true after a write whose answer was lost. The item is then read before it is
	// written again. The image is still the one before that write, because it may hold more than
	// the item says.
	uncertain bool
	// removedLimits are limits that were removed from the item, as they were then. Leases may still
	// stand for them, and they may be configured again.
	removedLimits map[string]LimitImage
}

// followUps takes over the work that a commit leaves for later writes of the item. [Queue]
// implements it.
type followUps interface {
	// Enqueue puts an update in the item's queue.
	Enqueue(u *Update)
	// publish makes the state after a commit visible to other goroutines. It is called before the
	// waiters have their answers, because a caller that has its answer may at once make a call that
	// depends on it. written is true after a write that also carried out the updates of the commit.
	publish(s *itemState, written bool)
	// requeue puts an update that failed with err back in the queue, after a pause.
	requeue(u *Update, err error)
	// level moves units between the shards, in the background.
	level(w levelWork)
}

// writer returns a builder of writes of the item.
func (s *itemState) writer() *itemWriter { return s.subject.writer(s.shard) }

// Batch is the requests that one commit writes.
type Batch struct {
	Waiters []*Waiter
	Updates []*Update
}

// commit writes a batch. It sends a write; if the condition fails, the returned item decides which
// write comes next, until every request of the batch has its answer.
type commit struct {
	*itemState
	Batch
	// sentAt is the number of the latest reservation at the time at which the last call was sent.
	sentAt uint64
	// config is the configuration that this commit has read, consistently; nil if it has not read
	// it.
	config *Config
	owner  owner
	// readFailed is true if the configuration could not be read.
	readFailed bool
	// refused is true after a write was refused: another writer has changed the item.
	refused bool
	round   int // counts the passes of the loop: a write, or a read in its place
}

const (
	// MaxRounds is the number of rounds after which a reservation is denied as contended.
	MaxRounds = 4
	// maxUpdateRounds is the number of rounds after which updates are written without a condition.
	// Until then they use the image, because an unconditional refund could lift a balance above its
	// share (ADR 18).
	maxUpdateRounds = 16
)

// Commit writes a batch and answers everything in it.
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

// pending reports whether there is anything left to write. If there is not, it ends the updates
// that change nothing: they wait for everything before them.
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
				return // the condition on the other shard failed
			}
		}
		before := c.image
		c.refused = true
		if err := c.setImage(ctx, o.Image, nil); err != nil {
			c.failAll(err)
		} else if before != nil && c.image != nil && !before.sameDefinitions(c.image) {
			c.config = nil // another process wrote definitions, which may be newer than those read
		}
	case client.WriteConflicted: // another transaction may have changed it: do not deny by the image
		c.seenAt = 0
	case client.WriteUnknown:
		c.failAmbiguous(err, w, r)
	default:
		c.failAll(client.Classify(err))
	}
}

// handleApplied takes over the item as it was written, and answers the waiters that the write
// admitted.
func (c *commit) handleApplied(ctx context.Context, item schema.Item, w *Write, r *Evaluation) {
	if r == nil { // a cold write
		c.handleColdApplied(item, w.waiters)
		return
	}
	removed := c.image
	if err := c.setImage(ctx, item, w.After); err != nil {
		for _, u := range c.Updates { // they were applied, and must not be repeated
			u.finish(nil)
		}
		c.Updates = nil
		c.failAll(err)
		return
	}
	c.removedLimits = rememberRemoved(c.removedLimits, removed, c.image)
	r.correctFound(c.image)
	if w, overflows := r.overflow(); overflows {
		c.later.level(w)
	}
	c.answerAdmitted(r)
}

// handleColdApplied works out the balances that the waiters of a cold write found, from the item
// after the write. If a share had been full, it asks for a write that moves the time of the refill:
// by the stored values, the next refill would credit the time before the take once more.
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

// answerAdmitted answers the waiters that were charged. If a caller has left, its charge is
// refunded with the next write.
func (c *commit) answerAdmitted(r *Evaluation) {
	c.later.publish(c.itemState, true)
	for i, m := range r.admitted {
		v := r.AdmittedResults[i]
		v.Kind = Taken
		if v.Err = c.judgeError(m); v.Err != nil { // the attribute appeared after the write was evaluated
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

// removeDenied takes the waiters that do not fit the image out of the batch. The caller calls
// deliver to answer them.
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

// answer gives the selected waiters a result and takes them out of the batch.
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

// failAll ends the batch with an error: nothing was written. Updates that no caller waits for are
// repeated later.
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

// failAmbiguous ends the batch after a write whose answer was lost, so it may have been applied.
// Each part takes the safe side: a charge may stand and is not refunded, and a refund may be
// missing and is not made again, because a second one might return the units twice.
func (c *commit) failAmbiguous(err error, w *Write, r *Evaluation) {
	c.uncertain, c.deleted, c.seenAt = true, false, 0
	waiters := w.waiters
	if r != nil {
		waiters = r.admitted
	}
	for _, m := range waiters {
		for k := range m.Takes {
			c.ns.Counts.ambiguous(m.Takes[k].Milli, m.betweenShards)
		}
	}
	for _, r := range c.Updates {
		c.ns.countAmbiguous(r)
		switch {
		case r.Refill: // a second refill does no harm
			c.later.requeue(r, err)
		case r.refundsOnly() && (len(r.Deltas) > 0 || !r.Reread): // a second write might refund twice
			r.InDoubt = true
			r.finish(nil)
		default:
			r.finish(client.Classify(err))
		}
	}
	c.Updates = nil
	c.failAll(client.Classify(err))
}
