package cli

import (
	"bytes"
	"context"

	"github.com/spf13/cobra"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/httpapi"
)

const statusHelp = `Print the limits of an entity on a resource, and what may still be taken
of each: below zero is debt. Without RESOURCE, print every resource on which the entity has
limits of its own or something in use. It changes nothing.`

func (a *app) statusCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status ENTITY [RESOURCE]",
		Short: "Print how the limits of an entity stand",
		Long:  statusHelp,
		Example: `  weir status acme gpt-4o
  weir status acme --output json`,
		Args:              arguments(1, 2, "an entity"),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	return a.remote(cmd, reads, func(cmd *cobra.Command, args []string) (question, error) {
		if err := refuseEmpty(cmd, args, "ENTITY", "RESOURCE"); err != nil {
			return nil, err
		}
		resource := ""
		if len(args) > 1 {
			resource = args[1]
		}
		return func(ctx context.Context, c *connection) (*answer, error) {
			statuses, err := c.service.Status(ctx, args[0], resource)
			if err != nil {
				return nil, err
			}
			return statusAnswer(statuses, args[0]+" uses nothing, and has no limits of its own\n"), nil
		}, nil
	})
}

// statusAnswer prints limits as they stand, or what it means that there are none.
func statusAnswer(all []weir.LimitStatus, none string) *answer {
	return &answer{body: httpapi.Document(all), table: func(b *bytes.Buffer) {
		if len(all) == 0 {
			b.WriteString(none)
			return
		}
		writeStatuses(b, all, false)
	}}
}

// refuseEmpty refuses empty arguments: a variable that is not set must not mean another place.
func refuseEmpty(cmd *cobra.Command, args []string, names ...string) error {
	for i, arg := range args {
		if arg == "" {
			return misused(cmd, "%s must not be empty", names[min(i, len(names)-1)])
		}
	}
	return nil
}
