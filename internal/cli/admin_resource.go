package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/connect"
	"github.com/weir-limiter/weir/internal/console"
)

func resourceCommand(a *console.App) *cobra.Command {
	cmd := console.Group(&cobra.Command{
		Use:   "resource",
		Short: "Read and change the limits of a resource",
		Example: `  weir resource set-limits gpt-4o rpm:500 tpm:100000/min:200000
  weir resource capacity gpt-4o`,
	})
	cmd.AddCommand(limitCommands(a, &place{
		group: "resource", names: []string{"RESOURCE"}, example: "gpt-4o", inWords: "a resource",
		old: true, at: func(args []string, at *weir.Subject) { at.Resource = args[0] },
	})...)
	cmd.AddCommand(capacityCommand(a))
	return cmd
}

func capacityCommand(a *console.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "capacity RESOURCE",
		Short: "Print how the limits of all who use a resource stand",
		Long: `Print, for every entity that has something in use on a resource or limits of its own
there, what may still be taken. It changes nothing.`,
		Example:           "  weir resource capacity gpt-4o",
		Args:              console.Arguments(1, 1, "RESOURCE"),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	return connect.Command(a, cmd, connect.Reads, func(cmd *cobra.Command, args []string) (connect.Action, error) {
		if err := console.RefuseEmpty(cmd, args, "RESOURCE"); err != nil {
			return nil, err
		}
		return func(ctx context.Context, c *connect.Connection) (*connect.Answer, error) {
			statuses, err := c.Admin.Capacity(ctx, args[0])
			if err != nil {
				return nil, err
			}
			return statusAnswer(statuses, "nobody uses "+args[0]+", or has limits of its own there\n"), nil
		}, nil
	})
}
