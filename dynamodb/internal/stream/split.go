package stream

import (
	"context"
	"time"

	"github.com/weir-limiter/weir/aggregator"
	"github.com/weir-limiter/weir/dynamodb/internal/bucketitem"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/internal/schema"
)

// splitTimeout bounds the calls by which the buckets of one batch are split.
const splitTimeout = 5 * time.Second

// split doubles the shards of buckets whose items take many writes, and raises the shard count on
// the other shards of buckets that were doubled, by this process or another. Callers do both without
// it, only later, so what fails is logged and counted, and the batch is counted nevertheless.
func (r *Reader) split(ctx context.Context, s *shard, records []*aggregator.Record) {
	if r.o.HotWrites < 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, splitTimeout)
	defer cancel()
	for _, d := range s.writes.Due(records, r.o.HotWrites, r.o.Now()) {
		if !r.isSplit(d) && r.maySplit(ctx, d) {
			r.double(ctx, d)
		}
	}
	for _, d := range aggregator.Doubled(records) {
		if !r.isSplit(d) && r.maySplit(ctx, d) && r.isDoubled(ctx, d) {
			r.raise(ctx, d)
		}
	}
}

// maySplit reports whether the namespace of a bucket is active.
func (r *Reader) maySplit(ctx context.Context, d aggregator.Doubling) bool {
	n, err := r.namespace(ctx, d.Bucket.Namespace)
	if err != nil {
		r.splitFailed(d, err)
	}
	return err == nil && n.skipped == ""
}

// isDoubled reports whether the bucket of a doubling that was made has its shard count, or more. It
// may have been deleted and made again with fewer shards.
func (r *Reader) isDoubled(ctx context.Context, d aggregator.Doubling) bool {
	if d.From == 1 {
		return true // there are no others to raise
	}
	item, err := r.tables.GetItem(ctx, d.Bucket.Key(), true)
	if err != nil {
		r.splitFailed(d, err)
		return false
	}
	n, err := schema.Int64(item[schema.AttrShardCount])
	return err == nil && n >= int64(d.To)
}

// double doubles the shards of a bucket.
func (r *Reader) double(ctx context.Context, d aggregator.Doubling) {
	err := bucketitem.Double(ctx, r.tables.Client, d.Bucket, d.From)
	switch client.OutcomeOf(err).Kind {
	case client.WriteApplied:
		r.mu.Lock()
		r.done.Splits++
		r.mu.Unlock()
		r.log.Info("split a hot bucket", "bucket", d.Bucket.PK(), "shards", d.To)
		r.raise(ctx, d)
	case client.WriteRefused: // another process was faster, or the bucket is gone
	default:
		r.splitFailed(d, err)
	}
}

// raise raises the count on the other shards of a bucket that was doubled.
func (r *Reader) raise(ctx context.Context, d aggregator.Doubling) {
	raised, failed := bucketitem.RaiseOthers(ctx, r.tables.Client, d.Bucket, d.From, d.To)
	r.mu.Lock()
	r.done.Raised += int64(raised)
	r.mu.Unlock()
	for _, err := range failed {
		r.splitFailed(d, err)
	}
	if len(failed) == 0 {
		r.noteSplit(d)
	}
}

func (r *Reader) splitFailed(d aggregator.Doubling, err error) {
	r.mu.Lock()
	r.done.SplitsFailed++
	r.mu.Unlock()
	r.log.Warn("a bucket was not split, or not on all of its shards", "bucket", d.Bucket.PK(),
		"shards", d.To, "error", client.Classify(err))
}

// splitCount is the shard count that this process has last written to all shards of a bucket.
type splitCount struct {
	shards int
	at     time.Time
}

const (
	// splitKnown is the time for which a splitCount is remembered: that of the records which were
	// made before it. A bucket that is deleted and created again begins with one shard.
	splitKnown = time.Minute
	// maxSplit bounds the buckets that are remembered. A bucket that is forgotten costs some writes
	// that change nothing.
	maxSplit = 10_000
)

// isSplit reports whether this process has just made a doubling on all shards.
func (r *Reader) isSplit(d aggregator.Doubling) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	known, ok := r.splits[d.Bucket]
	return ok && d.To <= known.shards && r.o.Now().Sub(known.at) < splitKnown
}

// noteSplit remembers a doubling that was made on all shards.
func (r *Reader) noteSplit(d aggregator.Doubling) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.splits == nil || len(r.splits) >= maxSplit {
		r.splits = make(map[schema.BucketID]splitCount)
	}
	r.splits[d.Bucket] = splitCount{d.To, r.o.Now()}
}
