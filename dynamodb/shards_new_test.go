package dynamodb

import (
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/bucketitem"
	"github.com/weir-limiter/weir/internal/schema"
	"github.com/weir-limiter/weir/internal/sharding"
)

// newShardCases returns cases of shards that do not exist yet, or do not exist any more. The units
// of a new shard are in no other shard.
func newShardCases() []mistakeCase {
	return []mistakeCase{
		{"new shard: has half of what a cold charge left", takenDuringSplit(100, 100, false)},
		{"new shard: has half of what a known charge left", takenDuringSplit(50, 49, true)},
		{"new shard: has half if there are no charges", takenDuringSplit(100, 0, false)},
		{"new shard: is not made if other writers win twice", splitLostTwice},
		{"new shard: has what the nearest existing shard has", splitSourceMissing},
		{"new shard: denies nothing before it is made", newShardHasTooLittle},
		{"new shard: waits for the first if all have expired", allShardsExpired},
		{"new shard: the first one, recreated, has what no other can have", firstRecreated},
		{"new shard: stores a count that shards can have", shardCountOfListing},
		{"new shard: stores a count above its number after a settlement", shardCountOfSettlement},
		{"new shard: the first one of several never expires", firstShardNeverExpires},
		{"new shard: the first one, recreated beside others, never expires", firstRecreatedStays},
	}
}

// takenDuringSplit checks that units that another process takes while a shard is created are not
// moved into it too.
func takenDuringSplit(has, takes int64, known bool) func(w *tableWorld) {
	return func(w *tableWorld) {
		limit := []weir.Limit{noRefill("n", 100)}
		w.system(limit...)
		other := w.process()
		if known { // the process knows the item from before the split
			w.putShards(testEntity, 1, limit, units{"n": has})
			other.admit(testEntity, weir.Costs{"n": 0})
			other.admit(testEntity, weir.Costs{"n": 0})
			w.edit(testEntity, 0, map[string]int64{schema.AttrShardCount: 2})
		} else {
			w.putShards(testEntity, 2, limit, units{"n": has})
		}
		p := w.hooked(processOptions{}, meanwhile(func(n int) {
			if n == 1 && takes > 0 {
				other.admit(testEntity, weir.Costs{"n": takes})
			}
		}))
		p.createShards(testEntity, "n", 2)
		w.together(testEntity, "n", (has-takes)*1000)
		equal(w, "the new one's half", w.stored(testEntity, 1, "n").Balance, (has-takes)*1000/2)
		p.exactly(testEntity, "n", 100, has-takes)
		w.together(testEntity, "n", 0)
	}
}

// splitLostTwice checks that no empty shard is created beside one that keeps all units, because the
// new shard would gain its share in addition.
func splitLostTwice(w *tableWorld) {
	limit := []weir.Limit{per("n", 320, 320, time.Minute)}
	w.system(limit...)
	w.putShards(testEntity, 2, limit, units{"n": 320})
	losses := 0
	p := w.hooked(processOptions{}, meanwhile(func(n int) {
		if losses = n; n > 2 {
			return
		}
		w.clock.Advance(time.Millisecond)
		w.edit(testEntity, 0, map[string]int64{ // as a normal write by Python does
			schema.BucketAttribute("n", schema.FieldBalance): 320_000 - int64(n)*1000,
			schema.AttrRF: w.clock.Now().UnixMilli(),
		})
	}))
	for range maxPicks { // a request that loses is admitted by another shard
		if losses >= 2 || len(w.shards(testEntity)) > 1 {
			break
		}
		p.admit(testEntity, weir.Costs{"n": 0})
	}
	p.createShards(testEntity, "n", 2)
	w.together(testEntity, "n", 320_000-int64(min(losses, 2))*1000)
	w.clock.Advance(3 * time.Minute)
	p.exactly(testEntity, "n", 320, 320)
}

// splitSourceMissing tests a new shard whose source does not exist, because no request picked it.
func splitSourceMissing(w *tableWorld) {
	limit := []weir.Limit{per("n", 320, 320, time.Minute)}
	w.system(limit...)
	w.putShards(testEntity, sharding.MaxShards, limit, units{"n": 320})
	p := w.process()
	p.createShards(testEntity, "n", sharding.MaxShards)
	w.together(testEntity, "n", 320_000)
	w.clock.Advance(3 * time.Minute)
	p.exactly(testEntity, "n", 320, 320)
	w.clock.Advance(30 * time.Second)
	p.exactly(testEntity, "n", 320, 160)
}

// newShardHasTooLittle checks that a request whose shard is created with too little goes on to the
// shard that it was split from, and finds the rest there.
func newShardHasTooLittle(w *tableWorld) {
	limit := []weir.Limit{noRefill("n", 100)}
	w.system(limit...)
	p := w.process()
	for n := range 24 { // half of them pick the second shard
		w.putShards(trial(n), 2, limit, units{"n": 40})
		p.admit(trial(n), weir.Costs{"n": 0})
		p.admit(trial(n), weir.Costs{"n": 30})
		w.together(trial(n), "n", 10_000)
		p.deny(trial(n), weir.Costs{"n": 11})
		p.admit(trial(n), weir.Costs{"n": 10})
	}
}

// allShardsExpired checks that an idle bucket whose items have expired is full again, even for a
// process that knows its shard count.
func allShardsExpired(w *tableWorld) {
	limit := []weir.Limit{per("n", 100, 100, time.Minute)}
	w.system(limit...)
	p := w.process()
	share := units{"n": 25}
	const trials = 12
	for n := range trials {
		w.putShards(trial(n), 4, limit, share, share, share, share)
		p.admit(trial(n), weir.Costs{"n": 1})
	}
	w.clock.Advance(20 * time.Minute)
	for n := range trials {
		w.erase(trial(n), 0, 1, 2, 3)
		found, err := p.Status(w.Context(), trial(n), testResource)
		if err != nil || len(found) != 1 || found[0].Available != 100 {
			w.Errorf("status: got %+v, %v, want 100", found, err)
		}
		p.admit(trial(n), weir.Costs{"n": 1})
		w.together(trial(n), "n", 99_000)
		p.exactly(trial(n), "n", 100, 99)
	}
}

// firstRecreated checks that a first shard of four that is created again leaves a quarter of the
// hundred to each other shard that exists.
func firstRecreated(w *tableWorld) {
	limit := []weir.Limit{noRefill("n", 100)}
	w.system(limit...)
	share := units{"n": 25}
	for n, c := range []struct {
		name  string
		there []units
		least int64
	}{
		{"alone", []units{share}, 100},
		{"beside the second", []units{share, share}, 75}, // the fourth shard can still be split from it
		{"beside the third", []units{share, nil, share}, 100},
		{"beside the fourth", []units{share, nil, nil, share}, 100},
		{"beside all", []units{share, share, share, share}, 100},
	} {
		w.putShards(trial(n), 4, limit, c.there...)
		p := w.process()
		p.admit(trial(n), weir.Costs{"n": 0}) // shows the process the shard count
		w.erase(trial(n), 0)
		if got := p.takeAll(trial(n), "n", 100); got < c.least || got > 100 {
			w.Errorf("%s: %d were admitted, want %d to 100", c.name, got, c.least)
		}
	}
}

// shardCountOfListing checks that a listing shows which shards exist, and not the shard count.
func shardCountOfListing(w *tableWorld) {
	limit := []weir.Limit{noRefill("n", 100)}
	w.system(limit...)
	p := w.process()
	for n, made := 0, 0; made < 3; n++ {
		if n == 200 {
			w.Fatalf("the second shard was made %d times, want 3", made)
		}
		w.putShards(trial(n), 4, limit, units{"n": 50}, nil, units{"n": 25})
		if _, err := p.store.admin.Resources(w.Context(), w.clock.Now(), trial(n)); err != nil {
			w.Fatalf("list: %v", err)
		}
		p.admit(trial(n), weir.Costs{"n": 0})
		if b := w.bucket(trial(n), 1); b != nil {
			made++
			equal(w, "the count of the new one", b.Shards, 4)
		}
		w.together(trial(n), "n", 75_000)
	}
}

// shardCountOfSettlement checks that a process that has forgotten a bucket learns from the shard of
// a lease that it was split.
func shardCountOfSettlement(w *tableWorld) {
	w.system(noRefill("n", 100))
	w.drained(testEntity)
	p := w.process()
	l := p.admit(testEntity, weir.Costs{"n": 10})
	p.store.buckets.Subjects = bucketitem.NewSubjectCache(bucketitem.KnownSize)
	w.erase(testEntity, 1)
	p.must(l.Complete(w.Context(), weir.Costs{"n": 15}))
	b := w.bucket(testEntity, 1)
	if b == nil {
		w.Fatalf("what was used is counted nowhere")
	}
	equal(w, "the count of the new one", b.Shards, 2)
	equal(w, "consumed", b.Limit("n").Consumed, 5000)
}

// firstShardNeverExpires checks that the first shard of several never expires. A process without
// state begins with it, and would create it full beside the others.
func firstShardNeverExpires(w *tableWorld) {
	w.system(per("n", 1000, 1000, time.Minute))
	p := w.process()
	refilled := func(shard int) int64 { // the item's ttl after a refill
		w.Helper()
		w.clock.Advance(10 * time.Second)
		now := w.clock.Now().UnixMilli()
		for range maxPicks {
			if b := w.bucket(testEntity, shard); b != nil && b.RefilledMS >= now {
				return b.TTL
			}
			p.admit(testEntity, weir.Costs{"n": 1})
		}
		w.Fatalf("shard %d is not refilled", shard)
		return 0
	}
	p.admit(testEntity, weir.Costs{"n": 900})
	if refilled(0) == 0 {
		w.Errorf("the only shard never expires")
	}
	w.edit(testEntity, 0, map[string]int64{schema.AttrShardCount: 2})
	equal(w, "the first of two expires at", refilled(0), 0)
	if refilled(1) == 0 {
		w.Errorf("the second shard never expires")
	}
}

// firstRecreatedStays checks the same for a first shard that had expired and is created beside the
// others.
func firstRecreatedStays(w *tableWorld) {
	limit := []weir.Limit{per("n", 1000, 1000, time.Minute)}
	w.system(limit...)
	w.putShards(testEntity, 2, limit, units{"n": 500}, units{"n": 500})
	p := w.process()
	p.admit(testEntity, weir.Costs{"n": 0}) // shows the process that there are two
	w.erase(testEntity, 0)
	p.createShards(testEntity, "n", 2)
	equal(w, "the first one made anew expires at", w.bucket(testEntity, 0).TTL, 0)
	w.together(testEntity, "n", 1_000_000)
}
