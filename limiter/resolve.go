package limiter

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-limiter/weir"
)

// resolver says which limits apply to a subject.
type resolver func(ctx context.Context, s weir.Subject, mode resolveMode) (*resolution, error)

// resolveMode says how much a resolution may cost.
type resolveMode int

const (
	// usual answers from the cache and reads the configuration where the cache has nothing fresh.
	usual resolveMode = iota
	// cached answers from the cache alone, and nil where it has nothing fresh.
	cached
	// reread reads the configuration consistently and renews the cache.
	reread
)

// resolution is what applies to a subject. It is shared: do not change it.
type resolution struct {
	// level is where the limits come from; empty if nothing is configured.
	level weir.Level
	// limits are in the order of their names.
	limits []weir.Limit
	// hidden are the weaker levels that have limits.
	hidden []weir.LevelLimits
	// parent is the entity to charge too; empty if there is none, or no cascade.
	parent string
	// undeclared is true for an entity that the configuration does not know. For a parent that is
	// an error, unless the store has [driver.Traits.UndeclaredParents].
	undeclared bool
	// version is the store's, of the configuration that was read.
	version uint64

	until      int64 // when the cache may no longer use it, in milliseconds; 0 outside of it
	generation int64 // of the cache
}

// resolveSubject says which limits apply to a subject: the first level that has any wins whole.
func (l *Limiter) resolveSubject(ctx context.Context, s weir.Subject, mode resolveMode) (*resolution, error) {
	r, _, err := l.resolveKept(ctx, s, mode)
	return r, err
}

// resolveKept is resolveSubject, and also returns the subject that the cache keeps the resolution
// under.
func (l *Limiter) resolveKept(
	ctx context.Context, s weir.Subject, mode resolveMode,
) (r *resolution, key weir.Subject, err error) {
	key = l.cacheKey(s)
	if mode != reread {
		if r := l.cache.get(key, l.leases.latestNow.Load()); r != nil || mode == cached {
			return r, key, nil
		}
	}
	return l.readSubject(ctx, s, l.cache.generation.Load(), mode == reread)
}

// readSubject reads what is configured for a subject, and keeps what follows from it unless the
// cache was dropped since the generation. It also returns the subject that the cache keeps it
// under.
func (l *Limiter) readSubject(
	ctx context.Context, s weir.Subject, generation int64, consistent bool,
) (r *resolution, key weir.Subject, err error) {
	key = l.cacheKey(s)
	config, err := l.readConfig(ctx, s, consistent)
	if err != nil {
		return nil, key, classify(err)
	}
	if config.Known {
		key = s // it may have been declared since
	}
	levels := config.Levels
	if len(l.options.Limits) > 0 {
		levels = append(levels[:len(levels):len(levels)], weir.LevelLimits{Level: weir.LevelLimiter, Limits: l.options.Limits})
	}
	r = &resolution{undeclared: !config.Known, version: config.Version}
	if len(levels) > 0 {
		r.level, r.limits, r.hidden = levels[0].Level, levels[0].Limits, levels[1:]
	}
	if config.Cascade {
		r.parent = config.Parent
	}
	return l.cache.put(key, r, l.leases.latestNow.Load(), generation), key, nil
}

// cacheKey is the subject under which a resolution is kept. Where the store says which entities it
// declares, all others are one: a million of them need not be looked for in a large cache.
func (l *Limiter) cacheKey(s weir.Subject) weir.Subject {
	if l.declarer != nil && !l.declarer.Declared(s.Entity) {
		s.Entity = ""
	}
	return s
}

func (l *Limiter) readConfig(ctx context.Context, s weir.Subject, consistent bool) (*weir.Config, error) {
	if l.reader == nil {
		return &weir.Config{}, nil
	}
	epoch := l.policy.epoch.Load()
	config, err := l.reader.ReadConfig(ctx, s, consistent)
	if err != nil {
		return nil, err
	}
	if config == nil {
		return nil, wrongAnswer("it is neither a configuration nor an error")
	}
	l.policy.read(config.OnUnavailable, epoch)
	return config, nil
}

// CacheStats counts what the limiter's cache of resolutions did.
type CacheStats struct {
	// Hits and Misses count look-ups since the limiter was opened.
	Hits, Misses int64
	// Size is how many resolutions are kept; TTL is for how long each may be used.
	Size int
	TTL  time.Duration
}

// CacheStats returns the counts so far.
func (l *Limiter) CacheStats() CacheStats { return l.cache.stats() }

// DropCache forgets every resolution, so that the next call of each subject reads its
// configuration.
func (l *Limiter) DropCache() { l.cache.drop() }

// resolutionCache keeps resolutions, negative ones too. Each shard has a young and an old map: what
// is used moves to the young one, and when that is full, or as old as a resolution may be, it
// becomes the old one. So the size is bounded, and what nobody asks for goes, without a list to
// maintain.
type resolutionCache struct {
	ttl        int64       // milliseconds; below zero: nothing is kept
	size       int         // entries in a young map
	seed       fingerprint // so that no caller can choose the shards
	generation atomic.Int64
	shards     [16]cacheSegment
}

type cacheSegment struct {
	mu           sync.Mutex
	young, old   map[weir.Subject]*resolution
	interned     map[internKey]*resolution
	rotateAt     int64 // when young becomes old, in milliseconds
	hits, misses int64
	// fast counts hits that did not come this far.
	fast atomic.Int64
}

// fresh reports whether a resolution may be used. One from a time that has not come yet was made
// while the clock was wrong.
func (r *resolution) fresh(now, ttl int64) bool { return r.until > now && r.until <= now+ttl }

// counter is where the n-th memory counts what it has found.
func (c *resolutionCache) counter(n int64) *atomic.Int64 {
	return &c.shards[uint64(n)%uint64(len(c.shards))].fast
}

// internKey tells resolutions apart. Most subjects have the same as others, since their limits are
// those of the system or the resource: those share one, while it is new.
type internKey struct {
	levels     [6]levelKey
	parent     string
	undeclared bool
	version    uint64
}

type levelKey struct {
	level weir.Level
	first *weir.Limit
	n     int
}

func internKeyOf(r *resolution) (key internKey, ok bool) {
	if len(r.limits) == 0 || len(r.hidden) >= len(key.levels) {
		return key, false
	}
	key.parent, key.undeclared, key.version = r.parent, r.undeclared, r.version
	key.levels[0] = levelKey{r.level, &r.limits[0], len(r.limits)}
	for i, h := range r.hidden {
		if len(h.Limits) == 0 {
			return key, false
		}
		key.levels[i+1] = levelKey{h.Level, &h.Limits[0], len(h.Limits)}
	}
	return key, true
}

func newResolutionCache(ttl time.Duration, size int) *resolutionCache {
	c := &resolutionCache{ttl: ttl.Milliseconds(), seed: fingerprint(rand.Uint64())}
	if ttl < 0 {
		c.ttl = -1
	}
	c.size = max(1, size/len(c.shards))
	c.drop()
	return c
}

func (c *resolutionCache) shard(s weir.Subject) *cacheSegment {
	return &c.shards[uint64(c.seed.addString(s.Entity))%uint64(len(c.shards))]
}

// get returns what is fresh, or nil.
func (c *resolutionCache) get(s weir.Subject, now int64) *resolution {
	if c.ttl < 0 {
		return nil
	}
	shard := c.shard(s)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	e, young := shard.young[s]
	if !young {
		e = shard.old[s]
	}
	if shard.rotateAt <= now {
		c.rotate(shard, now)
		young = false
	}
	if e == nil || !e.fresh(now, c.ttl) {
		shard.misses++
		return nil
	}
	if !young {
		c.insert(shard, s, e, now)
	}
	shard.hits++
	return e
}

// peek returns what is fresh, or nil, without counting or keeping it for longer.
func (c *resolutionCache) peek(s weir.Subject, now int64) *resolution {
	shard := c.shard(s)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	e, young := shard.young[s]
	if !young {
		e = shard.old[s]
	}
	if e == nil || !e.fresh(now, c.ttl) {
		return nil
	}
	return e
}

// lastParent returns the parent that a subject was last known to cascade to, though that may not be
// used any more.
func (c *resolutionCache) lastParent(s weir.Subject) string {
	shard := c.shard(s)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	e := shard.young[s]
	if e == nil {
		e = shard.old[s]
	}
	if e == nil {
		return ""
	}
	return e.parent
}

// put keeps a resolution, unless the cache was dropped since its configuration was read. It returns
// the one to use, which may be that of another subject.
func (c *resolutionCache) put(s weir.Subject, r *resolution, now, generation int64) *resolution {
	if c.ttl < 0 {
		return r
	}
	shard := c.shard(s)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	if c.generation.Load() != generation {
		return r
	}
	r.until, r.generation = now+c.ttl, generation
	r = shard.intern(r, c.ttl)
	c.insert(shard, s, r, now)
	return r
}

// intern returns a resolution that says the same and can be used nearly as long, or keeps this one
// for others.
func (s *cacheSegment) intern(r *resolution, ttl int64) *resolution {
	const few, share = 64, 16
	key, ok := internKeyOf(r)
	if !ok {
		return r
	}
	if same := s.interned[key]; same != nil && same.until <= r.until && same.until > r.until-ttl/share {
		return same
	}
	if len(s.interned) >= few {
		clear(s.interned)
	}
	s.interned[key] = r
	return r
}

func (c *resolutionCache) insert(shard *cacheSegment, s weir.Subject, r *resolution, now int64) {
	if len(shard.young) >= c.size {
		c.rotate(shard, now)
	}
	shard.young[s] = r
}

// rotate makes the young map the old one.
func (c *resolutionCache) rotate(shard *cacheSegment, now int64) {
	shard.old, shard.young = shard.young, make(map[weir.Subject]*resolution)
	shard.rotateAt = now + c.ttl
}

// drop forgets everything. The generation moves first: a resolution read before is not kept.
func (c *resolutionCache) drop() {
	c.generation.Add(1)
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		s.young, s.old = make(map[weir.Subject]*resolution), nil
		s.interned = make(map[internKey]*resolution)
		s.mu.Unlock()
	}
}

func (c *resolutionCache) stats() CacheStats {
	stats := CacheStats{TTL: max(0, time.Duration(c.ttl)*time.Millisecond)}
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		stats.Size += len(s.young) + len(s.old)
		stats.Hits += s.hits + s.fast.Load()
		stats.Misses += s.misses
		s.mu.Unlock()
	}
	return stats
}

// cachedPolicy is the policy of the store's configuration, as last read or set. What was read
// before a change of this process does not come back after it.
type cachedPolicy struct {
	policy atomic.Pointer[weir.Policy]
	epoch  atomic.Int64 // counts the changes
	mu     sync.Mutex
}

// last returns the policy; empty where none is known.
func (s *cachedPolicy) last() weir.Policy {
	if p := s.policy.Load(); p != nil {
		return *p
	}
	return ""
}

// set says what the policy has been changed to.
func (s *cachedPolicy) set(p weir.Policy) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.epoch.Add(1)
	s.policy.Store(&p)
}

// read says what was read, and at which epoch the reading began.
func (s *cachedPolicy) read(p weir.Policy, epoch int64) {
	if known := s.policy.Load(); known != nil && *known == p {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.epoch.Load() == epoch {
		s.policy.Store(&p)
	}
}
