package dynamodb

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/internal/schema"
	"github.com/weir-limiter/weir/internal/testkit"
)

// leavingCaller is a transport whose caller leaves after a given number of requests.
type leavingCaller struct {
	base    http.RoundTripper
	left    atomic.Int64
	going   context.CancelFunc
	updates atomic.Int64 // requests that update one item

	mu sync.Mutex
	// together and most are the number of requests in flight, now and at most.
	together, most int
}

// RoundTrip sends a request if the caller has not left.
func (r *leavingCaller) RoundTrip(req *http.Request) (*http.Response, error) {
	if r.left.Add(-1) < 0 {
		r.going()
		return nil, context.Canceled
	}
	r.mu.Lock()
	r.together++
	r.most = max(r.most, r.together)
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		r.together--
		r.mu.Unlock()
	}()
	if req.Header.Get("X-Amz-Target") == "DynamoDB_20120810.UpdateItem" {
		r.updates.Add(1)
	}
	return r.base.RoundTrip(req)
}

// tries repeats a change, each time with the given number of requests, until it succeeds, and
// returns the number of attempts. The result of left must decrease each time.
func (r *leavingCaller) tries(
	t *testing.T, requests int64, change func(context.Context) error, left func() int,
) int {
	t.Helper()
	before := left()
	for n := 1; ; n++ {
		ctx, cancel := context.WithCancel(t.Context())
		r.going = cancel
		r.left.Store(requests)
		err := change(ctx)
		cancel()
		now := left()
		if err == nil && now == 0 {
			return n
		}
		if !errors.Is(err, weir.Unavailable) || now >= before {
			t.Fatalf("after %d times: got %v and %d left of %d", n, err, now, before)
		}
		before = now
	}
}

// manyResources is the number of resources on which the entity of these tests has buckets.
const manyResources = 100

// manyBuckets creates an entity with buckets on many resources, some with two shards.
func manyBuckets(t *testing.T) (*Store, *Store, *leavingCaller, []schema.BucketID) {
	t.Helper()
	s := configured(t)
	s.mustEntity(t, "top", "", false)
	s.mustEntity(t, "acme", "", false)
	var ids []schema.BucketID
	for i := range manyResources {
		shards := 1 + i%2
		for shard := range shards {
			ids = append(ids, s.bucket(t, "acme", fmt.Sprintf("model-%03d", i), shard, shards))
		}
	}
	r := &leavingCaller{base: http.DefaultTransport.(*http.Transport).Clone()}
	r.left.Store(1 << 30)
	return s, s.behind(t, testkit.NewFaults(&testkit.FaultOptions{Base: r})), r, ids
}

// operationKey returns the key of the Python library's record of a reset or top-up of a bucket.
func operationKey(id schema.BucketID, operation string) schema.Key {
	id.Shard = 0
	return schema.Key{PK: id.PK(), SK: schema.SKOperationPrefix + operation}
}

// TestManyBucketsAreDeletedInParts checks that an entity with many buckets can be deleted by
// callers that each leave before the end.
func TestManyBucketsAreDeletedInParts(t *testing.T) {
	t.Parallel()
	s, slow, r, ids := manyBuckets(t)
	record := operationKey(ids[len(ids)-1], "once")
	s.also(t, record, nil)
	n := r.tries(t, 40, func(ctx context.Context) error {
		return slow.admin.DeleteEntity(ctx, configNow, "acme")
	}, func() int {
		rest, err := s.client.QueryAll(t.Context(), client.Partition(schema.EntityPK(s.config.Namespace, "acme"), "", true))
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range ids {
			if item := s.item(t, id.Key()); item != nil {
				rest = append(rest, item)
			}
		}
		return len(rest)
	})
	t.Logf("in %d parts", n)
	if r.most > client.MaxParallel {
		t.Errorf("got %d requests at once, want at most %d", r.most, client.MaxParallel)
	}
	if item := s.item(t, record); item != nil {
		t.Errorf("left: %v", item)
	}
}

// TestManyBucketsAreStampedInParts checks that a change of parent stamps all buckets in the end,
// and none of them twice.
func TestManyBucketsAreStampedInParts(t *testing.T) {
	t.Parallel()
	s, slow, r, ids := manyBuckets(t)
	quiet := schema.ResourceConfigKey(s.config.Namespace, "model-007")
	s.also(t, quiet, schema.Item{schema.AttrCascade: truthOf(false)})
	unstamped := func() int {
		n := 0
		for _, id := range ids {
			if b := s.mustBucket(t, id); b.Parent != "top" || b.Cascade != (id.Resource != "model-007") {
				n++
			}
		}
		return n
	}
	change := func(ctx context.Context) error {
		return slow.admin.WriteEntity(ctx, configNow, "acme", "top", true)
	}
	t.Logf("in %d parts", r.tries(t, 70, change, unstamped))
	if r.most > client.MaxParallel {
		t.Errorf("got %d requests at once, want at most %d", r.most, client.MaxParallel)
	}
	// Stamps whose request was interrupted may have been written twice.
	if got, want := r.updates.Load(), int64(len(ids)+client.MaxParallel*10); got > want {
		t.Errorf("got %d buckets stamped, want at most %d", got, want)
	}
	r.left.Store(1 << 30)
	r.updates.Store(0)
	if err := change(t.Context()); err != nil || r.updates.Load() != 0 {
		t.Errorf("all are stamped: got %d stamped again, %v", r.updates.Load(), err)
	}
	s.also(t, ids[3].Key(), schema.Item{schema.AttrParent: schema.String("stranger")})
	if err := change(t.Context()); err != nil || r.updates.Load() != 1 || unstamped() != 0 {
		t.Errorf("one is not stamped: got %d stamped, %v, and %d left", r.updates.Load(), err, unstamped())
	}
}
