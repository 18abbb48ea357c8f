package dynamodb

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/weir-limiter/weir/dynamodb/internal/client"
)

// itemQueue is the process's way to one bucket item. One write is in flight at a time; everything that
// arrives meanwhile goes with the next one. A single request is written at once: there is no timer.
type itemQueue struct {
	itemState // belongs to the goroutine that runs the queue
	// published is what others may know of the item; its lock guards what follows, too.
	published *publishedItem

	waiters []*waiter
	updates []*itemUpdate
	running bool
	// inFlight are the updates of the commit that is in progress.
	inFlight []*itemUpdate
	// externalImage is what was written to the item by another way than the queue; nil if nothing was.
	externalImage *image
	// seenLimits were judged or settled without a write since the last batch was taken.
	seenLimits []seenLimit
}

func newItemQueue(p *subjectState, shard int) *itemQueue {
	q := &itemQueue{published: p.item(shard)}
	q.itemState = itemState{ns: p.ns, subject: p, shard: shard, later: q}
	return q
}

// maxWaiters is how many reservations one write takes along.
const maxWaiters = 100

// enqueueWaiter puts a reservation in the queue.
func (q *itemQueue) enqueueWaiter(w *waiter) {
	q.published.mu.Lock()
	defer q.published.mu.Unlock()
	q.waiters = append(q.waiters, w)
	q.start()
}

// enqueue puts an update in the queue.
func (q *itemQueue) enqueue(u *itemUpdate) {
	if len(u.deltas) > 0 {
		q.subject.forgetDenials()
	}
	q.published.mu.Lock()
	defer q.published.mu.Unlock()
	q.updates = append(q.updates, u)
	q.start()
}

// start runs the queue in a goroutine of its own, because a write must not end with the caller that
// happened to begin it.
func (q *itemQueue) start() {
	if q.running {
		return
	}
	q.running = true
	q.ns.running.Begin()
	q.subject.retain()
	go func() {
		defer q.ns.running.End()
		defer q.subject.release()
		for b := q.nextBatch(); b != nil; b = q.nextBatch() {
			q.commit(b)
		}
	}()
}

// nextBatch takes the next batch out of the queue; nil if there is none, and then the queue stops.
func (q *itemQueue) nextBatch() *batch {
	q.published.mu.Lock()
	defer q.published.mu.Unlock()
	if q.externalImage != nil {
		q.image, q.deleted, q.externalImage = q.externalImage, false, nil
		q.removedLimits = maps.Clone(q.published.removedLimits)
	}
	if q.image != nil {
		q.image = q.image.withSeenLimits(q.seenLimits...)
	}
	q.seenLimits = nil
	q.published.set(q.image, q.removedLimits)
	b := &batch{updates: slices.Clone(q.updates)}
	q.inFlight, q.updates = q.updates, nil
	n := 0
	for ; n < len(q.waiters) && len(b.waiters) < maxWaiters; n++ {
		if w := q.waiters[n]; w.state.CompareAndSwap(waiting, sent) { // the others have left
			b.waiters = append(b.waiters, w)
		}
	}
	q.waiters = append(q.waiters[:0:0], q.waiters[n:]...)
	if len(b.waiters) == 0 && len(b.updates) == 0 {
		q.running = false
		return nil
	}
	return b
}

// lastImage returns the image after the last commit; nil if the item is not known.
func (q *itemQueue) lastImage() *image { return q.published.lastImage() }

// expectedImage returns that image after the updates that are on their way.
func (q *itemQueue) expectedImage() *image {
	q.published.mu.Lock()
	defer q.published.mu.Unlock()
	m := q.published.image
	if m == nil || len(q.updates)+len(q.inFlight) == 0 {
		return m
	}
	return evaluate(m, slices.Concat(q.inFlight, q.updates), nil).after
}

// adopt takes over an image that another way than the queue has written, and of which image.
func (q *itemQueue) adopt(m, before *image) {
	q.published.mu.Lock()
	defer q.published.mu.Unlock()
	q.published.set(m, rememberRemoved(maps.Clone(q.published.removedLimits), before, m))
	q.externalImage = m
}

// noteSeen notes that a limit was judged or settled without a write.
func (q *itemQueue) noteSeen(n seenLimit) {
	p := q.published
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.image == nil {
		return
	}
	p.image = p.image.withSeenLimits(n)
	switch {
	case q.running:
		q.seenLimits = append(q.seenLimits, n)
	case q.externalImage != nil:
		q.externalImage = p.image
	default:
		q.image = p.image
	}
}

// flush waits until what is in the queue has been written, whatever became of it.
func (q *itemQueue) flush(ctx context.Context, now int64) error {
	q.published.mu.Lock()
	running := q.running
	q.published.mu.Unlock()
	if !running {
		return nil
	}
	done := make(chan struct{})
	q.enqueue(&itemUpdate{now: now, done: func(error) { close(done) }})
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return client.AbandonedError(ctx)
	}
}

// reread brings the item to the configuration, which is read anew.
func (q *itemQueue) reread(ctx context.Context, now int64) error {
	done := make(chan error, 1)
	q.enqueue(&itemUpdate{now: now, reread: true, done: func(err error) { done <- err }})
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return client.AbandonedError(ctx)
	}
}

// The bounds of what is repeated though nobody waits for it: the pauses double.
const (
	firstRequeuePause = 100 * time.Millisecond
	maxRequeues       = 8
)

// requeue puts an update that nobody waits for in the queue again, after a pause. After the last
// attempt a refund stays charged, and is counted as ambiguous.
func (q *itemQueue) requeue(u *itemUpdate, err error) {
	tasks := q.ns.running
	if u.attempts++; u.attempts > maxRequeues || tasks.Closed.Load() && u.attempts > 1 {
		q.ns.countAmbiguous(u)
		q.ns.reportError(err)
		return
	}
	q.subject.retain()
	tasks.Run(func() {
		defer q.subject.release()
		if !tasks.Closed.Load() {
			pause := time.NewTimer(firstRequeuePause << (u.attempts - 1))
			defer pause.Stop()
			select {
			case <-pause.C:
			case <-tasks.Ending:
			}
		}
		q.enqueue(u)
	})
}
