package dynamodb

import (
	"errors"
	"fmt"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/admin"
	"github.com/weir-limiter/weir/internal/schema"
)

// units is what a shard has of each limit.
type units map[string]int64

// lay puts the shards of a bucket by their number, each with what it has; nil is one that is not
// there. All of them say the same count.
func (w *neverWorld) lay(entity string, count int, limits []weir.Limit, shards ...units) {
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

// erase deletes shards, as DynamoDB does when they have expired.
func (w *neverWorld) erase(entity string, shards ...int) {
	w.Helper()
	for _, shard := range shards {
		in := &ddb.DeleteItemInput{TableName: &w.table.Name, Key: w.id(entity, shard).Key().Item()}
		if _, err := w.eye.store.client.API.DeleteItem(w.Context(), in); err != nil {
			w.Fatalf("delete: %v", err)
		}
	}
}

// count is how many shards the first one says there are.
func (w *neverWorld) count(entity string) int {
	w.Helper()
	b := w.bucket(entity, 0)
	if b == nil {
		w.Fatalf("at %s: %s has no first shard", w.since(), entity)
	}
	return b.Shards
}

// together expects what all shards of a bucket have of a limit, in milli-units.
func (w *neverWorld) together(entity, limit string, milli int64) {
	w.Helper()
	left, _ := w.sum(entity, limit)
	equal(w, "all shards of "+entity+" together", left, milli)
}

// mostDraws is how often a shard is drawn at random in vain before a case gives up: of 32 shards
// one is left out so often once in 10^12.
const mostDraws = 1000

// summon asks for nothing until so many shards are there. Each request is drawn by one, which makes
// it, and is admitted.
func (p *process) summon(entity, limit string, shards int) {
	p.w.Helper()
	for range mostDraws {
		if len(p.w.shards(entity)) >= shards {
			return
		}
		p.admit(entity, weir.Costs{limit: 0})
	}
	p.w.Fatalf("at %s: %d shards are there, want %d", p.w.since(), len(p.w.shards(entity)), shards)
}

// takeAll takes of a limit as much as is admitted, in large pieces first.
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

// exactly expects that as much is admitted, and no more.
func (p *process) exactly(entity, limit string, capacity, want int64) {
	p.w.Helper()
	equal(p.w, "admitted until the first denial of 1", p.takeAll(entity, limit, capacity), want)
}

// meanwhile calls f before each transaction of a process is sent, with the number of it: so long
// has the process read what it goes by.
func meanwhile(f func(n int)) *wrong {
	n := 0
	return &wrong{update: func(u *bucketUpdate) {
		if u.together {
			n++
			f(n)
		}
	}}
}

// trial names an entity of its own for each trial of a case that is drawn at random.
func trial(n int) string { return fmt.Sprintf("%s-%d", neverEntity, n) }

// isDenied reports whether an error is a denial by a limit.
func isDenied(err error) bool {
	d, ok := errors.AsType[*weir.DeniedError](err)
	return ok && !d.Contended
}
