package aggregator_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-limiter/weir/aggregator"
	"github.com/weir-limiter/weir/internal/schema"
)

// FuzzBook lets several readers read the records of a bucket in batches that overlap, fail between
// two updates and begin again, and compares the sums with the counts that the items end with.
func FuzzBook(f *testing.F) {
	f.Add(uint64(1), uint8(40), []byte{3, 9, 1, 20, 7})
	f.Add(uint64(2), uint8(200), []byte{255, 0, 128, 1, 1, 1, 30, 60})
	f.Fuzz(func(t *testing.T, seed uint64, n uint8, batches []byte) {
		rng := rand.New(rand.NewPCG(seed, 1))
		records, want := history(rng, int(n))
		tb := table{}
		counted := 0 // the checkpoint: a prefix of this length is counted
		for _, b := range append(batches, 255, 255) {
			from := counted - min(counted, rng.IntN(4))
			to := min(len(records), from+int(b)+1)
			batch := append([]*aggregator.Record(nil), records[from:to]...)
			rng.Shuffle(len(batch), func(i, j int) { batch[i], batch[j] = batch[j], batch[i] })
			bookings := aggregator.Book(parse(t, batch...), nil)
			if len(bookings) > 0 && rng.IntN(3) == 0 { // killed between two updates
				tb.write(bookings[:rng.IntN(len(bookings))])
				continue
			}
			tb.write(bookings)
			counted = max(counted, to)
		}
		tb.write(aggregator.Book(parse(t, records[counted:]...), nil))
		var got int64
		for _, n := range tb.hours(t, "rpm") {
			got += n
		}
		equal(t, "units", got, want)
	})
}

// history returns the records of two shards of a bucket, and the units that they count.
func history(rng *rand.Rand, n int) (records []*aggregator.Record, units int64) {
	now := [2]int64{}
	exists := [2]bool{}
	at := start
	for i := range n {
		shard := rng.IntN(2)
		id := acme
		id.Shard = shard
		after := now[shard] + rng.Int64N(9000) - 2500
		before := counts{"rpm": now[shard], "wcu": int64(i)}
		if !exists[shard] {
			before = nil
		}
		records = append(records, modified(i+1, at, id, before, counts{"rpm": after, "wcu": int64(i + 1)}))
		now[shard], exists[shard] = after, true
		at = at.Add(time.Duration(rng.Int64N(int64(10*time.Minute))) - time.Minute)
	}
	for _, milli := range now {
		units += milli / 1000
		if milli%1000 < 0 {
			units--
		}
	}
	return records, units
}

// FuzzParse checks that no record makes the package panic, and that a count is never taken from a
// malformed attribute.
func FuzzParse(f *testing.F) {
	f.Add("ns/BUCKET#acme#gpt-4o#0", "#STATE", "b_rpm_tc", "2000", "1000", uint8(2))
	f.Add("ns/BUCKET#acme##0", "#STATE", "b_ttl_tc", "9e99", "", uint8(1))
	f.Fuzz(func(t *testing.T, pk, sk, name, after, before string, kind uint8) {
		key := schema.Key{PK: pk, SK: sk}
		r := &aggregator.Record{
			Position: position(1), At: start, Kind: aggregator.Kind(kind), Key: key,
			Old: key.Item(), New: key.Item(),
		}
		if r.Kind == aggregator.Inserted {
			r.Old = nil
		}
		r.New[name] = number(after)
		if r.Old != nil {
			r.Old[name] = number(before)
		}
		change, _ := aggregator.Parse(r)
		if change == nil {
			return
		}
		if n, err := schema.Int64(number(after)); err != nil || schema.UsageKeeps(limitOf(name)) {
			t.Errorf("counted %q = %q (%d)", name, after, n)
		}
		for _, b := range aggregator.Book([]*aggregator.Change{change}, nil) {
			u := b.Update()
			if _, ok := aggregator.ParseCounts(u.Shards[0].Counts.String()); !ok {
				t.Errorf("the counts %q cannot be read", u.Shards[0].Counts)
			}
		}
	})
}

func number(s string) types.AttributeValue { return &types.AttributeValueMemberN{Value: s} }

func limitOf(attribute string) string {
	limit, _, _ := schema.ParseBucketAttribute(attribute)
	return limit
}
