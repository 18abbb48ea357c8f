package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/connect"
	"github.com/weir-limiter/weir/internal/console"
)

const adjustHelp = `Change what a live lease stands for: each limit named stands for TOTAL from now
on, whatever it stood for before. It is never denied, and may create debt or exceed a
capacity.

--seq numbers the adjusts of one lease, so that none counts twice: a number that was applied
already gets the same answer, a lower one is ignored, and gaps are allowed.

` + chargesHelp

const completeHelp = `Replace what was reserved by what was used, and end the lease. A limit
that is not named keeps what it stands for: unknown is not zero. Slots are given back. Use
above what was reserved is charged too, as debt if necessary. The same command again gets
the same answer.

` + chargesHelp

const cancelHelp = `Give everything that a lease reserved back to where it was taken from, and end
it. The same command again gets the same answer.`

const extendHelp = `Renew a lease and those of its slots that have not timed out, for as long as
they were good for in the beginning.`

const chargesHelp = `For a lease with several charges, give a set of NAME=N for each of
them, in the order of the request, with a + between them. One set is enough if no name
occurs in two charges.`

// receiptCall is what a verb on a lease asks.
type receiptCall func(context.Context, weir.Service, weir.LeaseID) (*weir.Receipt, error)

func adjustCommand(a *console.App) *cobra.Command {
	var seq int64
	cmd := &cobra.Command{
		Use:   "adjust LEASE NAME=TOTAL... --seq N",
		Short: "Change what a live lease stands for",
		Long:  adjustHelp,
		Example: `  weir adjust 01JD5W3T7M2Q8R4XKB6NCV9ZHE tpm=900 --seq 1
  weir adjust 01JD5W3T7M2Q8R4XKB6NCV9ZHE tpm=1200 --seq 2`,
		Args: console.Arguments(2, -1, "a lease and what it stands for, as NAME=TOTAL"),
	}
	cmd.Flags().Int64Var(&seq, "seq", 0, "`N` must be higher than in every adjust before (required)")
	return leaseVerb(a, cmd, func(cmd *cobra.Command, args []string) (receiptCall, error) {
		totals, err := parseTotals("totals", args)
		if err != nil {
			return nil, err
		}
		if !cmd.Flags().Changed("seq") {
			return nil, console.UsageError(cmd, "give --seq N, above that of every adjust of the lease before")
		}
		return func(ctx context.Context, s weir.Service, id weir.LeaseID) (*weir.Receipt, error) {
			return s.Adjust(ctx, id, seq, totals)
		}, nil
	})
}

func completeCommand(a *console.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "complete LEASE [NAME=USED...]",
		Short: "Settle a lease with what was really used",
		Long:  completeHelp,
		Example: `  weir complete 01JD5W3T7M2Q8R4XKB6NCV9ZHE tpm=812
  weir complete 01JD5W3T7M2Q8R4XKB6NCV9ZHE tpm=812 + calls=2
  weir complete 01JD5W3T7M2Q8R4XKB6NCV9ZHE`,
		Args: console.Arguments(1, -1, "a lease"),
	}
	return leaseVerb(a, cmd, func(_ *cobra.Command, args []string) (receiptCall, error) {
		actuals, err := parseTotals("actuals", args)
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context, s weir.Service, id weir.LeaseID) (*weir.Receipt, error) {
			return s.Complete(ctx, id, actuals)
		}, nil
	})
}

func cancelCommand(a *console.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "cancel LEASE",
		Short:   "Give back everything that a lease reserved",
		Long:    cancelHelp,
		Example: "  weir cancel 01JD5W3T7M2Q8R4XKB6NCV9ZHE",
		Args:    console.Arguments(1, 1, "a lease"),
	}
	return leaseVerb(a, cmd, func(*cobra.Command, []string) (receiptCall, error) {
		return func(ctx context.Context, s weir.Service, id weir.LeaseID) (*weir.Receipt, error) {
			return s.Cancel(ctx, id)
		}, nil
	})
}

func extendCommand(a *console.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "extend LEASE",
		Short:   "Renew a lease and its slots",
		Long:    extendHelp,
		Example: "  weir extend 01JD5W3T7M2Q8R4XKB6NCV9ZHE",
		Args:    console.Arguments(1, 1, "a lease"),
	}
	return leaseVerb(a, cmd, func(*cobra.Command, []string) (receiptCall, error) {
		return func(ctx context.Context, s weir.Service, id weir.LeaseID) (*weir.Receipt, error) {
			return s.Extend(ctx, id)
		}, nil
	})
}

// leaseVerb makes cmd a verb on the lease that its first argument names; plan gets the others.
func leaseVerb(a *console.App,
	cmd *cobra.Command, plan func(cmd *cobra.Command, args []string) (receiptCall, error),
) *cobra.Command {
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	return connect.Command(a, cmd, connect.Updates, func(cmd *cobra.Command, args []string) (connect.Action, error) {
		id, err := weir.ParseLeaseID(args[0])
		if err != nil {
			return nil, err
		}
		ask, err := plan(cmd, args[1:])
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context, c *connect.Connection) (*connect.Answer, error) {
			receipt, err := ask(ctx, c.Service, id)
			if errors.Is(err, context.Canceled) {
				return nil, fmt.Errorf("interrupted: lease %s: the outcome is unknown: "+
					"the same command may be repeated", id)
			}
			if err != nil {
				return nil, err
			}
			return receiptAnswer(receipt), nil
		}, nil
	})
}
