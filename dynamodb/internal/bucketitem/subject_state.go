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

// subjectState is what the process knows of one subject, whatever is written to its items.
type subjectState struct {
	ns      *namespaceState
	Subject weir.Subject
	holders atomic.Int64 // while there are any, the state is not dropped

	mu     sync.Mutex
	shards int // the largest count that was seen
	items  map[int]*publishedItem
	// itemShards is the count that an item had last, and itemShardsSince since when, in Unix ms.
	itemShards      int
	itemShardsSince int64
	// parent is the entity that is charged too, by the item that was seen last; parentKnown is
	// false if none was seen.
	parent      string
	parentKnown bool
	// verifiedAt is the number of this process's last change of configuration before the newest was
	// read that anything was reserved by.
	verifiedAt uint64
	// config is what applied when the configuration was last read; nil if it was not.
	config *Config
	// cascadeParent is the entity that was charged too, by that.
	cascadeParent string
	denials       map[string]Denial // by limit
}

// publishedItem is what others than the writer of a bucket item may know of it.
type publishedItem struct {
	mu sync.Mutex
	// image is the item after the last commit; nil if it is not known.
	image *Image
	// removedLimits are limits that were removed from the item, as they were.
	removedLimits map[string]LimitImage
}

// lastImage returns the image after the last commit; nil if the item is not known.
func (p *publishedItem) lastImage() *Image {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.image
}

// Removed returns the limits that were removed from the item, as they were.
func (p *publishedItem) Removed() map[string]LimitImage {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.removedLimits
}

// set publishes what a commit left. It must be called with the lock held.
func (p *publishedItem) set(m *Image, removed map[string]LimitImage) {
	p.image, p.removedLimits = m, maps.Clone(removed)
}

// retain keeps the state from being dropped until it is released.
func (p *subjectState) retain() { p.holders.Add(1) }

// Release ends what retain began.
func (p *subjectState) Release() { p.holders.Add(-1) }

// Item returns what is published of a shard.
func (p *subjectState) Item(shard int) *publishedItem {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shards = max(p.shards, 1<<bits.Len(uint(shard))) // there are at least so many
	i := p.items[shard]
	if i == nil {
		i = &publishedItem{}
		p.items[shard] = i
	}
	return i
}

// id names a shard's bucket item.
func (p *subjectState) id(shard int) schema.BucketID {
	return schema.BucketID{
		Namespace: p.ns.Config.Namespace, Entity: p.Subject.Entity, Resource: p.Subject.Resource,
		Shard: shard,
	}
}

// writer builds writes of a shard's bucket item.
func (p *subjectState) writer(shard int) *itemWriter {
	return &itemWriter{table: p.ns.Client.TableName, id: p.id(shard)}
}

// ShardCount returns how many shards there are, as far as is known.
func (p *subjectState) ShardCount() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.shards
}

// RaiseShards notes a count of shards. It never shrinks, because shards are never merged.
func (p *subjectState) RaiseShards(shards int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shards = max(p.shards, shards)
}

// setOwner notes which parent an item cascades to.
func (p *subjectState) setOwner(cascade bool, parent string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.parentKnown, p.parent = true, ""
	if cascade {
		p.parent = parent
	}
}

// ItemParent returns the parent that is charged too by the item that was seen last.
func (p *subjectState) ItemParent() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.parent
}

// forgetParent forgets what an item said of the parent.
func (p *subjectState) forgetParent() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.parent, p.parentKnown = "", false
}

// ItemStale reports whether the item is known not to have what applies, so that it must not be
// judged by alone.
func (p *subjectState) ItemStale() bool {
	p.mu.Lock()
	t, moved := p.config, p.parentKnown && p.parent != p.cascadeParent
	p.mu.Unlock()
	m := p.Item(0).lastImage()
	return t != nil && (moved || t.level == weir.LevelRequest || m != nil && !t.matches(m))
}

// MarkVerified notes by which configuration the subject is reserved.
func (p *subjectState) MarkVerified(j *driver.Judged) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.verifiedAt = max(p.verifiedAt, j.Version)
	p.config, p.cascadeParent = NewConfig(j), j.Parent
}

// verified returns the number of the last change that the configuration was read after.
func (p *subjectState) verified() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.verifiedAt
}

// parseItem reads a bucket item, and notes what it says of the subject as a whole.
func (p *subjectState) parseItem(item schema.Item) (*schema.Bucket, error) {
	b, err := schema.ParseBucket(item)
	if err != nil {
		return nil, client.Unreadable(err)
	}
	p.RaiseShards(b.Shards)
	p.setOwner(b.Cascade, b.Parent)
	return b, nil
}

// ReadShards reads all shards that the process knows of; nil for one that does not exist.
func (p *subjectState) ReadShards(ctx context.Context, now int64) ([]*Image, error) {
	images, err := p.ns.readShards(ctx, now, []*subjectState{p})
	if err != nil {
		return nil, err
	}
	return images[0], nil
}

// ReadAll reads all shards, also those that the process did not know of.
func (p *subjectState) ReadAll(ctx context.Context, now int64) ([]*Image, error) {
	for {
		images, err := p.ReadShards(ctx, now)
		if err != nil || p.ShardCount() <= len(images) {
			return images, err
		}
	}
}

// readShards reads all shards of several subjects, as far as the process knows of them; nil for one
// that does not exist.
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

// Denial is what was too much for a limit a moment ago, so that the same is not asked of the table
// again and again. It only ever denies, never longer than its retry-after, and at most a second.
type Denial struct {
	Milli        int64 // the least that was, with what the request's own ceiling is lower
	Since, Until int64 // Unix ms: from when to when
	Total        int64 // what all shards had together
}

// MaxDenialMS is how long a denial is remembered.
const MaxDenialMS = 1000

// RememberDenial keeps a denial of a limit.
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

// RecallDenial returns the remembered denial of a limit, and whether it still counts.
func (p *subjectState) RecallDenial(limit string, now int64) (Denial, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r, ok := p.denials[limit]
	return r, ok && r.Since <= now && now < r.Until
}
