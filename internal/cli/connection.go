package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/httpapi"
	"github.com/weir-limiter/weir/internal/text"
)

// instantLayout writes instants as the wire counts them: to the millisecond.
const instantLayout = "2006-01-02T15:04:05.000Z07:00"

// connection is an open way to the limits: a server's, or those of a store opened for one command.
type connection struct {
	service weir.Service
	admin   httpapi.Admin
	close   func() error
	// onServer is true where a server is asked.
	onServer bool
	// notes are what a server says about the changes it made.
	notes []string
}

// note is what a server said, for JSON.
func (c *connection) note() string {
	if len(c.notes) == 0 {
		return ""
	}
	return c.notes[len(c.notes)-1]
}

// answer is what a command prints.
type answer struct {
	// body is for --output json, and has the field names of the wire.
	body any
	// table writes the same for people.
	table func(b *bytes.Buffer)
	// holds is a lease that the answer is about and nobody else knows yet; otherwise zero.
	holds weir.LeaseID
}

// question is what a command asks once it is connected. It may have an answer beside an error: a
// denial is told in full.
type question func(ctx context.Context, c *connection) (*answer, error)

// remote makes cmd one that asks or acts once, on a server or a store. What plan finds wrong with
// the arguments is misuse, and nothing is asked then.
func (a *app) remote(
	cmd *cobra.Command, does access, plan func(cmd *cobra.Command, args []string) (question, error),
) *cobra.Command {
	t := addTarget(cmd, does)
	output := outputFlag(cmd)
	cmd.RunE = run(func(cmd *cobra.Command, args []string) error {
		if err := refuseBlankFlags(cmd); err != nil {
			return err
		}
		ask, err := plan(cmd, args)
		if err != nil {
			return asMisused(cmd, err)
		}
		if err := t.resolve(cmd, a.env); err != nil {
			return err
		}
		c, err := a.connect(cmd, t)
		if err != nil {
			return t.advise(err)
		}
		found, err := ask(cmd.Context(), c)
		// A store keeps nothing of what was admitted unless it is closed well.
		if closeErr := c.close(); closeErr != nil {
			return errors.Join(err, closeErr)
		}
		a.tell(c.notes)
		if found != nil {
			err = errors.Join(err, found.untold(a.print(*output, found.body, found.table)))
		}
		return t.advise(serviceError(err))
	})
	return cmd
}

// connect opens what the flags name.
func (a *app) connect(cmd *cobra.Command, t *target) (*connection, error) {
	if t.store != "" {
		return a.openStore(cmd, t)
	}
	return a.dial(cmd, t)
}

// tell shows what a server says about its changes: on standard error, so that results stay alone.
func (a *app) tell(notes []string) {
	for _, note := range notes {
		_, _ = io.WriteString(a.streams.Err, "weir: note: "+text.Printable(note)+"\n") // it has no better place to go
	}
}

// untold says what is left behind where an answer cannot be printed: a lease that nobody knows
// could not be settled.
func (a *answer) untold(err error) error {
	if err == nil || a.holds.IsZero() {
		return err
	}
	return fmt.Errorf("%w: the lease %s was made: what it reserved and its slots stay taken until it "+
		"is settled or expires (weir cancel %s gives them back)", err, a.holds, a.holds)
}

// asMisused makes the mistakes in arguments the user's, unless they are that already.
func asMisused(cmd *cobra.Command, err error) error {
	if _, ok := errors.AsType[*failure](err); ok {
		return err
	}
	return misused(cmd, "%w", err)
}

// serviceError decides how a command ends for what a service answered. A request that was wrong in
// itself came from the command line.
func serviceError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled):
		return interrupted(err)
	case errors.Is(err, weir.Invalid) && !errors.Is(err, weir.Unavailable):
		return &failure{exitMisused, err}
	}
	return err
}

// interrupted keeps what the user must know of a call that was cut short: the lease that it may
// have made.
func interrupted(err error) error {
	e, ok := errors.AsType[*weir.Error](err)
	if !ok || e.Code != weir.Unavailable || e.Field != "lease_id" {
		return context.Canceled
	}
	return fmt.Errorf("interrupted: %s %q: the outcome is unknown", e.Field, e.Value)
}

// instant writes a time for people; nothing for none.
func instant(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(instantLayout)
}
