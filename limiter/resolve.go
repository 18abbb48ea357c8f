package limiter

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-limiter/weir"
)

// resolver returns the limits that apply to a subject.
type resolver func(ctx context.Context, s weir.Subject, mode resolveMode) (*resolution, error)

// resolveMode says how a resolution may be obtained.
type resolveMode int

const (
	// usual answers from the cache, and reads the configuration if the cache has nothing fresh.
	usual resolveMode = iota
	// cached answers from the cache, or with nil if the cache has nothing fresh. It never does I/O.
	cached
	// reread reads the configuration with a consistent read and replaces what the cache has.
	reread
)

// resolution has the limits that apply to a subject. Resolutions are shared between subjects and
// calls: do not change one.
type resolution struct {
	// level is where the limits come from; empty if nothing is configured.
	level weir.Level
	// limits are in the order of their names.
	limits []weir.Limit
	// hidden are the weaker levels that have limits.
	hidden []weir.LevelLimits
	// parent is the entity to charge too; empty if there is none, or no cascade.
	parent string
	// undeclared reports that the configuration does not declare the entity. A charge on an
	// undeclared parent is an error, unless the store has [driver.Traits.UndeclaredParents].
	undeclared bool
	// version is the [weir.Config.Version] of the configuration that was read.
	version uint64

	until      int64 // when the cache stops using it, in milliseconds; 0 if it is not in the cache
	generation int64 // of the cache when the configuration was read
}

// resolveSubject returns the limits that apply to a subject. The first level that has any limits
// applies as a whole.
func (l *Limiter) resolveSubject(ctx context.Context, s weir.Subject, mode resolveMode) (*resolution, error) {
	r, _, err := l.resolveKept(ctx, s, mode)
	return r, err
}

// resolveKept is like resolveSubject, and also returns the subject under which the cache keeps the
// resolution.
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

// readSubject reads the configuration of a subject and stores the resolution in the cache, unless
// the cache has been dropped since generation. It also returns the subject under which the cache
// keeps the resolution.
func (l *Limiter) readSubject(
	ctx context.Context, s weir.Subject, generation int64, consistent bool,
) (r *resolution, key weir.Subject, err error) {
	key = l.cacheKey(s)
	config, err := l.readConfig(ctx, s, consistent)
	if err != nil {
		return nil, key, classify(err)
	}
	if config.Known {
		key = s // the entity may have been declared after cacheKey looked
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

// cacheKey returns the subject under which the cache keeps a subject's resolution. If the store is
// a [driver.Declarer], all undeclared entities share one, so that a million entities without limits
// of their own do not fill the cache.
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

// CacheStats are counts of the limiter's cache of resolutions.
type CacheStats struct {
	// Hits and Misses count lookups in the cache.
	Hits, Misses int64
	// Size is the number of resolutions in the cache, TTL is how long each is used.
	Size int
	TTL  time.Duration
}

// CacheStats returns the counts since the limiter was opened.
func (l *Limiter) CacheStats() CacheStats { return l.cache.stats() }

// DropCache empties the cache, so that the next call of each subject reads the configuration.
func (l *Limiter) DropCache() { l.cache.drop() }

// resolutionCache keeps resolutions, including those without limits. Each segment has a young and
// an old map. A lookup moves what it finds to the young map. When the young map is full, or as old
// as a resolution may become, it becomes the old map and the previous old map is dropped. This
// bounds the size and drops what is not used, without a list in the order of use.
type resolutionCache struct {
	ttl        int64       // milliseconds; below zero the cache is off
	size       int         // of a young map
	seed       fingerprint // random, so that callers cannot direct all entities to one segment
	generation atomic.Int64
	segments   [16]cacheSegment
}

// cacheSegment is one part of the cache. mu guards all of it except fast, and is locked for one
// lookup or insertion.
type cacheSegment struct {
	mu           sync.Mutex
	young, old   map[weir.Subject]*resolution
	interned     map[internKey]*resolution
	rotateAt     int64 // when young becomes old, in milliseconds
	hits, misses int64
	// fast counts hits in the memory of a [scratch], which do not lock the segment.
	fast atomic.Int64
}

// fresh reports whether a resolution may be used at now. One that ends later than now plus the TTL
// was stored while the clock was ahead, and could otherwise be used for far too long.
func (r *resolution) fresh(now, ttl int64) bool { return r.until > now && r.until <= now+ttl }

// counter returns the counter of hits for the n-th scratch. The scratches are spread over the
// segments, so that they rarely write to the same cache line.
func (c *resolutionCache) counter(n int64) *atomic.Int64 {
	return &c.segments[uint64(n)%uint64(len(c.segments))].fast
}

// internKey identifies what a resolution says: equal keys mean equal resolutions. Limits are
// compared by the address of their first element, because a store in the process returns the same
// slice for all subjects of a level. Most subjects have the limits of the system or of their
// resource, so that one resolution serves many of them.
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
	c.size = max(1, size/len(c.segments))
	c.drop()
	return c
}

func (c *resolutionCache) segment(s weir.Subject) *cacheSegment {
	return &c.segments[uint64(c.seed.addString(s.Entity))%uint64(len(c.segments))]
}

// find returns the resolution of a subject, fresh or not, or nil, and whether it is in the young map.
func (s *cacheSegment) find(of weir.Subject) (e *resolution, young bool) {
	if e, young = s.young[of]; !young {
		e = s.old[of]
	}
	return e, young
}

// get returns the resolution of a subject if it is fresh, otherwise nil. It counts a hit or a miss.
func (c *resolutionCache) get(s weir.Subject, now int64) *resolution {
	if c.ttl < 0 {
		return nil
	}
	segment := c.segment(s)
	segment.mu.Lock()
	defer segment.mu.Unlock()
	e, young := segment.find(s)
	if segment.rotateAt <= now {
		c.rotate(segment, now)
		young = false
	}
	if e == nil || !e.fresh(now, c.ttl) {
		segment.misses++
		return nil
	}
	if !young {
		c.insert(segment, s, e, now)
	}
	segment.hits++
	return e
}

// peek is like get, but does not count, and does not move the resolution to the young map.
func (c *resolutionCache) peek(s weir.Subject, now int64) *resolution {
	segment := c.segment(s)
	segment.mu.Lock()
	defer segment.mu.Unlock()
	if e, _ := segment.find(s); e != nil && e.fresh(now, c.ttl) {
		return e
	}
	return nil
}

// lastParent returns the parent that a subject last cascaded to, even if that resolution is no
// longer fresh. It is a guess.
func (c *resolutionCache) lastParent(s weir.Subject) string {
	segment := c.segment(s)
	segment.mu.Lock()
	defer segment.mu.Unlock()
	if e, _ := segment.find(s); e != nil {
		return e.parent
	}
	return ""
}

// put stores a resolution, unless the cache has been dropped since generation. It returns the
// resolution to use, which may be an equal one of another subject.
func (c *resolutionCache) put(s weir.Subject, r *resolution, now, generation int64) *resolution {
	if c.ttl < 0 {
		return r
	}
	segment := c.segment(s)
	segment.mu.Lock()
	defer segment.mu.Unlock()
	if c.generation.Load() != generation {
		return r
	}
	r.until, r.generation = now+c.ttl, generation
	r = segment.intern(r, c.ttl)
	c.insert(segment, s, r, now)
	return r
}

// intern returns an equal resolution that ends at most a sixteenth of a TTL earlier than r, or r
// itself, which it remembers for other subjects. The map is emptied when it is full, because most
// of its resolutions are then too old to be returned.
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

func (c *resolutionCache) insert(segment *cacheSegment, s weir.Subject, r *resolution, now int64) {
	if len(segment.young) >= c.size {
		c.rotate(segment, now)
	}
	segment.young[s] = r
}

// rotate makes the young map the old one and drops the old one.
func (c *resolutionCache) rotate(segment *cacheSegment, now int64) {
	segment.old, segment.young = segment.young, make(map[weir.Subject]*resolution)
	segment.rotateAt = now + c.ttl
}

// drop empties the cache. It raises the generation first: put checks the generation under the
// segment's lock, so whatever was read before the drop is either not stored or is deleted here.
func (c *resolutionCache) drop() {
	c.generation.Add(1)
	for i := range c.segments {
		s := &c.segments[i]
		s.mu.Lock()
		s.young, s.old = make(map[weir.Subject]*resolution), nil
		s.interned = make(map[internKey]*resolution)
		s.mu.Unlock()
	}
}

func (c *resolutionCache) stats() CacheStats {
	stats := CacheStats{TTL: max(0, time.Duration(c.ttl)*time.Millisecond)}
	for i := range c.segments {
		s := &c.segments[i]
		s.mu.Lock()
		stats.Size += len(s.young) + len(s.old)
		stats.Hits += s.hits + s.fast.Load()
		stats.Misses += s.misses
		s.mu.Unlock()
	}
	return stats
}

// cachedPolicy is the policy of the store's configuration, as last read or set by this process. A
// read that began before this process set the policy does not overwrite it.
type cachedPolicy struct {
	policy atomic.Pointer[weir.Policy]
	epoch  atomic.Int64 // number of calls of set
	// mu is locked to store a policy, so that no set comes between read's look at the epoch and its
	// store. Reading the policy needs no lock.
	mu sync.Mutex
}

// last returns the policy; empty if none is known.
func (s *cachedPolicy) last() weir.Policy {
	if p := s.policy.Load(); p != nil {
		return *p
	}
	return ""
}

// set records the policy that this process has written.
func (s *cachedPolicy) set(p weir.Policy) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.epoch.Add(1)
	s.policy.Store(&p)
}

// read records the policy that a read returned. epoch is the one at which the read began.
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
