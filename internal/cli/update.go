package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/httpapi"
	"github.com/weir-limiter/weir/internal/connect"
	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/internal/text"
)

const adjustHelp = `Change the units of a live lease: each limit named counts TOTAL units for
the lease from now on, whatever it counted before. An adjust is never denied, and may create
debt or exceed a capacity.

--seq numbers the adjusts of one lease, so that none is applied twice: a number that was
applied already gets the same answer again, a lower number is ignored, and numbers may be left
out.

` + chargesHelp

const completeHelp = `Replace what was reserved by what was used, and end the lease. A limit
that is not named keeps its units, because unknown is not zero. Slots are given back.
Use above what was reserved is charged too, as debt if necessary. The same command again gets
the same answer.

` + chargesHelp

const cancelHelp = `Give everything that a lease reserved back to where it was taken from, and end
it. The same command again gets the same answer.`

const extendHelp = `Renew a lease and those of its slots that have not timed out. They then
last as long as they did when they were reserved.`

const chargesHelp = `For a lease with several charges, give a set of NAME=N for each of
them, in the order of the request, with a + between them. One set is enough if no name
occurs in two charges.`

// updateCall is a call that updates a lease, in the form of a method of [weir.Service].
type updateCall func(weir.Service, context.Context, weir.LeaseID) (*weir.Receipt, error)

// planUpdate makes the call from a command's flags and the arguments after the lease.
type planUpdate func(cmd *cobra.Command, args []string) (updateCall, error)

func adjustCommand(a *console.App) *cobra.Command {
	var seq int64
	cmd := &cobra.Command{
		Use:   "adjust LEASE NAME=TOTAL... --seq N",
		Short: "Change the units of a live lease",
		Long:  adjustHelp,
		Example: `  weir adjust 01JD5W3T7M2Q8R4XKB6NCV9ZHE tpm=900 --seq 1
  weir adjust 01JD5W3T7M2Q8R4XKB6NCV9ZHE tpm=1200 --seq 2`,
		Args: console.Arguments(2, -1, "a lease and its new totals, as NAME=TOTAL"),
	}
	cmd.Flags().Int64Var(&seq, "seq", 0, "number of this adjust, `N`: higher than in every earlier one (required)")
	return updateCommand(a, cmd, func(cmd *cobra.Command, args []string) (updateCall, error) {
		totals, err := parseTotals("totals", args)
		if err != nil {
			return nil, err
		}
		if !cmd.Flags().Changed("seq") {
			return nil, console.UsageError(cmd, "give --seq N, higher than in every earlier adjust of the lease")
		}
		return func(s weir.Service, ctx context.Context, id weir.LeaseID) (*weir.Receipt, error) {
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
	return updateCommand(a, cmd, func(_ *cobra.Command, args []string) (updateCall, error) {
		actuals, err := parseTotals("actuals", args)
		if err != nil {
			return nil, err
		}
		return func(s weir.Service, ctx context.Context, id weir.LeaseID) (*weir.Receipt, error) {
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
	return updateCommand(a, cmd, func(*cobra.Command, []string) (updateCall, error) {
		return weir.Service.Cancel, nil
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
	return updateCommand(a, cmd, func(*cobra.Command, []string) (updateCall, error) {
		return weir.Service.Extend, nil
	})
}

// updateCommand makes cmd update the lease that its first argument names.
func updateCommand(a *console.App, cmd *cobra.Command, plan planUpdate) *cobra.Command {
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
			receipt, err := ask(c.Service, ctx, id)
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

// leaseAnswer prints a lease and the limits that admitted it.
func leaseAnswer(l *weir.Lease) *connect.Answer {
	return &connect.Answer{Value: httpapi.Document(l), Table: func(b *bytes.Buffer) {
		t := text.Table{}
		t.Add("lease", l.ID.String())
		t.Add("reserved", formatTime(l.ReservedAt))
		addEnds(&t, &weir.Receipt{Expires: l.Expires, HoldsUntil: l.HoldsUntil, Degraded: l.Degraded})
		if l.Replay {
			t.Add("repeated", "it had been reserved before, and was not charged again")
		}
		t.Write(b)
		if len(l.Limits) > 0 {
			b.WriteString("\n")
			writeStatuses(b, l.Limits, true)
		}
	}}
}

// admissionText says how sure the retry-after of a denial is: of the limits that denied, it goes by
// the one with the longest wait.
func admissionText(e *weir.DeniedError) string {
	for i := range e.Limits {
		s := &e.Limits[i]
		switch {
		case !s.Exceeded || s.Shadow || s.ComeAgain() < e.RetryAfter || e.AtLeast:
		case s.RetryLikely > 0:
			return "likely be admitted after"
		case s.AtMost():
			return "be admitted within"
		}
	}
	if e.AtLeast {
		return "be admitted after at least"
	}
	return "be admitted after"
}

// denialAnswer prints the limits that were judged, and when to try again.
func denialAnswer(e *weir.DeniedError) *connect.Answer {
	return &connect.Answer{Value: httpapi.Document(e), Table: func(b *bytes.Buffer) {
		fmt.Fprintf(b, "denied: it would %s %v\n", admissionText(e), e.RetryAfter)
		if e.Contended {
			b.WriteString("other writers won every retry\n")
		}
		if len(e.Limits) > 0 {
			b.WriteString("\n")
			writeStatuses(b, e.Limits, true)
		}
	}}
}

// receiptAnswer prints the receipt of an update.
func receiptAnswer(r *weir.Receipt) *connect.Answer {
	return &connect.Answer{Value: httpapi.Document(r), Table: func(b *bytes.Buffer) {
		t := text.Table{}
		t.Add("lease", r.LeaseID.String())
		t.Add("at", formatTime(r.At))
		addEnds(&t, r)
		t.Write(b)
	}}
}

// degradedNote explains a degraded lease.
const degradedNote = "nothing was charged: the store did not answer, and the policy is allow"

// inDoubtNote explains a refund in doubt.
const inDoubtNote = "the refund may not have been made: the store did not answer that write"

// addEnds adds the instants at which a lease expires and its slots time out, if they do.
func addEnds(t *text.Table, r *weir.Receipt) {
	if !r.Expires.IsZero() {
		t.Add("expires", formatTime(r.Expires))
	}
	if !r.HoldsUntil.IsZero() {
		t.Add("slots until", formatTime(r.HoldsUntil))
	}
	if r.Degraded {
		t.Add("degraded", degradedNote)
	}
	if r.RefundInDoubt {
		t.Add("in doubt", inDoubtNote)
	}
}

// timeLayout writes instants as the wire counts them: to the millisecond.
const timeLayout = "2006-01-02T15:04:05.000Z07:00"

// formatTime writes a time for people, and nothing for the zero time.
func formatTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(timeLayout)
}
