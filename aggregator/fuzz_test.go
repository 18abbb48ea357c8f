package aggregator_test

import (
	"encoding/json"
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
		records, want := history(rng, int(n), time.Minute)
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

// FuzzWritesJSON decodes counts of writes. What is accepted stays the same when it is encoded and
// decoded again.
func FuzzWritesJSON(f *testing.F) {
	f.Add(`[{"i":"AAAAAAAAAAAAAAAAAAAAAA","c":2,"f":1,"s":2,"n":3,"p":"label#01"}]`)
	f.Add(`[{"i":"AAAAAAAAAAAAAAAAAAAAAA","c":2},{"i":"AAAAAAAAAAAAAAAAAAAAAA","c":1}]`)
	f.Add(`null`)
	f.Fuzz(func(t *testing.T, text string) {
		w := &aggregator.Writes{}
		if json.Unmarshal([]byte(text), w) != nil {
			return
		}
		first, err := json.Marshal(w)
		if err != nil {
			t.Fatal(err)
		}
		again := &aggregator.Writes{}
		if err := json.Unmarshal(first, again); err != nil {
			t.Fatal(err)
		}
		second, err := json.Marshal(again)
		if err != nil || string(first) != string(second) {
			t.Errorf("got %s and then %s, %v", first, second, err)
		}
		again.Due((&traffic{}).writes(1, acme, 2, 0), hot, start)
	})
}

// FuzzGaps lets a reader lose records, and compares the sums with the counts that the items end with.
// The reader is killed between two updates at times, and reads a part of the records again.
func FuzzGaps(f *testing.F) {
	f.Add(uint64(1), uint8(60), []byte{3, 9, 1, 20, 7})
	f.Add(uint64(3), uint8(250), []byte{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1})
	f.Fuzz(func(t *testing.T, seed uint64, n uint8, batches []byte) {
		rng := rand.New(rand.NewPCG(seed, 2))
		records, want := history(rng, int(n), 0)
		rest := min(len(records), 40) // the last records are not lost
		tb := table{}
		counted := 0
		count := func(to int) {
			changes := parse(t, records[counted:to]...)
			bases := make(map[schema.BucketID]*aggregator.Base)
			for _, c := range changes {
				bases[c.Bucket] = aggregator.LastCounted(c.Bucket.Shard, tb.items())
				if bases[c.Bucket] == nil {
					bases[c.Bucket] = aggregator.NothingCounted()
				}
			}
			bookings := aggregator.Book(changes, bases)
			if len(bookings) > 0 && to < len(records) && rng.IntN(4) == 0 { // killed between two updates
				tb.write(bookings[:rng.IntN(len(bookings))])
				return
			}
			tb.write(bookings)
			counted = to
		}
		for _, b := range batches {
			count(min(len(records), counted+int(b)+1))
			if rng.IntN(2) == 0 {
				counted = max(counted, min(counted+rng.IntN(20), len(records)-rest))
			}
		}
		count(len(records))
		var got int64
		for _, n := range tb.hours(t, "rpm") {
			got += n
		}
		if seen := bothShards(t, records[len(records)-rest:]); seen {
			equal(t, "units", got, want)
		}
	})
}

// bothShards reports whether both shards have records that count.
func bothShards(t *testing.T, records []*aggregator.Record) bool {
	seen := make(map[int]bool)
	for _, c := range parse(t, records...) {
		seen[c.Bucket.Shard] = true
	}
	return len(seen) == 2
}

// history returns the records of two shards of a bucket, and the units that they count. Their times
// may go back by late.
func history(rng *rand.Rand, n int, late time.Duration) (records []*aggregator.Record, units int64) {
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
		at = at.Add(time.Duration(rng.Int64N(int64(10*time.Minute))) - late)
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
