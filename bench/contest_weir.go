package main

import (
	"context"
	"errors"
	"time"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb"
)

// contestResource is the resource that all contestants ask for.
const contestResource = "llm"

// patience is how long weir waits for DynamoDB Local, which on a busy machine may be silent for longer
// than the second that is usual.
const patience = time.Minute

// weirOnTable is a limiter on a table, with default options but for its patience.
type weirOnTable struct {
	limiter *weir.Limiter
	costs   weir.Costs
	counter requestCounter
}

func openWeirOnTable(ctx context.Context, spec *contestSpec) (*weirOnTable, error) {
	w := &weirOnTable{costs: weir.Costs{"rpm": 1}}
	w.counter.parent = spec.Parent
	store, err := dynamodb.Open(ctx, spec.Table, &dynamodb.Options{
		Region: spec.Region, Endpoint: spec.Endpoint,
		WriteTimeout: patience, Client: []func(*ddb.Options){w.counter.install},
	})
	if err != nil {
		return nil, err
	}
	if w.limiter, err = weir.New(store, &weir.Options{StoreTimeout: patience}); err != nil {
		return nil, errors.Join(err, store.Close())
	}
	if spec.Declare {
		if err := w.declare(ctx, spec); err != nil {
			return nil, errors.Join(err, w.close())
		}
	}
	return w, nil
}

// declare writes the limit and, for a cascade, the family.
func (w *weirOnTable) declare(ctx context.Context, spec *contestSpec) error {
	limit := weir.Limit{Name: "rpm", Capacity: spec.Capacity}
	if err := w.limiter.SetLimits(ctx, weir.Subject{}, []weir.Limit{limit}); err != nil {
		return err
	}
	if spec.Parent == "" {
		return nil
	}
	if err := w.limiter.SetEntity(ctx, spec.Parent, "", false); err != nil {
		return err
	}
	for _, entities := range spec.Everybody {
		for _, entity := range entities {
			if err := w.limiter.SetEntity(ctx, entity, spec.Parent, true); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *weirOnTable) call(ctx context.Context, entity string, complete bool) (bool, error) {
	lease, err := w.limiter.Reserve(ctx, &weir.Request{
		Entity: entity, Resource: contestResource, Costs: w.costs,
	})
	if err != nil {
		if _, denied := errors.AsType[*weir.DeniedError](err); denied {
			return false, nil
		}
		return false, err
	}
	if complete {
		_, err = lease.Complete(ctx)
	}
	return true, err
}

func (w *weirOnTable) counts() *requestCounter { return &w.counter }

func (w *weirOnTable) close() error { return w.limiter.Close() }

// copyWrites has weir make calls, and returns for each entity the update that it usually makes, and
// how many updates of the parent come with a thousand calls.
func (w *weirOnTable) copyWrites(
	ctx context.Context, spec *contestSpec,
) (updates map[string]*ddb.UpdateItemInput, parentWrites int64, err error) {
	if _, err := callAll(ctx, w, spec, false, after(int64(spec.Warm))); err != nil {
		return nil, 0, err
	}
	copies := &updateCopies{shapes: map[string]*updateShape{}}
	w.counter.copies.Store(copies)
	r, err := callAll(ctx, w, spec, false, after(int64(spec.Warm)))
	w.counter.copies.Store(nil)
	if err != nil {
		return nil, 0, err
	}
	return copies.usual(), r.ParentWrites * 1000 / max(1, r.Admitted), nil
}
