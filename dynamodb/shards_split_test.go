package dynamodb

import (
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/schema"
	"github.com/weir-limiter/weir/internal/sharding"
)

// splitCases returns cases about the number of shards that a bucket is split into.
func splitCases() []mistakeCase {
	return []mistakeCase{
		{"split: as far as the capacity divides", splitsTo(8, per("n", 321, 32_000, time.Minute))},
		{"split: as far as the refill divides", splitsTo(8, per("n", 32_000, 321, time.Minute))},
		{"split: to the bound if everything divides", splitsTo(sharding.MaxShards, per("n", 336, 32, time.Minute))},
		{"split: as far as ten units are left", splitsTo(8, per("n", 96, 96, time.Minute))},
		{
			"split: as far as the smallest of several limits lets it",
			splitsTo(2, per("n", 3200, 3200, time.Minute), per("m", 20, 16, time.Minute)),
		},
		{"split: not at all if nothing divides", splitsTo(1, per("n", 15, 15, time.Minute))},
		{"split: not at all with a limit that weir does not support", splitsNoRestricted},
		{"split: as far as a limit that is not on the item yet divides", splitsByAdded},
	}
}

// crowdedOut makes too many writes on all shards of a bucket until it is split no further, and
// returns the shard count.
func (p *process) crowdedOut() int {
	w := p.w
	w.Helper()
	p.admit(testEntity, weir.Costs{"n": 1})
	was := w.count(testEntity)
	for crowded := 0; crowded < 2; { // shard 0 was crowded twice without a split
		w.clock.Advance(2 * sharding.SpreadMS * time.Millisecond)
		for i := range w.shards(testEntity) {
			w.crowded(testEntity, i)
		}
		p.log.take()
		for draws := 0; !wroteFirst(p.log.take()); draws++ {
			if draws == maxPicks {
				w.Fatalf("the first shard was not drawn")
			}
			p.admit(testEntity, weir.Costs{"n": 0})
		}
		if n := w.count(testEntity); n != was {
			if n != 2*was || n > sharding.MaxShards {
				w.Fatalf("%d shards became %d", was, n)
			}
			was, crowded = n, 0
			continue
		}
		crowded++
	}
	return was
}

// wroteFirst reports whether one of the writes was on shard 0.
func wroteFirst(writes []loggedWrite) bool {
	for _, l := range writes {
		if l.shard == 0 && !l.refused && l.kind != "double" {
			return true
		}
	}
	return false
}

// splitsTo checks that a limit is not divided further than it divides evenly. A remainder would be
// lost, and the whole capacity denied for ever.
func splitsTo(shards int, limits ...weir.Limit) func(w *tableWorld) {
	return func(w *tableWorld) {
		w.system(limits...)
		p := w.process()
		if got := p.crowdedOut(); got != shards {
			w.Fatalf("the bucket was split into %d, want %d", got, shards)
		}
		p.createShards(testEntity, "n", shards)
		w.clock.Advance(time.Minute * time.Duration(1+limits[0].Capacity/limits[0].RefillAmount))
		p.admit(testEntity, weir.Costs{"n": limits[0].Capacity}) // the whole capacity is available
		w.together(testEntity, "n", 0)
	}
}

// splitsNoRestricted checks that a bucket with an attribute of another program is not split: weir
// makes no shard from such an item, so half of the bucket would be lost.
func splitsNoRestricted(w *tableWorld) {
	w.system(per("n", 320, 320, time.Minute), per("m", 320, 320, time.Minute))
	p := w.process()
	p.admit(testEntity, weir.Costs{"n": 1})
	w.edit(testEntity, 0, map[string]int64{schema.BucketAttribute("m", schema.FieldSoft): 1})
	equal(w, "shards", p.crowdedOut(), 1)
	w.clock.Advance(time.Minute)
	p.admit(testEntity, weir.Costs{"n": 320})
}

// splitsByAdded checks that a configured limit counts even if no write has brought it to the item
// yet.
func splitsByAdded(w *tableWorld) {
	w.system(per("n", 32_000, 32_000, time.Minute))
	p := w.process()
	p.admit(testEntity, weir.Costs{"n": 1})
	w.system(per("n", 32_000, 32_000, time.Minute), per("m", 322, 320, time.Minute))
	w.clock.Advance(2 * time.Minute) // longer than the cache time
	p.admit(testEntity, weir.Costs{"n": 0})
	equal(w, "shards", p.crowdedOut(), 16)
	if _, err := p.ask(testEntity, weir.Costs{"m": 1}); err != nil {
		w.Errorf("of the limit that was added: %v", err)
	}
}
