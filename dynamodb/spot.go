package dynamodb

import (
	"hash/maphash"
	"math/bits"
	"sync"
	"sync/atomic"

	"github.com/weir-limiter/weir"
)

// spot is what the process knows of one (entity, resource): its shards, and a line for each of them
// that was used.
type spot struct {
	store   *Store
	subject weir.Subject
	holders atomic.Int64 // who must not find the spot gone

	mu     sync.Mutex
	shards int // the largest count that was seen
	// spreading is the count that an item had last, and spreadSince since when, in Unix ms.
	spreading   int
	spreadSince int64
	lines       map[int]*line
	// parent is who is charged too, by the item that was seen last; known is whether one was.
	parent string
	known  bool
	// reading is the read of the configuration that is under way; nil if there is none.
	reading *reading
	// checked is the count of changes of configuration by this process when it was last read.
	checked uint64
	// terms are what applied when the configuration was last read; nil where it was not.
	terms *terms
	// charged is who was charged too, by that.
	charged string
	refused map[string]refusal // by limit
}

func (p *spot) hold() { p.holders.Add(1) }

func (p *spot) release() { p.holders.Add(-1) }

// line returns the line of a shard.
func (p *spot) line(shard int) *line {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shards = max(p.shards, 1<<bits.Len(uint(shard))) // there are at least so many
	l := p.lines[shard]
	if l == nil {
		l = &line{store: p.store, spot: p, shard: shard}
		p.lines[shard] = l
	}
	return l
}

// count is how many shards the bucket has, as far as is known.
func (p *spot) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.shards
}

// grow notes a count of shards. It never shrinks: shards are never merged.
func (p *spot) grow(shards int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shards = max(p.shards, shards)
}

// owner notes to whom the bucket cascades by its item.
func (p *spot) owner(cascade bool, parent string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.known, p.parent = true, ""
	if cascade {
		p.parent = parent
	}
}

// cascadesTo is the parent that is charged too, as far as is known.
func (p *spot) cascadesTo() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.parent
}

// behind reports whether the item is known not to have what applies: then it must not be gone by
// alone.
func (p *spot) behind() bool {
	p.mu.Lock()
	t, moved := p.terms, p.known && p.parent != p.charged
	p.mu.Unlock()
	m := p.line(0).seen()
	return t != nil && (moved || t.level == weir.LevelRequest || m != nil && !t.fulfilled(m))
}

// spots keeps what the process knows. Each shard of it has a young and an old map: what is used
// moves to the young one, which becomes the old one when it is full. What somebody holds is never
// dropped: an item has one line.
type spots struct {
	room   int
	seed   maphash.Seed
	shards [32]spotShard
}

type spotShard struct {
	mu         sync.Mutex
	young, old map[weir.Subject]*spot
}

func newSpots(size int) *spots {
	s := &spots{seed: maphash.MakeSeed()}
	s.room = max(1, size/len(s.shards))
	for i := range s.shards {
		s.shards[i].young = make(map[weir.Subject]*spot)
	}
	return s
}

// get returns the spot of a subject, held: release it.
func (s *spots) get(store *Store, of weir.Subject) *spot {
	sh := &s.shards[maphash.Comparable(s.seed, of)%uint64(len(s.shards))]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	p := sh.young[of]
	if p == nil {
		if p = sh.old[of]; p != nil {
			delete(sh.old, of)
		} else {
			p = &spot{store: store, subject: of, shards: 1, lines: make(map[int]*line, 1)}
		}
		if len(sh.young) >= s.room {
			sh.age()
		}
		sh.young[of] = p
	}
	p.hold()
	return p
}

// age makes the young map the old one, and keeps of the old one what is held.
func (s *spotShard) age() {
	was := s.old
	s.old, s.young = s.young, make(map[weir.Subject]*spot)
	for of, p := range was {
		if p.holders.Load() > 0 {
			s.young[of] = p
		}
	}
}

// each calls f with every spot, held.
func (s *spots) each(f func(p *spot)) {
	for i := range s.shards {
		sh := &s.shards[i]
		sh.mu.Lock()
		var all []*spot
		for _, m := range []map[weir.Subject]*spot{sh.young, sh.old} {
			for _, p := range m {
				p.hold()
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
