package stream_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/stream"
)

// TestArchivePauses checks that the pauses become longer while the archive does not answer: each
// attempt writes the usage of the batch again, on a condition that fails and costs as much.
func TestArchivePauses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := &fakeStream{shards: []fakeShard{{id: "s",
		records: []types.Record{removal(1, start, w.ns, "acme")}}}}
	b := &bucket{fails: 99, err: weir.NewError(weir.Unavailable, "archive", "s3://b/k", "no answer")}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var pauses []time.Duration
	r := w.reader(func(o *stream.Options) {
		o.Source, o.EmptyReads, o.Archive, o.Once = f, 4, b, false
		o.Wait = func(_ context.Context, d time.Duration) error {
			if d < time.Second {
				return nil
			}
			if pauses = append(pauses, d/time.Second); len(pauses) == 8 {
				cancel()
			}
			return ctx.Err()
		}
	})
	if err := r.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if want := []time.Duration{1, 2, 4, 8, 16, 32, 60, 60}; !slices.Equal(pauses, want) {
		t.Errorf("got pauses of %d s, want %d", pauses, want)
	}
}
