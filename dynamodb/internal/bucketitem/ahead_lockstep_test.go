package bucketitem

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weir-limiter/weir/aggregator"
	"github.com/weir-limiter/weir/internal/schema"
	"github.com/weir-limiter/weir/internal/sharding"
	"github.com/weir-limiter/weir/internal/soak"
)

// pick returns one of some values.
func pick[V any](rng *rand.Rand, of ...V) V { return of[rng.IntN(len(of))] }

// randomBusy returns a bucket item without writes left, as it is stored. Some have limits that do
// not divide, or what weir does not support.
func randomBusy(rng *rand.Rand) schema.Item {
	b := &schema.Bucket{
		Namespace: "ns", Entity: "acme", Resource: "gpt-4o", Shard: rng.IntN(4),
		RefilledMS: aheadStart, Shards: 1 << rng.IntN(7), Writes: schema.NewWrites(),
	}
	b.Writes.Balance = 0
	for n := range 1 + rng.IntN(3) {
		b.Limits = append(b.Limits, schema.BucketLimit{
			Name: fmt.Sprintf("l%d", n), PeriodMS: 60_000,
			Capacity: 1000 * pick[int64](rng, 15, 20, 96, 320, 321, 640, 3200, 32_000, 1<<30),
			Refill:   1000 * pick[int64](rng, 1, 2, 16, 32, 64, 321, 32_000),
		})
	}
	item := b.Item()
	limit := b.Limits[0].Name
	switch rng.IntN(12) {
	case 0:
		item[schema.AttrDisabled] = schema.Bool(true)
	case 1:
		item[schema.AttrSched] = schema.String("0 9 * * *")
	case 2:
		item[schema.BucketAttribute(limit, schema.FieldSoft)] = schema.Number(1)
	case 3:
		delete(item, schema.BucketAttribute(limit, schema.FieldCapacity))
	case 4:
		item[schema.BucketAttribute(limit, schema.FieldRefill)] = schema.Number(0)
	case 5:
		delete(item, schema.AttrShardCount)
	}
	return item
}

// storeDoubles returns what the store's code decides about an item that it has known for long.
func storeDoubles(t *testing.T, item schema.Item) (doubles bool, m *Image) {
	t.Helper()
	b, err := schema.ParseBucket(item)
	if err != nil {
		t.Fatal(err)
	}
	p := aheadSubject()
	m = newImage(b, nil, b.Shards, aheadStart)
	p.canDouble(m.Shards, aheadStart-sharding.SpreadMS)
	c := &commit{
		itemState: &itemState{ns: p.ns, subject: p, shard: b.Shard, image: m},
		Batch:     Batch{Waiters: []*Waiter{{Now: aheadStart}}},
	}
	return c.shouldDouble(), m
}

// aheadDoubles returns what the aggregator decides about an item that is hot for some seconds.
func aheadDoubles(item schema.Item) []aggregator.Doubling {
	const hot = 2
	w := &aggregator.Writes{}
	key, _ := schema.KeyOf(item)
	var all []aggregator.Doubling
	for n := range 4 * hot {
		at := time.UnixMilli(aheadStart).Add(time.Duration(n/hot) * time.Second)
		all = append(all, w.Due([]*aggregator.Record{{
			Position: aggregator.Position(fmt.Sprintf("label#%04d", n+1)), At: at,
			Kind: aggregator.Modified, Key: key, Old: item, New: item,
		}}, hot, at)...)
	}
	return all
}

// TestSplitLockstep checks that the store and the aggregator agree on which buckets may be split,
// and on the shares, on the same items.
func TestSplitLockstep(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(soak.Seed(t), 0))
	counts := make(map[bool]int)
	for range soak.Amount(5000, 100_000) {
		item := randomBusy(rng)
		store, m := storeDoubles(t, item)
		ahead := aheadDoubles(item)
		if store != (len(ahead) > 0) {
			t.Fatalf("store %v, aggregator %v: %v", store, ahead, item)
		}
		if counts[store]++; !store {
			continue
		}
		d := ahead[0]
		if first := m.Item.ID(); d.From != m.Shards || d.To != 2*m.Shards || d.Bucket.Shard != 0 ||
			d.Bucket.Entity != first.Entity || d.Bucket.Resource != first.Resource {
			t.Fatalf("got %+v for %+v with %d shards", d, first, m.Shards)
		}
		b := m.Item.Copy()
		b.Shards = d.To
		for _, l := range newImage(b, nil, b.Shards, aheadStart).Limits {
			rate := sharding.Share(&l.BucketLimit, d.To)
			if n := int64(d.To); l.Rate != rate || rate.CapacityMilli*n != l.Capacity ||
				rate.RefillMilli*n != l.Refill || rate.CapacityMilli < 10_000 {
				t.Fatalf("a share of %+v in %d shards is %+v, the store has %+v", l.BucketLimit, n, rate, l.Rate)
			}
		}
	}
	t.Logf("%d items may be split, and %d may not", counts[true], counts[false])
	if counts[true] < 100 || counts[false] < 100 {
		t.Error("too few of one kind")
	}
}
