package cli

import (
	"bytes"
	"context"
	"errors"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb"
	"github.com/weir-limiter/weir/internal/archive"
	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/internal/text"
	"github.com/weir-limiter/weir/provision"
)

// upgraded returns the template of this version of weir for a stack, also for one that is to be taken
// over.
func (c *stackCall) upgraded(
	ctx context.Context, stack string, o *provision.DeployOptions,
) (*provision.Template, error) {
	if !o.TakeOver {
		return c.account.Upgraded(ctx, stack, o)
	}
	info, err := c.account.Describe(ctx, stack)
	if err != nil {
		return nil, err
	}
	if info.MadeBy != provision.MadeByPython {
		return c.account.Upgraded(ctx, stack, o) // it goes on, or was done
	}
	table, err := c.table(stack)
	if err != nil {
		return nil, err
	}
	if err := c.usable(ctx, stack); err != nil {
		return nil, err
	}
	found, err := table.Unjudged(ctx)
	if err != nil {
		return nil, err
	}
	if len(found) > 0 {
		errs := []error{&weir.Error{
			Code: weir.Unsupported, Field: "table", Value: stack,
			Reason: "has " + text.Plural(len(found), "attribute", "attributes") +
				" by which weir does not judge, so it would refuse requests: take them off with the " +
				"Python library first",
		}}
		for i := range found {
			errs = append(errs, errors.New(text.Printable(found[i])))
		}
		return nil, errors.Join(errs...)
	}
	return c.account.Inherited(ctx, stack, o)
}

// takeOver makes the change of a plan as a take-over.
func (c *stackCall) takeOver(
	ctx context.Context, p *provision.Deployment, progress func(*provision.Event),
) error {
	table, err := c.table(p.Table)
	if err != nil {
		return err
	}
	info, err := table.Describe(ctx)
	if err != nil {
		return err
	}
	return p.TakeOver(ctx, info.LambdaVersion, func(ctx context.Context) error {
		o, err := c.counting(ctx, p.Stack)
		if err != nil {
			return err
		}
		return table.TakeOver(ctx, o)
	}, progress)
}

// counting returns the options with which the function of a stack counts.
func (c *stackCall) counting(
	ctx context.Context, stack string,
) (*dynamodb.AggregateOptions, error) {
	info, err := c.account.Describe(ctx, stack)
	if err != nil {
		return nil, err
	}
	o := &dynamodb.AggregateOptions{}
	if info.Template != nil {
		o.Refill = info.Template.Refill
	}
	if days, err := strconv.Atoi(info.Parameters["SnapshotRetentionDays"]); err == nil {
		o.RetentionDays = days
	}
	if bucket := info.Outputs["AuditArchiveBucketName"]; bucket != "" {
		place, err := archive.Parse("s3://" + bucket + "?" + c.query())
		if err != nil {
			return nil, err
		}
		if o.Archive, err = archive.Open(ctx, place); err != nil {
			return nil, err
		}
	}
	return o, nil
}

func stackHandBackCommand(a *console.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "hand-back NAME",
		Short: "Give a stack back to the Python library",
		Long: `Give a stack that weir has taken over back to the Python library: weir's function ends,
what is in the stream is counted, and the stack gets the template, parameters and tags that it had
before. The library's function has no code then: run zae-limiter upgrade --force at once.

The library's function counts what is written after its trigger was made. What is written between
that and the end of weir's counting is in no usage, so stop the writers for these minutes if that
matters.`,
		Example: "  weir stack hand-back limits --yes\n  zae-limiter upgrade --force --name limits",
		Args:    console.Arguments(1, 1, "the name of a stack"),
	}
	confirm := confirmFlag(cmd)
	return onAWS(cmd, func(cmd *cobra.Command, args []string, c *stackCall) error {
		if err := confirm("this makes the stack what it was before weir took it over"); err != nil {
			return err
		}
		table, err := c.table(args[0])
		if err != nil {
			return err
		}
		err = c.account.HandBack(cmd.Context(), args[0],
			func(ctx context.Context, function string) error {
				o, err := c.counting(ctx, args[0])
				if err != nil {
					return err
				}
				return table.HandBack(ctx, function, o)
			}, progress(a))
		if e, ok := errors.AsType[*weir.Error](err); ok && e.Code == weir.Invalid {
			return console.AsUsageError(cmd, err)
		}
		if err != nil {
			return err
		}
		body := struct {
			Stack      string `json:"stack"`
			HandedBack bool   `json:"handed_back"`
		}{args[0], true}
		return a.PrintResult(c.output, body, func(b *bytes.Buffer) {
			b.WriteString("handed the stack " + args[0] + " back\n" +
				"Its function has no code yet: run zae-limiter upgrade --force --name " + args[0] + "\n")
		})
	})
}
