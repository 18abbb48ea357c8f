package dynamodb

import (
	"context"
	"hash/maphash"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/dynamodb/internal/config"
	"github.com/weir-limiter/weir/internal/schema"
)

// bucketStore is the process's way to the bucket items of one namespace: a queue for each of them.
type bucketStore struct {
	*namespaceState
	subjects *subjectCache
}

// newBucketStore makes the bucket store of a namespace.
func newBucketStore(r *config.Reader, running *client.Tasks, o bucketOptions) *bucketStore {
	s := &bucketStore{
		namespaceState: &namespaceState{client: r.Client, config: r, options: o, running: running},
		subjects:       newSubjectCache(knownSize),
	}
	s.calls.Store(1) // so that what is seen before the first reservation has been seen
	return s
}

// subject is what the process knows of one subject, with a queue for each shard that was used.
type subject struct {
	*subjectState

	mu     sync.Mutex
	queues map[int]*itemQueue
}

// queue returns the queue of a shard.
func (p *subject) queue(shard int) *itemQueue {
	p.mu.Lock()
	defer p.mu.Unlock()
	q := p.queues[shard]
	if q == nil {
		q = newItemQueue(p.subjectState, shard)
		p.queues[shard] = q
	}
	return q
}

// all returns the queues of all shards that were used.
func (p *subject) all() []*itemQueue {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make([]*itemQueue, 0, len(p.queues))
	for _, q := range p.queues {
		all = append(all, q)
	}
	return all
}

// flush waits until what is in the queues of the subject has been written.
func (p *subject) flush(ctx context.Context, now int64) error {
	for _, q := range p.all() {
		if err := q.flush(ctx, now); err != nil {
			return err
		}
	}
	return nil
}

// planWrite decides on the write of one reservation by an image of its own, without the queue, for a
// transaction. The write is nil if the waiter has its answer.
func (p *subject) planWrite(
	ctx context.Context, w *waiter, shard int, m *image,
) (*write, *evaluation, error) {
	q := p.queue(shard)
	c := &commit{batch: batch{waiters: []*waiter{w}}, itemState: &itemState{
		ns: p.ns, subject: p.subjectState, shard: shard, later: q, image: m, deleted: m == nil,
		seenAt: w.number, removedLimits: q.published.removed(),
	}}
	w.state.Store(sent)
	c.doubleIfBusy(ctx)
	for c.pending() {
		planned, r, err := c.nextWrite(ctx)
		if err != nil {
			return nil, nil, err
		}
		if planned != nil && len(r.admitted) == 1 {
			return planned, r, nil
		}
		if planned != nil && c.config != nil && m != nil && !c.config.matches(m) { // see nextKnown
			q.enqueue(&itemUpdate{now: w.now, reread: true})
		}
		if planned != nil { // also an item that is made, though it has too little
			break
		}
	}
	w.deliver(waiterResult{kind: denied})
	return nil, nil, nil
}

// pickShard chooses a shard at random, so that all of them are used equally.
func (p *subject) pickShard() int {
	if n := p.shardCount(); n > 1 {
		return rand.IntN(n)
	}
	return 0
}

// knownSize is how many subjects the process remembers at least.
const knownSize = 100_000

// subjectCache keeps what the process knows. Each segment has a young and an old map: what is used
// moves to the young one, which becomes the old one when it is full. What is retained is never
// dropped, because an item must not have two queues.
type subjectCache struct {
	size     int // of a young map
	seed     maphash.Seed
	segments [32]cacheSegment
}

type cacheSegment struct {
	mu         sync.Mutex
	young, old map[weir.Subject]*subject
}

func newSubjectCache(size int) *subjectCache {
	c := &subjectCache{seed: maphash.MakeSeed()}
	c.size = max(1, size/len(c.segments))
	for i := range c.segments {
		c.segments[i].young = make(map[weir.Subject]*subject)
	}
	return c
}

// subject returns the state of a subject, retained: release it.
func (s *bucketStore) subject(of weir.Subject) *subject {
	c := s.subjects
	g := &c.segments[maphash.Comparable(c.seed, of)%uint64(len(c.segments))]
	g.mu.Lock()
	defer g.mu.Unlock()
	p := g.young[of]
	if p == nil {
		if p = g.old[of]; p != nil {
			delete(g.old, of)
		} else {
			p = &subject{queues: make(map[int]*itemQueue, 1)}
			p.subjectState = &subjectState{
				ns: s.namespaceState, subject: of, shards: 1, items: make(map[int]*publishedItem, 1),
			}
		}
		if len(g.young) >= c.size {
			g.age()
		}
		g.young[of] = p
	}
	p.retain()
	return p
}

// age makes the young map the old one, and keeps of the old one what is retained.
func (g *cacheSegment) age() {
	was := g.old
	g.old, g.young = g.young, make(map[weir.Subject]*subject)
	for of, p := range was {
		if p.holders.Load() > 0 {
			g.young[of] = p
		}
	}
}

// forEach calls f with every subject, retained.
func (c *subjectCache) forEach(f func(p *subject)) {
	for i := range c.segments {
		g := &c.segments[i]
		g.mu.Lock()
		var all []*subject
		for _, m := range []map[weir.Subject]*subject{g.young, g.old} {
			for _, p := range m {
				p.retain()
				all = append(all, p)
			}
		}
		g.mu.Unlock()
		for _, p := range all {
			f(p)
			p.release()
		}
	}
}

// readSubjects reads all shards of several subjects, as far as the process knows of them.
func (s *bucketStore) readSubjects(
	ctx context.Context, now int64, subjects []*subject,
) ([][]*image, error) {
	states := make([]*subjectState, len(subjects))
	for i, p := range subjects {
		states[i] = p.subjectState
	}
	return s.readShards(ctx, now, states)
}

// subjectsInUse returns the subjects of bucket items on which something is in use: some limit is not
// full.
func (s *bucketStore) subjectsInUse(
	ctx context.Context, now time.Time, ids []schema.BucketID,
) (map[weir.Subject]bool, error) {
	keys := make([]schema.Key, len(ids))
	for i, id := range ids {
		p := s.subject(weir.Subject{Entity: id.Entity, Resource: id.Resource})
		err := p.flush(ctx, now.UnixMilli())
		p.release()
		if err != nil {
			return nil, err
		}
		keys[i] = id.Key()
	}
	items, err := s.client.BatchGet(ctx, keys, true)
	if err != nil {
		return nil, err
	}
	found := make(map[weir.Subject]bool)
	for i, item := range items {
		if item == nil {
			continue
		}
		b, err := schema.ParseBucket(item)
		if err != nil {
			return nil, client.Unreadable(err)
		}
		of := weir.Subject{Entity: b.Entity, Resource: b.Resource}
		p := s.subject(of)
		m := newImage(b, p.item(ids[i].Shard).lastImage(), p.shardCount(), now.UnixMilli())
		p.release()
		if m.inUse(now.UnixMilli()) {
			found[of] = true
		}
	}
	return found, nil
}

// removedInUse returns the subjects on which limits are in use that were taken off the item, or
// deleted with it.
func (s *bucketStore) removedInUse(now time.Time) map[weir.Subject]bool {
	found := make(map[weir.Subject]bool)
	s.subjects.forEach(func(p *subject) {
		for _, q := range p.all() {
			m := &image{shards: 1}
			for _, removed := range q.published.removed() {
				m.limits = append(m.limits, removed)
			}
			if m.inUse(now.UnixMilli()) {
				found[p.subject] = true
			}
		}
	})
	return found
}

// configStale reports whether this process has changed the configuration of a subject since it read
// it.
func (s *bucketStore) configStale(of weir.Subject) bool {
	if s.configChanges.latest() == 0 {
		return false
	}
	p := s.subject(of)
	defer p.release()
	return s.configChanges.since(of, p.verified())
}

// configChange is a change of the configuration that this process has made.
type configChange struct {
	kind changeKind
	// at is the place, or the entity alone.
	at  weir.Subject
	now time.Time
}

// changeKind says what has changed in the configuration.
type changeKind int

const (
	// limitsChanged: the limits of a place; everything below it may have others now.
	limitsChanged changeKind = iota
	// policyChanged: the system's on_unavailable.
	policyChanged
	// entityChanged: an entity was declared, or has another parent or cascade. Its bucket items have
	// been stamped.
	entityChanged
	// entityDeleted: an entity is gone, with its limits and its bucket items.
	entityDeleted
)

// applyConfigChange brings what the process knows, and the bucket items of the place, up to date: from
// now on the process reads the configuration of the subjects concerned before it judges by an item.
// The items of an entity's own limits are written at once, for other processes that go by the items
// alone; all others when they are next used, or when another process's cache has expired.
func (s *bucketStore) applyConfigChange(ctx context.Context, c configChange) error {
	at := c.at
	if c.kind == entityChanged || c.kind == entityDeleted {
		at.Resource = ""
	}
	if c.kind != policyChanged {
		s.configChanges.note(at)
		s.subjects.forEach(func(p *subject) { p.invalidate(&c) })
	}
	if c.kind == limitsChanged && at.Entity != "" && at.Resource != weir.DefaultResource {
		return s.reread(ctx, c.now.UnixMilli(), at)
	}
	return nil
}

// invalidate forgets what a change may have made wrong.
func (p *subject) invalidate(c *configChange) {
	p.forgetDenials()
	if c.at.Entity != p.subject.Entity || c.kind == limitsChanged {
		return
	}
	p.forgetParent()
	if c.kind == entityDeleted {
		for _, q := range p.all() {
			q.enqueue(&itemUpdate{now: c.now.UnixMilli(), itemDeleted: true})
		}
	}
}

// reread brings the bucket items of a subject that exist to the configuration, which is read anew.
func (s *bucketStore) reread(ctx context.Context, now int64, of weir.Subject) error {
	p := s.subject(of)
	defer p.release()
	images, err := p.readAll(ctx, now)
	if err != nil {
		return err
	}
	for shard, m := range images {
		if m == nil {
			continue
		}
		if err := p.queue(shard).reread(ctx, now); err != nil {
			return err
		}
	}
	return nil
}
