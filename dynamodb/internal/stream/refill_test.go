package stream_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/aggregator"
	"github.com/weir-limiter/weir/dynamodb/internal/stream"
	"github.com/weir-limiter/weir/internal/schema"
)

// lowItem is an item that is due for a refill: rf is 10 s ago, and of 600 a minute 200 are left,
// of which the batch took 300. Each limit gains 100 until now.
func (w *world) lowItem(limits ...string) *schema.Bucket {
	b := &schema.Bucket{
		Namespace: w.ns, Entity: "acme", Resource: resource, Shards: 1,
		RefilledMS: start.Add(-10 * time.Second).UnixMilli(), Writes: schema.NewWrites(),
	}
	for _, name := range limits {
		b.Limits = append(b.Limits, schema.BucketLimit{
			Name: name, Capacity: 600_000, Refill: 600_000, PeriodMS: 60_000, Balance: 200_000,
			Consumed: 300_000,
		})
	}
	return b
}

const gained = 100_000

// recordOf returns the record of the write that took what an item has consumed.
func recordOf(b *schema.Bucket) *aggregator.Record {
	old := b.Copy()
	for i := range old.Limits {
		old.Limits[i].Consumed = 0
	}
	return &aggregator.Record{
		At: start, Kind: aggregator.Modified, Key: b.ID().Key(), Old: old.Item(), New: b.Item(),
	}
}

func (w *world) store(item schema.Item) {
	w.Helper()
	in := &ddb.PutItemInput{TableName: &w.table.Name, Item: item}
	if _, err := w.c.API.PutItem(w.Context(), in); err != nil {
		w.Fatal(err)
	}
}

// stored returns an item as it is stored; nil if there is none.
func (w *world) stored(b *schema.Bucket) schema.Item {
	w.Helper()
	item, err := w.c.GetItem(w.Context(), b.ID().Key(), true)
	if err != nil {
		w.Fatal(err)
	}
	return item
}

func (w *world) bucket(b *schema.Bucket) *schema.Bucket {
	w.Helper()
	found, err := schema.ParseBucket(w.stored(b))
	if err != nil {
		w.Fatal(err)
	}
	return found
}

// refills returns a reader that refills.
func (w *world) refills() *stream.Reader {
	return w.reader(func(o *stream.Options) {
		o.Refill, o.Logger = true, slog.New(slog.NewTextHandler(w.Output(), nil))
	})
}

// write makes an update as another client would. It reports false if its condition fails.
func (w *world) write(b *schema.Bucket, update, condition string, values ...int64) bool {
	w.Helper()
	in := &ddb.UpdateItemInput{
		TableName: &w.table.Name, Key: b.ID().Key().Item(), UpdateExpression: &update,
		ExpressionAttributeValues: make(schema.Item),
	}
	if condition != "" {
		in.ConditionExpression = &condition
	}
	for i, n := range values {
		in.ExpressionAttributeValues[fmt.Sprintf(":%c", 'a'+i)] = schema.Number(n)
	}
	_, err := w.c.API.UpdateItem(w.Context(), in)
	if _, refused := errors.AsType[*types.ConditionalCheckFailedException](err); refused {
		return false
	}
	if err != nil {
		w.Error(err)
	}
	return true
}

// TestRefillCommutes lets clients take without moving rf while a refill is written: neither is
// lost, and the refill is not refused. It is a property over random interleavings of DynamoDB.
func TestRefillCommutes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for round := range 30 {
		b := w.lowItem("rpm", "tpm")
		b.Entity = fmt.Sprintf("e%d", round)
		w.store(b.Item())
		record := recordOf(b)
		var all sync.WaitGroup
		var taken atomic.Int64
		for range 6 {
			all.Go(func() {
				for range 6 {
					if w.write(b, "ADD b_rpm_tk :b, b_rpm_tc :a, b_tpm_tk :b, b_tpm_tc :a",
						"b_rpm_tk >= :a AND b_tpm_tk >= :a", 7000, -7000) {
						taken.Add(7000)
					}
				}
			})
		}
		r := w.refills()
		all.Go(func() { r.Refill(t.Context(), []*aggregator.Record{record}) })
		all.Wait()
		if s := r.Summary(); s.Refills != 1 || s.RefillsLost+s.RefillsFailed != 0 {
			t.Fatalf("round %d: got %+v", round, s)
		}
		after := w.bucket(b)
		for i := range after.Limits {
			l := &after.Limits[i]
			if l.Balance != 200_000+gained-taken.Load() || l.Consumed != 300_000+taken.Load() {
				t.Fatalf("round %d: %d were taken: got %+v", round, taken.Load(), l)
			}
		}
	}
}

// TestRefillLock lets two aggregators and a client refill an item at once: one of them does, and
// the gain is credited once.
func TestRefillLock(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	won := [2]int64{}
	readers := []*stream.Reader{w.refills(), w.refills()}
	refills := func() (wrote, lost int64) {
		for _, r := range readers {
			wrote, lost = wrote+r.Summary().Refills, lost+r.Summary().RefillsLost
		}
		return wrote, lost
	}
	for round := range 40 {
		b := w.lowItem("rpm")
		b.Entity = fmt.Sprintf("e%d", round)
		w.store(b.Item())
		record := recordOf(b)
		wroteBefore, lostBefore := refills()
		var all sync.WaitGroup
		var client bool
		for _, r := range readers {
			all.Go(func() { r.Refill(t.Context(), []*aggregator.Record{record}) })
		}
		all.Go(func() {
			client = w.write(b, "SET rf = :a ADD b_rpm_tk :b", "rf = :c",
				start.UnixMilli(), gained, b.RefilledMS)
		})
		all.Wait()
		wrote, lost := refills()
		wrote, lost = wrote-wroteBefore, lost-lostBefore
		if client {
			won[1]++
			wrote++
		} else {
			won[0]++
			lost++
		}
		if got := w.bucket(b).Limits[0].Balance; wrote != 1 || lost != 2 || got != 200_000+gained {
			t.Fatalf("round %d: %d refills, %d lost, %d left", round, wrote, lost, got)
		}
	}
	t.Logf("the aggregators won %d times, the client %d times", won[0], won[1])
}

// TestRefillManyLimits checks that an item with the most limits that are refilled is: its
// expressions are the longest.
func TestRefillManyLimits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var names []string
	for i := range 35 {
		names = append(names, fmt.Sprintf("a-limit.with_a-name.%02d", i))
	}
	b := w.lowItem(names...)
	b.TTL, b.ValidUntil, b.Shards = start.Unix()+9, new(start.UnixMilli()+9), 1
	for i := range b.Limits {
		if i > 0 {
			b.Limits[i].Balance = 580_000 // full, so that its lowest balance is in the condition
		}
	}
	w.store(b.Item())
	r := w.refills()
	more := w.lowItem(append(names, "one-more")...)
	r.Refill(t.Context(), []*aggregator.Record{recordOf(more)})
	if s := r.Summary(); s.RefillsFailed+s.RefillsLost+s.Refills != 0 {
		t.Errorf("%d limits: got %+v", len(more.Limits), s)
	}
	r.Refill(t.Context(), []*aggregator.Record{recordOf(b)})
	if s := r.Summary(); s.Refills != 1 {
		t.Errorf("got %+v", s)
	}
}

// TestRefillsFailed checks that an error of a refill is logged and counted, and that the others are
// made.
func TestRefillsFailed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	good, bad, gone := w.lowItem("rpm"), w.lowItem("rpm"), w.lowItem("rpm")
	good.Entity, bad.Entity, gone.Entity, gone.Namespace = "good", "bad", "gone", "gone"
	for _, b := range []*schema.Bucket{good, bad, gone} {
		w.store(b.Item())
	}
	var log bytes.Buffer
	r := w.readerOf(w.client(refuseUpdates(bad.ID().PK())), func(o *stream.Options) {
		o.Refill, o.Logger = true, slog.New(slog.NewTextHandler(&log, nil))
	})
	r.Refill(t.Context(), []*aggregator.Record{recordOf(bad), recordOf(gone), recordOf(good)})
	if s := r.Summary(); s.Refills != 1 || s.RefillsLost != 0 || s.RefillsFailed != 1 {
		t.Errorf("got %+v", s)
	}
	if text := log.String(); !strings.Contains(text, "level=WARN") || !strings.Contains(text, "#bad#") {
		t.Errorf("got the log %s", text)
	}
	if w.bucket(gone).RefilledMS != gone.RefilledMS {
		t.Error("refilled in a namespace that does not exist")
	}
	off := w.reader()
	if off.Refill(t.Context(), []*aggregator.Record{recordOf(bad)}); off.Summary().Refills != 0 {
		t.Error("refilled although the option is off")
	}
}

// refuseUpdates makes the updates of a partition fail.
func refuseUpdates(pk string) func(*ddb.Options) {
	refuse := func(
		ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler,
	) (middleware.InitializeOutput, middleware.Metadata, error) {
		u, isUpdate := in.Parameters.(*ddb.UpdateItemInput)
		if isUpdate && schema.StringAttribute(u.Key, schema.AttrPK) == pk {
			return middleware.InitializeOutput{}, middleware.Metadata{}, errors.New("no update today")
		}
		return next.HandleInitialize(ctx, in)
	}
	return func(o *ddb.Options) {
		o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
			return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("refuse", refuse), middleware.Before)
		})
	}
}

// TestRefillStream refills after records of the table's stream, and then reads refills there: it
// writes nothing more, in ten minutes with a read each second.
func TestRefillStream(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	l := w.process()
	if err := l.SetLimits(t.Context(), weir.Subject{}, []weir.Limit{
		{Name: "rpm", Kind: weir.Bucket, Capacity: 600, RefillAmount: 600, RefillPeriod: time.Minute},
	}); err != nil {
		t.Fatal(err)
	}
	w.take(l, "acme", weir.Costs{"rpm": 590})
	w.close(l)
	now := start.Add(10 * time.Second)
	w.at(now)
	refill := func(o *stream.Options) { o.Refill = true }
	if s := w.count(refill); s.Refills != 1 || s.RefillsLost+s.RefillsFailed != 0 {
		t.Errorf("got %+v", s)
	}
	b := w.bucket(&schema.Bucket{Namespace: w.ns, Entity: "acme", Resource: resource})
	if b.RefilledMS != now.UnixMilli() || b.Limits[0].Balance != 10_000+gained {
		t.Errorf("got %+v", b)
	}
	w.judge(hours(w.usage()), hours(w.tally))

	w.calls.Reset()
	w.write(b, "SET rf = :a ADD b_rpm_tk :b", "", now.UnixMilli()+100, 1000) // of another aggregator
	end := w.at(now)
	passes := 0
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r := w.reader(refill, func(o *stream.Options) {
		o.Once = false
		o.Wait = func(ctx context.Context, _ time.Duration) error {
			if passes++; passes >= 600 && w.clock.seen(end) {
				cancel()
			}
			return ctx.Err()
		}
		o.Now = func() time.Time { return now.Add(time.Duration(passes) * time.Second) }
	})
	if err := r.Run(ctx); err != nil {
		t.Fatal(err)
	}
	// The last write is of the time up to which the stream was read.
	writes, s := w.calls.Snapshot().Writes(), r.Summary()
	if writes > 1 || s.Refills != 0 || s.Records == 0 {
		t.Errorf("got %d writes and %+v", writes, s)
	}
}
