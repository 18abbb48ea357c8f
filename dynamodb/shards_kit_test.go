package dynamodb

import (
	"errors"
	"fmt"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/admin"
	"github.com/weir-limiter/weir/internal/schema"
)

// units are the balances of a shard by limit, in units.
type units map[string]int64

// putShards writes the shards of a bucket with the given balances; nil leaves a shard out. All of
// them have the same shard count.
func (w *tableWorld) putShards(entity string, count int, limits []weir.Limit, shards ...units) {
	w.Helper()
	all, err := admin.StoredLimits(limits)
	if err != nil {
		w.Fatalf("limits: %v", err)
	}
	for i, has := range shards {
		if has == nil {
			continue
		}
		b, err := schema.NewBucket(w.id(entity, i), w.clock.Now().UnixMilli(), all)
		if err != nil {
			w.Fatalf("new bucket: %v", err)
		}
		b.Shards = count
		for k := range b.Limits {
			b.Limits[k].Balance = has[b.Limits[k].Name] * 1000
		}
		w.put(b)
	}
}

// erase deletes shards, as DynamoDB deletes them after they expire.
func (w *tableWorld) erase(entity string, shards ...int) {
	w.Helper()
	for _, shard := range shards {
		in := &ddb.DeleteItemInput{TableName: &w.table.Name, Key: w.id(entity, shard).Key().Item()}
		if _, err := w.eye.store.client.API.DeleteItem(w.Context(), in); err != nil {
			w.Fatalf("delete: %v", err)
		}
	}
}

// count returns the shard count on the first shard.
func (w *tableWorld) count(entity string) int {
	w.Helper()
	b := w.bucket(entity, 0)
	if b == nil {
		w.Fatalf("at %s: %s has no first shard", w.since(), entity)
	}
	return b.Shards
}

// together checks the sum of a limit over all shards of a bucket, in milli-units.
func (w *tableWorld) together(entity, limit string, milli int64) {
	w.Helper()
	left, _ := w.sum(entity, limit)
	equal(w, "all shards of "+entity+" together", left, milli)
}

// maxPicks is the number of random picks of a shard after which a case gives up. One of 32 shards
// is never picked in that many with a probability of 10^-12.
const maxPicks = 1000

// createShards makes requests with a cost of 0 until the given number of shards exist. Each request
// picks a shard, creates it if needed, and is admitted.
func (p *process) createShards(entity, limit string, shards int) {
	p.w.Helper()
	for range maxPicks {
		if len(p.w.shards(entity)) >= shards {
			return
		}
		p.admit(entity, weir.Costs{limit: 0})
	}
	p.w.Fatalf("at %s: %d shards are there, want %d", p.w.since(), len(p.w.shards(entity)), shards)
}

// takeAll reserves as much of a limit as is admitted, in large amounts first.
func (p *process) takeAll(entity, limit string, capacity int64) int64 {
	p.w.Helper()
	var got int64
	for unit := capacity; unit > 0; {
		_, err := p.ask(entity, weir.Costs{limit: unit})
		switch {
		case err == nil:
			if got += unit; got > 4*capacity {
				p.w.Fatalf("at %s: %d of %d were admitted, and it goes on", p.w.since(), got, capacity)
			}
		case isDenied(err):
			unit /= 2
		default:
			p.w.Fatalf("at %s: take %d: %v", p.w.since(), unit, err)
		}
	}
	return got
}

// exactly checks that the given number of units is admitted, and no more.
func (p *process) exactly(entity, limit string, capacity, want int64) {
	p.w.Helper()
	equal(p.w, "admitted until the first denial of 1", p.takeAll(entity, limit, capacity), want)
}

// meanwhile calls f with the number of the transaction before each transaction of a process is
// sent: the process has then read what it decides by.
func meanwhile(f func(n int)) *wrong {
	n := 0
	return &wrong{update: func(u *bucketUpdate) {
		if u.together {
			n++
			f(n)
		}
	}}
}

// trial returns an entity for each trial of a case that depends on random picks.
func trial(n int) string { return fmt.Sprintf("%s-%d", testEntity, n) }

// isDenied reports whether an error is a denial by a limit.
func isDenied(err error) bool {
	d, ok := errors.AsType[*weir.DeniedError](err)
	return ok && !d.Contended
}
