package cli

import (
	"bytes"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weir-limiter/weir"
)

func (a *app) systemCommand() *cobra.Command {
	cmd := group(&cobra.Command{
		Use:     "system",
		Short:   "Read and change the system's limits and policy",
		Example: "  weir system get-limits\n  weir system set-limits rpm:600",
	})
	cmd.AddCommand(a.limitCommands(&place{group: "system", inWords: "the system", old: true})...)
	cmd.AddCommand(a.setPolicyCommand())
	return cmd
}

func (a *app) setPolicyCommand() *cobra.Command {
	policies := []cobra.Completion{string(weir.Block), string(weir.Allow)}
	cmd := &cobra.Command{
		Use:   "set-policy block|allow",
		Short: "Say what happens when the store does not answer",
		Long: `Say what a reservation gets when the store does not answer: with block an error, with
allow a lease that stands for nothing and is marked degraded. A denial is never hidden.`,
		Example:           "  weir system set-policy block",
		Args:              arguments(1, 1, "block or allow"),
		ValidArgsFunction: cobra.FixedCompletions(policies, cobra.ShellCompDirectiveNoFileComp),
	}
	return a.remote(cmd, configures, func(_ *cobra.Command, args []string) (question, error) {
		policy := weir.Policy(args[0])
		if policy != weir.Block && policy != weir.Allow {
			return nil, wrong("on_unavailable", args[0], "must be block or allow")
		}
		return func(ctx context.Context, c *connection) (*answer, error) {
			if err := c.admin.SetPolicy(ctx, policy); err != nil {
				return nil, err
			}
			return &answer{body: policyBody{policy, c.note()}, table: func(b *bytes.Buffer) {
				fmt.Fprintf(b, "on_unavailable  %s\n", policy)
			}}, nil
		}, nil
	})
}
