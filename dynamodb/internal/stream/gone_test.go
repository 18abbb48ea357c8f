package stream_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/weir-limiter/weir/dynamodb/internal/stream"
)

// paused runs a reader for some waits and then kills it. In the middle of one it calls midway, as if
// the process had been suspended.
func (w *world) paused(source stream.Source, now *time.Time, midway func()) {
	w.Helper()
	waits := 0
	r := w.reader(func(o *stream.Options) {
		o.Source, o.EmptyReads, o.Once = source, 2, false
		o.Now = func() time.Time { return *now }
		o.Wait = func(context.Context, time.Duration) error {
			switch waits++; waits {
			case 20:
				midway()
			case 40:
				runtime.Goexit()
			}
			return nil
		}
	})
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.Errorf("the reader ended: %v", r.Run(w.Context()))
	}()
	<-done
}

// judgeGone checks the sum of all hours, and the only gap.
func (w *world) judgeGone(units int64, from, to time.Time) {
	w.Helper()
	sum := int64(0)
	for _, n := range hours(w.usage()) {
		sum += n
	}
	c, err := stream.ReadCoverage(w.Context(), w.c, w.ns)
	if err != nil {
		w.Fatal(err)
	}
	if sum != units || len(c.Gaps) != 1 || !c.Gaps[0].From.Equal(from) || !c.Gaps[0].To.Equal(to) {
		w.Errorf("got %d units and gaps %v, want %d and from %v to %v", sum, c.Gaps, units, from, to)
	}
}

// TestShardGone checks that a reader that was suspended for two days, in which its shard ended and
// went, marks a gap and makes the sum good.
func TestShardGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	now := start
	f := &fakeStream{shards: []fakeShard{{id: "s1", records: []types.Record{
		streamRecord(1, start, w.bucketID("acme"), 0, 3000),
	}}}}
	later := start.Add(49 * time.Hour)
	w.paused(f, &now, func() {
		now = later
		f.shards = []fakeShard{{id: "s3", parent: "s2", records: []types.Record{
			streamRecord(3, later.Add(-time.Hour), w.bucketID("acme"), 9000, 10000),
		}}}
	})
	w.judgeGone(10, start, later.Add(-24*time.Hour))
}

// trimmedOnce refuses one read if it is told to.
type trimmedOnce struct {
	*fakeStream

	refuse bool
}

func (s *trimmedOnce) GetRecords(
	ctx context.Context, in *dynamodbstreams.GetRecordsInput, o ...func(*dynamodbstreams.Options),
) (*dynamodbstreams.GetRecordsOutput, error) {
	if s.refuse {
		s.refuse = false
		return nil, &types.TrimmedDataAccessException{}
	}
	return s.fakeStream.GetRecords(ctx, in, o...)
}

// TestTrimmedWhileRunning checks that a reader makes good what the stream lost while it was suspended,
// for a bucket that it has counted before.
func TestTrimmedWhileRunning(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	now := start
	f := &trimmedOnce{fakeStream: &fakeStream{shards: []fakeShard{{id: "s1", records: []types.Record{
		streamRecord(1, start, w.bucketID("acme"), 0, 3000),
	}}}}}
	later := start.Add(49 * time.Hour)
	w.paused(f, &now, func() {
		now, f.refuse = later, true
		f.shards[0].records = []types.Record{
			streamRecord(3, later.Add(-time.Hour), w.bucketID("acme"), 9000, 10000),
		}
	})
	w.judgeGone(10, start, later.Add(-24*time.Hour))
}

// TestCheckpointOfShardGone checks that the gap of an outage does not grow when the reader is killed
// weeks later: the checkpoint of a shard that went in the outage is no longer one to read on from.
func TestCheckpointOfShardGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	now, n, units := start, 0, int64(0)
	f := &fakeStream{}
	add := func(parent string) {
		n++
		f.shards = append(f.shards, fakeShard{id: fmt.Sprintf("s%02d", n), parent: parent, records: []types.Record{
			streamRecord(n, now, w.bucketID("acme"), units*1000, units*1000+1000),
		}})
		units++
	}
	add("")
	w.paused(f, &now, func() {})
	now = start.Add(48 * time.Hour)
	f.shards = nil
	add("")
	w.paused(f, &now, func() {})
	for range 5 {
		now = now.Add(20 * time.Hour)
		old := f.shards[len(f.shards)-1]
		old.closed = true
		f.shards = []fakeShard{old}
		add(old.id)
		w.paused(f, &now, func() {})
	}
	w.judgeGone(units, start, start.Add(24*time.Hour))
}
