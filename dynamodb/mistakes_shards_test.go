package dynamodb

import (
	"fmt"
	"slices"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/schema"
	"github.com/weir-limiter/weir/internal/sharding"
	"github.com/weir-limiter/weir/internal/soak"
)

// shardCases returns the predecessors' mistakes with buckets of several items.
func shardCases() []mistakeCase {
	return []mistakeCase{
		{"W1: writes are credited, and shards stay few", writesCredited},
		{"W1: writes are credited fully on each shard", writesUndivided},
		{"W1: shards that are drawn exist, and are at most 32", shardsExist},
		{"W2: a refund lands on the shard it came from", refundToShard},
		{"W3: a lease from a shard that was tried second", leaseFromRetry},
		{"W4: a cascading child on a drained shard charges its parent", childOnDrained},
		{"W4: a parent that denies a child on a drained shard", parentDenies},
	}
}

// split writes a bucket with a number of shards, each with its share.
func (w *tableWorld) split(entity string, shards int, limits ...schema.Limit) {
	w.Helper()
	for i := range shards {
		b, err := schema.NewBucket(w.id(entity, i), w.clock.Now().UnixMilli(), limits)
		if err != nil {
			w.Fatalf("new bucket: %v", err)
		}
		b.Shards = shards
		for k := range b.Limits {
			b.Limits[k].Balance /= int64(shards)
		}
		w.put(b)
	}
}

// balance returns the attribute of a limit's balance with a number of units.
func balance(limit string, units int64) map[string]int64 {
	return map[string]int64{schema.BucketAttribute(limit, schema.FieldBalance): units * 1000}
}

// crowded uses up the writes (wcu) of a shard.
func (w *tableWorld) crowded(entity string, shard int) {
	w.Helper()
	w.edit(entity, shard, map[string]int64{
		schema.BucketAttribute(schema.WritesLimit, schema.FieldBalance): 0,
		schema.AttrRF: w.clock.Now().UnixMilli(),
	})
}

// sum returns the sums of a limit over the shards of a bucket.
func (w *tableWorld) sum(entity, limit string) (balance, consumed int64) {
	w.Helper()
	for _, b := range w.shards(entity) {
		if l := b.Limit(limit); l != nil {
			balance += l.Balance
			consumed += l.Consumed
		}
	}
	return balance, consumed
}

// writesCredited checks that 500 writes a second, half of the capacity of an item, do not split a
// bucket, however long they last.
func writesCredited(w *tableWorld) {
	w.system(noRefill("n", 1_000_000))
	p := w.process()
	writes := soak.Amount(1_200, 4_000) // more than wcu holds without a refill
	for i := range writes {
		p.admit(testEntity, weir.Costs{"n": 1})
		w.clock.Advance(2 * time.Millisecond)
		if i%300 == 299 {
			if n := w.bucket(testEntity, 0).Shards; n != 1 {
				w.Fatalf("%d shards after %d writes in %s, want 1", n, i+1, w.since())
			}
		}
	}
	equal(w, "doublings", p.store.Stats().Doublings, 0)
	equal(w, "consumed", w.stored(testEntity, 0, "n").Consumed, int64(writes)*1000)
	// The create does not count as a write.
	equal(w, "milli-writes", w.bucket(testEntity, 0).Writes.Consumed, int64(writes-1)*1000)
}

// writesUndivided checks that each shard has the whole thousand writes a second.
func writesUndivided(w *tableWorld) {
	const shards = 8
	w.system(noRefill("n", 1_000_000))
	w.split(testEntity, shards, schema.Limit{Name: "n", Capacity: 1_000_000, Refill: 1, Seconds: noRefillPeriod})
	p := w.process()
	p.admit(testEntity, weir.Costs{"n": 1})
	for range 30 {
		for i := range shards {
			w.crowded(testEntity, i)
		}
		w.clock.Advance(4 * time.Millisecond) // refills wcu by four in each shard
		p.admit(testEntity, weir.Costs{"n": 1})
		for i, b := range w.shards(testEntity) {
			if b.RefilledMS == w.clock.Now().UnixMilli() && b.Writes.Balance != 3000 {
				w.Errorf("shard %d has room for %d milli-writes, want four less one", i, b.Writes.Balance)
			}
		}
	}
	equal(w, "doublings", p.store.Stats().Doublings, 0)
	equal(w, "shards", len(w.shards(testEntity)), shards)
}

// shardsExist checks that a crowded bucket is split, up to a bound, and the first request on a new
// shard creates it.
func shardsExist(w *tableWorld) {
	w.system(per("n", 1_000_000, sharding.MaxShards, noRefillPeriod*time.Second)) // divisible by 32
	p := w.process()
	admitted := int64(0)
	admit := func(n int) {
		for range n {
			p.admit(testEntity, weir.Costs{"n": 1})
			admitted++
		}
	}
	admit(1)
	// Repeat this twice as often as the shards can be doubled, and then until they are, because all
	// requests may go to new shards, which are not crowded.
	for round := 0; round < 10 || w.count(testEntity) < sharding.MaxShards; round++ {
		if round == 100 {
			w.Fatalf("%d shards after %d rounds, want %d", w.count(testEntity), round, sharding.MaxShards)
		}
		for i := range w.shards(testEntity) {
			w.crowded(testEntity, i)
		}
		admit(3)
		w.clock.Advance(2 * time.Second) // longer than SpreadMS
		if n := w.count(testEntity); n > sharding.MaxShards {
			w.Fatalf("%d shards, want at most %d", n, sharding.MaxShards)
		}
	}
	equal(w, "shards", w.count(testEntity), sharding.MaxShards)
	admit(300)
	found := w.shards(testEntity)
	for _, l := range p.log.take() {
		if found[l.shard] == nil && !l.refused {
			w.Errorf("shard %d was written to, and is not there", l.shard)
		}
	}
	w.Logf("%d of %d shards are there after %d writes", len(found), sharding.MaxShards, admitted)
	if len(found) < sharding.MaxShards/2 {
		w.Errorf("%d shards are there, want most of %d", len(found), sharding.MaxShards)
	}
	left, consumed := w.sum(testEntity, "n")
	equal(w, "consumed", consumed, admitted*1000)
	equal(w, "left", left, (1_000_000-admitted)*1000)
}

// drained writes a bucket of 100 on two shards, the first of which is empty.
func (w *tableWorld) drained(entity string) {
	w.Helper()
	w.split(entity, 2, schema.Limit{Name: "n", Capacity: 100, Refill: 1, Seconds: noRefillPeriod})
	w.edit(entity, 0, balance("n", 0))
}

// on checks the balances of the two shards of a bucket.
func (w *tableWorld) on(when string, first, second int64) {
	w.Helper()
	got := fmt.Sprint(w.stored(testEntity, 0, "n").Balance, w.stored(testEntity, 1, "n").Balance)
	if want := fmt.Sprint(first*1000, second*1000); got != want {
		w.Errorf("%s: the shards have %s, want %s", when, got, want)
	}
}

func refundToShard(w *tableWorld) {
	w.system(noRefill("n", 100))
	w.drained(testEntity)
	p := w.process()
	l := p.admit(testEntity, weir.Costs{"n": 10})
	w.on("reserved", 0, 40)
	p.must(l.Cancel(w.Context()))
	w.on("cancelled", 0, 50)
	equal(w, "consumed", w.stored(testEntity, 1, "n").Consumed, 0)
	l = p.admit(testEntity, weir.Costs{"n": 50})
	p.must(l.Complete(w.Context(), weir.Costs{"n": 1}))
	w.on("completed", 0, 49)
}

func leaseFromRetry(w *tableWorld) {
	w.system(noRefill("n", 100))
	w.drained(testEntity)
	p := w.process()
	l := p.admit(testEntity, weir.Costs{"n": 10})
	if got := kinds(p.log.take()); got != "cold refused, cold on 1" {
		w.Errorf("the writes were %q, want a second shard to be tried", got)
	}
	p.must(l.Adjust(w.Context(), weir.Costs{"n": 25}))
	w.on("adjusted up", 0, 25)
	p.must(l.Adjust(w.Context(), weir.Costs{"n": 5}))
	w.on("adjusted down", 0, 45)
	p.must(l.Cancel(w.Context()))
	w.on("cancelled", 0, 50)
}

func childOnDrained(w *tableWorld) {
	w.system(noRefill("n", 100))
	w.family(testEntity, "parent")
	w.drained(testEntity)
	w.adopt(testEntity, "parent", 2)
	for range 3 { // each process starts without state
		p := w.process()
		var leases []*weir.Lease
		for range 4 {
			leases = append(leases, p.admit(testEntity, weir.Costs{"n": 1}))
		}
		for _, l := range leases[:2] {
			p.must(l.Cancel(w.Context()))
		}
	}
	w.on("after six", 0, 44)
	parent := w.stored("parent", 0, "n")
	equal(w, "the parent's consumed", parent.Consumed, 6000)
	equal(w, "the parent's balance", parent.Balance, 94_000)
}

// adopt stamps the shards of a bucket, as weir does when an entity gets a parent.
func (w *tableWorld) adopt(entity, parent string, shards int) {
	w.Helper()
	for i := range shards {
		b := w.bucket(entity, i)
		b.Cascade, b.Parent = true, parent
		w.put(b)
	}
}

func parentDenies(w *tableWorld) {
	w.system(noRefill("n", 100))
	w.limits(weir.Subject{Entity: "parent", Resource: testResource}, noRefill("n", 5))
	w.family(testEntity, "parent")
	w.drained(testEntity)
	w.adopt(testEntity, "parent", 2)
	p := w.process()
	for range 5 {
		p.admit(testEntity, weir.Costs{"n": 1})
	}
	for range 3 {
		found := p.deny(testEntity, weir.Costs{"n": 1})
		if !slices.ContainsFunc(found, func(s weir.LimitStatus) bool { return s.Entity == "parent" && s.Exceeded }) {
			w.Errorf("denied by %+v, want the parent", found)
		}
	}
	w.on("after five", 0, 45)
	equal(w, "the parent's balance", w.stored("parent", 0, "n").Balance, 0)
	equal(w, "the child's consumed", w.stored(testEntity, 1, "n").Consumed, 5000)
}
