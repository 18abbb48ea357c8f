package cli

import (
	"bytes"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/connect"
	"github.com/weir-limiter/weir/internal/console"
)

func systemCommand(a *console.App) *cobra.Command {
	cmd := console.Group(&cobra.Command{
		Use:     "system",
		Short:   "Read and change the system's limits and policy",
		Example: "  weir system get-limits\n  weir system set-limits rpm:600",
	})
	cmd.AddCommand(limitCommands(a, &place{group: "system", inWords: "the system", old: true})...)
	cmd.AddCommand(setPolicyCommand(a))
	return cmd
}

func setPolicyCommand(a *console.App) *cobra.Command {
	policies := []cobra.Completion{string(weir.Block), string(weir.Allow)}
	cmd := &cobra.Command{
		Use:   "set-policy block|allow",
		Short: "Say what happens when the store does not answer",
		Long: `Say what a reservation gets when the store does not answer: with block an error, with
allow a lease that stands for nothing and is marked degraded. A denial is never hidden.`,
		Example:           "  weir system set-policy block",
		Args:              console.Arguments(1, 1, "block or allow"),
		ValidArgsFunction: cobra.FixedCompletions(policies, cobra.ShellCompDirectiveNoFileComp),
	}
	return connect.Command(a, cmd, connect.Configures, func(_ *cobra.Command, args []string) (connect.Action, error) {
		policy := weir.Policy(args[0])
		if policy != weir.Block && policy != weir.Allow {
			return nil, wrong("on_unavailable", args[0], "must be block or allow")
		}
		return func(ctx context.Context, c *connect.Connection) (*connect.Answer, error) {
			if err := c.Admin.SetPolicy(ctx, policy); err != nil {
				return nil, err
			}
			return &connect.Answer{Value: policyBody{policy, c.Note()}, Table: func(b *bytes.Buffer) {
				fmt.Fprintf(b, "on_unavailable  %s\n", policy)
			}}, nil
		}, nil
	})
}
