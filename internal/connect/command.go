package connect

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/internal/text"
	"github.com/weir-limiter/weir/store"
)

// Answer is the result that a command prints.
type Answer struct {
	// Value is for --output json, and has the field names of the wire.
	Value any
	// Table writes the same as a table for people.
	Table func(b *bytes.Buffer)
	// CSV returns the same as rows, the names of the columns first; nil unless the command is a
	// [ListCommand].
	CSV func() [][]string
	// Notes are sentences about the answer. They are printed to standard error if it is printed as
	// CSV, which has no place for them; tables and JSON have them in them.
	Notes []string
	// LeaseID is a new lease that only this answer names; otherwise zero.
	LeaseID weir.LeaseID
}

// Action is the part of a command that runs when it is connected. It may return both an answer and
// an error, because a denial is printed in full.
type Action func(ctx context.Context, c *Connection) (*Answer, error)

// Plan makes an action from a command's arguments and flags. Its errors count as misuse.
type Plan func(cmd *cobra.Command, args []string) (Action, error)

// Command makes cmd run one action on a server or a store. If the plan fails, it connects to
// nothing.
func Command(a *console.App, cmd *cobra.Command, does Access, plan Plan) *cobra.Command {
	t := addTarget(cmd, does)
	return run(a, cmd, t, console.OutputFlag(cmd), plan)
}

// ListCommand is like [Command] for a command that reads, and whose answers can be printed as CSV.
func ListCommand(a *console.App, cmd *cobra.Command, plan Plan) *cobra.Command {
	t := addTarget(cmd, Reads)
	return run(a, cmd, t, console.ListOutputFlag(cmd), plan)
}

func run(
	a *console.App, cmd *cobra.Command, t *Target, output *console.Choice, plan Plan,
) *cobra.Command {
	cmd.RunE = console.RunE(func(cmd *cobra.Command, args []string) error {
		if err := console.RejectBlankFlags(cmd); err != nil {
			return err
		}
		ask, err := plan(cmd, args)
		if err != nil {
			return console.AsUsageError(cmd, err)
		}
		if err := t.resolve(cmd, a.Env); err != nil {
			return err
		}
		c, err := open(a, cmd, t)
		if err != nil {
			return t.Hint(err)
		}
		found, err := ask(cmd.Context(), c)
		// A store saves the reservation only when it is closed without an error.
		if closeErr := c.Close(); closeErr != nil {
			return errors.Join(err, closeErr)
		}
		printNotes(a, c.Notes)
		if found != nil {
			err = errors.Join(err, found.printError(found.Print(a, output)))
		}
		return t.Hint(ServiceError(err))
	})
	return cmd
}

// Print prints an answer.
func (a *Answer) Print(to *console.App, output *console.Choice) error {
	if output.IsCSV() {
		printNotes(to, a.Notes)
		return to.PrintCSV(a.CSV())
	}
	return to.PrintResult(output, a.Value, a.Table)
}

// OnNames returns the plan of a command whose arguments are names. It refuses an empty name,
// because an unset variable of a script must not mean another place.
func OnNames(
	do func(ctx context.Context, c *Connection, args []string) (*Answer, error), names ...string,
) Plan {
	return func(cmd *cobra.Command, args []string) (Action, error) {
		return func(ctx context.Context, c *Connection) (*Answer, error) {
			return do(ctx, c, args)
		}, console.RefuseEmpty(cmd, args, names...)
	}
}

// open opens the store or server that the flags name.
func open(a *console.App, cmd *cobra.Command, t *Target) (*Connection, error) {
	switch {
	case t.store != "" && t.does == Divides:
		return openTable(cmd, t)
	case t.store != "":
		return openStore(a, cmd, t)
	}
	return Dial(a, cmd, t)
}

// printNotes prints a server's notes about its changes to standard error, so that standard output
// has only results.
func printNotes(a *console.App, notes []string) {
	for _, note := range notes {
		_, _ = io.WriteString(a.Streams.Err, "weir: note: "+text.Printable(note)+"\n") // a failure could not be reported elsewhere
	}
}

// printError adds the lease to the error if an answer cannot be printed, because without its ID the
// lease could not be settled.
func (a *Answer) printError(err error) error {
	if err == nil || a.LeaseID.IsZero() {
		return err
	}
	return fmt.Errorf("%w: the lease %s was made: what it reserved and its slots stay taken until it "+
		"is settled or expires (weir cancel %s gives them back)", err, a.LeaseID, a.LeaseID)
}

// ServiceError marks an error of a service with its exit code. An invalid request is misuse,
// because it came from the command line.
func ServiceError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled):
		return interrupted(err)
	case errors.Is(err, weir.Invalid) && !errors.Is(err, weir.Unavailable):
		return console.ExitWith(console.ExitMisused, err)
	}
	return err
}

// interrupted keeps what the user must know: the lease that an interrupted call may have made, and
// how far an interrupted apply of a limits file came.
func interrupted(err error) error {
	e, ok := errors.AsType[*weir.Error](err)
	if !ok || e.Code != weir.Unavailable {
		return context.Canceled
	}
	switch e.Field {
	case "lease_id":
		return fmt.Errorf("interrupted: %s %q: the outcome is unknown", e.Field, e.Value)
	case "limits":
		return errors.New("interrupted: " + e.Reason)
	}
	return context.Canceled
}

// Hint adds advice to an error if no server answered or the caller was refused.
func (t *Target) Hint(err error) error {
	if err == nil {
		return nil
	}
	advice := ""
	switch {
	case errors.Is(err, weir.UnknownLease) && processLeases(t.store):
		advice = "with leases=process, a lease can be settled only through the process that made it"
	case IsTable(t.store), IsCluster(t.store):
	case t.store != "" && errors.Is(err, weir.Unavailable):
		advice = "if a server has the store open, name that server with --server"
	case t.store != "":
	case errors.Is(err, weir.Unavailable):
		advice = t.connectHint(err)
	case errors.Is(err, weir.PermissionDenied) && t.anonymous:
		advice = "give a bearer token in " + TokenEnv + " or with --token-file"
	}
	if advice == "" {
		return err
	}
	return fmt.Errorf("%w (%s)", err, advice)
}

// processLeases reports whether a URL names a DynamoDB table whose leases are kept in the process.
func processLeases(storeURL string) bool {
	t, err := store.Table(storeURL)
	return err == nil && t.Options.ProcessLeases
}

// connectHint returns advice for a call that got no answer of a weir server.
func (t *Target) connectHint(err error) string {
	status, location := 0, ""
	if t.transport != nil {
		status, location = t.transport.last()
	}
	_, unknown := errors.AsType[x509.UnknownAuthorityError](err)
	secure := strings.HasPrefix(strings.ToLower(t.Server), "https:")
	switch {
	case unknown:
		return "--ca-cert names the certificates to trust"
	case status >= http.StatusMultipleChoices && status < http.StatusBadRequest && location != "":
		return fmt.Sprintf("it redirects to %q: name the server itself with --server", location)
	case secure && strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return "the server does not use TLS: its address begins with http://"
	case !secure && status == http.StatusBadRequest:
		return "if the server uses TLS, its address begins with https://"
	case t.Defaulted:
		return "is `weir serve` running? --server names another server"
	}
	return ""
}
