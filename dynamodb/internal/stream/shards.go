package stream

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/weir-limiter/weir/aggregator"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/internal/schema"
)

// shard is a shard of the stream. One goroutine at a time uses it.
type shard struct {
	id, parent string
	// iterator is where to read on; nil if it has to be asked for.
	iterator *string
	// sequence is the number of the last record that was read or counted; empty if there is none.
	sequence string
	// until is the time up to which all records were read.
	until time.Time
	// empty counts the last reads that found no records. Once there were enough of them, caughtUp
	// is true.
	empty    int
	caughtUp bool
	// last is the time of the last record that was read in this session.
	last time.Time
	// stored is the checkpoint as this process knows it; nil if there is none.
	stored *schema.Checkpoint
	// writes are the writes of bucket items in the last second.
	writes aggregator.Writes
	// done reports whether the shard was read to its end.
	done bool
}

// listEvery is the time between two lists of the shards. A shard that ends makes them be listed at
// once.
const listEvery = time.Minute

// listShards lists the shards of the stream, unless it is too early.
func (r *Reader) listShards(ctx context.Context) error {
	now := r.o.Now()
	if !r.relist && now.Sub(r.listed) < listEvery {
		return nil
	}
	var found []types.Shard
	in := &dynamodbstreams.DescribeStreamInput{StreamArn: &r.arn}
	for {
		out, err := r.source.DescribeStream(ctx, in)
		if err != nil {
			return classify(err)
		}
		r.off = out.StreamDescription.StreamStatus == types.StreamStatusDisabled
		found = append(found, out.StreamDescription.Shards...)
		in.ExclusiveStartShardId = out.StreamDescription.LastEvaluatedShardId
		if client.Text(in.ExclusiveStartShardId) == "" {
			break
		}
	}
	r.listed, r.relist = now, false
	listed := make(map[string]bool, len(found))
	for i := range found {
		id := client.Text(found[i].ShardId)
		listed[id] = true
		if r.shards[id] == nil {
			r.shards[id] = r.newShard(id, client.Text(found[i].ParentShardId))
		}
	}
	return r.forget(ctx, listed)
}

// forget forgets the shards that the stream does not list any more. The records of one that was not
// read to its end are lost. Its checkpoint is closed, so that what was read of it does not count as
// the time up to which the stream was read.
func (r *Reader) forget(ctx context.Context, listed map[string]bool) error {
	for id, s := range r.shards {
		if listed[id] {
			continue
		}
		if !s.done {
			if err := r.trimmed(ctx, s); err != nil {
				return err
			}
			if s.stored != nil && r.state.checkpoint(r.label, id) == nil {
				r.state.checkpoints = append(r.state.checkpoints, s.stored)
			}
		}
		delete(r.shards, id)
	}
	now := r.o.Now()
	for _, c := range r.state.checkpoints {
		if c.Label != r.label || c.Done || listed[c.Shard] || !c.Until.Before(now.Add(-aggregator.Retention)) {
			continue
		}
		if err := saveDone(ctx, r.tables.Client, c, now); err != nil {
			return err
		}
		c.Done = true
	}
	return nil
}

// newShard returns a shard that begins after its checkpoint.
func (r *Reader) newShard(id, parent string) *shard {
	s := &shard{id: id, parent: parent}
	if c := r.state.checkpoint(r.label, id); c != nil {
		s.stored, s.sequence, s.until, s.done = c, c.Sequence, c.Until, c.Done
	} else if p := r.shards[parent]; p != nil {
		s.until = p.until
	}
	return s
}

// readable returns the shards to read, in order: a shard is read when its parent was read to the
// end, or does not exist any more.
func (r *Reader) readable() []*shard {
	var list []*shard
	for _, s := range r.shards {
		if parent := r.shards[s.parent]; !s.done && (parent == nil || parent.done) {
			list = append(list, s)
		}
	}
	slices.SortFunc(list, func(a, b *shard) int { return strings.Compare(a.id, b.id) })
	return list
}

// watermark returns the time up to which all shards were read; zero if a shard was not read yet. A
// shard that waits for its parent was read as far as that. A new stream may have no shards yet.
func (r *Reader) watermark() time.Time {
	if len(r.shards) == 0 {
		return r.listed
	}
	var low, high time.Time
	open := false
	for _, s := range r.shards {
		until := s.until
		if s.done {
			if high.Before(until) {
				high = until
			}
			continue
		}
		if parent := r.shards[s.parent]; parent != nil && until.Before(parent.until) {
			until = parent.until
		}
		if !open || until.Before(low) {
			low = until
		}
		open = true
	}
	if !open {
		return high
	}
	return low
}

// The bounds of one batch of a shard.
const (
	maxPages   = 16
	maxRecords = 4000
)

// read reads the next records of a shard: until there are none, or as many as a batch may have.
// full reports whether there may be more.
func (r *Reader) read(
	ctx context.Context, s *shard,
) (records []*aggregator.Record, full bool, err error) {
	for range maxPages {
		if s.iterator == nil {
			if err := r.begin(ctx, s); err != nil {
				return nil, false, err
			}
		}
		before := r.o.Now()
		out, err := r.source.GetRecords(ctx, &dynamodbstreams.GetRecordsInput{ShardIterator: s.iterator})
		switch {
		case isExpired(err):
			s.iterator = nil
			continue
		case isTrimmed(err):
			if err := r.trimmed(ctx, s); err != nil {
				return nil, false, err
			}
			continue
		case err != nil:
			return nil, false, classify(err)
		}
		s.iterator = out.NextShardIterator
		s.done = out.NextShardIterator == nil
		for i := range out.Records {
			if n := sequenceOf(&out.Records[i]); isSequence(r.label, n) {
				s.sequence = n
			}
		}
		records = append(records, r.convert(s, out.Records)...)
		r.reached(s, out.Records, before)
		switch {
		case s.done:
			return records, false, nil
		case len(out.Records) == 0:
			return records, false, nil
		case len(records) >= maxRecords:
			return records, true, nil
		}
	}
	return records, true, nil
}

// convert returns records of the SDK. It leaves out, and logs, those without a key or a position.
func (r *Reader) convert(s *shard, found []types.Record) []*aggregator.Record {
	records := make([]*aggregator.Record, 0, len(found))
	for i := range found {
		record, err := convert(r.label, &found[i], r.o.Move)
		if err != nil {
			r.skip("malformed", 1)
			r.log.Warn("record not counted", "shard", s.id, "error", err)
			continue
		}
		records = append(records, record)
	}
	return records
}

func sequenceOf(r *types.Record) string {
	if r.Dynamodb == nil {
		return ""
	}
	return client.Text(r.Dynamodb.SequenceNumber)
}

// isSequence reports whether a record with the sequence number has a position.
func isSequence(label, sequence string) bool {
	_, err := aggregator.NewPosition(label, sequence)
	return err == nil
}

// reached records up to which time a shard was read by a call that began at before. A shard that
// repeatedly has no records was read up to the present: one empty read may be of a part of the shard
// without records.
func (r *Reader) reached(s *shard, records []types.Record, before time.Time) {
	if len(records) == 0 {
		if s.empty++; s.empty >= r.o.EmptyReads {
			s.until, s.caughtUp = laterOf(s.until, before), true
		}
		return
	}
	s.empty = 0
	for i := range records {
		d := records[i].Dynamodb
		if d == nil || d.ApproximateCreationDateTime == nil {
			continue
		}
		s.last = r.o.Move(*d.ApproximateCreationDateTime)
		s.until = laterOf(s.until, s.last)
	}
}

// begin gets an iterator of a shard: after the last record read, or the oldest one that the stream
// still has.
func (r *Reader) begin(ctx context.Context, s *shard) error {
	for {
		in := &dynamodbstreams.GetShardIteratorInput{
			StreamArn: &r.arn, ShardId: &s.id, ShardIteratorType: types.ShardIteratorTypeTrimHorizon,
		}
		if s.sequence != "" {
			in.ShardIteratorType = types.ShardIteratorTypeAfterSequenceNumber
			in.SequenceNumber = &s.sequence
		}
		out, err := r.source.GetShardIterator(ctx, in)
		if isTrimmed(err) && s.sequence != "" {
			if err := r.trimmed(ctx, s); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return classify(err)
		}
		s.iterator = out.ShardIterator
		if s.iterator == nil {
			s.done = true
		}
		return nil
	}
}

// trimmed makes a shard begin at the oldest record that the stream still has, because the records
// after the last one that was read are gone. If they may have been there, it marks a gap. If not,
// the shard had no records in that time.
func (r *Reader) trimmed(ctx context.Context, s *shard) error {
	s.iterator, s.sequence = nil, ""
	now := r.o.Now()
	r.mu.Lock()
	r.makeGood = true
	clear(r.followed) // the next records of its buckets may come after a gap
	r.mu.Unlock()
	if s.until.IsZero() || !s.until.Before(now.Add(-aggregator.Retention)) {
		return nil
	}
	return r.mark(ctx, &schema.Gap{
		From: s.until, To: now.Add(-aggregator.Retention), MarkedAt: now,
		Reason: "the stream no longer had records that were not counted yet",
	})
}
