package dynamodb

import (
	"strconv"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/bucketitem"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/internal/schema"
)

// costShards is the shard count of the buckets in these rows.
const costShards = 4

// shardCosts returns the rows of a bucket with several shards.
func shardCosts() []costRow {
	return []costRow{
		{
			what:    "4 shards: reserve, warm",
			prepare: warmShards, do: func(_ *costWorld, p *costProcess) { p.take("solo", one()) },
			before: "1 UpdateItem",
			full:   costUnits{0, 2000}, lean: costUnits{0, 1000},
		},
		{
			what:    "4 shards: more than any one has, drawn from all",
			prepare: warmShards, do: func(_ *costWorld, p *costProcess) { p.take("solo", weir.Costs{"rpm": 1000}) },
			before: "1 BatchGetItem, 5 UpdateItem (1 refused)",
			full:   costUnits{4000, 9000}, lean: costUnits{4000, 5000},
		},
		{
			what: "4 shards: denied",
			prepare: func(s *costWorld) *costProcess {
				p := warmShards(s)
				p.take("solo", weir.Costs{"rpm": 1000})
				return p
			},
			do:     func(_ *costWorld, p *costProcess) { p.refused("solo", one()) },
			before: "1 BatchGetItem, 1 UpdateItem (1 refused)",
			full:   costUnits{4000, 1000}, lean: costUnits{4000, 1000},
		},
		{
			what: "4 shards: denied again within a second",
			prepare: func(s *costWorld) *costProcess {
				p := warmShards(s)
				p.take("solo", weir.Costs{"rpm": 1000})
				p.refused("solo", one())
				return p
			},
			do:     func(_ *costWorld, p *costProcess) { p.refused("solo", one()) },
			before: "none",
		},
		shardRefund("4 shards: cancel, and the bucket is full again", 2*time.Minute, costRow{
			before: "1 UpdateItem", after: "1 BatchGetItem",
			full: costUnits{4000, 2000}, lean: costUnits{4000, 1000},
		}),
		shardRefund("4 shards: cancel, and only another shard has room", 0, costRow{
			before: "1 UpdateItem", after: "1 BatchGetItem, 1 UpdateItem",
			full: costUnits{4000, 4000}, lean: costUnits{4000, 2000},
		}),
		shardOverrun("4 shards: complete with more than the shard has"),
	}
}

// movesUnits selects the requests that move units between the shards of a bucket: a read of all of
// them and the writes after it, until the function that it returns is called.
func movesUnits() (selects func(sentRequest) bool, reset func()) {
	var reads atomic.Bool
	return func(r sentRequest) bool {
		if r.operation == "BatchGetItem" {
			reads.Store(true)
		}
		return reads.Load()
	}, func() { reads.Store(false) }
}

// shardRefund returns the row of a cancel of a lease that took the whole share of a shard. Before
// it, the shard is full again: after a wait, as all others are, or because its units were given
// to it by another shard.
func shardRefund(what string, wait time.Duration, row costRow) costRow {
	var lease *weir.Lease
	later, reset := movesUnits()
	row.what, row.later = what, later
	row.prepare = func(s *costWorld) *costProcess {
		reset()
		p := warmShards(s)
		lease = p.take("solo", weir.Costs{"rpm": 250})
		s.clock.Advance(wait)
		if wait == 0 {
			s.exchange("solo")
		}
		s.refill(p, "solo")
		return p
	}
	row.do = func(_ *costWorld, p *costProcess) {
		if _, err := lease.Cancel(p.t.Context()); err != nil {
			p.t.Fatal(err)
		}
	}
	return row
}

// exchange moves the units of a full shard to the one that is empty.
func (s *costWorld) exchange(entity string) {
	s.t.Helper()
	balance := schema.BucketAttribute("rpm", schema.FieldBalance)
	id := schema.BucketID{Namespace: s.first.store.config.Namespace, Entity: entity, Resource: costResource}
	moved := false
	for shard := range costShards {
		b, err := schema.ParseBucket(s.item(entity, shard))
		if err != nil {
			s.t.Fatal(err)
		}
		by := int64(250_000)
		if b.Limit("rpm").Balance > 0 {
			if by = -by; moved {
				continue
			}
			moved = true
		}
		e := &client.Expression{}
		e.AddNumber(balance, by)
		id.Shard = shard
		_, err = connected(s.t, s.table).API.UpdateItem(s.t.Context(), &dynamodb.UpdateItemInput{
			TableName: &s.table.Name, Key: id.Key().Item(), UpdateExpression: e.Update(),
			ExpressionAttributeNames: e.Names, ExpressionAttributeValues: e.Values,
		})
		if err != nil {
			s.t.Fatal(err)
		}
	}
}

// shardOverrun returns the row of a completion with more than is left of the lease's shard.
func shardOverrun(what string) costRow {
	var lease *weir.Lease
	later, reset := movesUnits()
	return costRow{
		what: what, later: later,
		prepare: func(s *costWorld) *costProcess {
			reset()
			p := warmShards(s)
			lease = p.take("solo", weir.Costs{"rpm": 250})
			return p
		},
		do: func(_ *costWorld, p *costProcess) {
			if _, err := lease.Complete(p.t.Context(), weir.Costs{"rpm": 300}); err != nil {
				p.t.Fatal(err)
			}
		},
		before: "1 UpdateItem", after: "1 BatchGetItem, 2 UpdateItem",
		full: costUnits{4000, 6000}, lean: costUnits{4000, 3000},
	}
}

// warmShards returns a process that knows all shards, each of which exists and has exactly its
// share.
func warmShards(s *costWorld) *costProcess {
	s.t.Helper()
	p := warmFlat(s)
	p.take("solo", weir.Costs{"rpm": 999, "tpm": 99_900})
	s.split("solo")
	p.take("solo", weir.Costs{"rpm": 0}) // shows the process the shard count
	for range 400 {                      // each picks a shard at random
		p.take("solo", weir.Costs{"rpm": 0})
		if s.made("solo") == costShards {
			break
		}
		s.clock.Advance(time.Second)
	}
	s.clock.Advance(2 * time.Minute)
	p.take("solo", weir.Costs{"rpm": 0}) // reads the configuration again
	s.refill(p, "solo")
	return p
}

// refill makes a process write every shard, so that it has current images of all of them.
func (s *costWorld) refill(p *costProcess, entity string) {
	s.t.Helper()
	spot := p.store.buckets.Subject(weir.Subject{Entity: entity, Resource: costResource})
	defer spot.Release()
	for shard := range costShards {
		done := make(chan error, 1)
		spot.Queue(shard).Enqueue(&bucketitem.Update{
			Now: s.clock.Now().UnixMilli(), Refill: true, Done: func(err error) { done <- err },
		})
		if err := <-done; err != nil {
			s.t.Fatalf("refill shard %d: %v", shard, err)
		}
	}
}

// split sets the shard count on a bucket's item to four.
func (s *costWorld) split(entity string) {
	s.t.Helper()
	id := schema.BucketID{
		Namespace: s.first.store.config.Namespace, Entity: entity, Resource: costResource,
	}
	e := &client.Expression{}
	e.SetNumber(schema.AttrShardCount, costShards)
	e.RequireExists(schema.AttrPK)
	_, err := connected(s.t, s.table).API.UpdateItem(s.t.Context(), &dynamodb.UpdateItemInput{
		TableName: &s.table.Name, Key: id.Key().Item(), UpdateExpression: e.Update(),
		ConditionExpression: e.Condition(), ExpressionAttributeNames: e.Names,
		ExpressionAttributeValues: e.Values,
	})
	if err != nil {
		s.t.Fatalf("split %s into %s: %v", entity, strconv.Itoa(costShards), err)
	}
}

// made returns the number of shards that exist.
func (s *costWorld) made(entity string) int {
	s.t.Helper()
	n := 0
	for shard := range costShards {
		if s.item(entity, shard) != nil {
			n++
		}
	}
	return n
}
