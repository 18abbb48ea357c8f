package bucketitem

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/weir-limiter/weir/dynamodb/internal/client"
)

// Queue is the process's way to one bucket item. One write is in flight at a time; everything that
// arrives meanwhile goes with the next one. A single request is written at once: there is no timer.
type Queue struct {
	itemState // belongs to the goroutine that runs the queue
	// published is what others may know of the item; its lock guards what follows, too.
	published *publishedItem

	waiters []*Waiter
	updates []*Update
	running bool
	// inFlight are the updates of the commit that is in progress.
	inFlight []*Update
	// externalImage is what was written to the item by another way than the queue; nil if nothing
	// was.
	externalImage *Image
	// SeenLimits were judged or settled without a write since the last batch was taken.
	SeenLimits []SeenLimit
}

func newItemQueue(p *subjectState, shard int) *Queue {
	q := &Queue{published: p.Item(shard)}
	q.itemState = itemState{ns: p.ns, subject: p, shard: shard, later: q}
	return q
}

// maxWaiters is how many reservations one write takes along.
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
	q.published.mu.Lock()
	defer q.published.mu.Unlock()
	q.updates = append(q.updates, u)
	q.start()
}

// start runs the queue in a goroutine of its own, because a write must not end with the caller that
// happened to begin it.
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

// nextBatch takes the next batch out of the queue; nil if there is none, and then the queue stops.
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
		if w := q.waiters[n]; w.State.CompareAndSwap(waiting, Sent) { // the others have left
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

// publish implements followUps. A commit that is not the queue's own, for a transaction, is
// published by Adopt.
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

// LastImage returns the image after the last commit; nil if the item is not known.
func (q *Queue) LastImage() *Image { return q.published.lastImage() }

// ExpectedImage returns that image after the updates that are on their way.
func (q *Queue) ExpectedImage() *Image {
	q.published.mu.Lock()
	defer q.published.mu.Unlock()
	m := q.published.image
	if m == nil || len(q.updates)+len(q.inFlight) == 0 {
		return m
	}
	return evaluate(m, slices.Concat(q.inFlight, q.updates), nil).After
}

// Adopt takes over an image that another way than the queue has written, and of which image.
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

// flush waits until what is in the queue has been written, whatever became of it.
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

// reread brings the item to the configuration, which is read again.
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

// The bounds of what is repeated though nobody waits for it: the pauses double.
const (
	firstRequeuePause = 100 * time.Millisecond
	maxRequeues       = 8
)

// requeue puts an update that nobody waits for in the queue again, after a pause. After the last
// attempt a refund stays charged, and is counted as ambiguous.
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
		if !tasks.Closed.Load() {
			pause := time.NewTimer(firstRequeuePause << (u.attempts - 1))
			defer pause.Stop()
			select {
			case <-pause.C:
			case <-tasks.Ending:
			}
		}
		q.Enqueue(u)
	})
}
