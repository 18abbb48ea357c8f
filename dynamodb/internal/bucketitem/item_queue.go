package bucketitem

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/weir-limiter/weir/dynamodb/internal/client"
)

// Queue collects the requests on one bucket item and writes them. One write is in flight at a time;
// everything that arrives during a write goes with the next one. A single request is written at
// once: there is no timer.
type Queue struct {
	itemState // owned by the goroutine that runs the queue; by the lock if none runs
	of        *Subject
	// published is the state of the item that other goroutines may read. Its lock also guards the
	// fields below.
	published *publishedItem

	waiters []*Waiter
	updates []*Update
	running bool
	// inFlight are the updates of the commit in progress that are not yet in the published image.
	inFlight []*Update
	// externalImage is the image after a write of the item that did not go through the queue (a
	// transaction); nil if there was none since the last batch.
	externalImage *Image
	// SeenLimits are the limits that were judged or settled without a write after the last batch
	// was taken.
	SeenLimits []SeenLimit
}

func newItemQueue(p *Subject, shard int) *Queue {
	q := &Queue{of: p, published: p.Item(shard)}
	q.itemState = itemState{ns: p.ns, subject: p.subjectState, shard: shard, later: q}
	return q
}

// maxWaiters is the largest number of reservations in one batch.
const maxWaiters = 100

// EnqueueWaiter puts a reservation in the queue.
func (q *Queue) EnqueueWaiter(w *Waiter) {
	q.published.mu.Lock()
	defer q.published.mu.Unlock()
	q.waiters = append(q.waiters, w)
	q.start()
}

// Enqueue puts an update in the queue.
func (q *Queue) Enqueue(u *Update) {
	if len(u.Deltas) > 0 {
		q.subject.ForgetDenials()
	}
	if u.refunds() {
		q.subject.resumeLevelling()
	}
	q.published.mu.Lock()
	defer q.published.mu.Unlock()
	q.updates = append(q.updates, u)
	q.start()
}

// start runs the queue in a goroutine of its own: the write serves many callers, so it does not end
// with the context of the caller that happened to start it.
func (q *Queue) start() {
	if q.running {
		return
	}
	q.running = true
	q.ns.Running.Begin()
	q.subject.retain()
	go func() {
		defer q.ns.Running.End()
		defer q.subject.Release()
		for b := q.nextBatch(); b != nil; b = q.nextBatch() {
			q.Commit(b)
		}
	}()
}

// nextBatch takes the next batch out of the queue. It returns nil if the queue is empty; the queue
// then stops.
func (q *Queue) nextBatch() *Batch {
	q.published.mu.Lock()
	defer q.published.mu.Unlock()
	if q.externalImage != nil {
		q.image, q.deleted, q.externalImage = q.externalImage, false, nil
		q.removedLimits = maps.Clone(q.published.removedLimits)
	}
	if q.image != nil {
		q.image = q.image.withSeenLimits(q.SeenLimits...)
	}
	q.SeenLimits = nil
	q.published.set(q.image, q.removedLimits)
	b := &Batch{Updates: slices.Clone(q.updates)}
	q.inFlight, q.updates = q.updates, nil
	n := 0
	for ; n < len(q.waiters) && len(b.Waiters) < maxWaiters; n++ {
		if w := q.waiters[n]; w.State.CompareAndSwap(waiting, Sent) { // otherwise its caller has left
			b.Waiters = append(b.Waiters, w)
		}
	}
	q.waiters = append(q.waiters[:0:0], q.waiters[n:]...)
	if len(b.Waiters) == 0 && len(b.Updates) == 0 {
		q.running = false
		return nil
	}
	return b
}

// publish implements followUps. It ignores a commit that runs outside the queue, for a transaction:
// [Queue.Adopt] publishes that one.
func (q *Queue) publish(s *itemState, written bool) {
	if s != &q.itemState {
		return
	}
	q.published.mu.Lock()
	defer q.published.mu.Unlock()
	image := s.image
	if image != nil {
		image = image.withSeenLimits(q.SeenLimits...)
	}
	q.published.set(image, s.removedLimits)
	if written {
		q.inFlight = nil
	}
}

// level implements followUps.
func (q *Queue) level(w levelWork) { q.of.level(w) }

// LastImage returns the image after the last commit; nil if the item is not known.
func (q *Queue) LastImage() *Image { return q.published.lastImage() }

// ExpectedImage returns LastImage after the updates that are queued or in flight.
func (q *Queue) ExpectedImage() *Image {
	q.published.mu.Lock()
	defer q.published.mu.Unlock()
	m := q.published.image
	if m == nil || len(q.updates)+len(q.inFlight) == 0 {
		return m
	}
	return evaluate(m, slices.Concat(q.inFlight, q.updates), nil).After
}

// Adopt takes over the image m after a write that did not go through the queue. before is the image
// that the write was based on.
func (q *Queue) Adopt(m, before *Image) {
	q.published.mu.Lock()
	defer q.published.mu.Unlock()
	q.published.set(m, rememberRemoved(maps.Clone(q.published.removedLimits), before, m))
	q.externalImage = m
}

// NoteSeen notes that a limit was judged or settled without a write.
func (q *Queue) NoteSeen(n SeenLimit) {
	p := q.published
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.image == nil {
		return
	}
	p.image = p.image.withSeenLimits(n)
	switch {
	case q.running:
		q.SeenLimits = append(q.SeenLimits, n)
	case q.externalImage != nil:
		q.externalImage = p.image
	default:
		q.image = p.image
	}
}

// flush waits until everything that is now in the queue has been written or has failed.
func (q *Queue) flush(ctx context.Context, now int64) error {
	q.published.mu.Lock()
	running := q.running
	q.published.mu.Unlock()
	if !running {
		return nil
	}
	done := make(chan struct{})
	q.Enqueue(&Update{Now: now, Done: func(error) { close(done) }})
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return client.AbandonedError(ctx)
	}
}

// reread reads the configuration again and brings the item to it.
func (q *Queue) reread(ctx context.Context, now int64) error {
	done := make(chan error, 1)
	q.Enqueue(&Update{Now: now, Reread: true, Done: func(err error) { done <- err }})
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return client.AbandonedError(ctx)
	}
}

// The bounds of repeating an update that no caller waits for. Each pause is twice the one before.
const (
	firstRequeuePause = 100 * time.Millisecond
	maxRequeues       = 8
)

// requeue puts an update that no caller waits for back in the queue after a pause. After the last
// attempt the update is dropped: its refunds stay charged and are counted as ambiguous. A store
// that is closing repeats it once, without the pause.
func (q *Queue) requeue(u *Update, err error) {
	tasks := q.ns.Running
	if u.attempts++; u.attempts > maxRequeues || tasks.Closed.Load() && u.attempts > 1 {
		q.ns.countAmbiguous(u)
		q.ns.reportError(err)
		return
	}
	q.subject.retain()
	tasks.Run(func() {
		defer q.subject.Release()
		q.ns.pause(u.attempts)
		q.Enqueue(u)
	})
}
