package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
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

With --wait a denied request is tried again until that time is over. A request that is in
progress at its end may take up to five seconds to be answered.`

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
		"send a `LIMIT` like rpm:600 with the request; it can only lower the stored one (repeatable)")
	flags.DurationVar(&f.wait, "wait", 0, "try again for this `DURATION` until the request fits")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "print only the lease ID")
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
		return nil, console.UsageError(cmd,
			"--lease-id cannot be combined with --wait: each attempt makes a lease ID of its own")
	case f.quiet && cmd.Flags().Changed("output"):
		return nil, console.UsageError(cmd, "--quiet cannot be combined with --output")
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

// reserve makes one attempt, or repeats it until the time to wait is over.
func (f *reserveFlags) reserve(
	ctx context.Context, c *connect.Connection, r *weir.Request,
) (*weir.Lease, error) {
	if f.wait == 0 {
		return c.Service.Reserve(ctx, r)
	}
	waiting, cancel := context.WithTimeout(ctx, f.wait)
	defer cancel()
	under := ctx // a store has its own timeout
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

// finishingService lets a reservation finish that is in progress when the time to wait is over,
// because its outcome would otherwise be unknown.
type finishingService struct {
	weir.Service

	reserve func(*weir.Request) (*weir.Lease, error)
}

// Reserve ignores the context of the wait, which only ends the pauses between denials.
func (u finishingService) Reserve(_ context.Context, r *weir.Request) (*weir.Lease, error) {
	return u.reserve(r)
}
