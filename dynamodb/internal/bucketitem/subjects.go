// Package bucketitem writes the bucket items of a namespace. A bucket item holds all limits of one
// subject on one shard.
//
// # Types
//
// A [Store] keeps a [Subject] for each subject that the process used lately, and a Subject keeps a
// [Queue] for each of its shards. A [LimitImage] is one limit with its arithmetic. An [Image] is an
// item as this process last saw it. An [Evaluation] is the effect of a batch on an image. An
// itemWriter builds the expressions of a write, and a commit chooses and sends the writes.
//
// # The path of a call
//
// A caller puts a [Waiter] or an [Update] in the queue of an item. A Waiter is a reservation: it is
// admitted or denied as a whole. An Update is charges and refunds that are never denied, of an
// update of a lease or of a compensation. The queue starts a goroutine if none is running. The
// goroutine takes everything that has arrived as one [Batch] and commits it; whatever arrives
// during the commit forms the next batch (group commit). So a process has at most one write of an
// item in flight, and a lone request is written at once.
//
// A commit evaluates its batch on the image and sends one write: a speculative write takes the
// units and leaves the time of the refill (rf), a normal write credits every limit and moves rf,
// and a create writes an item that does not exist. Each write carries conditions under which the
// evaluation is valid. If a condition fails, DynamoDB returns the item as it is; the commit makes a
// new image of it and evaluates the batch again, so it reads nothing. If no image is known, the
// commit sends a cold write, whose conditions the item itself decides. A waiter that does not fit
// is denied only by an image that is at least as recent as the reservation itself. After
// [MaxRounds] rounds the remaining reservations are denied as contended; updates go on.
//
// Before a commit answers its waiters it publishes the image, so a caller that has its answer sees
// its own charge. If a caller has left, its charge is enqueued as a [Compensation] and refunded
// with the next write.
//
// # Locks
//
// The goroutine that runs a queue owns the embedded itemState. The lock of the publishedItem guards
// the published image and the other fields of the queue. The lock of subjectState guards what
// concerns all shards: their number, the parent, the configuration, and remembered denials.
// SubjectCache locks each of its segments on its own; a subject that is retained is never dropped.
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

// Store writes the bucket items of one namespace.
type Store struct {
	*namespaceState
	Subjects *SubjectCache
}

// New returns the bucket store of the namespace that r reads.
func New(r *config.Reader, running *client.Tasks, o Options) *Store {
	s := &Store{
		namespaceState: &namespaceState{Client: r.Client, Config: r, Options: o, Running: running},
		Subjects:       NewSubjectCache(KnownSize),
	}
	s.Calls.Store(1) // 0 in seenAt means that no image is current
	return s
}

// Subject is the state that the process keeps of one subject, with a queue for each shard that it
// has used.
type Subject struct {
	*subjectState

	// mu guards queues. The queues and the state have locks of their own.
	mu     sync.Mutex
	queues map[int]*Queue
}

// Queue returns the queue of a shard, creating it if needed.
func (p *Subject) Queue(shard int) *Queue {
	p.mu.Lock()
	defer p.mu.Unlock()
	q := p.queues[shard]
	if q == nil {
		q = newItemQueue(p, shard)
		p.queues[shard] = q
	}
	return q
}

// all returns the queues of all shards that this process has used.
func (p *Subject) all() []*Queue {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make([]*Queue, 0, len(p.queues))
	for _, q := range p.queues {
		all = append(all, q)
	}
	return all
}

// Flush waits until everything that is in the subject's queues has been written.
func (p *Subject) Flush(ctx context.Context, now int64) error {
	for _, q := range p.all() {
		if err := q.flush(ctx, now); err != nil {
			return err
		}
	}
	return nil
}

// PlanWrite builds the write of one reservation for a transaction. It evaluates the image m, which
// the caller has just read, and does not go through the queue. The write is nil if the waiter has
// its answer instead.
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
		if planned != nil && c.config != nil && m != nil && !c.config.matches(m) { // as nextDenied does
			q.Enqueue(&Update{Now: w.Now, Reread: true})
		}
		if planned != nil { // it does not admit the waiter, so the transaction does not need it
			break
		}
	}
	w.deliver(Result{Kind: Denied})
	return nil, nil, nil
}

// PickShard returns a shard chosen at random, so that all shards are used equally.
func (p *Subject) PickShard() int {
	if n := p.ShardCount(); n > 1 {
		return rand.IntN(n)
	}
	return 0
}

// KnownSize is the least number of subjects that the process remembers.
const KnownSize = 100_000

// SubjectCache keeps the subjects that were used lately. Each segment has a young and an old map: a
// subject that is used moves to the young map, and a full young map becomes the old one. A subject
// that is retained is never dropped. Dropping it would give its items a second queue, and Flush
// would no longer wait for the writes of the first.
type SubjectCache struct {
	size     int // of one young map
	seed     maphash.Seed
	segments [32]cacheSegment
}

// cacheSegment is one part of the cache. mu guards its maps, not the subjects in them.
type cacheSegment struct {
	mu         sync.Mutex
	young, old map[weir.Subject]*Subject
}

// NewSubjectCache returns a cache that remembers at least size subjects.
func NewSubjectCache(size int) *SubjectCache {
	c := &SubjectCache{seed: maphash.MakeSeed()}
	c.size = max(1, size/len(c.segments))
	for i := range c.segments {
		c.segments[i].young = make(map[weir.Subject]*Subject)
	}
	return c
}

// Subject returns the state of a subject, creating it if needed. It is retained: the caller calls
// [Subject.Release].
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

// age makes the young map the old one. Of the subjects of the old map it keeps those that are
// retained.
func (g *cacheSegment) age() {
	was := g.old
	g.old, g.young = g.young, make(map[weir.Subject]*Subject)
	for of, p := range was {
		if p.holders.Load() > 0 {
			g.young[of] = p
		}
	}
}

// ForEach calls f with every subject in turn. The subject is retained during the call, and no lock
// is held.
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

// ReadSubjects reads the shards of several subjects. It reads as many shards of each as the process
// knows of; the image of a shard that does not exist is nil.
func (s *Store) ReadSubjects(
	ctx context.Context, now int64, subjects []*Subject,
) ([][]*Image, error) {
	states := make([]*subjectState, len(subjects))
	for i, p := range subjects {
		states[i] = p.subjectState
	}
	return s.readShards(ctx, now, states)
}

// SubjectsInUse returns the subjects of the given bucket items that have units in use: a limit of
// the item is not full.
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

// RemovedInUse returns the subjects that have units in use of a limit that was removed from the
// item, or deleted with it.
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

// ConfigStale reports whether this process has changed the configuration of a subject after it last
// read it.
func (s *Store) ConfigStale(of weir.Subject) bool {
	if s.ConfigChanges.Latest() == 0 {
		return false
	}
	p := s.Subject(of)
	defer p.Release()
	return s.ConfigChanges.since(of, p.verified())
}

// ConfigChangedSince reports whether this process has changed the configuration of a subject after
// the change with the given number.
func (s *Store) ConfigChangedSince(of weir.Subject, number uint64) bool {
	return s.ConfigChanges.since(of, number)
}

// ConfigChange is a change of the configuration made by this process.
type ConfigChange struct {
	Kind changeKind
	// At is the place whose configuration changed. For a change of an entity only the entity is
	// set.
	At  weir.Subject
	Now time.Time
}

// changeKind is the kind of a change of the configuration.
type changeKind int

const (
	// LimitsChanged is a change of the limits of a place. Any subject below the place may have
	// other limits now.
	LimitsChanged changeKind = iota
	// PolicyChanged is a change of the system's on_unavailable.
	PolicyChanged
	// EntityChanged means that an entity was declared or got another parent or cascade. Its bucket
	// items have been stamped already.
	EntityChanged
	// EntityDeleted means that an entity was deleted, with its limits and its bucket items.
	EntityDeleted
)

// ApplyConfigChange brings the state of the process up to date with a change, and the bucket items
// of the place too if they belong to limits of an entity's own on one resource. From now on the
// process reads the configuration of the subjects concerned before it judges by an item. The items
// of an entity's own limits are written at once, because other processes judge by the item alone
// while their cached configuration lasts. All other items are written when they are next used.
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
		return s.Reread(ctx, c.Now.UnixMilli(), at)
	}
	return nil
}

// invalidate forgets what the change may have made wrong.
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

// Reread reads the configuration of a subject again and writes it to those of the subject's bucket
// items that exist.
func (s *Store) Reread(ctx context.Context, now int64, of weir.Subject) error {
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
