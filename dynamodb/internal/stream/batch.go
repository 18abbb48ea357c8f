package stream

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/aggregator"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
)

// refreshEvery is the time after which the stored state is read again: another process may have
// written totals, or marked gaps.
const refreshEvery = time.Minute

// Count counts a batch. Batches of one shard have to be counted in order, and one at a time, by this
// process or others. An [*aggregator.UnfinishedError] says from which record on the batch has to be
// counted again; after any other error it is the whole batch. A batch of a stream that was replaced
// is left out: its time is marked as incomplete when the new stream is first read.
func (r *Reader) Count(ctx context.Context, b *aggregator.Batch) error {
	if err := r.resume(ctx, b.Label); err != nil {
		r.state = nil
		return err
	}
	if len(b.Records) == 0 {
		return nil
	}
	if b.Label > r.label {
		return &weir.Error{
			Code: weir.Unavailable, Field: "stream", Value: b.Label,
			Reason: "is later than the stream that table " + r.tables.TableName + " has by now",
		}
	}
	if b.Label != r.label {
		r.skip("the stream was replaced", int64(len(b.Records)))
		r.log.Warn("batch not counted: the table has another stream now", "stream", b.Label,
			"current", r.label, "records", len(b.Records))
		return nil
	}
	s := r.shards[b.Shard]
	if s == nil {
		s = r.newShard(b.Shard, "")
		r.shards[b.Shard] = s
	}
	sequence, until := s.sequence, s.until
	last := b.Records[len(b.Records)-1]
	s.sequence, s.until = last.Sequence, laterOf(until, last.At)
	if r.isolate = b.Isolate; b.Writes != nil {
		s.writes = *b.Writes
	}
	err := r.count(ctx, s, b.Records)
	if r.isolate = nil; b.Writes != nil {
		*b.Writes = s.writes
	}
	if err != nil {
		s.sequence, s.until = sequence, until
		if _, unfinished := errors.AsType[*aggregator.UnfinishedError](err); !unfinished {
			r.state = nil // begin again from what is stored
		}
	}
	return err
}

// resume begins a session, unless one goes on. A later label is that of a new stream, whose batches
// must not be left out.
func (r *Reader) resume(ctx context.Context, label string) error {
	age := r.o.Now().Sub(r.refreshed)
	switch {
	case r.state == nil, label > r.label, label != r.label && age >= refreshEvery:
		if err := r.start(ctx); err != nil {
			return err
		}
	case age >= refreshEvery:
		if err := r.refresh(ctx); err != nil {
			return err
		}
	default:
		return nil
	}
	r.refreshed = r.o.Now()
	return nil
}

// refresh reads the stored state again.
func (r *Reader) refresh(ctx context.Context) error {
	stored, err := readState(ctx, r.tables.Client)
	if err != nil {
		return err
	}
	if stored.aggregator == nil { // deleted by hand
		return r.start(ctx)
	}
	r.state = stored
	for _, g := range stored.gaps {
		if !r.marked[g.Key()] && !g.From.IsZero() {
			r.makeGood = true
			clear(r.followed) // the gap may lie between two records that this process has counted
		}
		r.marked[g.Key()] = true
	}
	for id, s := range r.shards {
		if c := stored.checkpoint(r.label, id); c != nil {
			s.stored = c
		}
	}
	return r.checkVersion(ctx)
}

// maxFailures is the number of failed subjects after which a batch is given up: the table fails, and
// not single items.
const maxFailures = 8

// failures collects the bookings of a batch that could not be written.
type failures struct {
	mu        sync.Mutex // guards the fields below
	positions map[aggregator.Position]bool
	errs      []error
}

// add adds bookings of one subject: after one that failed, the later ones are not written.
func (f *failures) add(err error, unwritten []*aggregator.Booking) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.positions == nil {
		f.positions = make(map[aggregator.Position]bool)
	}
	for _, b := range unwritten {
		for p := range b.Positions() {
			f.positions[p] = true
		}
	}
	if f.errs = append(f.errs, err); len(f.errs) >= maxFailures {
		return err
	}
	return nil
}

// error returns the error for the records of a batch; nil if nothing failed. In a batch that was
// given up all records count as failed.
func (f *failures) error(records []*aggregator.Record, givenUp error) error {
	if len(f.errs) == 0 {
		return nil
	}
	if givenUp == nil {
		for _, record := range records {
			if f.positions[record.Position] {
				return &aggregator.UnfinishedError{First: record, Err: errors.Join(f.errs...)}
			}
		}
	}
	return client.Classify(f.errs[0])
}

// firstUnfinished returns the error of a batch whose audit events are not all archived, whose usage
// is not all counted, or both.
func firstUnfinished(records []*aggregator.Record, unarchived, uncounted error) error {
	if unarchived == nil {
		return uncounted
	}
	first := slices.IndexFunc(records, aggregator.IsArchived)
	if u, partly := errors.AsType[*aggregator.UnfinishedError](uncounted); partly {
		first = min(first, slices.Index(records, u.First))
	} else if uncounted != nil {
		return uncounted // nothing is known about the usage of the whole batch
	}
	return &aggregator.UnfinishedError{
		First: records[max(first, 0)], Err: errors.Join(unarchived, uncounted),
	}
}
