package dynamodb

import (
	"errors"
	"fmt"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/schema"
)

// costCases returns cases with small limits and large costs on buckets with several shards.
func costCases() []mistakeCase {
	var cases []mistakeCase
	for _, shards := range []int{2, 4, 8, 16} {
		cases = append(cases,
			mistakeCase{fmt.Sprintf("images on a bucket that Python split in %d", shards), doublingBeyondSmallLimit(shards)},
			mistakeCase{fmt.Sprintf("images come to a bucket that is split in %d", shards), smallLimitAddedAfterSplit(shards)},
		)
	}
	for _, shards := range []int{2, 8} {
		cases = append(cases,
			mistakeCase{fmt.Sprintf("a cost above a share of %d", shards), costAboveShare(shards)},
			mistakeCase{fmt.Sprintf("the whole of %d shares", shards), wholeCapacityAdmitted(shards)},
		)
	}
	return cases
}

// images returns a limit of ten a day beside a limit so large that its bucket is split.
func images() []weir.Limit {
	return []weir.Limit{per("images", 10, 10, 24*time.Hour), per("rpm", 100_000, 100_000, time.Minute)}
}

// admitImages asks for images until six requests in a row are denied, and returns the number
// admitted.
func (w *tableWorld) admitImages(ps ...*process) int {
	w.Helper()
	admitted, denied := 0, 0
	for i := 0; denied < 6; i++ {
		l, err := ps[i%len(ps)].ask(testEntity, weir.Costs{"images": 1, "rpm": 1})
		if d, ok := errors.AsType[*weir.DeniedError](err); ok && !d.Contended {
			denied++
			continue
		}
		if l == nil {
			w.Fatalf("an image: %v", err)
		}
		denied = 0
		if admitted++; admitted > 20 {
			break
		}
	}
	return admitted
}

// doublingBeyondSmallLimit has Python double the shards without regard to the smallest limit.
func doublingBeyondSmallLimit(shards int) func(w *tableWorld) {
	return func(w *tableWorld) {
		w.system(images()...)
		p, other := w.process(), w.process()
		p.admit(testEntity, weir.Costs{"rpm": 1})
		for n := 2; n <= shards; n *= 2 {
			w.edit(testEntity, 0, map[string]int64{schema.AttrShardCount: int64(n)})
			for range 16 * n { // enough to pick every shard
				p.admit(testEntity, weir.Costs{"rpm": 1})
			}
		}
		equal(w, "admitted on the first day", w.admitImages(p, other), 10)
		w.clock.Advance(25 * time.Hour)
		for range 16 * shards {
			p.admit(testEntity, weir.Costs{"rpm": 1})
		}
		equal(w, "admitted on the second day", w.admitImages(other, p), 10)
		equal(w, "doublings", p.store.Stats().Doublings+other.store.Stats().Doublings, 0)
	}
}

// smallLimitAddedAfterSplit has weir split the bucket of the large limit, and then adds the small
// limit.
func smallLimitAddedAfterSplit(shards int) func(w *tableWorld) {
	return func(w *tableWorld) {
		w.system(images()[1])
		p, other := w.process(), w.process()
		p.admit(testEntity, weir.Costs{"rpm": 1})
		for n := 1; n < shards; n *= 2 {
			w.crowded(testEntity, 0)
			for range 20 * n { // until the first shard is picked
				p.admit(testEntity, weir.Costs{"rpm": 1})
			}
			w.clock.Advance(2 * time.Second) // enough to refill wcu
			p.admit(testEntity, weir.Costs{"rpm": 1})
			w.clock.Advance(2 * time.Second)
		}
		equal(w, "shards", w.bucket(testEntity, 0).Shards, shards)
		for range 16 * shards {
			p.admit(testEntity, weir.Costs{"rpm": 1})
		}
		w.system(images()...)
		w.clock.Advance(cacheTime + time.Second)
		got := w.admitImages(p, other)
		w.Logf("admitted %d images on %d shards", got, shards)
		equal(w, "admitted", got, 10)
		for i := range w.shards(testEntity) {
			w.crowded(testEntity, i)
		}
		for range 16 * shards { // the small limit prevents a further split
			p.admit(testEntity, weir.Costs{"rpm": 1})
		}
		equal(w, "shards", w.bucket(testEntity, 0).Shards, shards)
	}
}

// costAboveShare checks that a cost above a share is admitted if all shards together have it, and
// is refunded to the shards that it was taken from.
func costAboveShare(shards int) func(w *tableWorld) {
	return func(w *tableWorld) {
		capacity := int64(12 * shards)
		w.system(noRefill("n", capacity))
		w.split(testEntity, shards, schema.Limit{Name: "n", Capacity: capacity, Refill: 1, Seconds: noRefillPeriod})
		p, other := w.process(), w.process()
		large := capacity*2/3 + 1
		l := p.admit(testEntity, weir.Costs{"n": large})
		left, consumed := w.sum(testEntity, "n")
		equal(w, "left", left, (capacity-large)*1000)
		equal(w, "consumed", consumed, large*1000)
		other.deny(testEntity, weir.Costs{"n": large})
		p.deny(testEntity, weir.Costs{"n": large})
		if again, _ := w.sum(testEntity, "n"); again != left {
			w.Errorf("denials left %d milli-units of %d", again, left)
		}
		p.must(l.Cancel(w.Context()))
		for i, b := range w.shards(testEntity) {
			if got := b.Limit("n"); got.Balance != 12_000 || got.Consumed != 0 {
				w.Errorf("shard %d has %d and consumed %d after the refund", i, got.Balance, got.Consumed)
			}
		}
		w.clock.Advance(2 * time.Second) // the other process remembers its denial for one second
		l = other.admit(testEntity, weir.Costs{"n": large})
		other.must(l.Complete(w.Context(), weir.Costs{"n": 14}))
		equal(w, "admitted one by one", int64(p.drain(testEntity, "n", 500)), capacity-14)
		if _, err := p.ask(testEntity, weir.Costs{"n": capacity + 1}); !errors.Is(err, weir.NeverSatisfiable) {
			w.Errorf("more than the capacity: got %v, want never satisfiable", err)
		}
	}
}

// wholeCapacityAdmitted checks that the whole capacity can be taken at once, even if no share is a
// whole number.
func wholeCapacityAdmitted(shards int) func(w *tableWorld) {
	return func(w *tableWorld) {
		const capacity = 101
		w.system(per("n", capacity, capacity, time.Minute))
		p := w.process()
		p.admit(testEntity, weir.Costs{"n": capacity})
		w.edit(testEntity, 0, map[string]int64{schema.AttrShardCount: int64(shards)})
		for range 16 * shards { // enough to pick every shard
			w.clock.Advance(1100 * time.Millisecond)
			_, _ = p.ask(testEntity, weir.Costs{"n": 1})
		}
		w.clock.Advance(2 * time.Minute)
		for range 2 { // rounding may cost each share a milli-unit
			l := p.admit(testEntity, weir.Costs{"n": capacity - 1})
			p.deny(testEntity, weir.Costs{"n": 2})
			p.must(l.Cancel(w.Context()))
		}
		p.admit(testEntity, weir.Costs{"n": capacity - 1})
	}
}
