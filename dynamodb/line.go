package dynamodb

import (
	"maps"
	"slices"
	"sync"

	"github.com/weir-limiter/weir/internal/schema"
)

// itemQueue is the process's way to one bucket item: one write at a time, in which all go along that
// have arrived meanwhile. A lone one goes at once; there is no timer.
type itemQueue struct {
	store *bucketStore
	state *subjectState
	shard int

	mu      sync.Mutex
	waiters []*waiter
	updates []*itemUpdate
	running bool
	// published and shownGhosts are what others may look at: the image after the last commit, and ghosts.
	published        *image
	externalImage    *image        // what another way has made of the item
	inFlight         []*itemUpdate // those of the commit that goes on
	seenLimits       []seenLimit   // limits that were judged without a write since
	publishedRemoved map[string]limitImage

	// What follows belongs to whoever runs the line.

	image *image // nil: not known
	// seenAt is the number of the latest reservation when the call was sent that the image is from.
	seenAt uint64
	// deleted is true where the item is known not to be there.
	deleted bool
	// uncertain is true after a write without an answer: the item is looked at before it is written
	// again, and image is as it was before that write, since it may know more than the item says.
	uncertain bool
	// removedLimits are limits that were removed from the configuration, as they were: they may come back.
	removedLimits map[string]limitImage
}

// maxWaiters is how many reservations one write takes along.
const maxWaiters = 100

// enqueue puts a reservation or a ride in the line; either may be nil. The line runs in a goroutine
// of its own, since a write must not end with the one who happened to begin it.
func (l *itemQueue) enqueue(m *waiter, r *itemUpdate) {
	if r != nil && len(r.deltas) > 0 {
		l.state.forgetDenials()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if m != nil {
		l.waiters = append(l.waiters, m)
	}
	if r != nil {
		l.updates = append(l.updates, r)
	}
	if !l.running {
		l.running = true
		l.store.running.Begin()
		l.state.retain()
		go l.run()
	}
}

// run writes until nobody is left.
func (l *itemQueue) run() {
	defer l.store.running.End()
	defer l.state.release()
	for {
		b := l.nextBatch()
		if b == nil {
			return
		}
		l.commit(b)
	}
}

// batch is who goes along in one commit.
type batch struct {
	members []*waiter
	rides   []*itemUpdate
}

// nextBatch takes the next batch out of the line; nil when there is none, and then the line stands.
func (l *itemQueue) nextBatch() *batch {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.externalImage != nil {
		l.image, l.deleted, l.externalImage, l.removedLimits = l.externalImage, false, nil, maps.Clone(l.publishedRemoved)
	}
	if l.image != nil {
		l.image = l.image.withSeenLimits(l.seenLimits...)
	}
	l.seenLimits = nil
	l.published, l.publishedRemoved = l.image, maps.Clone(l.removedLimits)
	b := &batch{rides: slices.Clone(l.updates)}
	l.inFlight, l.updates = l.updates, nil
	n := 0
	for ; n < len(l.waiters) && len(b.members) < maxWaiters; n++ {
		if m := l.waiters[n]; m.state.CompareAndSwap(waiting, sent) { // the others have left
			b.members = append(b.members, m)
		}
	}
	l.waiters = append(l.waiters[:0:0], l.waiters[n:]...)
	if len(b.members) == 0 && len(b.rides) == 0 {
		l.running = false
		return nil
	}
	return b
}

// lastImage is the image after the last commit; nil where the item is not known.
func (l *itemQueue) lastImage() *image {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.published
}

// expectedImage is that image after what is given back or charged in any case and is on its way.
func (l *itemQueue) expectedImage() *image {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.published == nil || len(l.updates)+len(l.inFlight) == 0 {
		return l.published
	}
	return evaluate(l.published, slices.Concat(l.inFlight, l.updates), nil).after
}

// setExternalImage takes over what another way than the line has made of the item, and of which image.
func (l *itemQueue) setExternalImage(m, before *image) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.publishedRemoved = rememberRemoved(maps.Clone(l.publishedRemoved), before, m)
	l.externalImage, l.published = m, m
}

// noteSeen notes that a limit was judged or settled without a write.
func (l *itemQueue) noteSeen(n seenLimit) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.published == nil {
		return
	}
	l.published = l.published.withSeenLimits(n)
	switch {
	case l.running:
		l.seenLimits = append(l.seenLimits, n)
	case l.externalImage != nil:
		l.externalImage = l.published
	default:
		l.image = l.published
	}
}

// id names the item.
func (l *itemQueue) id() schema.BucketID {
	of := l.state.subject
	return schema.BucketID{
		Namespace: l.store.config.Namespace, Entity: of.Entity, Resource: of.Resource, Shard: l.shard,
	}
}
