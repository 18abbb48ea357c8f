package dynamodb

import (
	"hash/maphash"
	"math/bits"
	"sync"
	"sync/atomic"

	"github.com/weir-limiter/weir"
)

// subjectState is what the process knows of one (entity, resource): its shards, and a line for each of them
// that was used.
type subjectState struct {
	store   *bucketStore
	subject weir.Subject
	holders atomic.Int64 // who must not find the spot gone

	mu     sync.Mutex
	shards int // the largest count that was seen
	// itemShards is the count that an item had last, and spreadSince since when, in Unix ms.
	itemShards      int
	itemShardsSince int64
	queues          map[int]*itemQueue
	// parent is who is charged too, by the item that was seen last; known is whether one was.
	parent      string
	parentKnown bool
	// reading is the read of the configuration that is under way; nil if there is none.
	reading *configRead
	// verifiedAt is the count of changes of configuration by this process when it was last read.
	verifiedAt uint64
	// config are what applied when the configuration was last read; nil where it was not.
	config *itemConfig
	// cascadeParent is who was charged too, by that.
	cascadeParent string
	denials       map[string]rememberedDenial // by limit
}

func (p *subjectState) retain() { p.holders.Add(1) }

func (p *subjectState) release() { p.holders.Add(-1) }

// queue returns the line of a shard.
func (p *subjectState) queue(shard int) *itemQueue {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shards = max(p.shards, 1<<bits.Len(uint(shard))) // there are at least so many
	l := p.queues[shard]
	if l == nil {
		l = &itemQueue{store: p.store, state: p, shard: shard}
		p.queues[shard] = l
	}
	return l
}

// shardCount is how many shards the bucket has, as far as is known.
func (p *subjectState) shardCount() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.shards
}

// raiseShards notes a count of shards. It never shrinks: shards are never merged.
func (p *subjectState) raiseShards(shards int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shards = max(p.shards, shards)
}

// setOwner notes to whom the bucket cascades by its item.
func (p *subjectState) setOwner(cascade bool, parent string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.parentKnown, p.parent = true, ""
	if cascade {
		p.parent = parent
	}
}

// cascadeParentOf is the parent that is charged too, as far as is known.
func (p *subjectState) cascadeParentOf() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.parent
}

// itemStale reports whether the item is known not to have what applies: then it must not be gone by
// alone.
func (p *subjectState) itemStale() bool {
	p.mu.Lock()
	t, moved := p.config, p.parentKnown && p.parent != p.cascadeParent
	p.mu.Unlock()
	m := p.queue(0).lastImage()
	return t != nil && (moved || t.level == weir.LevelRequest || m != nil && !t.matches(m))
}

// subjectStates keeps what the process knows. Each shard of it has a young and an old map: what is used
// moves to the young one, which becomes the old one when it is full. What somebody holds is never
// dropped: an item has one line.
type subjectStates struct {
	size     int
	seed     maphash.Seed
	segments [32]stateSegment
}

type stateSegment struct {
	mu         sync.Mutex
	young, old map[weir.Subject]*subjectState
}

func newSubjectStates(size int) *subjectStates {
	s := &subjectStates{seed: maphash.MakeSeed()}
	s.size = max(1, size/len(s.segments))
	for i := range s.segments {
		s.segments[i].young = make(map[weir.Subject]*subjectState)
	}
	return s
}

// get returns the spot of a subject, held: release it.
func (s *subjectStates) get(store *bucketStore, of weir.Subject) *subjectState {
	sh := &s.segments[maphash.Comparable(s.seed, of)%uint64(len(s.segments))]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	p := sh.young[of]
	if p == nil {
		if p = sh.old[of]; p != nil {
			delete(sh.old, of)
		} else {
			p = &subjectState{store: store, subject: of, shards: 1, queues: make(map[int]*itemQueue, 1)}
		}
		if len(sh.young) >= s.size {
			sh.age()
		}
		sh.young[of] = p
	}
	p.retain()
	return p
}

// age makes the young map the old one, and keeps of the old one what is held.
func (s *stateSegment) age() {
	was := s.old
	s.old, s.young = s.young, make(map[weir.Subject]*subjectState)
	for of, p := range was {
		if p.holders.Load() > 0 {
			s.young[of] = p
		}
	}
}

// forEach calls f with every spot, held.
func (s *subjectStates) forEach(f func(p *subjectState)) {
	for i := range s.segments {
		sh := &s.segments[i]
		sh.mu.Lock()
		var all []*subjectState
		for _, m := range []map[weir.Subject]*subjectState{sh.young, sh.old} {
			for _, p := range m {
				p.retain()
				all = append(all, p)
			}
		}
		sh.mu.Unlock()
		for _, p := range all {
			f(p)
			p.release()
		}
	}
}
