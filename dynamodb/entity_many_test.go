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

// tired is a way to the table of a caller who goes after so many requests.
type tired struct {
	base    http.RoundTripper
	left    atomic.Int64
	going   context.CancelFunc
	updates atomic.Int64 // requests that update one item

	mu sync.Mutex
	// together and most are how many requests are under way, and were at most.
	together, most int
}

// RoundTrip passes a request on, if the caller is still there.
func (r *tired) RoundTrip(req *http.Request) (*http.Response, error) {
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

// tries makes a change again and again, each time with so many requests, and returns how often it
// took. After each time left must be less.
func (r *tired) tries(
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

// manyResources is how many resources the entity of these tests has buckets on.
const manyResources = 100

// manyBuckets is an entity with buckets on many resources, some with two shards.
func manyBuckets(t *testing.T) (*Store, *Store, *tired, []schema.BucketID) {
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
	r := &tired{base: http.DefaultTransport.(*http.Transport).Clone()}
	r.left.Store(1 << 30)
	return s, s.behind(t, testkit.NewFaults(&testkit.FaultOptions{Base: r})), r, ids
}

// operationKey is the key of the Python library's record of a reset or top-up of a bucket.
func operationKey(id schema.BucketID, operation string) schema.Key {
	id.Shard = 0
	return schema.Key{PK: id.PK(), SK: schema.SKOperationPrefix + operation}
}

// TestManyBucketsAreDeletedInParts: whoever deletes an entity with many buckets need not have the
// time to do it at once.
func TestManyBucketsAreDeletedInParts(t *testing.T) {
	t.Parallel()
	s, slow, r, ids := manyBuckets(t)
	record := operationKey(ids[len(ids)-1], "once")
	s.also(t, record, nil)
	for i := range 60 {
		usage := schema.NewUsage(ids[0], schema.Hourly, configNow)
		usage.WindowKey = fmt.Sprintf("%s-%d", usage.WindowKey, i)
		s.put(t, usage.Item())
	}
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

// TestManyBucketsAreToldInParts: a change of parent reaches them all in the end, and tells nobody
// twice.
func TestManyBucketsAreToldInParts(t *testing.T) {
	t.Parallel()
	s, slow, r, ids := manyBuckets(t)
	quiet := schema.ResourceConfigKey(s.config.Namespace, "model-007")
	s.also(t, quiet, schema.Item{schema.AttrCascade: truthOf(false)})
	untold := func() int {
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
	t.Logf("in %d parts", r.tries(t, 70, change, untold))
	if r.most > client.MaxParallel {
		t.Errorf("got %d requests at once, want at most %d", r.most, client.MaxParallel)
	}
	// Those of the requests that were cut short may have been made twice.
	if got, want := r.updates.Load(), int64(len(ids)+client.MaxParallel*10); got > want {
		t.Errorf("got %d buckets told, want at most %d", got, want)
	}
	r.left.Store(1 << 30)
	r.updates.Store(0)
	if err := change(t.Context()); err != nil || r.updates.Load() != 0 {
		t.Errorf("all know: got %d told again, %v", r.updates.Load(), err)
	}
	s.also(t, ids[3].Key(), schema.Item{schema.AttrParent: schema.String("stranger")})
	if err := change(t.Context()); err != nil || r.updates.Load() != 1 || untold() != 0 {
		t.Errorf("one does not: got %d told, %v, and %d left", r.updates.Load(), err, untold())
	}
}
