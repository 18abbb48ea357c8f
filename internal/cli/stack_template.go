package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/provision"
)

func stackTemplateCommand(a *console.App) *cobra.Command {
	t := &templateFlags{}
	cmd := &cobra.Command{
		Use:   "template",
		Short: "Print the CloudFormation template of a stack",
		Long: `Print a template for AWS CloudFormation: a table, the function that counts its usage
with what invokes it, an archive, alarms, and policies. The command calls nothing, and prints the
same for the same flags.

A flag with a number or an ARN is the default of a parameter of the template, which a deployment
can change. The parameters CodeBucket and CodeKey say where the function's zip file is.`,
		Example: `  weir stack template --stack limits --lean --protect > limits.json
  aws cloudformation deploy --stack-name limits --template-file limits.json \
    --capabilities CAPABILITY_NAMED_IAM \
    --parameter-overrides CodeBucket=my-code CodeKey=weir-aggregator.zip`,
		Args: console.Arguments(0, 0, ""),
	}
	cmd.Flags().StringVar(&t.Stack, "stack", "",
		"`NAME` of the stack, only to check the names made from it")
	t.declare(cmd)
	cmd.RunE = console.RunE(func(cmd *cobra.Command, _ []string) error {
		if err := console.RejectBlankFlags(cmd); err != nil {
			return err
		}
		if err := t.read(cmd); err != nil {
			return err
		}
		whole, err := t.JSON()
		if err != nil {
			return console.AsUsageError(cmd, err)
		}
		if _, err := a.Streams.Out.Write(whole); err != nil {
			return fmt.Errorf("output: %w", err)
		}
		return nil
	})
	return cmd
}

// templateFlags are the flags that say what is in a stack.
type templateFlags struct {
	provision.Template
	tags []string
}

// declare adds the flags to a command.
func (t *templateFlags) declare(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&t.Table, "table", "", "`NAME` of the table (default: that of the stack)")
	f.BoolVar(&t.Existing, "existing", false, "leave out the table: --table exists already")
	f.BoolVar(&t.Lean, "lean", false, "keep only keys in the index by resource")
	f.BoolVar(&t.Protected, "protect", false, "make DynamoDB refuse to delete the table")
	f.BoolVar(&t.Recovery, "recovery", false, "enable point-in-time recovery")
	f.BoolVar(&t.NoAggregator, "no-aggregator", false,
		"leave out the function and all that is for it")
	f.IntVar(&t.RetentionDays, "retention-days", 90, "how long usage is kept, in `DAYS`")
	f.BoolVar(&t.Refill, "refill", false, "refill buckets ahead, for a table with Python clients")
	f.IntVar(&t.LogDays, "log-days", 30, "how long the function's log is kept, in `DAYS`")
	f.BoolVar(&t.Tracing, "tracing", false, "send traces of the function to AWS X-Ray")
	f.BoolVar(&t.NoArchive, "no-archive", false, "leave out the archive of the audit")
	f.IntVar(&t.ArchiveDays, "archive-days", 90, "archived events move to S3 Glacier after `DAYS`")
	f.BoolVar(&t.NoAlarms, "no-alarms", false, "leave out the alarms")
	f.StringVar(&t.AlarmTopic, "alarm-topic", "", "`ARN` of the SNS topic that is told of alarms")
	f.BoolVar(&t.NoPolicies, "no-policies", false, "leave out the managed policies")
	f.StringVar(&t.FunctionRole, "function-role", "",
		"`ARN` of a role for the function (default: a new one)")
	f.StringVar(&t.PermissionBoundary, "permission-boundary", "",
		"`ARN` of the policy that bounds the function's role")
	f.StringVar(&t.RoleNameFormat, "role-name-format", "",
		"`FORMAT` of names of roles, like Team-{}, where {} is the default name")
	f.StringVar(&t.PolicyNameFormat, "policy-name-format", "",
		"`FORMAT` of names of managed policies")
	f.StringArrayVar(&t.tags, "tag", nil, "tag `KEY=VALUE` of the resources; may be repeated")
}

// read reads the flags that need more than their own type. It refuses zeros, which would stand for
// a default.
func (t *templateFlags) read(cmd *cobra.Command) (err error) {
	for _, name := range []string{"retention-days", "log-days", "archive-days"} {
		if cmd.Flags().Lookup(name).Value.String() == "0" {
			return console.UsageError(cmd, "--%s 0: must be a number of days from 1", name)
		}
	}
	t.Version = console.BuildVersion().Version
	t.Tags, err = pairs(cmd, "tag", t.tags)
	return err
}
