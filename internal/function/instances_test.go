package function_test

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"sync"
	"testing"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/middleware"

	"github.com/weir-limiter/weir/dynamodb"
	"github.com/weir-limiter/weir/internal/function"
	"github.com/weir-limiter/weir/internal/soak"
)

// killer ends an invocation at one of its calls to the table: before the call, or after it was made
// and before its answer is seen. Then it is as if the instance had been killed, or had run out of
// time.
type killer struct {
	mu     sync.Mutex // guards the fields below
	left   int        // calls until the end; 0 for never
	before bool
	kill   context.CancelFunc
}

func (k *killer) install(o *ddb.Options) {
	o.APIOptions = append(o.APIOptions, func(s *middleware.Stack) error {
		return s.Initialize.Add(middleware.InitializeMiddlewareFunc("test:killer", k.call), middleware.After)
	})
}

func (k *killer) call(
	ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler,
) (out middleware.InitializeOutput, metadata middleware.Metadata, err error) {
	k.mu.Lock()
	dies := k.left == 1
	k.left = max(0, k.left-1)
	kill, before := k.kill, k.before
	k.mu.Unlock()
	if dies && before {
		kill()
		return out, metadata, context.Canceled
	}
	out, metadata, err = next.HandleInitialize(ctx, in)
	if dies {
		kill()
		return out, metadata, context.Canceled
	}
	return out, metadata, err
}

// instance is an instance of the function.
type instance struct {
	f *function.Function
	k *killer
}

// TestInstances checks that usage is exact if any of several instances gets the next batch, if they
// are killed at any of their calls and replaced, if batches have other borders when they come again,
// and if scheduled passes run between them.
func TestInstances(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.use(soak.Amount(120, 1000), "acme", "globex", "initech", "umbrella")
	if _, err := w.table.Aggregate(t.Context(), &dynamodb.AggregateOptions{Once: true}); err != nil {
		t.Fatal(err)
	}
	want := w.usage()
	shards, records := w.record()
	rng := rand.New(rand.NewPCG(soak.Seed(t), 0))
	for range soak.Amount(2, 20) {
		w.forget()
		instances := make([]*instance, 3)
		killed, invocations := 0, 0
		for _, shard := range shards {
			for rest := records[shard]; len(rest) > 0; {
				i := rng.IntN(len(instances))
				if instances[i] == nil {
					k := &killer{}
					instances[i] = &instance{w.function(k.install), k}
				}
				batch := rest[:min(len(rest), 1+rng.IntN(40))]
				// The first invocation dies at its first call, others by chance.
				left := 1
				if invocations > 0 {
					left = max(0, rng.IntN(24)-15)
				}
				done, dead := w.invoke(rng, instances[i], left, shard, batch)
				if invocations++; dead {
					killed++
					instances[i] = nil
				}
				rest = rest[done:]
				// A pass counts everything that is in the stream, so it comes late.
				if len(rest) < len(records[shard])/4 && rng.IntN(4) == 0 {
					w.schedule(w.function())
				}
			}
		}
		w.equal(w.usage(), want)
		t.Logf("%d invocations, %d of them killed", invocations, killed)
		if killed == 0 {
			t.Error("no invocation was killed")
		}
	}
}

// invoke sends a batch to an instance, which is killed at the given call, or never if that is 0.
// If it is killed, the whole batch comes again.
func (w *world) invoke(
	rng *rand.Rand, i *instance, left int, shard string, batch []json.RawMessage,
) (done int, dead bool) {
	w.Helper()
	ctx, cancel := context.WithCancel(w.Context())
	defer cancel()
	i.k.mu.Lock()
	i.k.kill, i.k.before, i.k.left = cancel, rng.IntN(2) == 0, left
	i.k.mu.Unlock()
	m := &mapping{w: w}
	done = m.sendIn(ctx, i.f, shard, batch)
	if ctx.Err() != nil {
		return 0, true
	}
	return done, false
}

// schedule sends the event of a schedule.
func (w *world) schedule(f *function.Function) {
	w.Helper()
	event := json.RawMessage(`{"source": "aws.events", "detail-type": "Scheduled Event"}`)
	if _, err := f.Handle(w.Context(), event); err != nil {
		w.Fatal(err)
	}
}
