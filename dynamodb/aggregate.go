package dynamodb

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/aggregator"
	"github.com/weir-limiter/weir/dynamodb/internal/stream"
)

// AggregateOptions are the options of [Table.Aggregate]. Nil means all defaults.
type AggregateOptions struct {
	// Once ends it when everything that is in the stream is counted. Default: false.
	Once bool
	// TakeOver waits until the Python library's function, which the table's version record names,
	// writes no more usage, and then counts instead of it. Default: false, such a table is an error.
	TakeOver bool
	// Refill credits buckets ahead of their clients. It is for tables with Python clients: it saves
	// them round trips, and costs writes. weir's own clients gain nothing by it. Default: false.
	Refill bool
	// RetentionDays is the number of days for which usage is kept, unless the configuration of a
	// namespace has another. Default: 90.
	RetentionDays int
	// Interval is the time between two reads of the stream. A longer one makes fewer writes of more
	// records each. Default: five seconds.
	Interval time.Duration
	// HotWrites is the number of writes of a bucket item in one second at which the bucket is split
	// into twice as many shards, before DynamoDB's bound of 1,000; below 0 turns splitting off.
	// Default: 800.
	HotWrites int
	// Archive gets the events of the audit that DynamoDB removed because of their ttl; see
	// [AuditArchive]. Default: nil, they are not archived.
	Archive AuditArchive
	// Logger gets what is counted, what is left out and why, and what is incomplete. Default:
	// nothing is logged.
	Logger *slog.Logger
}

// AuditArchive is where [Table.Aggregate] puts the events of the audit that DynamoDB removed
// because of their ttl. docs/dynamodb.md describes the objects.
type AuditArchive interface {
	// Put writes an object, in place of one with the same key. If it fails, the records are read
	// again, and their objects are written again. A [*weir.Error] with a code other than
	// [weir.Unavailable] ends Aggregate instead. Several calls may run at a time.
	Put(ctx context.Context, key string, body []byte) error
}

// Aggregate counts usage from the table's stream, for all namespaces, until ctx ends. It splits
// buckets whose items are about to take more writes than DynamoDB allows. It is safe to run twice at
// the same time. Errors that may pass are logged, and it goes on. Errors are
// [weir.Unsupported] for a table without a stream of old and new images, and [weir.Conflict] for one
// whose usage the Python library's function counts.
func (t *Table) Aggregate(ctx context.Context, o *AggregateOptions) (*aggregator.Summary, error) {
	a, err := t.Aggregator(ctx, o)
	if err != nil {
		return nil, err
	}
	err = a.reader.Run(ctx)
	return a.Summary(), err
}

// Aggregator counts usage from batches of the table's stream that its caller has read. The function
// in cmd/weir-aggregator gets them from AWS Lambda. Its methods must not be called concurrently.
type Aggregator struct{ reader *stream.Reader }

// Aggregator returns an aggregator of the table. The options that are about reading the stream do
// not apply to it.
func (t *Table) Aggregator(ctx context.Context, o *AggregateOptions) (*Aggregator, error) {
	if o == nil {
		o = &AggregateOptions{}
	}
	switch {
	case o.RetentionDays < 0 || o.RetentionDays > weir.MaxRetentionDays:
		return nil, &weir.Error{
			Code: weir.Invalid, Field: "retention_days", Value: strconv.Itoa(o.RetentionDays),
			Reason: "must be from 1 to " + strconv.Itoa(weir.MaxRetentionDays),
		}
	case o.Interval < 0:
		return nil, &weir.Error{
			Code: weir.Invalid, Field: "interval", Value: o.Interval.String(), Reason: "must be above 0",
		}
	}
	c, err := connect(ctx, t.Name, t.Options)
	if err != nil {
		return nil, err
	}
	return &Aggregator{stream.New(c, stream.Options{
		Once: o.Once, TakeOver: o.TakeOver, RetentionDays: int64(o.RetentionDays), Interval: o.Interval,
		HotWrites: o.HotWrites, Refill: o.Refill, Archive: o.Archive, Logger: o.Logger,
	})}, nil
}

// Count counts a batch. Batches of one shard of the stream have to be counted in order, and one at a
// time, in this process or others. Each record counts once, however often it is in a batch. An
// [*aggregator.UnfinishedError] says from which record on the batch has to be counted again; after
// any other error it is the whole batch. The errors are those of [Table.Aggregate].
func (a *Aggregator) Count(ctx context.Context, b *aggregator.Batch) error {
	return a.reader.Count(ctx, b)
}

// Summary returns what was done so far.
func (a *Aggregator) Summary() *aggregator.Summary { return a.reader.Summary() }

// DeleteUsage deletes all recorded usage of an entity, in the namespace of the table's options, and
// returns the number of hours, days and months deleted. The entity need not exist any more. What is
// used later is counted again.
func (t *Table) DeleteUsage(ctx context.Context, entity string) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, adminTimeout)
	defer cancel()
	s, err := Open(ctx, t.Name, t.Options)
	if err != nil {
		return 0, err
	}
	n, err := s.admin.DeleteUsage(ctx, entity)
	return n, errors.Join(err, s.Close())
}
