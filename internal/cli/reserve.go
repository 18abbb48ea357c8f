package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/connect"
	"github.com/weir-limiter/weir/internal/console"
)

const reserveHelp = `Reserve what a call may use, on every limit that applies, all or nothing. The
answer names the lease: settle it with weir complete or weir cancel. Until then, or
until it expires, what was reserved stays charged and its slots stay taken.

NAME=N asks the limit NAME for N units. A limit that is not named is neither judged nor
charged, except that each concurrency limit costs 1. Several charges, each with an entity
and a resource of its own, are joined with +.

A denial prints the limits that were judged and ends with exit code 3; nothing is charged
then. If no answer comes, the exit code is 1 and the lease ID is printed: repeat the command
with --lease-id, and nothing is charged twice.

With --wait a denied request is tried again until that time is over. A request that is under
way then may still be answered: each has five seconds.`

// reserveFlags are the flags of `weir reserve`.
type reserveFlags struct {
	leaseID string
	limits  []string
	wait    time.Duration
	quiet   bool
}

func reserveCommand(a *console.App) *cobra.Command {
	f := &reserveFlags{}
	cmd := &cobra.Command{
		Use: "reserve ENTITY RESOURCE [NAME=N...] [+ ENTITY RESOURCE [NAME=N...]]...",
		// Its usage line is as wide as the help without "[flags]".
		DisableFlagsInUseLine: true,

		Short: "Reserve what a call may use, or be denied",
		Long:  reserveHelp,
		Example: `  weir reserve acme gpt-4o rpm=1 tpm=500
  weir reserve acme gpt-4o rpm=1 tpm=500 + acme web-search calls=1
  weir reserve acme gpt-4o rpm=1 --wait 30s
  lease=$(weir reserve --quiet acme gpt-4o rpm=1 tpm=500) &&
    weir complete "$lease" tpm=412`,
		Args:              console.Arguments(2, -1, "an entity and a resource"),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	flags := cmd.Flags()
	flags.StringVar(&f.leaseID, "lease-id", "", "`ULID` for the lease, to repeat a call safely")
	flags.StringArrayVar(&f.limits, "limit", nil,
		"bring a `LIMIT` like rpm:600, which may only lower what is stored (repeatable)")
	flags.DurationVar(&f.wait, "wait", 0, "try again for this `DURATION` until the request fits")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "print the lease ID alone")
	return connect.Command(a, cmd, connect.Reserves, f.plan)
}

// plan reads the request from the command line.
func (f *reserveFlags) plan(cmd *cobra.Command, args []string) (connect.Action, error) {
	r, err := parseCharges(args)
	if err != nil {
		return nil, err
	}
	if r.Limits, err = parseLimits(f.limits); err != nil {
		return nil, err
	}
	if f.leaseID != "" {
		if r.LeaseID, err = weir.ParseLeaseID(f.leaseID); err != nil {
			return nil, err
		}
	}
	switch {
	case f.wait < 0:
		return nil, console.UsageError(cmd, "--wait %v: must not be negative", f.wait)
	case f.wait > 0 && f.leaseID != "":
		return nil, console.UsageError(cmd, "--lease-id cannot stand beside --wait: every attempt needs its own")
	case f.quiet && cmd.Flags().Changed("output"):
		return nil, console.UsageError(cmd, "--quiet cannot stand beside --output")
	}
	return func(ctx context.Context, c *connect.Connection) (*connect.Answer, error) {
		console.IgnoreBrokenPipes() // the lease must be named even if the output is closed
		lease, err := f.reserve(ctx, c, r)
		if denied, ok := errors.AsType[*weir.DeniedError](err); ok && !f.quiet {
			return denialAnswer(denied), err
		}
		if err != nil {
			return nil, err
		}
		found := leaseAnswer(lease)
		if f.quiet {
			found = &connect.Answer{Table: func(b *bytes.Buffer) { b.WriteString(lease.ID.String() + "\n") }}
			if lease.Degraded {
				c.Notes = append(c.Notes, "the lease is degraded: "+degradedNote)
			}
		}
		if !lease.Degraded {
			found.LeaseID = lease.ID
		}
		return found, nil
	}, nil
}

// reserve asks once, or until the time to wait is over.
func (f *reserveFlags) reserve(
	ctx context.Context, c *connect.Connection, r *weir.Request,
) (*weir.Lease, error) {
	if f.wait == 0 {
		return c.Service.Reserve(ctx, r)
	}
	waiting, cancel := context.WithTimeout(ctx, f.wait)
	defer cancel()
	under := ctx // a store has a timeout of its own
	if c.OnServer {
		under = connect.DetachAttempts(waiting, ctx)
	}
	patient := finishingService{c.Service, func(r *weir.Request) (*weir.Lease, error) {
		return c.Service.Reserve(under, r)
	}}
	lease, err := weir.Wait(waiting, patient, r, nil)
	denied, ok := errors.AsType[*weir.DeniedError](err)
	switch {
	case !ok:
		return lease, err
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	return nil, fmt.Errorf("%w, after %v of waiting", denied, f.wait)
}

// finishingService finishes a reservation that has begun when the time to wait is over: how it
// ended would be unknown otherwise.
type finishingService struct {
	weir.Service

	reserve func(*weir.Request) (*weir.Lease, error)
}

// Reserve takes no notice of the context, which only ends the pauses between denials.
func (u finishingService) Reserve(_ context.Context, r *weir.Request) (*weir.Lease, error) {
	return u.reserve(r)
}

// nextCharge stands between the arguments of two charges. No entity and no amount looks like it.
const nextCharge = "+"

// splitCharges cuts arguments where a charge ends. It returns at least one part.
func splitCharges(args []string) [][]string {
	parts := [][]string{nil}
	for _, arg := range args {
		if arg == nextCharge {
			parts = append(parts, nil)
			continue
		}
		last := len(parts) - 1
		parts[last] = append(parts[last], arg)
	}
	return parts
}

// parseCharges reads ENTITY RESOURCE [NAME=N...], as often as there are charges.
func parseCharges(args []string) (*weir.Request, error) {
	var errs []error
	parts := splitCharges(args)
	charges := make([]weir.Charge, len(parts))
	for i, part := range parts {
		at := ""
		if len(parts) > 1 {
			at = fmt.Sprintf("charges[%d].", i)
		}
		if len(part) < 2 || strings.Contains(part[1], "=") {
			errs = append(errs, argumentError(at+"resource", strings.Join(part, " "),
				"must be ENTITY RESOURCE [NAME=N...]"))
			continue
		}
		costs, err := parseAmounts(at+"costs", part[2:])
		charges[i] = weir.Charge{Entity: part[0], Resource: part[1], Costs: costs}
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if one := charges[0]; len(charges) == 1 {
		return &weir.Request{Entity: one.Entity, Resource: one.Resource, Costs: one.Costs}, nil
	}
	return &weir.Request{Charges: charges}, nil
}

// parseTotals reads what a settlement names: one set for all charges, or one for each of them. The
// field is what the wire calls it. Nothing named is nil.
func parseTotals(field string, args []string) ([]weir.Costs, error) {
	if len(args) == 0 {
		return nil, nil
	}
	var errs []error
	parts := splitCharges(args)
	totals := make([]weir.Costs, len(parts))
	for i, part := range parts {
		at := field
		if len(parts) > 1 {
			at = fmt.Sprintf("%s[%d]", field, i)
		}
		costs, err := parseAmounts(at, part)
		totals[i] = costs
		errs = append(errs, err)
	}
	return totals, errors.Join(errs...)
}

// parseAmounts reads NAME=N arguments, or says all that is wrong with them.
func parseAmounts(field string, args []string) (weir.Costs, error) {
	var errs []error
	costs := make(weir.Costs, len(args))
	for _, arg := range args {
		name, n, err := parseAmount(field, arg)
		if _, again := costs[name]; err == nil && again {
			err = argumentError(field+"."+name, arg, "is given twice")
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		costs[name] = n
	}
	return costs, errors.Join(errs...)
}

// parseAmount reads NAME=N. Whether a limit may have that name is for the library to say.
func parseAmount(field, arg string) (name string, n int64, err error) {
	name, digits, ok := strings.Cut(arg, "=")
	if !ok || name == "" {
		return "", 0, argumentError(field, arg, "must be NAME=N")
	}
	whole := digits != "" && strings.Trim(digits, "0123456789") == ""
	n, numErr := strconv.ParseInt(digits, 10, 64)
	switch {
	case numErr == nil && n < 0:
		err = argumentError(field+"."+name, digits, "must not be negative")
	case !whole:
		err = argumentError(field+"."+name, digits, "must be a whole number in decimal digits")
	case numErr != nil:
		err = argumentError(field+"."+name, digits, fmt.Sprintf("must be at most %d", int64(math.MaxInt64)))
	}
	if err != nil {
		return "", 0, err
	}
	return name, n, nil
}

// argumentError is a mistake on the command line, in the words of the library's own errors.
func argumentError(field, value, reason string) error {
	const most = 64 // as the library quotes
	value = strings.ToValidUTF8(value, "\uFFFD")
	if runes := []rune(value); len(runes) > most {
		value = string(runes[:most]) + "…"
	}
	return &weir.Error{Code: weir.Invalid, Field: field, Value: value, Reason: reason}
}
