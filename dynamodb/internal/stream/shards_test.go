package stream_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/stream"
	"github.com/weir-limiter/weir/internal/schema"
	"github.com/weir-limiter/weir/internal/soak"
)

func (w *world) bucketID(entity string) schema.BucketID {
	return schema.BucketID{Namespace: w.ns, Entity: entity, Resource: resource}
}

// TestShards checks that parents are read before their children, through iterators that expire and
// reads that find nothing, by readers that are killed.
func TestShards(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := &fakeStream{}
	var before int64
	n := 0
	// A chain of shards, listed out of order; the parent of the first is too old to be listed.
	for _, s := range []struct{ id, parent string }{
		{"s3", "s2"}, {"s1", "s0"}, {"s4", "s3"}, {"s2", "s1"}, {"other", ""},
	} {
		f.shards = append(f.shards, fakeShard{id: s.id, parent: s.parent, closed: s.id != "s4" && s.id != "other"})
	}
	for _, id := range []string{"s1", "s2", "s3", "s4"} {
		s := f.shard(id)
		for range 7 {
			n++
			s.records = append(s.records, streamRecord(n, start, w.bucketID("acme"), before, before+2000))
			before += 2000
		}
	}
	f.shard("other").records = []types.Record{streamRecord(100, start, w.bucketID("bot"), 0, 5000)}
	rng := rand.New(rand.NewPCG(soak.Seed(t), 0))
	tune := func(o *stream.Options) { o.Source, o.EmptyReads = f, 4 }
	for range 6 {
		w.runKilled(rng, 6, tune)
	}
	r := w.reader(tune)
	if err := r.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	hour := schema.Timestamp(weir.Hourly.Start(start))
	w.judge(w.usage(), map[string]int64{
		tallyKey(weir.Hourly, hour, "acme", "rpm"): 56, tallyKey(weir.Hourly, hour, "bot", "rpm"): 5,
	})
	chain := slices.DeleteFunc(slices.Clone(f.order), func(s string) bool { return s == fmt.Sprintf("%021d", 100) })
	if !slices.IsSorted(chain) || len(chain) != n {
		t.Errorf("read in the order %v", chain)
	}
}

// TestBadRecords checks that bad records are left out, with a reason, that their hour is marked, and
// that the others count.
func TestBadRecords(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.bucketID("acme")
	good := streamRecord(1, start, id, 0, 3000)
	noKey, noImage, noNumber := streamRecord(2, start, id, 3000, 4000), streamRecord(3, start, id, 4000, 5000), streamRecord(4, start, id, 5000, 6000)
	noKey.Dynamodb.Keys = nil
	noImage.Dynamodb.NewImage = nil
	noNumber.Dynamodb.SequenceNumber = nil
	text := streamRecord(5, start, id, 6000, 7000)
	text.Dynamodb.NewImage[schema.BucketAttribute("rpm", schema.FieldConsumed)] = &types.AttributeValueMemberS{Value: "7000"}
	unknown := w.bucketID("acme")
	unknown.Namespace = "unknown"
	late := streamRecord(8, start.AddDate(-9000, 0, 0), id, 7000, 8000)
	f := &fakeStream{shards: []fakeShard{{id: "s", records: []types.Record{
		good, good, noKey, noImage, {}, noNumber, text, late, streamRecord(6, start, unknown, 0, 1000),
		streamRecord(7, start, schema.BucketID{Namespace: w.ns, Entity: "bot", Resource: resource}, 0, 9000),
	}}}}
	r := w.reader(func(o *stream.Options) { o.Source, o.EmptyReads, o.Move = f, 4, nil })
	if err := r.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	hour := schema.Timestamp(weir.Hourly.Start(start))
	w.judge(w.usage(), map[string]int64{
		tallyKey(weir.Hourly, hour, "acme", "rpm"): 3, tallyKey(weir.Hourly, hour, "bot", "rpm"): 9,
	})
	s := r.Summary()
	if s.Skipped["malformed"] != 7 || s.Skipped["namespace that is not registered"] != 1 {
		t.Errorf("got %+v", s)
	}
	c, err := stream.ReadCoverage(t.Context(), w.c, w.ns)
	if err != nil {
		t.Fatal(err)
	}
	marked := slices.ContainsFunc(c.Gaps, func(g weir.UsageGap) bool {
		return g.Reason == "a record of a bucket could not be read" && g.From.Equal(weir.Hourly.Start(start))
	})
	if !marked || s.Gaps > 2 { // the first start, and the hour
		t.Errorf("got the gaps %+v, want the hour of the bad records", c.Gaps)
	}
}

// TestRefusedItem checks that a usage item that the table does not accept does not stop the others.
func TestRefusedItem(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	u := schema.NewUsage(w.bucketID("acme"), weir.Hourly, start)
	w.update(u.Key(), "SET rpm = :s", nil, schema.Item{":s": schema.String("text")})
	f := &fakeStream{shards: []fakeShard{{id: "s", records: []types.Record{
		streamRecord(1, start, w.bucketID("acme"), 0, 3000), streamRecord(2, start, w.bucketID("bot"), 0, 4000),
	}}}}
	r := w.reader(func(o *stream.Options) { o.Source, o.EmptyReads = f, 4 })
	if err := r.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s := r.Summary(); s.Counted != 1 || s.Skipped["refused by the table"] != 1 {
		t.Errorf("got %+v", s)
	}
}

// TestDeletedNamespace checks that the records of a deleted namespace are left out, and that the
// retention of a namespace counts.
func TestDeletedNamespace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n, _, err := w.table.RegisterNamespace(t.Context(), "gone")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.table.DeleteNamespace(t.Context(), "gone"); err != nil {
		t.Fatal(err)
	}
	w.limits("rpm")
	w.update(schema.SystemConfigKey(w.ns), "SET usage_retention_days = :n", nil,
		schema.Item{":n": schema.Number(7)})
	gone := schema.BucketID{Namespace: n.ID, Entity: "acme", Resource: resource}
	f := &fakeStream{shards: []fakeShard{{id: "s", records: []types.Record{
		streamRecord(1, start, gone, 0, 3000), streamRecord(2, start, w.bucketID("bot"), 0, 4000),
	}}}}
	r := w.reader(func(o *stream.Options) { o.Source, o.EmptyReads = f, 4 })
	if err := r.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	items := w.items()
	if len(items) != 1 || r.Summary().Skipped["namespace that was deleted"] != 1 {
		t.Fatalf("got %v and %+v", items, r.Summary())
	}
	if ttl, err := schema.Int64(items[0][schema.AttrTTL]); err != nil || ttl != start.Unix()+7*24*60*60 {
		t.Errorf("got ttl %d, %v", ttl, err)
	}
}

// TestRecoveredNamespace checks that the usage of a namespace that was deleted and recovered is made
// good, and marked.
func TestRecoveredNamespace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := &fakeStream{shards: []fakeShard{{id: "s", records: []types.Record{
		streamRecord(1, start, w.bucketID("acme"), 0, 3000),
	}}}}
	tune := func(o *stream.Options) { o.Source, o.EmptyReads = f, 4 }
	run := func(more ...types.Record) {
		t.Helper()
		f.shards[0].records = append(f.shards[0].records, more...)
		if err := w.reader(tune).Run(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	run()
	if _, err := w.table.DeleteNamespace(t.Context(), schema.DefaultNamespace); err != nil {
		t.Fatal(err)
	}
	run(streamRecord(2, start, w.bucketID("acme"), 3000, 7000))
	if _, err := w.table.RecoverNamespace(t.Context(), w.ns); err != nil {
		t.Fatal(err)
	}
	run(streamRecord(3, start, w.bucketID("acme"), 7000, 8000))
	hour := schema.Timestamp(weir.Hourly.Start(start))
	w.judge(w.usage(), map[string]int64{tallyKey(weir.Hourly, hour, "acme", "rpm"): 8})
	c, err := stream.ReadCoverage(t.Context(), w.c, w.ns)
	if err != nil || len(c.Gaps) != 1 {
		t.Errorf("got %+v, %v", c, err)
	}
	if c, err := stream.ReadCoverage(t.Context(), w.c, "another"); err != nil || len(c.Gaps) != 0 {
		t.Errorf("another namespace: got %+v, %v", c, err)
	}
}
