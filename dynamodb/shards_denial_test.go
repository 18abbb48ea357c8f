package dynamodb

import (
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/schema"
)

// shardDenialCases returns cases about denials by several shards, and about a vu on one of them.
func shardDenialCases() []mistakeCase {
	return []mistakeCase{
		{"several shards: a repeated denial reports the same", deniedAgain},
		{"several shards: a repeated denial names the same limits", deniedByTheSame},
		{"stamp: stays on a shard that is halved, or the definition is brought", splitOfStampedItem},
		{"stamp: is not overwritten by a known image", stampedUnknown},
	}
}

// deniedAgain checks that a remembered denial has the sum of all shards.
func deniedAgain(w *tableWorld) {
	limit := []weir.Limit{per("n", 100, 60, time.Minute)}
	w.system(limit...)
	p := w.process()
	for n := range 12 {
		w.putShards(trial(n), 2, limit, units{"n": 0}, units{"n": 40})
		p.admit(trial(n), weir.Costs{"n": 0})
		p.admit(trial(n), weir.Costs{"n": 0})
		first := p.deny(trial(n), weir.Costs{"n": 45})[0]
		again := p.deny(trial(n), weir.Costs{"n": 45})[0]
		equal(w, "available", first.Available, 40)
		equal(w, "available, said again", again.Available, first.Available)
		equal(w, "retry after, said again", again.RetryAfter, first.RetryAfter)
		p.admit(trial(n), weir.Costs{"n": 40}) // less than was denied: sent to the table
		w.together(trial(n), "n", 0)
	}
}

// deniedByTheSame checks that a denial does not name a limit that had enough.
func deniedByTheSame(w *tableWorld) {
	limits := []weir.Limit{per("a", 100, 60, time.Minute), per("b", 1000, 1, 24*time.Hour)}
	w.system(limits...)
	p := w.process()
	for n := range 12 {
		w.putShards(trial(n), 2, limits, units{"a": 0, "b": 0}, units{"a": 0, "b": 500})
		p.admit(trial(n), weir.Costs{"a": 0})
		p.admit(trial(n), weir.Costs{"b": 0})
		for _, when := range []string{"first", "again"} {
			for _, s := range p.deny(trial(n), weir.Costs{"a": 5, "b": 5}) {
				equal(w, when+": "+s.Limit+" is exceeded", s.Exceeded, s.Limit == "a")
				if want := map[string]int64{"a": 0, "b": 500}[s.Limit]; s.Available != want {
					w.Errorf("%s: %s has %d available, want %d", when, s.Limit, s.Available, want)
				}
			}
		}
		p.admit(trial(n), weir.Costs{"b": 5})
	}
}

// splitOfStampedItem checks that a shard with vu is brought to the configuration before it is used,
// and half of it is not moved under the old one.
func splitOfStampedItem(w *tableWorld) {
	was := []weir.Limit{noRefill("a", 100), noRefill("b", 100)}
	w.system(noRefill("a", 50), noRefill("b", 100)) // lowered
	for n := range 8 {                              // half of them pick the second shard first
		w.putShards(trial(n), 2, was, units{"a": 50, "b": 100})
		w.edit(trial(n), 0, map[string]int64{schema.AttrVU: 0})
		p := w.process()
		p.admit(trial(n), weir.Costs{"b": 1})
		w.edit(trial(n), 0, map[string]int64{
			schema.AttrVU: 0, schema.BucketAttribute("a", schema.FieldCapacity): 100_000,
		})
		p.createShards(trial(n), "b", 2)
		b := w.bucket(trial(n), 0)
		if a := b.Limit("a"); b.ValidUntil == nil && a.Capacity != 50_000 {
			w.Fatalf("vu is gone, and the capacity is still %d", a.Capacity)
		}
		if got := p.takeAll(trial(n), "a", 50); got > 50 {
			w.Errorf("%d of 50 were admitted", got)
		}
		p.exactly(trial(n), "b", 100, 99)
	}
}

// stampedUnknown checks that a configuration that was read before the vu was set is read again.
func stampedUnknown(w *tableWorld) {
	w.system(noRefill("a", 100))
	p := w.process()
	p.admit(testEntity, weir.Costs{"a": 1})
	p.admit(testEntity, weir.Costs{"a": 1})
	later := w.clock.Now().Add(time.Second).UnixMilli()
	w.edit(testEntity, 0, map[string]int64{schema.AttrVU: later})
	p.admit(testEntity, weir.Costs{"a": 1})
	if vu := w.bucket(testEntity, 0).ValidUntil; vu == nil || *vu != later {
		w.Errorf("a vu that lies one second ahead is gone")
	}
	w.system(noRefill("a", 50))
	w.clock.Advance(time.Second)
	p.admit(testEntity, weir.Costs{"a": 1})
	b := w.bucket(testEntity, 0)
	if b.ValidUntil != nil || b.Limit("a").Capacity != 50_000 {
		w.Errorf("vu exists: %t, and the capacity is %d, want no vu and 50000",
			b.ValidUntil != nil, b.Limit("a").Capacity)
	}
	if got := p.takeAll(testEntity, "a", 50); got > 50 || got < 46 {
		w.Errorf("%d of 50 were admitted, want 46 to 50", got)
	}
}
