package stream

import (
	"context"
	"errors"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/aggregator"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/internal/schema"
)

// batch is the part of some records that concerns usage.
type batch struct {
	changes []*aggregator.Change
	// last is the last record of a bucket item that is more than a refill, or the last one that was
	// archived; nil if there is none.
	last *aggregator.Record
	// lost are the records of bucket items that cannot be read.
	lost []*aggregator.Record
}

// count counts and archives records of a shard, and then moves its checkpoint. Records of other
// items than buckets do not move it, unless they were archived, nor do refills, so that weir's own
// writes are not followed by more of them.
func (r *Reader) count(ctx context.Context, s *shard, records []*aggregator.Record) error {
	r.split(ctx, s, records)
	unarchived := r.archive(ctx, s, records)
	b := r.sift(s, records)
	if err := r.markUnread(ctx, b.lost); err != nil {
		return err
	}
	changes, err := r.countable(ctx, b.changes)
	if err != nil {
		return err
	}
	bases, err := r.bases(ctx, changes)
	if err != nil {
		return err
	}
	bookings := aggregator.Book(changes, bases)
	uncounted := r.write(ctx, records, bookings)
	if err := firstUnfinished(records, unarchived, uncounted); err != nil {
		return err
	}
	r.follow(changes)
	if len(bookings) > 0 {
		r.log.Info("counted", "shard", s.id, "records", len(records), "changes", len(changes),
			"updates", len(bookings), "until", s.until)
	}
	r.refill(ctx, records)
	return r.checkpoint(ctx, s, b.last)
}

// checkpoint stores how far a shard is counted.
func (r *Reader) checkpoint(ctx context.Context, s *shard, last *aggregator.Record) error {
	if last != nil {
		s.stored = &schema.Checkpoint{
			Label: r.label, Shard: s.id, Sequence: s.sequence, Until: s.until,
		}
		p, err := aggregator.NewPosition(r.label, s.sequence)
		if err != nil {
			return client.Unreadable(err)
		}
		s.stored.Position = string(p)
		if err := saveCheckpoint(ctx, r.tables.Client, s.stored); err != nil {
			return err
		}
	}
	if s.done && s.stored != nil {
		s.stored.Until = s.until
		return saveDone(ctx, r.tables.Client, s.stored, r.o.Now())
	}
	return nil
}

// sift returns the changes of usage in records. It logs the records that are malformed.
func (r *Reader) sift(s *shard, records []*aggregator.Record) *batch {
	b := &batch{}
	logged := 0
	skip := func(reason string, err error) {
		r.skip(reason, 1)
		if logged++; logged <= maxLogged {
			r.log.Warn("record not counted", "shard", s.id, "error", err)
		}
	}
	for _, record := range records {
		if record.Key == schema.VersionKey() {
			r.mu.Lock()
			r.recheck = true
			r.mu.Unlock()
		}
		if aggregator.Foreign(record) {
			r.noteForeign(record)
		}
		change, faults := aggregator.Parse(record)
		for _, f := range faults {
			skip("malformed", f)
			if r.isolate != nil {
				r.isolate(record, f)
			}
			if f.Limit == "" {
				b.lost = append(b.lost, record)
			}
		}
		_, err := schema.ParseBucketPK(record.Key.PK)
		if err == nil && record.Key.SK == schema.SKState && !aggregator.Refilled(record) {
			b.last = record
		}
		if r.moves(record) {
			b.last = record
		}
		if change != nil {
			b.changes = append(b.changes, change)
		}
	}
	r.mu.Lock()
	r.done.Records += int64(len(records))
	r.mu.Unlock()
	return b
}

// maxLogged bounds the malformed records of a batch that are logged. All are counted in
// [aggregator.Summary].
const maxLogged = 10

func (r *Reader) skip(reason string, n int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.done.Skipped[reason] += n
}

// noteForeign notes and logs that another aggregator writes usage too.
func (r *Reader) noteForeign(record *aggregator.Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.foreign.Before(record.At) {
		r.foreign = record.At
	}
	if r.done.Skipped[skippedForeign]++; r.done.Skipped[skippedForeign] == 1 {
		r.log.Warn("another aggregator writes usage of this table: what both count is counted twice",
			"item", record.Key.String(), "at", record.At)
	}
}

const skippedForeign = "usage item of another aggregator"

// countable returns the changes to count: those since the counting began, of active namespaces.
func (r *Reader) countable(
	ctx context.Context, changes []*aggregator.Change,
) ([]*aggregator.Change, error) {
	var list []*aggregator.Change
	since := r.state.aggregator.Since
	for _, c := range changes {
		n, err := r.namespace(ctx, c.Bucket.Namespace)
		switch {
		case err != nil:
			return nil, err
		case n.skipped != "":
			r.skip(n.skipped, 1)
			if err := r.markSkipped(ctx, c, n); err != nil {
				return nil, err
			}
		case !r.state.aggregator.TakenOver.IsZero() && !c.At.After(since):
			r.skip("counted by another aggregator", 1)
		default:
			list = append(list, c)
		}
	}
	return list, nil
}

// markSkipped marks the hour of a record that is left out because its namespace was deleted: if the
// namespace is recovered, its usage is incomplete, and the next record of the bucket makes it good.
func (r *Reader) markSkipped(ctx context.Context, c *aggregator.Change, n namespace) error {
	r.unfollow(c.Bucket)
	if n.skipped != skippedDeleted {
		return nil
	}
	return r.markLost(ctx, c.Bucket.Namespace, c.At, "the namespace was deleted, and recovered later")
}

// lastYear is the last year that a key can have.
const lastYear = 9999

// markUnread marks the hours of records that cannot be read. The next record of the bucket makes them
// good, unless it is in the same batch.
func (r *Reader) markUnread(ctx context.Context, lost []*aggregator.Record) error {
	for _, record := range lost {
		id, err := schema.ParseBucketPK(record.Key.PK)
		if year := record.At.UTC().Year(); err != nil || year <= 1 || year > lastYear {
			continue // no hour to mark
		}
		n, err := r.namespace(ctx, id.Namespace)
		if err != nil {
			return err
		}
		if n.skipped != "" {
			continue
		}
		r.unfollow(id)
		if err := r.markLost(ctx, id.Namespace, record.At, "a record of a bucket could not be read"); err != nil {
			return err
		}
	}
	return nil
}

// markLost marks the hour that contains at as incomplete, once.
func (r *Reader) markLost(ctx context.Context, namespace string, at time.Time, reason string) error {
	gap := &schema.Gap{
		From: weir.Hourly.Start(at), To: weir.Hourly.End(at), Namespace: namespace,
		Reason: reason, MarkedAt: r.o.Now(),
	}
	r.mu.Lock()
	known := r.marked[gap.Key()]
	r.marked[gap.Key()] = true
	r.mu.Unlock()
	if known {
		return nil
	}
	err := r.mark(ctx, gap)
	if err != nil { // a batch that was counted in part goes on in this session
		r.mu.Lock()
		delete(r.marked, gap.Key())
		r.mu.Unlock()
	}
	return err
}

// bases returns what was last counted of buckets whose first records may come after a gap.
func (r *Reader) bases(
	ctx context.Context, changes []*aggregator.Change,
) (map[schema.BucketID]*aggregator.Base, error) {
	bases := make(map[schema.BucketID]*aggregator.Base)
	ids := r.unfollowed(changes)
	found := make([]*aggregator.Base, len(ids))
	err := client.Parallel(len(ids), func(i int) error {
		var err error
		found[i], err = r.lastCounted(ctx, ids[i])
		return err
	})
	for i, id := range ids {
		bases[id] = found[i]
	}
	return bases, err
}

// unfollowed returns the buckets of changes whose first record may come after a gap.
func (r *Reader) unfollowed(changes []*aggregator.Change) []schema.BucketID {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.makeGood {
		return nil
	}
	seen := make(map[schema.BucketID]bool)
	var ids []schema.BucketID
	for _, c := range changes {
		if !seen[c.Bucket] && !r.followed[c.Bucket] {
			seen[c.Bucket] = true
			ids = append(ids, c.Bucket)
		}
	}
	return ids
}

// lastPages bounds the pages of usage items that are searched for what was last counted.
const lastPages = 4

// lastCounted reads what was last counted of a bucket item, newest hours first.
func (r *Reader) lastCounted(ctx context.Context, id schema.BucketID) (*aggregator.Base, error) {
	in := client.Partition(schema.EntityPK(id.Namespace, id.Entity),
		schema.SKUsagePrefix+id.Resource+"#", true)
	in.ScanIndexForward, in.Limit = new(false), new(int32(client.MaxBatchWrite))
	pages := 0
	for page, err := range r.tables.QueryPages(ctx, in) {
		if err != nil {
			return nil, err
		}
		if base := aggregator.LastCounted(id.Shard, page); base != nil {
			return base, nil
		}
		if pages++; pages == lastPages {
			return nil, nil
		}
	}
	return r.neverCounted(ctx, id)
}

// neverCounted returns the base of a bucket item without usage items. If usage was counted from the
// beginning of the table, and none of it has expired, the item was created in a gap. Otherwise nil:
// it may be older.
func (r *Reader) neverCounted(ctx context.Context, id schema.BucketID) (*aggregator.Base, error) {
	n, err := r.namespace(ctx, id.Namespace)
	if err != nil {
		return nil, err
	}
	for _, g := range r.state.gaps {
		if g.From.IsZero() {
			return nil, nil
		}
	}
	r.mu.Lock()
	missed := r.missedStart
	r.mu.Unlock()
	age := r.o.Now().Sub(r.state.aggregator.Since)
	if missed || age >= time.Duration(n.days)*24*time.Hour {
		return nil, nil
	}
	return aggregator.NothingCounted(), nil
}

// maxFollowed bounds the buckets that are remembered. A bucket that is forgotten is looked up again.
const maxFollowed = 200_000

// follow remembers the buckets of changes that were counted.
func (r *Reader) follow(changes []*aggregator.Change) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.followed) > maxFollowed {
		clear(r.followed)
	}
	for _, c := range changes {
		r.followed[c.Bucket] = true
	}
}

// unfollow forgets a bucket some of whose records were not counted.
func (r *Reader) unfollow(id schema.BucketID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.followed, id)
}

// isolated reports whether an error concerns one item only, so that the others can be counted.
func isolated(err error) bool { return errors.Is(err, weir.Unsupported) }
