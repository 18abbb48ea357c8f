// Package stream counts usage from a table's stream: it reads the stream's shards, has package
// aggregator turn their records into updates of usage items, and writes those.
//
// A [Reader] works in passes. In a pass it reads each shard up to its end, or up to a bound, books
// the records as one batch, writes the bookings, and then moves the shard's checkpoint. So every
// record up to a checkpoint is counted. Records after it may be counted too, and are read again
// after a restart; the positions on the usage items keep them from counting twice. A batch without
// a bucket item's record writes nothing.
//
// Before it counts a batch it splits the buckets that are hot by its records. That is best effort:
// nothing of it keeps a batch from being counted.
//
// Parents come before their children, so that the records of one bucket item are read in order. Two
// readers may work at the same time: each counts what the other has not.
//
// After an error that may pass, the reader begins again from the stored checkpoints.
//
// With the option Refill, each batch may also be followed by refills of its bucket items.
package stream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/aggregator"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/dynamodb/internal/tables"
	"github.com/weir-limiter/weir/internal/schema"
	"github.com/weir-limiter/weir/internal/sharding"
)

// Options are the options of a Reader.
type Options struct {
	// Once ends the reader when everything that was in the stream when it began is counted.
	Once bool
	// TakeOver waits until another aggregator of the table writes no more, and then takes over.
	TakeOver bool
	// Refill credits buckets ahead of their clients, which saves round trips of Python clients. Default:
	// false.
	Refill bool
	// RetentionDays is the time for which usage items are kept, unless the configuration of their
	// namespace has another. Default: 90.
	RetentionDays int64
	// Interval is the time between two passes that find little. Default: 5 s.
	Interval time.Duration
	// EmptyReads is the number of successive reads without records after which a shard counts as
	// read up to the present. Default: 8.
	EmptyReads int
	// Grace is how long after the end of a day its item is written. Default: 15 min.
	Grace time.Duration
	// IndexLag is the time that the table's index may lag behind; below 0 for none. Default: 30 s.
	IndexLag time.Duration
	// Quiet is how long another aggregator must have written nothing before the table is taken
	// over. Default: 2 min.
	Quiet time.Duration
	// HotWrites is the number of writes of an item in one second at which its bucket is split; below
	// 0 turns splitting off. Default: 800.
	HotWrites int
	// Archive gets the events of the audit that DynamoDB removed because of their ttl. Default:
	// they are not archived.
	Archive Archive
	// Source replaces the SDK's client of streams. Default: the SDK's.
	Source Source
	// Move is applied to the times of the stream, its records and its table. Default: none.
	Move func(time.Time) time.Time
	// Now returns the present. Default: [time.Now].
	Now func() time.Time
	// Wait waits between two passes. Default: a timer.
	Wait func(ctx context.Context, d time.Duration) error
	// Logger gets what is counted, left out and marked. Default: nothing is logged.
	Logger *slog.Logger
}

// The defaults of [Options].
const (
	DefaultInterval   = 5 * time.Second
	defaultEmptyReads = 8
	defaultGrace      = 15 * time.Minute
	defaultIndexLag   = 30 * time.Second
	defaultQuiet      = 2 * time.Minute
)

func (o *Options) fill() {
	o.RetentionDays = cmp.Or(o.RetentionDays, schema.UsageRetentionDays)
	o.Interval = cmp.Or(o.Interval, DefaultInterval)
	o.EmptyReads = cmp.Or(o.EmptyReads, defaultEmptyReads)
	o.Grace = cmp.Or(o.Grace, defaultGrace)
	o.IndexLag = cmp.Or(o.IndexLag, defaultIndexLag)
	o.Quiet = cmp.Or(o.Quiet, defaultQuiet)
	o.HotWrites = cmp.Or(o.HotWrites, sharding.HotWrites)
	if o.Move == nil {
		o.Move = func(t time.Time) time.Time { return t }
	}
	if o.Wait == nil {
		o.Wait = wait
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
}

func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Reader counts the usage of a table.
type Reader struct {
	tables *tables.Table
	source Source
	o      Options
	log    *slog.Logger

	// The state of a session, which begins from what is stored.
	arn, label string
	state      *state
	shards     map[string]*shard
	listed     time.Time
	relist     bool
	off        bool // the stream was turned off
	began      time.Time
	refreshed  time.Time // of the last read of the state between batches
	// isolate is called for records that cannot be counted; nil if they are only logged.
	isolate func(*aggregator.Record, *aggregator.Fault)

	mu         sync.Mutex // guards the fields below while shards are read in parallel
	namespaces map[string]namespace
	// followed are the buckets whose records are read without a gap since the first one.
	followed map[schema.BucketID]bool
	splits   map[schema.BucketID]splitCount // by first shard
	marked   map[schema.Key]bool            // the gaps of deleted namespaces that are stored
	// missedStart reports whether this session found that usage was not counted from the beginning.
	missedStart bool
	makeGood    bool // there may be gaps before the first records of buckets
	wrote       time.Time
	foreign     time.Time // of the last write of another aggregator
	recheck     bool      // the version record has changed
	done        aggregator.Summary
}

// New returns a reader of a table.
func New(c *client.Client, o Options) *Reader {
	o.fill()
	if o.Now == nil {
		// The clock on the wall goes on while an instance of a function is frozen.
		o.Now = func() time.Time { return c.Now().Round(0) }
	}
	source := o.Source
	if source == nil {
		source = NewSource(c)
	}
	return &Reader{
		tables: &tables.Table{Client: c}, source: source, o: o, log: o.Logger,
		done: aggregator.Summary{Skipped: make(map[string]int64)},
	}
}

// Summary returns what was done so far. It must not be called while the reader runs.
func (r *Reader) Summary() *aggregator.Summary { return r.done.Clone() }

// longestPause bounds the pause after an error.
const longestPause = time.Minute

// Run counts until ctx ends, or, with the option Once, until everything is counted. Errors that may
// pass are logged, unless it runs once.
func (r *Reader) Run(ctx context.Context) error {
	stuck := aggregator.Position("")
	for failed := 0; ; failed++ {
		before := r.done.Records
		err := r.session(ctx)
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // It was asked to end.
		case err == nil, r.o.Once, !mayPass(err):
			return err
		}
		at := unfinishedAt(err)
		if r.done.Records != before && (at == "" || at != stuck) {
			failed = 0
		}
		stuck = at
		pause := min(longestPause, time.Second<<min(failed, 6))
		r.log.Warn("counting was interrupted, and begins again from the last checkpoint",
			"error", err, "pause", pause)
		if r.o.Wait(ctx, pause) != nil {
			return nil //nolint:nilerr // It was asked to end.
		}
	}
}

// unfinishedAt returns the position at which a batch could not be finished; empty for another error.
func unfinishedAt(err error) aggregator.Position {
	if u, ok := errors.AsType[*aggregator.UnfinishedError](err); ok {
		return u.First.Position
	}
	return ""
}

// mayPass reports whether an error may be gone when the call is repeated.
func mayPass(err error) bool { return errors.Is(err, weir.Unavailable) }

// session counts from the stored checkpoints on.
func (r *Reader) session(ctx context.Context) error {
	if err := r.start(ctx); err != nil {
		return err
	}
	target := r.o.Now()
	for {
		busy, err := r.pass(ctx)
		if err != nil {
			return err
		}
		if r.o.Once && r.readTo(target) {
			break
		}
		if busy {
			continue
		}
		if r.o.Wait(ctx, r.pause()) != nil {
			return r.stop(context.WithoutCancel(ctx))
		}
	}
	for r.totalsDue() {
		if err := r.o.Wait(ctx, r.o.IndexLag); err != nil {
			return r.stop(context.WithoutCancel(ctx))
		}
		if err := r.writeTotals(ctx); err != nil {
			return err
		}
	}
	return r.stop(ctx)
}

// pause returns the time to wait before the next pass. Until a shard has caught up, it is as short
// as the stream allows: each shard may be read five times a second.
func (r *Reader) pause() time.Duration {
	for _, s := range r.readable() {
		if r.o.Once || !s.caughtUp {
			return min(r.o.Interval, shortPause)
		}
	}
	return r.o.Interval
}

const shortPause = 250 * time.Millisecond

// readTo reports whether all records from before a time were read: each shard had no more, or a
// later one.
func (r *Reader) readTo(target time.Time) bool {
	for _, s := range r.shards {
		if !s.done && !s.caughtUp && !s.last.After(target) {
			return false
		}
	}
	return true
}

// pass reads and counts the next records of all shards. busy reports whether there may be more.
func (r *Reader) pass(ctx context.Context) (busy bool, err error) {
	if err := r.listShards(ctx); err != nil {
		return false, err
	}
	list := r.readable()
	more := make([]bool, len(list))
	err = client.Parallel(len(list), func(i int) error {
		s := list[i]
		records, full, err := r.read(ctx, s)
		if err != nil {
			return err
		}
		more[i] = full || s.done
		return r.count(ctx, s, records)
	})
	if err != nil {
		return false, err
	}
	r.relist = len(list) == 0
	for i, s := range list {
		busy = busy || more[i]
		r.relist = r.relist || s.done
	}
	if len(list) == 0 && r.off {
		return false, turnedOff(nil)
	}
	if r.recheck {
		r.recheck = false
		if err := r.checkVersion(ctx); err != nil {
			return false, err
		}
	}
	r.done.Until = r.watermark()
	return busy, r.writeTotals(ctx)
}

// turnedOff returns the error for a stream that was turned off. The next session finds out whether
// the table has another one.
func turnedOff(cause error) error {
	return &weir.Error{Code: weir.Unavailable, Reason: "the stream was turned off", Err: cause}
}

// start begins a session.
func (r *Reader) start(ctx context.Context) error {
	d, err := r.tables.Describe(ctx)
	if err != nil {
		return err
	}
	if err := usable(r.tables.TableName, d); err != nil {
		return err
	}
	r.arn, r.label = client.Text(d.LatestStreamArn), client.Text(d.LatestStreamLabel)
	if r.state, err = readState(ctx, r.tables.Client); err != nil {
		return err
	}
	r.began = r.o.Now()
	r.shards, r.relist, r.recheck = make(map[string]*shard), true, false
	r.namespaces = make(map[string]namespace)
	r.followed, r.marked = make(map[schema.BucketID]bool), make(map[schema.Key]bool)
	if err := r.checkVersion(ctx); err != nil {
		return err
	}
	if err := r.findGap(ctx, d); err != nil {
		return err
	}
	for _, g := range r.state.gaps {
		r.makeGood, r.marked[g.Key()] = r.makeGood || !g.From.IsZero(), true
	}
	r.log.Info("counting", "table", r.tables.TableName, "stream", r.label,
		"checkpoints", len(r.state.checkpoints))
	return nil
}

// usable returns an error for a table whose usage cannot be counted.
func usable(table string, d *types.TableDescription) error {
	if err := errors.Join(tables.Usable(table, d.TableStatus), tables.CheckLayout(table, d)); err != nil {
		return err
	}
	s := d.StreamSpecification
	switch {
	case s == nil || s.StreamEnabled == nil || !*s.StreamEnabled || client.Text(d.LatestStreamArn) == "":
		return client.Fault(weir.Unsupported, "store.table", table, "has no stream, from which usage is "+
			"counted: turn it on with aws dynamodb update-table --table-name "+table+
			" --stream-specification StreamEnabled=true,StreamViewType=NEW_AND_OLD_IMAGES")
	case s.StreamViewType != types.StreamViewTypeNewAndOldImages:
		return client.Fault(weir.Unsupported, "store.table", table, "has a stream of "+
			string(s.StreamViewType)+": usage is counted from NEW_AND_OLD_IMAGES; turn the stream off, and "+
			"on again with that view type")
	}
	return nil
}

// findGap marks what the stream has lost since the last session, and stores the state of a first
// one.
func (r *Reader) findGap(ctx context.Context, d *types.TableDescription) error {
	now := r.o.Now()
	s := &aggregator.Situation{
		Now: now, Label: r.label, State: r.state.aggregator, Checkpoints: r.state.checkpoints,
		Began: now,
	}
	if at, err := time.Parse("2006-01-02T15:04:05.999", r.label); err == nil {
		s.Began = r.o.Move(at)
	}
	if d.CreationDateTime != nil {
		s.TableCreated = r.o.Move(*d.CreationDateTime)
	}
	gap := aggregator.Lost(s)
	if gap != nil {
		if err := r.mark(ctx, gap); err != nil {
			return err
		}
	}
	if r.state.aggregator == nil {
		since := s.TableCreated
		if gap != nil {
			since = gap.To
		}
		since = laterOf(since, now.Add(-aggregator.Retention))
		a := &schema.Aggregator{
			Label: r.label, Since: since,
			Days: weir.Daily.Start(since), Months: weir.Monthly.Start(since),
		}
		e := &client.Expression{}
		e.RequireAbsent(schema.AttrPK)
		r.state.aggregator = a
		return put(ctx, r.tables.Client, a.Item(), e)
	}
	if r.state.aggregator.Label == r.label {
		return nil
	}
	r.state.aggregator.Label = r.label
	e := &client.Expression{}
	e.SetText(schema.AttrLabel, r.label)
	return update(ctx, r.tables.Client, schema.AggregatorKey(), e)
}

func laterOf(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// mark stores a gap, and makes good what it can after it.
func (r *Reader) mark(ctx context.Context, g *schema.Gap) error {
	r.log.Warn("usage is incomplete", "from", g.From, "to", g.To, "reason", g.Reason)
	r.mu.Lock()
	r.done.Gaps++
	r.makeGood = r.makeGood || !g.From.IsZero()
	r.missedStart = r.missedStart || g.From.IsZero()
	r.mu.Unlock()
	return saveGap(ctx, r.tables.Client, g, r.o.RetentionDays)
}

// stop stores how far the stream was read, so that the next session does not take the time without
// records for a gap. It writes nothing if that was stored lately.
func (r *Reader) stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	until := r.watermark()
	if until.Sub(r.state.aggregator.Until) < storedLately {
		return nil
	}
	e := &client.Expression{}
	e.Set = append(e.Set, e.Name(schema.AttrUntil)+" = "+e.Value(schema.Instant(until)))
	return update(ctx, r.tables.Client, schema.AggregatorKey(), e)
}

const (
	// stopTimeout bounds the write after a reader was asked to end.
	stopTimeout = 5 * time.Second
	// storedLately is the time for which a stored time is good enough.
	storedLately = time.Minute
)

// classify returns an error of the stream's calls.
func classify(err error) error {
	if err == nil {
		return nil
	}
	if isGone(err) {
		return turnedOff(err)
	}
	return fmt.Errorf("read the stream: %w", client.Classify(err))
}
