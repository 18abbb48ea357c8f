package stream_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/middleware"

	"github.com/weir-limiter/weir/dynamodb/internal/stream"
	"github.com/weir-limiter/weir/internal/schema"
	"github.com/weir-limiter/weir/internal/soak"
)

// killer ends a reader at one of its writes: before it is sent, or after it was applied.
type killer struct {
	mu     sync.Mutex
	left   int
	before bool
	kill   context.CancelFunc
	// usage counts only the updates of usage items of hours.
	usage bool
}

var errKilled = errors.New("killed")

func (k *killer) install(o *ddb.Options) {
	o.APIOptions = append(o.APIOptions, func(s *middleware.Stack) error {
		return s.Initialize.Add(middleware.InitializeMiddlewareFunc("test:killer", k.call), middleware.After)
	})
}

func (k *killer) call(
	ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler,
) (out middleware.InitializeOutput, metadata middleware.Metadata, err error) {
	u, update := in.Parameters.(*ddb.UpdateItemInput)
	_, put := in.Parameters.(*ddb.PutItemInput)
	if booking := update && isBooking(u); !update && !put || k.usage && !booking {
		return next.HandleInitialize(ctx, in)
	}
	k.mu.Lock()
	k.left--
	now, dead := k.left == 0, k.left < 0
	k.mu.Unlock()
	if dead {
		return out, metadata, errKilled
	}
	if now && k.before {
		k.kill()
		return out, metadata, errKilled
	}
	out, metadata, err = next.HandleInitialize(ctx, in)
	if now {
		k.kill()
		return out, metadata, errKilled
	}
	return out, metadata, err
}

// isBooking reports whether an update is of the usage item of an hour.
func isBooking(u *ddb.UpdateItemInput) bool { return strings.Contains(*u.UpdateExpression, "ADD ") }

// runKilled runs a reader that is killed at one of its next writes.
func (w *world) runKilled(rng *rand.Rand, most int, tune ...func(*stream.Options)) {
	w.Helper()
	ctx, cancel := context.WithCancel(w.Context())
	defer cancel()
	k := &killer{left: 1 + rng.IntN(most), before: rng.IntN(2) == 0, kill: cancel}
	r := w.readerOf(w.client(k.install, w.calls.Install), tune...)
	if err := r.Run(ctx); err != nil && ctx.Err() == nil {
		w.Fatal(err)
	}
}

// TestCountKilled checks that the hours equal the tally if the aggregator is killed at any of its
// writes, and begins again.
func TestCountKilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.limits("rpm", "tpm")
	rng := rand.New(rand.NewPCG(soak.Seed(t), 0))
	o := &load{rng: rng}
	kills := 0
	for i := range soak.Amount(6, 40) {
		w.at(start.Add(time.Duration(i) * 4 * time.Minute))
		o.run(w, 10)
		for range rng.IntN(4) {
			w.runKilled(rng, 12)
			kills++
		}
	}
	s := w.count()
	w.judge(hours(w.usage()), hours(w.tally))
	t.Logf("killed up to %d times; the last one: %+v", kills, s)
}

// TestCountTwoAtOnce checks that the hours equal the tally if two aggregators run at the same time,
// while the table is used, and some of them are killed.
func TestCountTwoAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.limits("rpm", "tpm")
	seed := soak.Seed(t)
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for i := range 2 {
		rng := rand.New(rand.NewPCG(seed, uint64(i)))
		all.Go(func() {
			for ctx.Err() == nil {
				if rng.IntN(2) == 0 {
					w.runKilled(rng, 20)
					continue
				}
				if err := w.reader().Run(ctx); err != nil {
					t.Errorf("got %v", err)
				}
			}
		})
	}
	o := &load{rng: rand.New(rand.NewPCG(seed, 9))}
	for i := range soak.Amount(5, 30) {
		w.at(start.Add(time.Duration(i) * 4 * time.Minute))
		o.run(w, soak.Amount(10, 40))
	}
	cancel()
	all.Wait()
	w.count()
	w.judge(hours(w.usage()), hours(w.tally))
	refused := w.calls.Snapshot()["UpdateItem"].Errors["ConditionalCheckFailedException"]
	t.Logf("%d updates were refused, because the other one had counted", refused)
}

// uncheck takes the condition out of the updates of usage items.
func uncheck(o *ddb.Options) {
	o.APIOptions = append(o.APIOptions, func(s *middleware.Stack) error {
		return s.Initialize.Add(middleware.InitializeMiddlewareFunc("test:uncheck", func(
			ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler,
		) (middleware.InitializeOutput, middleware.Metadata, error) {
			if u, ok := in.Parameters.(*ddb.UpdateItemInput); ok && isBooking(u) {
				unchecked := *u
				unchecked.ConditionExpression = nil
				unchecked.ReturnValuesOnConditionCheckFailure = ""
				unchecked.ExpressionAttributeValues = withoutUnused(u)
				in.Parameters = &unchecked
			}
			return next.HandleInitialize(ctx, in)
		}), middleware.Before)
	})
}

// withoutUnused returns the values that the update expression uses.
func withoutUnused(u *ddb.UpdateItemInput) schema.Item {
	used := make(schema.Item)
	for name, value := range u.ExpressionAttributeValues {
		for word := range strings.FieldsFuncSeq(*u.UpdateExpression, func(r rune) bool {
			return strings.ContainsRune(" ,()", r)
		}) {
			if word == name {
				used[name] = value
			}
		}
	}
	return used
}

// TestCountWithoutCheck shows that the tests above notice if the check of positions is taken out.
func TestCountWithoutCheck(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.limits("rpm", "tpm")
	rng := rand.New(rand.NewPCG(1, 0))
	o := &load{rng: rng}
	o.run(w, 10)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	k := &killer{left: 2, usage: true, kill: cancel}
	for ctx.Err() == nil {
		if err := w.readerOf(w.client(k.install)).Run(ctx); err != nil {
			t.Fatal(err)
		}
	}
	w.countBy(func() *stream.Reader { return w.readerOf(w.client(uncheck)) })
	for key, n := range hours(w.usage()) {
		if n != w.tally[key] {
			t.Logf("%s: got %d instead of %d", key, n, w.tally[key])
			return
		}
	}
	t.Error("got the right sums without the check")
}
