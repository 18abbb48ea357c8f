package cli

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-limiter/weir/dynamodb"
	"github.com/weir-limiter/weir/internal/connect"
	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/internal/text"
	"github.com/weir-limiter/weir/provision"
	"github.com/weir-limiter/weir/store"
)

func stackCommand(a *console.App) *cobra.Command {
	cmd := console.Group(&cobra.Command{
		Use:   "stack",
		Short: "Deploy, check, upgrade and delete the AWS stack of a table",
		Example: `  weir stack deploy limits --lean --protect --yes
  weir stack status limits
  weir stack list`,
	})
	cmd.AddCommand(stackDeployCommand(a), stackStatusCommand(a), stackListCommand(a),
		stackCheckCommand(a), stackUpgradeCommand(a), stackHandBackCommand(a), stackDeleteCommand(a),
		stackTemplateCommand(a))
	return cmd
}

// stackHelp ends the help of every command that calls AWS.
const stackHelp = `

Region and credentials come from the AWS SDK's default chain; --region names another region, and
--endpoint another service than Amazon's, such as moto.`

// stackRun is the function of a command that calls AWS.
type stackRun func(cmd *cobra.Command, args []string, of *stackCall) error

// stackCall has the account and the flags of such a command.
type stackCall struct {
	options provision.Options
	output  *console.Choice
	account *provision.Account
}

// onAWS makes cmd call AWS.
func onAWS(cmd *cobra.Command, run stackRun) *cobra.Command {
	c := &stackCall{}
	cmd.Long += stackHelp
	f := cmd.Flags()
	f.StringVar(&c.options.Region, "region", "", "AWS `REGION` of the stack")
	f.StringVar(&c.options.Endpoint, "endpoint", "", "`URL` of another service than Amazon's")
	c.output = console.OutputFlag(cmd)
	cmd.RunE = console.RunE(func(cmd *cobra.Command, args []string) error {
		err := errors.Join(console.RejectBlankFlags(cmd), console.RefuseEmpty(cmd, args, "NAME"))
		if err != nil {
			return err
		}
		if c.account, err = provision.Open(cmd.Context(), &c.options); err != nil {
			return console.AsUsageError(cmd, err)
		}
		return connect.ServiceError(run(cmd, args, c))
	})
	return cmd
}

// table returns a table in the region of the stack.
func (c *stackCall) table(name string) (*dynamodb.Table, error) {
	return store.Table("dynamodb://" + name + "?" + c.query())
}

// describe describes a table in the region of the stack.
func (c *stackCall) describe(ctx context.Context, name string) (*dynamodb.TableInfo, error) {
	table, err := c.table(name)
	if err != nil {
		return nil, err
	}
	return table.Describe(ctx)
}

// query returns the region and the endpoint as a store's URL has them.
func (c *stackCall) query() string {
	query := url.Values{}
	if c.options.Region != "" {
		query.Set("region", c.options.Region)
	}
	if c.options.Endpoint != "" {
		query.Set("endpoint", c.options.Endpoint)
	}
	return query.Encode()
}

// progress returns a function that prints the events of a stack on a terminal, or nothing.
func progress(a *console.App) func(*provision.Event) {
	terminal := a.Terminal()
	return func(e *provision.Event) {
		if terminal == nil {
			return
		}
		line := text.Left(e.Status, 28) + " " + text.Left(e.ID, 30) + " " + e.Reason
		_, _ = fmt.Fprintln(terminal, strings.TrimRight(text.Printable(line), " ")) // not needed
	}
}

// pairs parses the values of a flag that may be repeated, each KEY=VALUE.
func pairs(cmd *cobra.Command, flag string, values []string) (map[string]string, error) {
	found := make(map[string]string, len(values))
	for _, pair := range values {
		key, value, ok := strings.Cut(pair, "=")
		if _, twice := found[key]; !ok || key == "" || twice {
			return nil, console.UsageError(cmd, "--%s %q: must be KEY=VALUE, each KEY once", flag,
				text.Printable(pair))
		}
		found[key] = value
	}
	return found, nil
}
