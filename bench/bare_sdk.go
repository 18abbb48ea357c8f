package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// bareConnections is how many idle connections the bare SDK's client keeps: one for each request
// that may be in flight. With the SDK's default of ten it would open and close connections all the
// time.
const bareConnections = 256

// bareSDK makes the writes that weir makes, and nothing else: it resolves no limits, remembers no
// lease and judges no answer.
type bareSDK struct {
	client   *ddb.Client
	items    map[string]*bareItem // by entity
	requests requests

	parent   *bareItem // nil without a cascade
	parents  int64     // writes of the parent for a thousand calls
	calls    atomic.Int64
	entities []string
}

// openBareSDK has weir make its writes for a while, copies them, and closes weir.
func openBareSDK(ctx context.Context, s *spec) (*workload, error) {
	updates, parents, err := copyWrites(ctx, s)
	if err != nil {
		return nil, err
	}
	b := &bareSDK{items: make(map[string]*bareItem), parents: parents, entities: s.Entities}
	b.requests.parent = s.Parent
	if b.client, err = b.connect(ctx, s); err != nil {
		return nil, err
	}
	for entity, update := range updates {
		if b.items[entity], err = newBareItem(ctx, b.client, update, s.Capacity); err != nil {
			return nil, fmt.Errorf("%s: %w", entity, err)
		}
	}
	b.parent = b.items[s.Parent]
	for _, entity := range append([]string{s.Parent}, s.Entities...) {
		if entity != "" && b.items[entity] == nil {
			return nil, fmt.Errorf("%s: weir made no update of it", entity)
		}
	}
	w := &work{}
	for i := range s.Callers {
		entities := s.cycle(i)
		w.callers = append(w.callers, func(ctx context.Context) (opResult, error) {
			return admitted, b.call(ctx, s.Entities[entities.next()])
		})
	}
	return &workload{works: map[string]*work{workReserve: w}, counts: b.requests.counts}, nil
}

// copyWrites has weir make calls. It returns for each entity the update that weir makes most often,
// and the number of updates of the parent in a thousand calls.
func copyWrites(
	ctx context.Context, s *spec,
) (updates map[string]*ddb.UpdateItemInput, parents int64, err error) {
	t, err := newTable(ctx, s)
	if err != nil {
		return nil, 0, err
	}
	w := t.world(s)
	defer func() { err = errors.Join(err, w.close()) }()
	calls := &command{Work: workReserve, Ops: s.Warm}
	if _, err := w.obey(ctx, calls); err != nil {
		return nil, 0, err
	}
	copies := &updateCopies{shapes: make(map[string]*updateShape)}
	t.requests.copies.Store(copies)
	r, err := w.obey(ctx, calls)
	t.requests.copies.Store(nil)
	return copies.usual(), r.Counts[countParents] * 1000 / max(1, r.Ops), err
}

func (b *bareSDK) connect(ctx context.Context, s *spec) (*ddb.Client, error) {
	loaded, err := config.LoadDefaultConfig(ctx, config.WithRegion(s.Region),
		config.WithHTTPClient(awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
			t.MaxIdleConns, t.MaxIdleConnsPerHost = bareConnections, bareConnections
		})))
	if err != nil {
		return nil, err
	}
	return ddb.NewFromConfig(loaded, b.requests.install, func(o *ddb.Options) {
		o.BaseEndpoint = aws.String(s.Endpoint)
	}), nil
}

// call makes the entity's write. As often as weir does, it makes the parent's at the same time, and
// waits for both.
func (b *bareSDK) call(ctx context.Context, entity string) error {
	n := b.calls.Add(1)
	var group sync.WaitGroup
	var parentErr error
	if b.parent != nil && n*b.parents/1000 != (n-1)*b.parents/1000 {
		group.Go(func() { parentErr = b.parent.write(ctx, b.client) })
	}
	err := b.items[entity].write(ctx, b.client)
	group.Wait()
	return errors.Join(err, parentErr)
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
	shape := aws.ToString(in.UpdateExpression) + "\n" + aws.ToString(in.ConditionExpression)
	copied := *in
	copied.Key = maps.Clone(in.Key)
	copied.ExpressionAttributeNames = maps.Clone(in.ExpressionAttributeNames)
	copied.ExpressionAttributeValues = maps.Clone(in.ExpressionAttributeValues)
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.shapes[shape]
	if s == nil {
		s = &updateShape{last: make(map[string]*ddb.UpdateItemInput)}
		c.shapes[shape] = s
	}
	s.seen++
	s.last[bucketEntity(in.Key)] = &copied
}

// usual returns for each entity its last update with the commonest expressions that it had.
func (c *updateCopies) usual() map[string]*ddb.UpdateItemInput {
	c.mu.Lock()
	defer c.mu.Unlock()
	out, seen := make(map[string]*ddb.UpdateItemInput), make(map[string]int)
	for _, s := range c.shapes {
		for entity, in := range s.last {
			if s.seen > seen[entity] {
				out[entity], seen[entity] = in, s.seen
			}
		}
	}
	return out
}

const (
	// refillAttribute is the time of the last refill. A write that refills requires the time that
	// was read, and sets the time now.
	refillAttribute = "rf"
	// balanceAttribute is the balance of the benchmark's limit.
	balanceAttribute = "b_rpm_tk"
)

var (
	// equation matches a name and a value that are set or required to be equal.
	equation = regexp.MustCompile(`(#n\d+) = (:v\d+)`)
	// span matches a name and the two values that it is required to lie between.
	span = regexp.MustCompile(`(#n\d+) BETWEEN (:v\d+) AND (:v\d+)`)
)

// bareItem is an item and the update that is made to it repeatedly, one at a time as in weir.
type bareItem struct {
	mu     sync.Mutex
	update *ddb.UpdateItemInput
	// refill is the value that is set as the time of the refill; empty if the update does not
	// refill.
	refill string
	// required maps the values of the update to the attributes that must be as they were read.
	required map[string]string
}

// newBareItem creates the item so that the update succeeds every time: it sets the balance of the
// limit to half of its capacity, and the balance of the write limit too, or to plenty if the update
// draws on it.
func newBareItem(
	ctx context.Context, client *ddb.Client, update *ddb.UpdateItemInput, capacity int64,
) (*bareItem, error) {
	b := &bareItem{update: update, required: make(map[string]string)}
	if m := b.matches(equation, update.UpdateExpression, refillAttribute); m != nil {
		b.refill = m[2]
	}
	const fullWrites, plentyWrites = 1_000_000, 1_000_000_000_000 // in thousandths
	writes := plentyWrites
	if m := b.matches(equation, update.ConditionExpression, refillAttribute); m != nil {
		b.required[m[2]] = refillAttribute
		writes = fullWrites / 2
	}
	if m := b.matches(span, update.ConditionExpression, balanceAttribute); m != nil {
		low, high := b.update.ExpressionAttributeValues[m[2]], b.update.ExpressionAttributeValues[m[3]]
		if reflect.DeepEqual(low, high) {
			b.required[m[2]], b.required[m[3]] = balanceAttribute, balanceAttribute
		}
	}
	out, err := client.UpdateItem(ctx, &ddb.UpdateItemInput{
		TableName: update.TableName, Key: update.Key,
		UpdateExpression:         aws.String("SET #n0 = :v0, #n1 = :v1"),
		ExpressionAttributeNames: map[string]string{"#n0": balanceAttribute, "#n1": "b_wcu_tk"},
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":v0": numeric(capacity * 1000 / 2), ":v1": numeric(int64(writes)),
		},
		ReturnValues: types.ReturnValueAllNew,
	})
	if err != nil {
		return nil, err
	}
	return b, b.follow(out.Attributes)
}

// matches returns the first match of a pattern whose name stands for an attribute, or nil.
func (b *bareItem) matches(pattern *regexp.Regexp, expression *string, attribute string) []string {
	for _, m := range pattern.FindAllStringSubmatch(aws.ToString(expression), -1) {
		if b.update.ExpressionAttributeNames[m[1]] == attribute {
			return m
		}
	}
	return nil
}

// follow makes the update require the values that the item has now.
func (b *bareItem) follow(item map[string]types.AttributeValue) error {
	for value, attribute := range b.required {
		if item[attribute] == nil {
			return fmt.Errorf("the item has no %s", attribute)
		}
		b.update.ExpressionAttributeValues[value] = item[attribute]
	}
	return nil
}

// write makes the update.
func (b *bareItem) write(ctx context.Context, client *ddb.Client) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.refill != "" {
		b.update.ExpressionAttributeValues[b.refill] = numeric(time.Now().UnixMilli())
	}
	out, err := client.UpdateItem(ctx, b.update)
	if err != nil {
		return err
	}
	return b.follow(out.Attributes)
}

func numeric(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}
