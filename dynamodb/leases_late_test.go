package dynamodb

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/middleware"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/internal/schema"
)

// lateRecord keeps the first write of a lease record back, as if it were lost, until it is sent.
type lateRecord struct {
	mu   sync.Mutex
	on   bool
	kept *ddb.UpdateItemInput
	n    int
	// third, if not nil, is called after the third write: the one that empties the slot.
	third func(late *ddb.UpdateItemInput)
}

func (l *lateRecord) install(o *ddb.Options) {
	o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
		return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("test:late", l.handle), middleware.After)
	})
}

func (l *lateRecord) handle(
	ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler,
) (middleware.InitializeOutput, middleware.Metadata, error) {
	if u, ok := in.Parameters.(*ddb.UpdateItemInput); ok && u.UpdateExpression != nil {
		pk, sk := client.TextOf(u.Key, schema.AttrPK), client.TextOf(u.Key, "SK")
		if _, err := schema.ParseBucketPK(pk); err != nil && !strings.HasPrefix(sk, "#") {
			l.mu.Lock()
			keep := l.on && l.kept == nil
			if keep {
				l.kept = u
			}
			if l.on {
				l.n++
			}
			third := l.on && l.n == 3 && l.third != nil
			l.mu.Unlock()
			if third {
				out, metadata, err := next.HandleInitialize(ctx, in)
				l.third(l.kept)
				return out, metadata, err
			}
			if keep {
				return middleware.InitializeOutput{}, middleware.Metadata{}, &client.UnknownError{Err: errors.New("no answer")}
			}
		}
	}
	return next.HandleInitialize(ctx, in)
}

// TestLateEarlyRecord has the first write of an early record arrive after the slot was emptied
// again, because the bucket denied the reservation.
func TestLateEarlyRecord(t *testing.T) {
	t.Parallel()
	inTableWorld(t, madeTable(t), nil, func(w *tableWorld) {
		limit := []weir.Limit{noRefill("n", 100)}
		w.system(limit...)
		late := &lateRecord{}
		p := w.process(processOptions{store: Options{Client: []func(*ddb.Options){late.install}}})
		p.admit(testEntity, weir.Costs{"n": 1})
		w.edit(testEntity, 0, balance("n", 0)) // another process has taken the rest
		late.mu.Lock()
		late.on = true
		late.mu.Unlock()
		_, err := p.ask(testEntity, weir.Costs{"n": 10})
		d, ok := errors.AsType[*weir.DeniedError](err)
		if !ok {
			w.Fatalf("got %v, want denied", err)
		}
		w.Logf("denied %v, kept %t, writes %d", d.LeaseID, late.kept != nil, late.n)
		if late.kept == nil {
			w.Fatalf("no record was written early")
		}
		if _, err := w.eye.store.client.API.UpdateItem(w.Context(), late.kept); err != nil {
			w.Logf("the late write: %v", err)
			return
		}
		l, err := w.process().Reserve(w.Context(), &weir.Request{
			LeaseID: d.LeaseID, Entity: testEntity, Resource: testResource, Costs: weir.Costs{"n": 10},
		})
		if err == nil {
			w.Errorf("admitted %v, which was denied and is not charged", l.ID)
		} else {
			w.Logf("again: %v", err)
		}
	})
}

// TestLateEarlyRecordOfStalePlan has the first write of an early record arrive after the slot was
// emptied, because the reservation is planned again under changed limits.
func TestLateEarlyRecordOfStalePlan(t *testing.T) {
	t.Parallel()
	inTableWorld(t, madeTable(t), nil, func(w *tableWorld) {
		at := weir.Subject{Resource: testResource}
		w.limits(at, noRefill("n", 100))
		late := &lateRecord{third: func(late *ddb.UpdateItemInput) {
			_, err := w.eye.store.client.API.UpdateItem(w.Context(), late)
			w.Logf("the late write: %v", err)
		}}
		p := w.process(processOptions{store: Options{Client: []func(*ddb.Options){late.install}}})
		p.admit(testEntity, weir.Costs{"n": 1})
		w.limits(at, noRefill("n", 200))
		w.process().admit(testEntity, weir.Costs{"n": 1}) // brings the item to the new limit
		before := w.stored(testEntity, 0, "n").Balance
		late.mu.Lock()
		late.on = true
		late.mu.Unlock()
		if _, err := p.ask(testEntity, weir.Costs{"n": 10}); err != nil {
			w.Logf("got %v", err)
			return
		}
		equal(w, "charged", before-w.stored(testEntity, 0, "n").Balance, 10_000)
	})
}

// leftRecord holds the first write of a lease record back until released is closed, and loses all
// later ones, which end the lease of a caller that has left.
type leftRecord struct {
	on             atomic.Bool
	n              atomic.Int64
	held, released chan struct{}
}

func (l *leftRecord) install(o *ddb.Options) {
	o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
		return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("test:left", l.handle), middleware.After)
	})
}

func (l *leftRecord) handle(
	ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler,
) (middleware.InitializeOutput, middleware.Metadata, error) {
	u, ok := in.Parameters.(*ddb.UpdateItemInput)
	if !ok || !l.on.Load() || u.UpdateExpression == nil {
		return next.HandleInitialize(ctx, in)
	}
	if _, err := schema.ParseBucketPK(client.TextOf(u.Key, schema.AttrPK)); err == nil {
		return next.HandleInitialize(ctx, in)
	}
	if l.n.Add(1) == 1 {
		close(l.held)
		<-l.released
		return next.HandleInitialize(ctx, in)
	}
	return middleware.InitializeOutput{}, middleware.Metadata{}, &client.UnknownError{Err: errors.New("no answer")}
}

// TestLeftLeaseInDoubt has a caller leave while its lease's record is written, and the write that
// ends the lease stay without an answer. The units stay charged, and are counted as in doubt.
func TestLeftLeaseInDoubt(t *testing.T) {
	t.Parallel()
	inTableWorld(t, madeTable(t), nil, func(w *tableWorld) {
		w.system(noRefill("n", 100))
		left := &leftRecord{held: make(chan struct{}), released: make(chan struct{})}
		p := w.process(processOptions{store: Options{Client: []func(*ddb.Options){left.install}}})
		p.admit(testEntity, weir.Costs{"n": 1})
		left.on.Store(true)
		ctx, cancel := context.WithCancel(w.Context())
		go func() {
			<-left.held
			for w.Context().Err() == nil { // the bucket is charged at the same time
				if _, consumed := w.sum(testEntity, "n"); consumed == 11_000 {
					break
				}
			}
			cancel()
		}()
		_, err := p.Reserve(ctx, &weir.Request{
			Entity: testEntity, Resource: testResource, Costs: weir.Costs{"n": 10},
		})
		if !errors.Is(err, weir.Unavailable) {
			w.Fatalf("got %v, want unavailable", err)
		}
		close(left.released)
		p.quiet()
		_, consumed := w.sum(testEntity, "n")
		equal(w, "consumed", consumed, 11_000)
		equal(w, "in doubt", p.store.Stats().AmbiguousMilli, 10_000)
	})
}
