package driver_test

import (
	"context"
	"fmt"
	"log"
	"sync"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/kernel"
	"github.com/weir-limiter/weir/limiter"
)

// bucketStore is a complete store that keeps buckets in a map. It has no other kinds and no shadow
// limits, and says so in its traits. One lock makes every call atomic.
type bucketStore struct {
	mu          sync.Mutex
	definitions *weir.Definitions
	buckets     map[bucketKey]kernel.Bucket
}

// bucketKey names a limit of a subject.
type bucketKey struct {
	weir.Subject
	limit string
}

var (
	_ driver.Store        = (*bucketStore)(nil)
	_ driver.ConfigReader = (*bucketStore)(nil)
	_ driver.ConfigWriter = (*bucketStore)(nil)
)

func openBuckets(d *weir.Definitions) (*bucketStore, error) {
	s := &bucketStore{buckets: make(map[bucketKey]kernel.Bucket)}
	return s, s.WriteConfig(context.Background(), time.Time{}, d)
}

// Traits returns what the store can do. The limiter refuses what it cannot.
func (s *bucketStore) Traits() driver.Traits {
	return driver.Traits{Kinds: []weir.Kind{weir.Bucket}, NoShadow: true, CascadeDepth: 8, Local: true}
}

// loaded is a copy of a bucket on which a call works.
type loaded struct {
	kernel.Bucket
	key  bucketKey
	used bool // the limit was used before
}

// load returns a copy of a bucket, or a full one if the limit was never used.
func (s *bucketStore) load(ms int64, of weir.Subject, l *weir.Limit) loaded {
	key := bucketKey{of, l.Name}
	if b, ok := s.buckets[key]; ok {
		return loaded{b, key, true}
	}
	return loaded{*kernel.NewBucket(ms, l.Definition()), key, false}
}

// Reserve judges a copy of every bucket, and stores the copies when all of them are judged. So a
// denial has nothing to undo.
func (s *bucketStore) Reserve(_ context.Context, now time.Time, p *driver.Plan, out *driver.Outcome) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	ms := now.UnixMilli()
	out.At = time.UnixMilli(ms)
	buckets := make([]loaded, len(p.Takes))
	for i, t := range p.Takes {
		b := s.load(ms, t.Subject, t.Limit)
		b.Redefine(ms, t.Limit.Definition())
		available, retryAfter, fits := kernel.Judge(&b, ms, t.Cost(), t.Ceiling, t.Limit.Capacity)
		out.Limits[i] = weir.LimitStatus{
			Entity: t.Entity, Resource: t.Resource, Limit: t.Limit.Name, Kind: weir.Bucket, Level: t.Level,
			Capacity: t.Ceiling, Available: available, Requested: t.Cost(),
			Exceeded: !fits, RetryAfter: retryAfter,
		}
		out.Denied = out.Denied || !fits
		buckets[i] = b
	}
	for i, t := range p.Takes {
		b := &buckets[i]
		if out.Denied && !b.used {
			continue // a denial leaves a limit that was never used as it is
		}
		if !out.Denied {
			b.Take(ms, t.Cost())
			out.Limits[i].Available -= t.Cost()
		}
		s.buckets[b.key] = b.Bucket
	}
	return nil
}

// Update charges or refunds the difference of what a lease stands for. An extend changes no bucket.
func (s *bucketStore) Update(_ context.Context, now time.Time, u *driver.Update, out *driver.Outcome) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	ms := now.UnixMilli()
	out.At = time.UnixMilli(ms)
	if u.Verb == weir.VerbExtend {
		return nil
	}
	for i := range u.Changes { // check all changes before the first is applied
		c := &u.Changes[i]
		b := s.load(ms, c.Holding.Subject, c.Limit)
		if c.To > c.From && !b.CanCount(ms, kernel.Change{From: c.From, To: c.To}) {
			return weir.NewError(weir.Invalid, "totals."+c.Limit.Name, c.To, "does not fit the bucket")
		}
	}
	for i := range u.Changes {
		c := &u.Changes[i]
		b := s.load(ms, c.Holding.Subject, c.Limit)
		b.Redefine(ms, c.Limit.Definition())
		b.Apply(ms, kernel.Change{From: c.From, To: c.To, Ends: u.Ends()})
		s.buckets[b.key] = b.Bucket
	}
	return nil
}

// Status reads, and stores nothing.
func (s *bucketStore) Status(_ context.Context, now time.Time, of []driver.Judged) ([]weir.LimitStatus, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ms := now.UnixMilli()
	var statuses []weir.LimitStatus
	for i := range of {
		for j := range of[i].Limits {
			l := &of[i].Limits[j]
			b := s.load(ms, of[i].Subject, l)
			statuses = append(statuses, weir.LimitStatus{
				Entity: of[i].Entity, Resource: of[i].Resource, Limit: l.Name, Kind: weir.Bucket,
				Level: of[i].Level, Capacity: l.Capacity, Available: b.AvailableAt(ms, l.Definition()),
			})
		}
	}
	return statuses, nil
}

// ReadConfig returns the limits that are configured for a subject.
func (s *bucketStore) ReadConfig(_ context.Context, of weir.Subject, _ bool) (*weir.Config, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.definitions.Config(of), nil
}

// WriteConfig replaces the configuration.
func (s *bucketStore) WriteConfig(_ context.Context, _ time.Time, d *weir.Definitions) error {
	d, err := d.Normalize()
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.definitions = d
	return nil
}

// Close has nothing to write.
func (s *bucketStore) Close() error { return nil }

// This is a whole store, of buckets in a map. It passes the suite of package conformance. The
// guide docs/new-backend.md explains each method.
func Example() {
	store, err := openBuckets(&weir.Definitions{System: []weir.Limit{{Name: "rpm", Capacity: 60}}})
	if err != nil {
		log.Fatal(err)
	}
	l, err := limiter.New(store, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close()

	lease, err := l.Reserve(context.Background(), &weir.Request{
		Entity: "acme", Resource: "gpt-4o", Costs: weir.Costs{"rpm": 20},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(lease.Limits[0].Available, "left")
	// Output: 40 left
}
