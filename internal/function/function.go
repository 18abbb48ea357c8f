// Package function is the AWS Lambda function that counts the usage of a DynamoDB table from its
// stream: cmd/weir-aggregator. It does what weir aggregate does, with the batches that Lambda reads.
//
// Two kinds of events invoke it. The event source mapping of the stream sends batches of records; it
// must have a tumbling window, from which the function learns the shard of the stream, and report
// batch item failures. A schedule sends events once an hour: the function then reads what Lambda
// cannot tell it, the shards that are idle or were closed, and writes the days and months that have
// ended.
//
// A batch that fails is delivered again from the first record that is not done. A record that cannot
// be read is not: another attempt would not help, and would hold up its shard. It is logged, kept in
// the archive if there is one, and its hour is marked as incomplete.
package function

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/aggregator"
	"github.com/weir-limiter/weir/dynamodb"
	"github.com/weir-limiter/weir/internal/archive"
	"github.com/weir-limiter/weir/store"
)

// The environment variables of the function.
const (
	StoreEnv     = "WEIR_STORE"          // URL of the table: dynamodb://TABLE
	RetentionEnv = "WEIR_RETENTION_DAYS" // as weir aggregate --retention-days
	ArchiveEnv   = "WEIR_ARCHIVE"        // as weir aggregate --archive; nothing is archived if empty
	RefillEnv    = "WEIR_REFILL"         // true, as weir aggregate --refill; false if empty
	LevelEnv     = "WEIR_LOG_LEVEL"      // debug, info, warn or error; info if empty
)

// Options are the options of a function. Only tests set them.
type Options struct {
	// Table replaces the table. Default: the one that [StoreEnv] names.
	Table *dynamodb.Table
	// Archive replaces the archive. Default: the one that [ArchiveEnv] names.
	Archive dynamodb.AuditArchive
	// Now returns the present. Default: [time.Now].
	Now func() time.Time
}

// Function handles the events of one instance of the function, one at a time.
type Function struct {
	table      *dynamodb.Table
	options    dynamodb.AggregateOptions
	aggregator *dynamodb.Aggregator
	metrics    metrics
	log        *slog.Logger
	now        func() time.Time
}

// New returns a function with the settings of its environment. Logs and metrics go to out, a JSON
// object a line. Errors name the variable.
func New(
	ctx context.Context, env func(string) string, out io.Writer, o *Options,
) (*Function, error) {
	if o == nil {
		o = &Options{}
	}
	f := &Function{now: o.Now, table: o.Table}
	if f.now == nil {
		f.now = time.Now
	}
	err := f.configure(env, out)
	if err != nil {
		return nil, err
	}
	if f.options.Archive = o.Archive; o.Archive == nil {
		if f.options.Archive, err = openArchive(ctx, env(ArchiveEnv)); err != nil {
			return nil, err
		}
	}
	if f.aggregator, err = f.table.Aggregator(ctx, &f.options); err != nil {
		return nil, err
	}
	f.metrics = metrics{out: out, table: f.table.Name}
	return f, nil
}

// configure reads the settings that need no call.
func (f *Function) configure(env func(string) string, out io.Writer) (err error) {
	var level slog.Level
	if text := cmp.Or(env(LevelEnv), "info"); level.UnmarshalText([]byte(text)) != nil {
		return invalid(LevelEnv, text, "must be debug, info, warn or error")
	}
	f.log = slog.New(slog.NewJSONHandler(out, &slog.HandlerOptions{Level: level}))
	f.options.Logger = f.log
	if f.table == nil {
		if f.table, err = tableOf(env(StoreEnv)); err != nil {
			return err
		}
	}
	if text := env(RetentionEnv); text != "" {
		days, err := strconv.Atoi(text)
		if err != nil || days < 1 || days > weir.MaxRetentionDays {
			return invalid(RetentionEnv, text, "must be a number of days from 1 to "+
				strconv.Itoa(weir.MaxRetentionDays))
		}
		f.options.RetentionDays = days
	}
	if text := cmp.Or(env(RefillEnv), "false"); text != "true" && text != "false" {
		return invalid(RefillEnv, text, "must be true or false")
	}
	f.options.Refill = env(RefillEnv) == "true"
	return nil
}

// openArchive returns the archive at a URL; nil if that is empty.
func openArchive(ctx context.Context, url string) (dynamodb.AuditArchive, error) {
	if url == "" {
		return nil, nil
	}
	at, err := archive.Parse(url)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", ArchiveEnv, err)
	}
	return archive.Open(ctx, at)
}

// tableOf returns the table of a URL.
func tableOf(url string) (*dynamodb.Table, error) {
	if url == "" {
		return nil, invalid(StoreEnv, "", "must name the table: dynamodb://TABLE")
	}
	table, err := store.Table(url)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", StoreEnv, err)
	}
	return table, nil
}

func invalid(variable, value, reason string) error {
	return &weir.Error{Code: weir.Invalid, Field: variable, Value: value, Reason: reason}
}

// margin returns the part of an invocation's time that is left for the answer.
func margin(left time.Duration) time.Duration { return min(3*time.Second, left/4) }

// Handle handles an event. It returns an answer to a batch of the stream, and nothing to a schedule.
func (f *Function) Handle(ctx context.Context, event json.RawMessage) (any, error) {
	if deadline, ok := ctx.Deadline(); ok {
		short, cancel := context.WithDeadline(ctx, deadline.Add(-margin(time.Until(deadline))))
		defer cancel()
		ctx = short
	}
	var e streamEvent
	if err := json.Unmarshal(event, &e); err != nil {
		return nil, fmt.Errorf("the event cannot be read: %w", err)
	}
	before := f.aggregator.Summary()
	switch {
	case e.Records != nil || e.ShardID != "":
		answer, m, err := f.batch(ctx, &e)
		f.metrics.write(f.now(), m.since(before, f.aggregator.Summary()))
		if err != nil {
			f.log.Error("batch failed, and is tried again", "shard", e.ShardID, "error", err)
			return nil, err
		}
		return answer, nil
	case e.DetailType == "Scheduled Event":
		return nil, f.pass(ctx)
	}
	return nil, errors.New("the event is neither a batch of a DynamoDB stream nor of a schedule")
}

// batch counts a batch of the stream.
func (f *Function) batch(
	ctx context.Context, e *streamEvent,
) (*events.DynamoDBTimeWindowEventResponse, *measures, error) {
	m := &measures{failures: 1}
	answer := &events.DynamoDBTimeWindowEventResponse{
		BatchItemFailures: []events.DynamoDBBatchItemFailure{},
	}
	answer.State = make(map[string]string)
	if e.ShardID == "" {
		return nil, m, errors.New("the event does not name a shard of the stream: set the tumbling " +
			"window of the event source mapping, TumblingWindowInSeconds, to 60")
	}
	b, isolated, err := f.read(e)
	if err != nil {
		return nil, m, err
	}
	b.Isolate, b.Writes = isolated.add, f.writes(e)
	err = f.aggregator.Count(ctx, b)
	if text, err := b.Writes.MarshalJSON(); err == nil {
		answer.State[writesState] = string(text)
	}
	u, unfinished := errors.AsType[*aggregator.UnfinishedError](err)
	switch {
	case unfinished:
		f.log.Error("a part of the batch failed, and is tried again", "shard", e.ShardID,
			"from", u.First.Sequence, "error", u.Err)
		answer.BatchItemFailures = append(answer.BatchItemFailures,
			events.DynamoDBBatchItemFailure{ItemIdentifier: u.First.Sequence})
	case err != nil:
		return nil, m, err
	default:
		m.failures = 0
	}
	if n := len(b.Records); n > 0 {
		m.lag = max(0, f.now().Sub(b.Records[n-1].At))
	}
	m.isolated = int64(len(isolated.records))
	if err := f.report(ctx, isolated); err != nil {
		m.failures = 1
		return nil, m, err
	}
	return answer, m, nil
}

// writesState is the key of the writes of busy items in the state that Lambda hands on.
const writesState = "writes"

// writes returns what earlier invocations know about the writes of the shard's items.
func (f *Function) writes(e *streamEvent) *aggregator.Writes {
	w := &aggregator.Writes{}
	if len(e.State) == 0 {
		return w
	}
	var state map[string]string
	err := json.Unmarshal(e.State, &state)
	if text := state[writesState]; err == nil && text != "" {
		err = w.UnmarshalJSON([]byte(text))
	}
	if err != nil {
		f.log.Warn("the state of the window cannot be read, and begins anew", "error", err)
	}
	return w
}

// pass does what the batches of Lambda cannot: it reads the shards that send none, finds gaps, and
// writes the totals that are due.
func (f *Function) pass(ctx context.Context) error {
	o := f.options
	o.Once = true
	a, err := f.table.Aggregate(ctx, &o)
	if a == nil {
		a = &aggregator.Summary{}
	}
	m := &measures{}
	if err == nil && ctx.Err() != nil {
		err = fmt.Errorf("the scheduled pass took longer than the function may: %w", ctx.Err())
	}
	if err != nil {
		m.failures = 1
	}
	if !a.Until.IsZero() {
		m.lag = max(0, f.now().Sub(a.Until))
	}
	f.metrics.write(f.now(), m.since(&aggregator.Summary{}, a))
	if err != nil {
		f.log.Error("scheduled pass failed", "error", err)
	}
	return err
}
