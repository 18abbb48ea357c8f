package dynamodb

import (
	"strconv"
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
