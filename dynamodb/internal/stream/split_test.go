package stream_test

import (
	"context"
	"reflect"
	"sync"
	"testing"
	"time"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb"
	"github.com/weir-limiter/weir/dynamodb/internal/stream"
	"github.com/weir-limiter/weir/internal/schema"
)

// splitWrites counts the writes of shard counts, and fails them if it is told to.
type splitWrites struct {
	mu   sync.Mutex
	n    int
	fail error
}

func (s *splitWrites) install(o *ddb.Options) {
	o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
		return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("test:splits", s.call), middleware.After)
	})
}

func (s *splitWrites) call(
	ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler,
) (out middleware.InitializeOutput, metadata middleware.Metadata, err error) {
	if u, ok := in.Parameters.(*ddb.UpdateItemInput); ok {
		for _, name := range u.ExpressionAttributeNames {
			if name != schema.AttrShardCount {
				continue
			}
			s.mu.Lock()
			s.n++
			s.mu.Unlock()
			if s.fail != nil {
				return out, metadata, s.fail
			}
		}
	}
	return next.HandleInitialize(ctx, in)
}

// busy makes some reservations, each with a write.
func (w *world) busy(entity string, n int) {
	w.Helper()
	l := w.process(func(o *dynamodb.Options) { o.ProcessLeases = true })
	for range n {
		w.take(l, entity, weir.Costs{"rpm": 1})
	}
	w.close(l)
}

// hotWrites is the number of writes in a second at which these tests split.
const hotWrites = 5

// TestSplit checks that a hot bucket is split, once, and that the new shard is left to the process
// that first draws it.
func TestSplit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.setLimit(divisible)
	w.busy("hot", hotWrites)
	w.busy("cold", hotWrites-1)
	s := w.count(hotAt(hotWrites))
	if s.Splits != 1 || s.Raised != 0 || s.SplitsFailed != 0 {
		t.Errorf("got %+v", s)
	}
	w.judgeCounts("hot", 2, 0)
	w.judgeCounts("cold", 1, 0)
	w.judge(hours(w.usage()), hours(w.tally))
	w.at(start.Add(2 * time.Second))
	w.busy("hot", 4*hotWrites) // on two shards
	if s := w.count(hotAt(hotWrites)); s.Splits != 0 {
		t.Errorf("a reader that has not seen the count before: got %+v", s)
	}
	w.judgeCounts("hot", 2, 0, 1)
	w.judge(hours(w.usage()), hours(w.tally))
}

// TestSplitLate checks that writes of which the aggregator learns late split nothing: the bucket may
// be idle by now.
func TestSplitLate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.setLimit(divisible)
	w.busy("hot", hotWrites)
	w.at(start.Add(2 * time.Minute))
	if s := w.count(hotAt(hotWrites)); s.Splits != 0 {
		t.Errorf("got %+v", s)
	}
	w.judgeCounts("hot", 1, 0)
}

// TestSplitOff checks that nothing is split if that is turned off, or in a namespace that was
// deleted.
func TestSplitOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.setLimit(divisible)
	w.busy("hot", hotWrites)
	w.putShard("two", 0, 2)
	w.putShard("two", 1, 2)
	w.putShard("two", 0, 4)
	off := hotAt(-1)
	if s := w.count(off); s.Splits != 0 || s.Raised != 0 {
		t.Errorf("turned off: got %+v", s)
	}
	n, _, err := w.table.RegisterNamespace(t.Context(), "gone")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.table.DeleteNamespace(t.Context(), "gone"); err != nil {
		t.Fatal(err)
	}
	id := w.bucketID("gone")
	id.Namespace = n.ID
	w.putBucket(id, 1)
	for n := range int64(2 * hotWrites) {
		w.update(id.Key(), "SET b_rpm_tc = :n", nil, schema.Item{":n": schema.Number(1 + n)})
	}
	second := id
	second.Shard = 1
	w.putBucket(id, 2)
	w.putBucket(second, 2)
	w.putBucket(id, 4)
	calls := &splitWrites{}
	s := w.countBy(func() *stream.Reader { return w.readerOf(w.client(calls.install), hotAt(hotWrites)) })
	if s.Splits != 0 || s.Raised != 0 || calls.n != 0 {
		t.Errorf("a deleted namespace: got %+v and %d writes", s, calls.n)
	}
	w.judgeCounts("hot", 1, 0)
}

// TestSplitPropagates checks that a count that a process has raised on the first shard only, and
// then ended, is raised on the other shards that exist: by a batch that holds nothing else. The
// same records again change nothing.
func TestSplitPropagates(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for shard := range 3 {
		w.putShard("acme", shard, 4)
	}
	w.count()
	before := w.shards("acme")
	w.update(w.shardID("acme", 0).Key(), "SET shard_count = :n", nil, schema.Item{":n": schema.Number(8)})
	if s := w.count(); s.Raised != 2 || s.Splits != 0 || s.Counted != 0 {
		t.Errorf("got %+v", s)
	}
	w.judgeCounts("acme", 8, 0, 1, 2)
	after := w.shards("acme")
	if !reflect.DeepEqual(after[1].Limits, before[1].Limits) {
		t.Errorf("the raise changed more than the count: %+v", after[1])
	}
	w.forgetCheckpoints()
	calls := &splitWrites{}
	s := w.countBy(func() *stream.Reader { return w.readerOf(w.client(calls.install)) })
	if s.Raised != 0 || s.SplitsFailed != 0 || calls.n == 0 {
		t.Errorf("again: got %+v and %d writes", s, calls.n)
	}
	if !reflect.DeepEqual(w.shards("acme"), after) {
		t.Errorf("the second time changed items: got %v", w.shards("acme"))
	}
}

// forgetCheckpoints deletes the checkpoints, so that the whole stream is read again.
func (w *world) forgetCheckpoints() {
	w.Helper()
	pages := ddb.NewScanPaginator(w.c.API, &ddb.ScanInput{TableName: &w.table.Name, ConsistentRead: new(true)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(w.Context())
		if err != nil {
			w.Fatal(err)
		}
		for _, item := range page.Items {
			if _, err := schema.ParseCheckpoint(item); err != nil {
				continue
			}
			key, err := schema.KeyOf(item)
			if err != nil {
				w.Fatal(err)
			}
			in := &ddb.DeleteItemInput{TableName: &w.table.Name, Key: key.Item()}
			if _, err := w.c.API.DeleteItem(w.Context(), in); err != nil {
				w.Fatal(err)
			}
		}
	}
}

// TestSplitOnce checks that the aggregator does not raise counts again when its own doubling comes
// back in the stream.
func TestSplitOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.putShard("acme", 0, 2)
	w.putShard("acme", 1, 2)
	w.at(start.Add(2 * time.Second))
	for range hotWrites {
		w.putShard("acme", 1, 2)
		w.update(w.shardID("acme", 1).Key(), "SET b_rpm_tc = :n", nil, schema.Item{":n": schema.Number(5)})
	}
	calls := &splitWrites{}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	end, passes := 0, 0
	r := w.readerOf(w.client(calls.install), hotAt(hotWrites), func(o *stream.Options) {
		o.Once = false
		o.Wait = func(ctx context.Context, _ time.Duration) error {
			passes++
			switch {
			case passes > 2000, end > 0 && w.clock.seen(end):
				cancel()
			case end == 0 && len(w.shards("acme")) == 2 && w.shards("acme")[1].Shards == 4:
				end = w.at(w.clock.now()) // after the records of the doubling
			}
			return ctx.Err()
		}
	})
	if err := r.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if s := r.Summary(); s.Splits != 1 || s.Raised != 1 || calls.n != 2 {
		t.Errorf("got %+v and %d writes, want a doubling and a raise", s, calls.n)
	}
	w.judgeCounts("acme", 4, 0, 1)
}

// TestSplitFails checks that a doubling that fails does not keep the batch from being counted, and
// is made when the bucket is hot again.
func TestSplitFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.setLimit(divisible)
	w.busy("hot", hotWrites)
	calls := &splitWrites{fail: &types.ProvisionedThroughputExceededException{}}
	s := w.countBy(func() *stream.Reader { return w.readerOf(w.client(calls.install), hotAt(hotWrites)) })
	if s.Splits != 0 || s.SplitsFailed != 1 || s.Counted != hotWrites {
		t.Errorf("got %+v", s)
	}
	w.judgeCounts("hot", 1, 0)
	w.judge(hours(w.usage()), hours(w.tally))
	w.at(start.Add(time.Second))
	w.busy("hot", hotWrites)
	if s := w.count(hotAt(hotWrites)); s.Splits != 1 {
		t.Errorf("a second later: got %+v", s)
	}
	w.judge(hours(w.usage()), hours(w.tally))
}
