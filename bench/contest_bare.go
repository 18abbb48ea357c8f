package main

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// bareConnections is how many idle connections the bare SDK's client keeps: one for each request that
// may be under way, where the SDK's own ten would make it open and close them all the time.
const bareConnections = 256

// bareSDK makes the writes that weir makes, and nothing else: no limits are resolved, no lease is
// remembered, no image of an item is looked at.
type bareSDK struct {
	client  *ddb.Client
	items   map[string]*bareItem // by entity
	counter requestCounter

	parent       *bareItem // nil without a cascade
	parentWrites int64     // for a thousand calls
	calls        atomic.Int64
}

// openBare has weir make its writes for a while, copies them, and lets it go.
func openBare(ctx context.Context, spec *contestSpec) (*bareSDK, error) {
	w, err := openWeirOnTable(ctx, spec)
	if err != nil {
		return nil, err
	}
	updates, parentWrites, err := w.copyWrites(ctx, spec)
	if closed := w.close(); err == nil {
		err = closed
	}
	if err != nil {
		return nil, err
	}
	b := &bareSDK{items: make(map[string]*bareItem), parentWrites: parentWrites}
	b.counter.parent = spec.Parent
	if b.client, err = bareClient(ctx, spec, &b.counter); err != nil {
		return nil, err
	}
	for entity, update := range updates {
		if b.items[entity], err = newBareItem(ctx, b.client, update, spec.Capacity); err != nil {
			return nil, fmt.Errorf("%s: %w", entity, err)
		}
	}
	if spec.Parent != "" {
		if b.parent = b.items[spec.Parent]; b.parent == nil {
			return nil, fmt.Errorf("%s: weir made no update of it", spec.Parent)
		}
	}
	for _, entities := range spec.Callers {
		for _, entity := range entities {
			if b.items[entity] == nil {
				return nil, fmt.Errorf("%s: weir made no update of it", entity)
			}
		}
	}
	return b, nil
}

func bareClient(ctx context.Context, spec *contestSpec, c *requestCounter) (*ddb.Client, error) {
	loaded, err := config.LoadDefaultConfig(ctx, config.WithRegion(spec.Region),
		config.WithHTTPClient(awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
			t.MaxIdleConns, t.MaxIdleConnsPerHost = bareConnections, bareConnections
		})))
	if err != nil {
		return nil, err
	}
	return ddb.NewFromConfig(loaded, c.install, func(o *ddb.Options) {
		o.BaseEndpoint = aws.String(spec.Endpoint)
	}), nil
}

// call makes the entity's write. Now and then, as often as weir does, it makes the parent's at once
// with it, and waits for both.
func (b *bareSDK) call(ctx context.Context, entity string, _ bool) (bool, error) {
	n := b.calls.Add(1)
	var group sync.WaitGroup
	var parentErr error
	if b.parent != nil && n*b.parentWrites/1000 != (n-1)*b.parentWrites/1000 {
		group.Go(func() { parentErr = b.parent.write(ctx, b.client) })
	}
	err := b.items[entity].write(ctx, b.client)
	group.Wait()
	if err == nil {
		err = parentErr
	}
	return err == nil, err
}

func (b *bareSDK) counts() *requestCounter { return &b.counter }

func (b *bareSDK) close() error { return nil }
