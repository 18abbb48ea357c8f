package bucketitem

import (
	"context"
	"maps"
	"math/bits"
	"sync"
	"sync/atomic"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/internal/schema"
)

// subjectState is the part of [Subject] that does not depend on the queues. Commits use it. mu
// guards the fields below it; a published item in items has a lock of its own.
type subjectState struct {
	ns      *namespaceState
	Subject weir.Subject
	holders atomic.Int64 // while it is above 0, the cache does not drop the subject

	mu     sync.Mutex
	shards int // the largest shard count that was seen
	items  map[int]*publishedItem
	// itemShards is the shard count that an item had last, and itemShardsSince the time at which
	// this count was first seen, in Unix ms. See canDouble.
	itemShards      int
	itemShardsSince int64
	// parent is the entity that the item seen last cascades to; empty if none. parentKnown is false
	// if no item was seen.
	parent      string
	parentKnown bool
	// verifiedAt identifies the newest configuration by which a reservation was planned: it is the
	// number of this process's last change of the configuration before that configuration was read.
	verifiedAt uint64
	// config is the configuration that the last plan was made from; nil if there was no plan.
	config *Config
	// cascadeParent is the parent that the last plan charged too; empty if there was none.
	cascadeParent string
	denials       map[string]Denial // by limit
	levelling     levelling
}

// publishedItem is the state of a bucket item that goroutines other than the writer of the item may
// read.
type publishedItem struct {
	// mu guards the fields, and those of the item's [Queue] that have to do with waiting.
	mu sync.Mutex
	// image is the item after the last commit; nil if the item is not known.
	image *Image
	// removedLimits are the limits that were removed from the item, as they were then. The map is
	// replaced, never changed.
	removedLimits map[string]LimitImage
}

// lastImage returns the image after the last commit; nil if the item is not known.
func (p *publishedItem) lastImage() *Image {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.image
}

// Removed returns the limits that were removed from the item, as they were then.
func (p *publishedItem) Removed() map[string]LimitImage {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.removedLimits
}

// set publishes the state after a commit. The caller holds the lock.
func (p *publishedItem) set(m *Image, removed map[string]LimitImage) {
	p.image, p.removedLimits = m, maps.Clone(removed)
}

// retain keeps the cache from dropping the subject until [Subject.Release].
func (p *subjectState) retain() { p.holders.Add(1) }

// Release undoes one retain.
func (p *subjectState) Release() { p.holders.Add(-1) }

// Item returns the published state of a shard's item, creating it if needed.
func (p *subjectState) Item(shard int) *publishedItem {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shards = max(p.shards, 1<<bits.Len(uint(shard))) // counts are powers of two
	i := p.items[shard]
	if i == nil {
		i = &publishedItem{}
		p.items[shard] = i
	}
	return i
}

// id returns the identity of a shard's bucket item.
func (p *subjectState) id(shard int) schema.BucketID {
	return schema.BucketID{
		Namespace: p.ns.Config.Namespace, Entity: p.Subject.Entity, Resource: p.Subject.Resource,
		Shard: shard,
	}
}

// writer returns a builder of writes of a shard's bucket item.
func (p *subjectState) writer(shard int) *itemWriter {
	return &itemWriter{
		table: p.ns.Client.TableName, id: p.id(shard), ttlMultiplier: p.ns.Config.TTLMultiplier(),
	}
}

// ShardCount returns the largest shard count that this process has seen.
func (p *subjectState) ShardCount() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.shards
}

// RaiseShards notes a shard count. The known count never decreases, because shards are never
// merged.
func (p *subjectState) RaiseShards(shards int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shards = max(p.shards, shards)
}

// setOwner notes the parent that an item cascades to.
func (p *subjectState) setOwner(cascade bool, parent string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.parentKnown, p.parent = true, ""
	if cascade {
		p.parent = parent
	}
}

// ItemParent returns the parent that the item seen last cascades to; empty if none.
func (p *subjectState) ItemParent() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.parent
}

// forgetParent forgets the parent that an item named.
func (p *subjectState) forgetParent() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.parent, p.parentKnown = "", false
}

// ItemStale reports whether the item is known to differ from the configuration, so that a
// reservation without a plan would use the wrong limits or the wrong parent.
func (p *subjectState) ItemStale() bool {
	p.mu.Lock()
	t, moved := p.config, p.parentKnown && p.parent != p.cascadeParent
	p.mu.Unlock()
	m := p.Item(0).lastImage()
	return t != nil && (moved || t.level == weir.LevelRequest || m != nil && !t.matches(m))
}

// MarkVerified notes the configuration by which a reservation on the subject is planned.
func (p *subjectState) MarkVerified(j *driver.Judged) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.verifiedAt = max(p.verifiedAt, j.Version)
	p.config, p.cascadeParent = NewConfig(j), j.Parent
}

// verified returns verifiedAt.
func (p *subjectState) verified() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.verifiedAt
}

// parseItem parses a bucket item, and notes its shard count and its parent for the subject.
func (p *subjectState) parseItem(item schema.Item) (*schema.Bucket, error) {
	b, err := schema.ParseBucket(item)
	if err != nil {
		return nil, client.Unreadable(err)
	}
	p.RaiseShards(b.Shards)
	p.setOwner(b.Cascade, b.Parent)
	return b, nil
}

// ReadShards reads all shards that the process knows of. The image of a shard that does not exist
// is nil.
func (p *subjectState) ReadShards(ctx context.Context, now int64) ([]*Image, error) {
	images, err := p.ns.readShards(ctx, now, []*subjectState{p})
	if err != nil {
		return nil, err
	}
	return images[0], nil
}

// ReadAll reads all shards. It reads again if an item names a higher shard count than the process
// knew.
func (p *subjectState) ReadAll(ctx context.Context, now int64) ([]*Image, error) {
	for {
		images, err := p.ReadShards(ctx, now)
		if err != nil || p.ShardCount() <= len(images) {
			return images, err
		}
	}
}

// readShards reads the shards of several subjects, as many of each as the process knows of. The
// image of a shard that does not exist is nil.
func (s *namespaceState) readShards(
	ctx context.Context, now int64, subjects []*subjectState,
) ([][]*Image, error) {
	var keys []schema.Key
	images := make([][]*Image, len(subjects))
	for i, p := range subjects {
		images[i] = make([]*Image, p.ShardCount())
		for shard := range images[i] {
			keys = append(keys, p.id(shard).Key())
		}
	}
	items, err := s.Client.BatchGet(ctx, keys, true)
	if err != nil {
		return nil, err
	}
	for i, p := range subjects {
		for shard := range images[i] {
			if item := items[shard]; item != nil {
				b, err := p.parseItem(item)
				if err != nil {
					return nil, err
				}
				images[i][shard] = newImage(b, p.Item(shard).lastImage(), p.ShardCount(), now)
			}
		}
		items = items[len(images[i]):]
	}
	return images, nil
}

// Denial is a remembered denial by one limit. It lets the process deny a request of the same size
// or a larger one without a write. It counts until the denial's retry-after has passed, and at most
// for [MaxDenialMS].
type Denial struct {
	Milli        int64 // the smallest denied cost, plus capacity less the request's own ceiling
	Since, Until int64 // Unix ms; the denial counts from Since up to but not including Until
	Total        int64 // the balance of all shards together at Since
}

// MaxDenialMS is the longest time for which a denial is remembered.
const MaxDenialMS = 1000

// RememberDenial remembers a denial by a limit, in place of an earlier one.
func (p *subjectState) RememberDenial(limit string, r Denial) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.denials == nil {
		p.denials = make(map[string]Denial)
	}
	p.denials[limit] = r
}

// ForgetDenials forgets all denials, because units were refunded or definitions changed.
func (p *subjectState) ForgetDenials() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.denials = nil
}

// HasDenials reports whether any denial is remembered.
func (p *subjectState) HasDenials() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.denials) > 0
}

// RecallDenial returns the remembered denial by a limit, and reports whether it counts at now.
func (p *subjectState) RecallDenial(limit string, now int64) (Denial, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r, ok := p.denials[limit]
	return r, ok && r.Since <= now && now < r.Until
}
