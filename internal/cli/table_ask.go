package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weir-limiter/weir/dynamodb"
	"github.com/weir-limiter/weir/store"
)

// tableHelp ends the help of every command that looks after a table.
const tableHelp = `

The table is named with --store (or WEIR_STORE), as in dynamodb://TABLE?region=eu-central-1
or dynamodb://TABLE?endpoint=http://127.0.0.1:8000. Credentials come from the AWS SDK's own
chain.`

// tableQuestion is what a command asks of a table.
type tableQuestion func(ctx context.Context, table *dynamodb.Table) (*answer, error)

// onTable makes cmd one that looks after a table. What plan finds wrong with the arguments is
// misuse, and nothing is asked then.
func (a *app) onTable(
	cmd *cobra.Command, plan func(cmd *cobra.Command, args []string) (tableQuestion, error),
) *cobra.Command {
	var url string
	cmd.Long += tableHelp
	cmd.Flags().StringVar(&url, "store", "",
		"`URL` of the table, like dynamodb://TABLE (default $WEIR_STORE)")
	output := outputFlag(cmd)
	cmd.RunE = run(func(cmd *cobra.Command, args []string) error {
		if err := refuseBlankFlags(cmd); err != nil {
			return err
		}
		ask, err := plan(cmd, args)
		if err != nil {
			return asMisused(cmd, err)
		}
		url = cmp.Or(url, a.env(storeEnv))
		if url == "" {
			return misused(cmd, "name the table with --store dynamodb://TABLE, or in %s", storeEnv)
		}
		table, err := store.Table(url)
		if err != nil {
			return misused(cmd, "%w", err)
		}
		found, err := ask(cmd.Context(), table)
		if found != nil {
			err = errors.Join(err, a.print(*output, found.body, found.table))
		}
		return serviceError(err)
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
		return misused(cmd, "%s: give --yes if you mean it", warning)
	}
}

// reasonIn is an error for people; empty for none.
func reasonIn(err error) string {
	if err == nil {
		return ""
	}
	return complaints(fmt.Errorf("%w", err))[0]
}
