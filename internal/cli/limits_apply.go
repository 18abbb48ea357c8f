package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/httpapi"
	"github.com/weir-limiter/weir/internal/connect"
	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/internal/text"
	"github.com/weir-limiter/weir/manifest"
)

const limitsPlanHelp = `Compare a limits file with what is stored, and print what weir limits
apply would change: what is, what would be, at which level, and which entities with units in use the change
reaches. The command changes nothing.

The file manages what is in it. A place that was in the file when it was applied last,
and no longer is, would be deleted. What no file ever had is left alone; weir limits diff lists it.

The exit code is 0 if the plan could be made, also if there is something to change.`

const limitsDiffHelp = `Compare a limits file with everything that is stored, including what no
file manages. The command changes nothing.

The exit code is 0 if both are equal, and 1 if they differ or could not be compared.`

const limitsApplyHelp = `Make what is stored equal to a limits file. The command makes the changes
that weir limits plan prints, and no others: only what differs is written, each change with
its entry in the audit. What no file ever managed is left alone.

A change that fails does not end the others. Each is reported with its place, and the exit code is
then 1. It is 1 too if buckets in use could not be brought to their limits; another apply goes on with
them. An apply that was interrupted is continued by the next one, which ends in the same state.

Two applies never mix: one wins, and the other says who was quicker. The mark of an apply that was
killed counts for a minute; --take-over ends it at once.

A file that would delete more than a fifth of the limits that it manages needs --yes. Where the
Python library's provisioner manages limits, the command does nothing without --adopt, which takes
over what that manages.`

const limitsExportHelp = `Print what is stored as a limits file. weir limits diff of that file finds
no difference, except what the file cannot say.

A table that the Python library also writes may have settings that the file cannot say, such as
disabled, schedules, session windows and soft limits. The command then prints them to standard
error and no file, and the exit code is 1. With --without-foreign it prints the file without them.`

// fileAction is the action of a command on a limits file.
type fileAction func(
	ctx context.Context, c *connect.Connection, f *httpapi.LimitsFile,
) (*connect.Answer, error)

// fileCommand makes a command that sends a limits file.
func fileCommand(
	a *console.App, cmd *cobra.Command, does connect.Access, f *httpapi.LimitsFile, do fileAction,
) *cobra.Command {
	cmd.Args = console.Arguments(1, 1, "a limits file, or - for standard input")
	plan := func(cmd *cobra.Command, args []string) (connect.Action, error) {
		if err := console.RefuseEmpty(cmd, args, "FILE"); err != nil {
			return nil, err
		}
		data, err := a.Read(cmd.Context(), args[0], connect.MaxLimitsBytes)
		if err != nil {
			return nil, console.FailedError(err)
		}
		f.Name, f.Text = console.InputName(args[0]), string(data)
		if _, err := manifest.Parse(f.Name, data); err != nil {
			return nil, console.FailedError(err)
		}
		return func(ctx context.Context, c *connect.Connection) (*connect.Answer, error) {
			answer, err := do(ctx, c, f)
			return answer, sizeError(c, f, err)
		}, nil
	}
	return connect.Command(a, cmd, does, plan)
}

// sizeError names the file, and the flag of the server, if a server has refused a file because of
// its size. Other errors it returns as they are.
func sizeError(c *connect.Connection, f *httpapi.LimitsFile, err error) error {
	e, ok := errors.AsType[*weir.Error](err)
	if !ok || !c.OnServer || e.Field != "body" || !strings.HasPrefix(e.Reason, "must have at most") {
		return err
	}
	return fmt.Errorf("%s: is too large for the server, which takes less in one request (the body %s): "+
		"start the server with a larger --max-body", f.Name, e.Reason)
}

func limitsPlanCommand(a *console.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "plan FILE",
		Short: "Print what applying a limits file would change",
		Long:  limitsPlanHelp,
		Example: `  weir limits plan limits.yaml --store dynamodb://limits
  weir limits plan limits.yaml --output json`,
	}
	return fileCommand(a, cmd, connect.Compares, &httpapi.LimitsFile{},
		func(ctx context.Context, c *connect.Connection, f *httpapi.LimitsFile) (*connect.Answer, error) {
			p, err := c.Limits.PlanLimits(ctx, f)
			if err != nil {
				return nil, err
			}
			return &connect.Answer{Value: p, Table: func(b *bytes.Buffer) { writePlan(b, p) }}, nil
		})
}

func limitsDiffCommand(a *console.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "diff FILE",
		Short:   "Compare a limits file with everything that is stored",
		Long:    limitsDiffHelp,
		Example: "  weir limits diff limits.yaml --store dynamodb://limits",
	}
	return fileCommand(a, cmd, connect.Compares, &httpapi.LimitsFile{},
		func(ctx context.Context, c *connect.Connection, f *httpapi.LimitsFile) (*connect.Answer, error) {
			p, err := c.Limits.PlanLimits(ctx, f)
			if err != nil {
				return nil, err
			}
			answer := &connect.Answer{Value: p, Table: func(b *bytes.Buffer) { writeDiff(b, p) }}
			if n, more := len(p.Changes), len(p.Unmanaged)+len(p.Foreign); n+more > 0 {
				err = fmt.Errorf("the file and what is stored differ: %s, and %s",
					text.Plural(n, "change that an apply would make", "changes that an apply would make"),
					text.Plural(more, "that it would leave alone", "that it would leave alone"))
			}
			return answer, err
		})
}

func limitsApplyCommand(a *console.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "apply FILE",
		Short: "Make what is stored equal to a limits file",
		Long:  limitsApplyHelp,
		Example: `  weir limits apply limits.yaml --store dynamodb://limits
  weir limits apply limits.yaml --yes`,
	}
	f := &httpapi.LimitsFile{}
	flags := cmd.Flags()
	flags.BoolVar(&f.Yes, "yes", false, "let the file delete more than a fifth of the limits")
	flags.BoolVar(&f.TakeOver, "take-over", false, "end an apply that was killed")
	flags.BoolVar(&f.Adopt, "adopt", false,
		"take over what the Python library's provisioner manages")
	return fileCommand(a, cmd, connect.Applies, f,
		func(ctx context.Context, c *connect.Connection, f *httpapi.LimitsFile) (*connect.Answer, error) {
			p, err := c.Limits.ApplyLimits(ctx, f)
			if err != nil {
				return nil, err
			}
			answer := &connect.Answer{Value: p, Table: func(b *bytes.Buffer) { writeApplied(b, p) }}
			return answer, failedChanges(p)
		})
}

// failedChanges returns the failures of an apply, and whose buckets have not followed, joined;
// nil if there are none.
func failedChanges(p *httpapi.LimitsPlan) error {
	var errs []error
	for i := range p.Changes {
		if c := &p.Changes[i]; c.Error != "" {
			reason := strings.TrimPrefix(c.Error, "weir: ")
			errs = append(errs, fmt.Errorf("%s %s: %s", c.Action, c.Path, reason))
		}
	}
	if p.Behind != nil {
		errs = append(errs, behindError(p.Behind))
	}
	return errors.Join(errs...)
}

// behindError returns the error for buckets that do not have their limits yet.
func behindError(b *httpapi.LimitsBehind) error {
	of, names := "", ""
	if b.Count > 0 {
		of = " of " + text.Plural(b.Count, "entity", "entities")
		names = ": " + strings.Join(b.Names, ", ")
		if more := b.Count - len(b.Names); more > 0 {
			names += " and " + text.FormatInt(int64(more)) + " more"
		}
	}
	return fmt.Errorf("the limits are set, but buckets in use%s do not have them yet%s (%s). Programs "+
		"with the Python library go by the buckets: apply the file again, and it goes on with them",
		of, names, strings.TrimPrefix(b.Reason, "weir: "))
}

func limitsExportCommand(a *console.App) *cobra.Command {
	without := false
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Print what is stored as a limits file",
		Long:  limitsExportHelp,
		Example: `  weir limits export --store dynamodb://limits >limits.yaml
  weir limits export --without-foreign`,
		Args:              console.Arguments(0, 0, ""),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().BoolVar(&without, "without-foreign", false,
		"leave out what a limits file cannot say")
	plan := func(*cobra.Command, []string) (connect.Action, error) {
		return func(ctx context.Context, c *connect.Connection) (*connect.Answer, error) {
			e, err := c.Limits.ExportLimits(ctx)
			if err != nil {
				return nil, err
			}
			if len(e.Foreign) > 0 && !without {
				return nil, foreignError(e.Foreign)
			}
			return &connect.Answer{Value: e, Table: func(b *bytes.Buffer) { b.WriteString(e.Text) }}, nil
		}, nil
	}
	return connect.Command(a, cmd, connect.Compares, plan)
}

// foreignError returns the error for settings that a limits file cannot say.
func foreignError(notes []httpapi.LimitsNote) error {
	var errs []error
	for i := range notes {
		errs = append(errs, errors.New(noteText(&notes[i])))
	}
	errs = append(errs, fmt.Errorf("no file is written, because it could not say %s: "+
		"--without-foreign writes it without", text.Plural(len(notes), "setting", "settings")))
	return errors.Join(errs...)
}

func noteText(n *httpapi.LimitsNote) string {
	if n.Attribute == "" {
		return n.Path + " " + n.Reason
	}
	return n.Path + ": " + n.Attribute + " " + n.Reason
}

// writePlan prints a plan.
func writePlan(b *bytes.Buffer, p *httpapi.LimitsPlan) {
	switch n := len(p.Changes); {
	case n > 0:
		fmt.Fprintf(b, "%s%s\n\n", ofNamespace(p), text.Plural(n, "change", "changes"))
		writeChanges(b, p.Changes)
	case p.Record:
		fmt.Fprintf(b, "%snothing to change, except the record of what the file manages\n",
			ofNamespace(p))
	default:
		fmt.Fprintf(b, "%snothing to change\n", ofNamespace(p))
	}
	writePlanNotes(b, p)
	if n := len(p.Unmanaged); n > 0 {
		fmt.Fprintf(b, "\n%s in the store alone; no file manages that (weir limits diff lists it)\n",
			text.Plural(n, "difference is", "differences are"))
	}
	for _, r := range p.Refusals {
		fmt.Fprintf(b, "\nan apply would be refused: %s\n", text.Printable(r.Reason))
	}
}

// writeDiff prints a comparison.
func writeDiff(b *bytes.Buffer, p *httpapi.LimitsPlan) {
	if len(p.Changes)+len(p.Unmanaged)+len(p.Foreign) == 0 {
		fmt.Fprintf(b, "%sequal\n", ofNamespace(p))
		return
	}
	if len(p.Changes) > 0 {
		b.WriteString("an apply would make:\n\n")
		writeChanges(b, p.Changes)
	}
	if len(p.Unmanaged) > 0 {
		if len(p.Changes) > 0 {
			b.WriteString("\n")
		}
		b.WriteString("in the store alone, managed by no file:\n\n")
		t := text.Table{Heads: []string{"PLACE", "FILE", "STORE"}}
		for i := range p.Unmanaged {
			c := &p.Unmanaged[i]
			t.Add(c.Path, dashed(c.Was), dashed(c.Is))
		}
		t.Write(b)
	}
	for i := range p.Foreign {
		fmt.Fprintf(b, "\nin the store alone: %s\n", text.Printable(noteText(&p.Foreign[i])))
	}
	writePlanNotes(b, p)
}

// writeApplied prints what an apply has done.
func writeApplied(b *bytes.Buffer, p *httpapi.LimitsPlan) {
	switch {
	case p.Nothing():
		fmt.Fprintf(b, "%snothing to change\n", ofNamespace(p))
		return
	case len(p.Changes) == 0:
		fmt.Fprintf(b, "%snothing to change; the record of what the file manages was written\n",
			ofNamespace(p))
		return
	}
	fmt.Fprintf(b, "%s%s", ofNamespace(p), text.Plural(p.Applied, "change made", "changes made"))
	if p.Failed > 0 {
		fmt.Fprintf(b, ", %s failed", text.FormatInt(int64(p.Failed)))
	}
	b.WriteString("\n\n")
	t := text.Table{Heads: []string{"ACTION", "PLACE", "LEVEL", "WAS", "IS"}}
	for i := range p.Changes {
		c := &p.Changes[i]
		action := c.Action
		if c.Error != "" {
			action = "FAILED"
		}
		t.Add(action, c.Path, string(c.Level), dashed(c.Was), dashed(c.Is))
	}
	t.Write(b)
	writePlanNotes(b, p)
}

func ofNamespace(p *httpapi.LimitsPlan) string {
	if p.Namespace == "" {
		return ""
	}
	return "namespace " + text.Printable(p.Namespace) + ": "
}

// writeChanges prints planned changes as a table.
func writeChanges(b *bytes.Buffer, changes []httpapi.LimitsChange) {
	t := text.Table{Heads: []string{"ACTION", "PLACE", "LEVEL", "IS", "WOULD BE", "REACHES"}}
	for i := range changes {
		c := &changes[i]
		t.Add(c.Action, c.Path, string(c.Level), dashed(c.Was), dashed(c.Is), reaches(c.Live))
	}
	t.Write(b)
}

func dashed(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// reaches returns which entities with units in use a change reaches.
func reaches(live *httpapi.LiveEntities) string {
	switch {
	case live == nil:
		return ""
	case live.Count == 0:
		return "nobody"
	case live.Count > len(live.Names):
		n := text.FormatInt(int64(live.Count))
		return n + ": " + strings.Join(live.Names, ", ") + " …"
	}
	return fmt.Sprintf("%d: %s", live.Count, strings.Join(live.Names, ", "))
}

// writePlanNotes prints what there is to say about places.
func writePlanNotes(b *bytes.Buffer, p *httpapi.LimitsPlan) {
	for i := range p.Kept {
		fmt.Fprintf(b, "\n%s\n", text.Printable(noteText(&p.Kept[i])))
	}
	for i := range p.Lost {
		fmt.Fprintf(b, "\nwould be lost: %s\n", text.Printable(noteText(&p.Lost[i])))
	}
}
