package limiter

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
)

// indexWorld keeps the leases of a segment in a plain map too.
type indexWorld struct {
	t       *testing.T
	segment leaseSegment
	plain   map[weir.LeaseID]bool // true once it has ended
}

func newIndexWorld(t *testing.T) *indexWorld {
	w := &indexWorld{t: t, plain: map[weir.LeaseID]bool{}}
	w.segment.index = newLeaseIndex(fingerprint(rand.Uint64()))
	w.segment.maxEnded = math.MaxInt
	return w
}

func (w *indexWorld) check() {
	w.t.Helper()
	for id, ended := range w.plain {
		place, ok := w.segment.find(id)
		if !ok || (place&leaseHasEnded != 0) != ended {
			w.t.Fatalf("lease %v, ended %v: got place %x, %v", id, ended, place, ok)
		}
	}
	if w.segment.index.len != len(w.plain) {
		w.t.Fatalf("got %d leases in the index, want %d", w.segment.index.len, len(w.plain))
	}
}

// The index finds the same leases as a map: for IDs of now, of the past and of a minute ahead, that
// are settled at once, late or never, and for IDs that are used again. It does not find what was
// forgotten, and its memory is at most a few times what it holds.
func TestLeaseIndexAgainstAMap(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		table := &leaseTable{reuse: seed%2 == 0}
		w := newIndexWorld(t)
		now, gone := int64(1_800_000_000_000), []weir.LeaseID(nil)
		live := map[weir.LeaseID]*leaseEntry{}
		for range 20_000 {
			now += int64(rng.IntN(1 + int(seed)))
			switch move := rng.IntN(10); {
			case move < 4:
				ms := now
				if seed%4 < 2 && rng.IntN(20) == 0 {
					ms += rng.Int64N(120_000) - 60_000
				}
				id := weir.NewLeaseID(time.UnixMilli(ms))
				if n := len(gone); n > 0 && rng.IntN(8) == 0 { // the ID of a forgotten lease again
					i := max(0, n-1-rng.IntN(40))
					id = gone[i]
					gone = slices.Delete(gone, i, i+1)
				}
				e := table.entry(id)
				w.segment.add(e)
				live[e.id], w.plain[e.id] = e, false
			case move < 8 && len(live) > 0:
				for id, e := range live { // an arbitrary one
					if rng.IntN(8) == 0 { // nothing was reserved
						w.segment.remove(e)
						w.segment.index.forget(id, w.segment.valid)
						delete(w.plain, id)
						gone = append(gone, id)
					} else {
						e.end(leaseCompleted, now)
						w.segment.moveToEnded(table, e)
						w.plain[id] = true
					}
					delete(live, id)
					break
				}
			case w.segment.ended.len() > 0:
				id := w.segment.ended.first().id
				w.segment.forgetOldest()
				delete(w.plain, id)
				gone = append(gone, id)
			}
		}
		w.check()
		for _, id := range gone {
			if place, ok := w.segment.find(id); ok {
				t.Fatalf("seed %d: forgotten lease %v is at %x", seed, id, place)
			}
		}
		kept := 0
		for _, c := range w.segment.index.chunks {
			kept += len(c.places.cells)
		}
		if most := 16*len(w.plain) + 8*fullChunk; kept > most {
			t.Errorf("seed %d: %d cells for %d leases, want at most %d", seed, kept, len(w.plain), most)
		}
		for w.segment.ended.len() > 0 {
			w.segment.forgetOldest()
		}
		t.Logf("seed %d: %d chunks, %d cells for %d leases; %d gone", seed, len(w.segment.index.chunks),
			kept, len(w.plain), len(gone))
	}
}

// The last chunk does not stay after all of its leases have been forgotten.
func TestLeaseIndexDropsTheLastChunk(t *testing.T) {
	t.Parallel()
	for _, leases := range []int{fullChunk, 2 * fullChunk, 10 * fullChunk} {
		table := &leaseTable{}
		w := newIndexWorld(t)
		now := int64(1_800_000_000_000)
		for range 5 {
			for range leases {
				now++
				e := table.entry(weir.NewLeaseID(time.UnixMilli(now)))
				w.segment.add(e)
				e.end(leaseCompleted, now)
				w.segment.moveToEnded(table, e)
				w.plain[e.id] = true
			}
			w.check()
			for _, c := range w.segment.index.chunks {
				if c.left == 0 {
					t.Errorf("%d leases: a chunk of %d IDs has none that is known", leases, c.places.len)
				}
			}
			for w.segment.ended.len() > 0 {
				w.segment.forgetOldest()
			}
			clear(w.plain)
		}
	}
}

// A refused ID in the far future does not make the index one large chunk.
func TestLeaseIndexAfterAnIDFarAhead(t *testing.T) {
	t.Parallel()
	for _, ahead := range []bool{false, true} {
		table := &leaseTable{}
		w := newIndexWorld(t)
		now := int64(1_800_000_000_000)
		if ahead {
			refused := table.entry(weir.NewLeaseID(time.UnixMilli(1 << 47)))
			w.segment.add(refused)
			w.segment.remove(refused)
			w.segment.index.forget(refused.id, w.segment.valid)
		}
		for range 100 * fullChunk {
			now++
			e := table.entry(weir.NewLeaseID(time.UnixMilli(now)))
			w.segment.add(e)
			e.end(leaseCompleted, now)
			w.segment.moveToEnded(table, e)
			w.plain[e.id] = true
		}
		w.check()
		for _, c := range w.segment.index.chunks {
			if most := 2 * fullChunk; c.left > most {
				t.Errorf("ahead %v: a chunk has %d leases, want at most %d", ahead, c.left, most)
			}
		}
	}
}

// The numbers of ended leases wrap around after 2^32 leases.
func TestEndedLeaseNumbersWrap(t *testing.T) {
	t.Parallel()
	for _, from := range []uint32{0, 1<<31 - 300, math.MaxUint32 - 300} {
		q, own := endedLeases{from: from, next: from}, callerQuota{}
		type placed struct {
			id    weir.LeaseID
			place leaseRef
		}
		var in []placed
		for i := range 900 {
			id := weir.NewLeaseID(leaseStart)
			in = append(in, placed{id, q.push(&own, endedLease{id: id, at: int64(i)})})
			if i%3 == 2 { // let the queue grow slowly
				if q.first().id != in[0].id {
					t.Fatalf("from %d: the first is not the oldest", from)
				}
				gone := in[0]
				q.pop()
				in = in[1:]
				if q.has(gone.id, gone.place) {
					t.Fatalf("from %d: what was taken out is there", from)
				}
			}
			for _, p := range in {
				if !q.has(p.id, p.place) || q.at(p.place).id != p.id {
					t.Fatalf("from %d: lease %d is not where it was put", from, i)
				}
			}
		}
		for range in {
			q.pop()
		}
		if q.len() != 0 || len(q.blocks) > 1 {
			t.Errorf("from %d: got %d left and %d blocks, want none", from, q.len(), len(q.blocks))
		}
	}
}
