package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weir-limiter/weir/dynamodb"
	"github.com/weir-limiter/weir/internal/connect"
	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/store"
)

// tableHelp ends the help of every command that looks after a table.
const tableHelp = `

The table is named with --store (or WEIR_STORE), as in dynamodb://TABLE?region=eu-central-1
or dynamodb://TABLE?endpoint=http://127.0.0.1:8000. Credentials come from the AWS SDK's own
chain.`

// tableQuestion is what a command asks of a table.
type tableQuestion func(ctx context.Context, table *dynamodb.Table) (*connect.Answer, error)

// onTable makes cmd one that looks after a table. What plan finds wrong with the arguments is
// misuse, and nothing is asked then.
func onTable(a *console.App,
	cmd *cobra.Command, plan func(cmd *cobra.Command, args []string) (tableQuestion, error),
) *cobra.Command {
	var url string
	cmd.Long += tableHelp
	cmd.Flags().StringVar(&url, "store", "",
		"`URL` of the table, like dynamodb://TABLE (default $WEIR_STORE)")
	output := console.OutputFlag(cmd)
	cmd.RunE = console.RunE(func(cmd *cobra.Command, args []string) error {
		if err := console.RejectBlankFlags(cmd); err != nil {
			return err
		}
		ask, err := plan(cmd, args)
		if err != nil {
			return console.AsUsageError(cmd, err)
		}
		url = cmp.Or(url, a.Env(connect.StoreEnv))
		if url == "" {
			return console.UsageError(cmd, "name the table with --store dynamodb://TABLE, or in %s", connect.StoreEnv)
		}
		table, err := store.Table(url)
		if err != nil {
			return console.UsageError(cmd, "%w", err)
		}
		found, err := ask(cmd.Context(), table)
		if found != nil {
			err = errors.Join(err, a.PrintResult(*output, found.Value, found.Table))
		}
		return connect.ServiceError(err)
	})
	return cmd
}

// confirmFlag gives a command that destroys something the flag without which it does not.
func confirmFlag(cmd *cobra.Command) func(warning string) error {
	sure := cmd.Flags().Bool("yes", false, "do it without asking")
	return func(warning string) error {
		if *sure {
			return nil
		}
		return console.UsageError(cmd, "%s: give --yes if you mean it", warning)
	}
}

// reasonIn is an error for people; empty for none.
func reasonIn(err error) string {
	if err == nil {
		return ""
	}
	return console.ComplaintLines(fmt.Errorf("%w", err))[0]
}
