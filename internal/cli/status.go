package cli

import (
	"bytes"
	"context"

	"github.com/spf13/cobra"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/httpapi"
	"github.com/weir-limiter/weir/internal/connect"
	"github.com/weir-limiter/weir/internal/console"
)

const statusHelp = `Print the limits of an entity on a resource, and what may still be taken
of each: below zero is debt. Without RESOURCE, print every resource on which the entity has
limits of its own or something in use. It changes nothing.`

func statusCommand(a *console.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status ENTITY [RESOURCE]",
		Short: "Print how the limits of an entity stand",
		Long:  statusHelp,
		Example: `  weir status acme gpt-4o
  weir status acme --output json`,
		Args:              console.Arguments(1, 2, "an entity"),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	return connect.Command(a, cmd, connect.Reads, func(cmd *cobra.Command, args []string) (connect.Action, error) {
		if err := console.RefuseEmpty(cmd, args, "ENTITY", "RESOURCE"); err != nil {
			return nil, err
		}
		resource := ""
		if len(args) > 1 {
			resource = args[1]
		}
		return func(ctx context.Context, c *connect.Connection) (*connect.Answer, error) {
			statuses, err := c.Service.Status(ctx, args[0], resource)
			if err != nil {
				return nil, err
			}
			return statusAnswer(statuses, args[0]+" uses nothing, and has no limits of its own\n"), nil
		}, nil
	})
}

// statusAnswer prints limits as they stand, or what it means that there are none.
func statusAnswer(all []weir.LimitStatus, none string) *connect.Answer {
	return &connect.Answer{Value: httpapi.Document(all), Table: func(b *bytes.Buffer) {
		if len(all) == 0 {
			b.WriteString(none)
			return
		}
		writeStatuses(b, all, false)
	}}
}
