// Package bucketitem writes the bucket items of a namespace: one item for each subject and shard,
// with all its limits.
//
// Each item has a [Queue]. One write of it is in flight at a time; everything that arrives
// meanwhile goes with the next one (group commit). A commit sends a write without having read the
// item; if its condition fails, DynamoDB returns the item, and the [Image] of it says which write
// comes next: create, normal, speculative, or a denial. What is never denied (an [Update]) goes
// with the same writes as reservations (a [Waiter]).
//
// From below: a [LimitImage] is one limit with its arithmetic, an [Image] an item, an evaluation
// what a batch comes to on it. A writer builds the expressions, a commit chooses and sends the
// writes, and a [Subject] has the queues of all shards.
package bucketitem

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

// Store is the process's way to the bucket items of one namespace: a queue for each of them.
type Store struct {
	*namespaceState
	Subjects *SubjectCache
}

// New makes the bucket store of a namespace.
func New(r *config.Reader, running *client.Tasks, o Options) *Store {
	s := &Store{
		namespaceState: &namespaceState{Client: r.Client, Config: r, Options: o, Running: running},
		Subjects:       NewSubjectCache(KnownSize),
	}
	s.Calls.Store(1) // so that what is seen before the first reservation has been seen
	return s
}

// Subject is what the process knows of one subject, with a queue for each shard that was used.
type Subject struct {
	*subjectState

	mu     sync.Mutex
	queues map[int]*Queue
}

// Queue returns the queue of a shard.
func (p *Subject) Queue(shard int) *Queue {
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
func (p *Subject) all() []*Queue {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make([]*Queue, 0, len(p.queues))
	for _, q := range p.queues {
		all = append(all, q)
	}
	return all
}

// Flush waits until what is in the queues of the subject has been written.
func (p *Subject) Flush(ctx context.Context, now int64) error {
	for _, q := range p.all() {
		if err := q.flush(ctx, now); err != nil {
			return err
		}
	}
	return nil
}

// PlanWrite decides on the write of one reservation by an image of its own, without the queue, for
// a transaction. The write is nil if the waiter has its answer.
func (p *Subject) PlanWrite(
	ctx context.Context, w *Waiter, shard int, m *Image,
) (*Write, *Evaluation, error) {
	q := p.Queue(shard)
	c := &commit{Batch: Batch{Waiters: []*Waiter{w}}, itemState: &itemState{
		ns: p.ns, subject: p.subjectState, shard: shard, later: q, image: m, deleted: m == nil,
		seenAt: w.Number, removedLimits: q.published.Removed(),
	}}
	w.State.Store(Sent)
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
			q.Enqueue(&Update{Now: w.Now, Reread: true})
		}
		if planned != nil { // also an item that is made, though it has too little
			break
		}
	}
	w.deliver(Result{Kind: Denied})
	return nil, nil, nil
}

// PickShard chooses a shard at random, so that all of them are used equally.
func (p *Subject) PickShard() int {
	if n := p.ShardCount(); n > 1 {
		return rand.IntN(n)
	}
	return 0
}

// KnownSize is how many subjects the process remembers at least.
const KnownSize = 100_000

// SubjectCache keeps what the process knows. Each segment has a young and an old map: what is used
// moves to the young one, which becomes the old one when it is full. What is retained is never
// dropped, because an item must not have two queues.
type SubjectCache struct {
	size     int // of a young map
	seed     maphash.Seed
	segments [32]cacheSegment
}

type cacheSegment struct {
	mu         sync.Mutex
	young, old map[weir.Subject]*Subject
}

// NewSubjectCache returns a cache of at least size subjects.
func NewSubjectCache(size int) *SubjectCache {
	c := &SubjectCache{seed: maphash.MakeSeed()}
	c.size = max(1, size/len(c.segments))
	for i := range c.segments {
		c.segments[i].young = make(map[weir.Subject]*Subject)
	}
	return c
}

// Subject returns the state of a subject, retained: release it.
func (s *Store) Subject(of weir.Subject) *Subject {
	c := s.Subjects
	g := &c.segments[maphash.Comparable(c.seed, of)%uint64(len(c.segments))]
	g.mu.Lock()
	defer g.mu.Unlock()
	p := g.young[of]
	if p == nil {
		if p = g.old[of]; p != nil {
			delete(g.old, of)
		} else {
			p = &Subject{queues: make(map[int]*Queue, 1)}
			p.subjectState = &subjectState{
				ns: s.namespaceState, Subject: of, shards: 1, items: make(map[int]*publishedItem, 1),
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
	g.old, g.young = g.young, make(map[weir.Subject]*Subject)
	for of, p := range was {
		if p.holders.Load() > 0 {
			g.young[of] = p
		}
	}
}

// ForEach calls f with every subject, retained.
func (c *SubjectCache) ForEach(f func(p *Subject)) {
	for i := range c.segments {
		g := &c.segments[i]
		g.mu.Lock()
		var all []*Subject
		for _, m := range []map[weir.Subject]*Subject{g.young, g.old} {
			for _, p := range m {
				p.retain()
				all = append(all, p)
			}
		}
		g.mu.Unlock()
		for _, p := range all {
			f(p)
			p.Release()
		}
	}
}

// ReadSubjects reads all shards of several subjects, as far as the process knows of them.
func (s *Store) ReadSubjects(
	ctx context.Context, now int64, subjects []*Subject,
) ([][]*Image, error) {
	states := make([]*subjectState, len(subjects))
	for i, p := range subjects {
		states[i] = p.subjectState
	}
	return s.readShards(ctx, now, states)
}

// SubjectsInUse returns the subjects of bucket items on which something is in use: some limit is
// not full.
func (s *Store) SubjectsInUse(
	ctx context.Context, now time.Time, ids []schema.BucketID,
) (map[weir.Subject]bool, error) {
	keys := make([]schema.Key, len(ids))
	for i, id := range ids {
		p := s.Subject(weir.Subject{Entity: id.Entity, Resource: id.Resource})
		err := p.Flush(ctx, now.UnixMilli())
		p.Release()
		if err != nil {
			return nil, err
		}
		keys[i] = id.Key()
	}
	items, err := s.Client.BatchGet(ctx, keys, true)
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
		p := s.Subject(of)
		m := newImage(b, p.Item(ids[i].Shard).lastImage(), p.ShardCount(), now.UnixMilli())
		p.Release()
		if m.inUse(now.UnixMilli()) {
			found[of] = true
		}
	}
	return found, nil
}

// RemovedInUse returns the subjects on which limits are in use that were taken off the item, or
// deleted with it.
func (s *Store) RemovedInUse(now time.Time) map[weir.Subject]bool {
	found := make(map[weir.Subject]bool)
	s.Subjects.ForEach(func(p *Subject) {
		for _, q := range p.all() {
			m := &Image{Shards: 1}
			for _, removed := range q.published.Removed() {
				m.Limits = append(m.Limits, removed)
			}
			if m.inUse(now.UnixMilli()) {
				found[p.Subject] = true
			}
		}
	})
	return found
}

// ConfigStale reports whether this process has changed the configuration of a subject since it read
// it.
func (s *Store) ConfigStale(of weir.Subject) bool {
	if s.ConfigChanges.Latest() == 0 {
		return false
	}
	p := s.Subject(of)
	defer p.Release()
	return s.ConfigChanges.since(of, p.verified())
}

// ConfigChangedSince reports whether this process has changed the configuration of a subject after
// the change with a number.
func (s *Store) ConfigChangedSince(of weir.Subject, number uint64) bool {
	return s.ConfigChanges.since(of, number)
}

// ConfigChange is a change of the configuration that this process has made.
type ConfigChange struct {
	Kind changeKind
	// At is the place, or the entity alone.
	At  weir.Subject
	Now time.Time
}

// changeKind says what has changed in the configuration.
type changeKind int

const (
	// LimitsChanged is a change of the limits of a place; everything below it may have others now.
	LimitsChanged changeKind = iota
	// PolicyChanged is a change of the system's on_unavailable.
	PolicyChanged
	// EntityChanged means that an entity was declared, or has another parent or cascade. Its bucket
	// items have been stamped.
	EntityChanged
	// EntityDeleted means that an entity is gone, with its limits and its bucket items.
	EntityDeleted
)

// ApplyConfigChange brings what the process knows, and the bucket items of the place, up to date:
// from now on the process reads the configuration of the subjects concerned before it judges by an
// item. The items of an entity's own limits are written at once, for other processes that go by
// the items alone; all others when they are next used, or when another process's cache has
// expired.
func (s *Store) ApplyConfigChange(ctx context.Context, c ConfigChange) error {
	at := c.At
	if c.Kind == EntityChanged || c.Kind == EntityDeleted {
		at.Resource = ""
	}
	if c.Kind != PolicyChanged {
		s.ConfigChanges.note(at)
		s.Subjects.ForEach(func(p *Subject) { p.invalidate(&c) })
	}
	if c.Kind == LimitsChanged && at.Entity != "" && at.Resource != weir.DefaultResource {
		return s.reread(ctx, c.Now.UnixMilli(), at)
	}
	return nil
}

// invalidate forgets what a change may have made wrong.
func (p *Subject) invalidate(c *ConfigChange) {
	p.ForgetDenials()
	if c.At.Entity != p.Subject.Entity || c.Kind == LimitsChanged {
		return
	}
	p.forgetParent()
	if c.Kind == EntityDeleted {
		for _, q := range p.all() {
			q.Enqueue(&Update{Now: c.Now.UnixMilli(), itemDeleted: true})
		}
	}
}

// reread brings the bucket items of a subject that exist to the configuration, which is read again.
func (s *Store) reread(ctx context.Context, now int64, of weir.Subject) error {
	p := s.Subject(of)
	defer p.Release()
	images, err := p.ReadAll(ctx, now)
	if err != nil {
		return err
	}
	for shard, m := range images {
		if m == nil {
			continue
		}
		if err := p.Queue(shard).reread(ctx, now); err != nil {
			return err
		}
	}
	return nil
}
