package cli

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/connect"
	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/internal/text"
)

const setRetentionHelp = `Set for how long a DynamoDB table keeps usage, the audit and idle buckets.
Only the settings that are given change; weir system get-limits prints all of them. Other stores
have no such settings.

Records that exist keep their time. A bucket gets the new one with its next refill. The
multiplier is a multiple of the time in which the slowest limit of the bucket fills up; with 0
idle buckets are kept for good, as those of entities with limits of their own always are.`

func setRetentionCommand(a *console.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "set-retention",
		Short: "Set how long the store keeps usage, the audit and idle buckets",
		Long:  setRetentionHelp,
		Example: `  weir system set-retention --usage-days 30 --audit-days 365
  weir system set-retention --ttl-multiplier 14`,
		Args:              console.Arguments(0, 0, ""),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	var usage, audit, multiplier int64
	flags := cmd.Flags()
	flags.Int64Var(&usage, "usage-days", 0, "keep a record of usage for `N` days, from 1 to 3650")
	flags.Int64Var(&audit, "audit-days", 0, "keep an event of the audit for `N` days, from 1 to 3650")
	flags.Int64Var(&multiplier, "ttl-multiplier", 0,
		"keep an idle bucket for `N` times as long as it takes to fill up; 0 keeps it for good")
	return connect.Command(a, cmd, connect.Configures, func(cmd *cobra.Command, _ []string) (connect.Action, error) {
		given := func(flag string, value *int64) *int64 {
			if !cmd.Flags().Changed(flag) {
				return nil
			}
			return value
		}
		change := weir.Retention{
			UsageDays: given("usage-days", &usage), AuditDays: given("audit-days", &audit),
			TTLMultiplier: given("ttl-multiplier", &multiplier),
		}
		if change.IsZero() {
			return nil, console.UsageError(cmd, "give at least one of --usage-days, --audit-days and --ttl-multiplier")
		}
		if err := change.Validate(); err != nil {
			return nil, err
		}
		return func(ctx context.Context, c *connect.Connection) (*connect.Answer, error) {
			if err := c.Admin.SetRetention(ctx, change); err != nil {
				return nil, err
			}
			r, err := c.Admin.Retention(ctx)
			if err != nil {
				return nil, err
			}
			body := retentionBodyOf(r)
			body.Note = c.Note()
			return &connect.Answer{Value: body, Table: func(b *bytes.Buffer) { writeRetention(b, r) }}, nil
		}, nil
	})
}

// readRetention returns the retention of the store; nil if it has no such settings.
func readRetention(ctx context.Context, c *connect.Connection) (*weir.Retention, error) {
	r, err := c.Admin.Retention(ctx)
	if errors.Is(err, weir.Unsupported) {
		return nil, nil
	}
	return r, err
}

// writeRetention prints the settings. Those that are not configured have their defaults, which
// belong to the store.
func writeRetention(b *bytes.Buffer, r *weir.Retention) {
	t := text.Table{}
	for name, value := range r.All {
		shown := "not set"
		if value != nil {
			shown = strconv.FormatInt(*value, 10)
		}
		t.Add(name, shown)
	}
	t.Write(b)
}

// retentionBody is a retention as --output json prints it, with the fields of the wire.
type retentionBody struct {
	UsageDays     *int64 `json:"usage_days,omitempty"`
	AuditDays     *int64 `json:"audit_days,omitempty"`
	TTLMultiplier *int64 `json:"ttl_multiplier,omitempty"`
	Note          string `json:"note,omitempty"`
}

// String returns the settings that are given, as a limits file writes them.
func (body *retentionBody) String() string {
	r := weir.Retention{
		UsageDays: body.UsageDays, AuditDays: body.AuditDays, TTLMultiplier: body.TTLMultiplier,
	}
	var settings []string
	for name, value := range r.All {
		if value != nil {
			settings = append(settings, name+": "+strconv.FormatInt(*value, 10))
		}
	}
	return strings.Join(settings, ", ")
}

func retentionBodyOf(r *weir.Retention) *retentionBody {
	return &retentionBody{UsageDays: r.UsageDays, AuditDays: r.AuditDays, TTLMultiplier: r.TTLMultiplier}
}
