package main

import (
	"context"
	"maps"
	"strings"
	"sync"
	"sync/atomic"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/logging"
	"github.com/aws/smithy-go/middleware"
)

// requestCounter counts what goes to DynamoDB, as a middleware of the SDK, and copies the updates
// where it is told to.
type requestCounter struct {
	parent string // the entity whose bucket is counted apart

	writes, parentWrites, reads atomic.Int64
	copies                      atomic.Pointer[updateCopies] // nil unless there are to be copies
}

// requestCounts are the figures of one instant.
type requestCounts struct{ writes, parent, reads int64 }

func (c *requestCounter) snapshot() requestCounts {
	return requestCounts{c.writes.Load(), c.parentWrites.Load(), c.reads.Load()}
}

// install puts the counter before everything else that the client does with a request.
func (c *requestCounter) install(o *ddb.Options) {
	// DynamoDB Local says that the checksum of each refusal is 0, which the SDK would note each time.
	o.Logger = logging.Nop{}
	o.APIOptions = append(o.APIOptions, func(s *middleware.Stack) error {
		return s.Initialize.Add(middleware.InitializeMiddlewareFunc("count", c.count), middleware.Before)
	})
}

func (c *requestCounter) count(
	ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler,
) (middleware.InitializeOutput, middleware.Metadata, error) {
	switch p := in.Parameters.(type) {
	case *ddb.UpdateItemInput:
		c.writes.Add(1)
		if c.parent != "" && bucketEntity(p.Key) == c.parent {
			c.parentWrites.Add(1)
		}
		if copies := c.copies.Load(); copies != nil {
			copies.add(p)
		}
	case *ddb.PutItemInput, *ddb.DeleteItemInput, *ddb.TransactWriteItemsInput, *ddb.BatchWriteItemInput:
		c.writes.Add(1)
	default:
		c.reads.Add(1)
	}
	return next.HandleInitialize(ctx, in)
}

// bucketEntity is the entity that a bucket item's key names; empty for any other key.
func bucketEntity(key map[string]types.AttributeValue) string {
	_, rest, _ := strings.Cut(keyPart(key), "/BUCKET#")
	entity, _, _ := strings.Cut(rest, "#")
	return entity
}

// keyPart is the partition key, or nothing where there is none.
func keyPart(key map[string]types.AttributeValue) string {
	s, _ := key["PK"].(*types.AttributeValueMemberS)
	if s == nil {
		return ""
	}
	return s.Value
}

// updateCopies are the updates that were seen: for each pair of expressions the last one of each
// entity.
type updateCopies struct {
	mu     sync.Mutex
	shapes map[string]*updateShape
}

// updateShape is one pair of expressions.
type updateShape struct {
	seen int
	last map[string]*ddb.UpdateItemInput // by entity
}

func (c *updateCopies) add(in *ddb.UpdateItemInput) {
	shape := value(in.UpdateExpression) + "\n" + value(in.ConditionExpression)
	copied := *in
	copied.Key = maps.Clone(in.Key)
	copied.ExpressionAttributeNames = maps.Clone(in.ExpressionAttributeNames)
	copied.ExpressionAttributeValues = maps.Clone(in.ExpressionAttributeValues)
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.shapes[shape]
	if s == nil {
		s = &updateShape{last: map[string]*ddb.UpdateItemInput{}}
		c.shapes[shape] = s
	}
	s.seen++
	s.last[bucketEntity(in.Key)] = &copied
}

// usual returns for each entity its last update with the commonest expressions that it had: the fast
// write, which can be made again as it is.
func (c *updateCopies) usual() map[string]*ddb.UpdateItemInput {
	c.mu.Lock()
	defer c.mu.Unlock()
	out, seen := map[string]*ddb.UpdateItemInput{}, map[string]int{}
	for _, s := range c.shapes {
		for entity, in := range s.last {
			if s.seen > seen[entity] {
				out[entity], seen[entity] = in, s.seen
			}
		}
	}
	return out
}

// value is a string or, without one, nothing.
func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
