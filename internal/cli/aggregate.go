package cli

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/aggregator"
	"github.com/weir-limiter/weir/dynamodb"
	"github.com/weir-limiter/weir/internal/connect"
	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/internal/text"
	"github.com/weir-limiter/weir/store"
)

const aggregateHelp = `Count usage from the stream of a DynamoDB table, for all of its namespaces, until interrupted.
weir usage prints what was counted: the units of each limit by entity, resource and hour.

Every change of a bucket counts once, in the hour in which it was made, however often the
command is started again, and even if it runs twice. The stream keeps changes for 24 hours: if
the command does not run for longer, it marks the time as incomplete. Days and months are
written when they have ended. An idle table is read but not written to.

A bucket whose item takes 800 writes in a second is split into twice as many shards, before
DynamoDB's bound of 1,000.

A table whose usage the Python library's function counts is refused. To count instead of it,
turn its trigger off, and give --take-over: the command waits until the function has written
nothing for two minutes.

--refill is for tables with Python clients only: it credits a bucket that runs low before they
need it, which saves them round trips and costs writes; clients of weir gain nothing by it.

With --archive the events of the audit that DynamoDB removes when their time has ended go to an
S3 bucket, each at least once; weir audit list --archive lists them. What is deleted in another
way is not archived.

What is counted, left out and incomplete is logged to standard error.`

// aggregateBody is what was counted as --output json prints it.
type aggregateBody struct {
	Records int64            `json:"records"`
	Counted int64            `json:"counted"`
	Hours   int64            `json:"hour_updates"`
	Totals  int64            `json:"totals"`
	Skipped map[string]int64 `json:"skipped"`
	Splits  int64            `json:"splits"`
	Raised  int64            `json:"shards_raised"`
	Failed  int64            `json:"splits_failed"`
	Gaps    int64            `json:"gaps"`
	Refills int64            `json:"refills,omitempty"`
	TooLate int64            `json:"refills_too_late,omitempty"`
	Until   string           `json:"until,omitempty"`
	// Archived is the number of events of the audit that were archived, in Objects objects.
	Archived int64 `json:"archived,omitempty"`
	Objects  int64 `json:"archive_objects,omitempty"`
}

func newAggregateBody(a *aggregator.Summary) *aggregateBody {
	body := &aggregateBody{
		Records: a.Records, Counted: a.Counted, Hours: a.Hours, Totals: a.Totals, Skipped: a.Skipped,
		Splits: a.Splits, Raised: a.Raised, Failed: a.SplitsFailed, Gaps: a.Gaps,
		Refills: a.Refills, TooLate: a.RefillsLost, Archived: a.Archived, Objects: a.Objects,
	}
	if !a.Until.IsZero() {
		body.Until = a.Until.UTC().Format(time.RFC3339)
	}
	return body
}

// table writes what was counted.
func (body *aggregateBody) table(b *bytes.Buffer) {
	t := text.Table{}
	t.Add("records read", text.FormatInt(body.Records))
	t.Add("counted", text.FormatInt(body.Counted))
	t.Add("hours updated", text.FormatInt(body.Hours))
	t.Add("days and months", text.FormatInt(body.Totals))
	t.Add("hot buckets split", text.FormatInt(body.Splits))
	if body.Raised > 0 {
		t.Add("shards brought to the count", text.FormatInt(body.Raised))
	}
	if body.Failed > 0 {
		t.Add("writes of splits failed", text.FormatInt(body.Failed))
	}
	if body.Objects > 0 {
		t.Add("audit events archived", text.FormatInt(body.Archived))
		t.Add("objects written", text.FormatInt(body.Objects))
	}
	for _, reason := range slices.Sorted(maps.Keys(body.Skipped)) {
		t.Add("skipped: "+reason, text.FormatInt(body.Skipped[reason]))
	}
	if body.Gaps > 0 {
		t.Add("times marked incomplete", text.FormatInt(body.Gaps))
	}
	if body.Refills > 0 || body.TooLate > 0 {
		t.Add("refills", text.FormatInt(body.Refills))
		t.Add("refills too late", text.FormatInt(body.TooLate))
	}
	if body.Until != "" {
		t.Add("read until", body.Until)
	}
	t.Write(b)
}

// aggregateOptions are the flags of aggregate.
type aggregateOptions struct {
	dynamodb.AggregateOptions
	store   string
	archive string
	log     serveOptions // its flags of the log
}

func (o *aggregateOptions) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.store, "store", "", "`URL` of the table, like dynamodb://TABLE (default $WEIR_STORE)")
	f.BoolVar(&o.Once, "once", false, "end when everything that is in the stream is counted")
	f.BoolVar(&o.TakeOver, "take-over", false,
		"wait until the Python library's function counts no more, and count instead of it")
	f.BoolVar(&o.Refill, "refill", false, "credit buckets ahead of their Python clients")
	f.IntVar(&o.RetentionDays, "retention-days", 90,
		"keep usage for `N` days, unless the configuration of a namespace has another number")
	f.DurationVar(&o.Interval, "interval", 5*time.Second,
		"how often to read the stream; a longer time makes fewer writes")
	f.StringVar(&o.archive, "archive", "",
		"`URL` of a bucket for the audit events that expire, like s3://BUCKET/PREFIX")
	f.Var(o.log.format, "log-format", "format of the log")
	f.StringVar(&o.log.logLevel, "log-level", "info",
		"lowest `LEVEL` to log: debug, info, warn or error")
}

func aggregateCommand(a *console.App) *cobra.Command {
	o := aggregateOptions{log: serveOptions{format: console.NewChoice("text", "json")}}
	cmd := &cobra.Command{
		Use:   "aggregate",
		Short: "Count usage from the stream of a DynamoDB table",
		Long:  aggregateHelp,
		Example: `  weir aggregate --store dynamodb://limits?region=eu-central-1
  weir aggregate --once --store dynamodb://limits
  weir aggregate --take-over --store dynamodb://limits
  weir aggregate --archive s3://my-bucket/limits --store dynamodb://limits`,
		Args: console.Arguments(0, 0, ""),
	}
	o.flags(cmd)
	output := console.OutputFlag(cmd)
	cmd.RunE = console.RunE(func(cmd *cobra.Command, _ []string) error {
		if err := console.RejectBlankFlags(cmd); err != nil {
			return err
		}
		if o.RetentionDays == 0 || o.Interval == 0 {
			return console.UsageError(cmd, "--retention-days and --interval must be above 0")
		}
		url := cmp.Or(o.store, a.Env(connect.StoreEnv))
		if url == "" {
			return console.UsageError(cmd, "name the table with --store dynamodb://TABLE, or in %s", connect.StoreEnv)
		}
		table, err := store.Table(url)
		if err != nil {
			return console.UsageError(cmd, "%w", err)
		}
		if o.Logger, err = o.log.logger(a.Streams.Err); err != nil {
			return console.UsageError(cmd, "%w", err)
		}
		if o.archive != "" {
			if o.Archive, err = openArchive(cmd, o.archive); err != nil {
				return err
			}
		}
		found, err := table.Aggregate(cmd.Context(), &o.AggregateOptions)
		if e, ok := errors.AsType[*weir.Error](err); ok && e.Code == weir.Invalid && found == nil {
			return console.UsageError(cmd, "%w", err)
		}
		if err != nil {
			return connect.ServiceError(fmt.Errorf("count usage: %w", err))
		}
		body := newAggregateBody(found)
		return a.PrintResult(output, body, body.table)
	})
	return cmd
}
