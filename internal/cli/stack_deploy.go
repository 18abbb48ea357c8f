package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/internal/text"
	"github.com/weir-limiter/weir/provision"
)

const stackDeployHelp = `Deploy a table, the function that counts its usage, an archive, alarms and
policies as a stack of CloudFormation, and prepare the table. If the stack exists, the command
makes it what the flags say: what no flag asks for any more is removed, as the plan shows.

The plan is printed first: each resource that would be added, modified, replaced or removed.
Without --yes nothing else is done. An update that would delete or replace the table is refused.
On a terminal each step is shown while AWS makes it; a failure is explained by the events of the
stack.

The function's code is in releases of weir. Other builds need --function with the zip file that
make function builds. It goes to a bucket that is made for it, weir-code-{account}-{region}, or
to --code-bucket.`

// deployFlags are the flags of deploy and upgrade.
type deployFlags struct {
	function, codeBucket string
	parameters           []string
	overwrite            bool
	pythonBefore         bool // of deploy only
	yes, dry             bool
}

func (d *deployFlags) declare(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&d.function, "function", "", "`ZIP` file of the function (default: that of the release)")
	f.BoolVar(&d.overwrite, "overwrite", false,
		"undo what was changed by hand in the stack's template")
	f.BoolVar(&d.yes, "yes", false, "make the changes of the plan")
	f.BoolVar(&d.dry, "dry-run", false, "only print the plan")
}

// maxCodeBytes is the largest zip file of a function that is read: Lambda takes no larger one.
const maxCodeBytes = 256 << 20

// options returns the options of a plan.
func (d *deployFlags) options(a *console.App, cmd *cobra.Command) (*provision.DeployOptions, error) {
	o := &provision.DeployOptions{CodeBucket: d.codeBucket, Overwrite: d.overwrite}
	var err error
	if o.Parameters, err = pairs(cmd, "parameter", d.parameters); err != nil {
		return nil, err
	}
	if d.function == "" {
		return o, nil
	}
	o.Code, err = a.Read(cmd.Context(), d.function, maxCodeBytes)
	return o, console.FailedError(err)
}

// confirmed reports whether the changes of a plan are to be made. Without --yes and --dry-run it
// returns the error that says so.
func (d *deployFlags) confirmed(cmd *cobra.Command, p *provision.Deployment) (bool, error) {
	if d.yes && !d.dry || d.dry {
		return !d.dry, nil
	}
	if p.Empty() {
		return true, nil
	}
	return false, console.UsageError(cmd, "nothing was changed: give --yes to make these changes")
}

func stackDeployCommand(a *console.App) *cobra.Command {
	t, d := &templateFlags{}, &deployFlags{}
	cmd := &cobra.Command{
		Use:   "deploy NAME",
		Short: "Deploy a stack, or update it",
		Long:  stackDeployHelp,
		Example: `  weir stack deploy limits --lean --protect --recovery --dry-run
  weir stack deploy limits --lean --protect --recovery --yes
  weir stack deploy limits-function --table limits --existing --yes`,
		Args: console.Arguments(1, 1, "the name of a stack"),
	}
	t.declare(cmd)
	d.declare(cmd)
	f := cmd.Flags()
	f.StringVar(&d.codeBucket, "code-bucket", "", "`BUCKET` for the function's zip file")
	f.BoolVar(&d.pythonBefore, "python-before", false,
		"let clients of the Python library before 0.17 use a new table")
	f.StringArrayVar(&d.parameters, "parameter", nil,
		"value `KEY=VALUE` of a parameter of the template; may be repeated")
	return onAWS(cmd, func(cmd *cobra.Command, args []string, c *stackCall) error {
		t.Stack = args[0]
		if err := t.read(cmd); err != nil {
			return err
		}
		o, err := d.options(a, cmd)
		if err != nil {
			return err
		}
		if _, err := t.JSON(); err != nil { // before anything is called
			return console.AsUsageError(cmd, err)
		}
		return c.deploy(a, cmd, &t.Template, o, d)
	})
}

func stackUpgradeCommand(a *console.App) *cobra.Command {
	d := &deployFlags{}
	takeOver := false
	cmd := &cobra.Command{
		Use:   "upgrade NAME",
		Short: "Bring a stack to this version of weir",
		Long: `Bring a stack to the template and the function of this version of weir. The options,
parameters and tags with which it was deployed stay as they are. A stack that a newer weir has
deployed is refused.

The plan is printed first, as by weir stack deploy.

With --take-over a stack of the Python library becomes one of weir, with its table and the options
that it has. It is refused while an item of the table has what weir does not judge by, such as a
schedule. The library's function ends first: the command turns its trigger off, and waits until it
has written nothing for two minutes. A take-over that was interrupted goes on with the same command.`,
		Example: `  weir stack upgrade limits --dry-run
  weir stack upgrade limits --yes
  weir stack upgrade limits --take-over --yes`,
		Args: console.Arguments(1, 1, "the name of a stack"),
	}
	d.declare(cmd)
	cmd.Flags().BoolVar(&takeOver, "take-over", false, "take a stack of the Python library over")
	return onAWS(cmd, func(cmd *cobra.Command, args []string, c *stackCall) error {
		o, err := d.options(a, cmd)
		if err != nil {
			return err
		}
		o.TakeOver = takeOver
		t, err := c.upgraded(cmd.Context(), args[0], o)
		if err != nil {
			return err
		}
		t.Version = console.BuildVersion().Version
		return c.deploy(a, cmd, t, o, d)
	})
}

// deployed is a deployment as --output json prints it.
type deployed struct {
	Stack   string        `json:"stack"`
	Created bool          `json:"created"`
	Changed bool          `json:"changed"`
	Changes []changeBody  `json:"changes"`
	Table   *preparedBody `json:"table,omitempty"`
	Left    []leftBody    `json:"left,omitempty"`
}

// changeBody is a change of a resource.
type changeBody struct {
	Action   string   `json:"action"`
	Resource string   `json:"resource"`
	Type     string   `json:"type"`
	Name     string   `json:"name,omitempty"`
	Parts    []string `json:"properties,omitempty"`
	Maybe    bool     `json:"may_replace,omitempty"`
	Kept     bool     `json:"kept,omitempty"` // removed from the stack, and not deleted
}

// leftBody is a resource that was removed from the stack, and that AWS could not delete.
type leftBody struct {
	Resource string `json:"resource"`
	Type     string `json:"type"`
	Reason   string `json:"reason,omitempty"`
}

// preparedBody says what was done with the table after the stack.
type preparedBody struct {
	Name     string `json:"name"`
	Prepared bool   `json:"prepared"` // false if it was ready already
}

// deploy prints the plan of a deployment, makes its changes if they are confirmed, and prepares the
// table.
func (c *stackCall) deploy(
	a *console.App, cmd *cobra.Command, t *provision.Template, o *provision.DeployOptions,
	d *deployFlags,
) error {
	ctx := cmd.Context()
	if t.Existing {
		if err := c.usable(ctx, t.Table); err != nil {
			return err
		}
	}
	p, err := c.account.Prepare(ctx, t, o)
	if err != nil {
		if e, ok := errors.AsType[*weir.Error](err); ok && e.Code == weir.Invalid {
			return console.AsUsageError(cmd, err)
		}
		return err
	}
	body := &deployed{Stack: p.Stack, Changes: []changeBody{}}
	for i := range p.Changes {
		h := &p.Changes[i]
		kept := h.Action == provision.Remove && h.Type == "AWS::S3::Bucket"
		body.Changes = append(body.Changes,
			changeBody{string(h.Action), h.ID, h.Type, h.Physical, h.Parts, h.Maybe, kept})
	}
	forPeople := c.output.String() == "table"
	if forPeople {
		if err := a.PrintResult(c.output, nil, body.plan(p)); err != nil {
			return err
		}
	}
	changes := !p.Empty()
	sure, err := d.confirmed(cmd, p)
	if sure {
		if err = c.execute(ctx, a, p, o.TakeOver); err == nil {
			body.Created, body.Changed = p.Create, changes
			err = c.prepare(ctx, p, d.pythonBefore, body)
		}
	} else {
		err = errors.Join(err, p.Discard(ctx))
	}
	if err != nil || forPeople && !sure {
		return err
	}
	for i := range p.Left {
		e := &p.Left[i]
		body.Left = append(body.Left, leftBody{e.ID, e.Type, e.Reason})
	}
	return a.PrintResult(c.output, body, body.done)
}

// usable returns an error for a table that weir cannot use.
func (c *stackCall) usable(ctx context.Context, name string) error {
	info, err := c.describe(ctx, name)
	if err != nil {
		return err
	}
	return info.Refused
}

// execute makes the changes of a plan.
func (c *stackCall) execute(
	ctx context.Context, a *console.App, p *provision.Deployment, takeOver bool,
) error {
	if takeOver {
		return c.takeOver(ctx, p, progress(a))
	}
	return p.Execute(ctx, progress(a))
}

// prepare prepares the table of a stack that was deployed.
func (c *stackCall) prepare(
	ctx context.Context, p *provision.Deployment, pythonBefore bool, body *deployed,
) error {
	if p.Template.Existing {
		return nil
	}
	table, err := c.table(p.Table)
	if err != nil {
		return err
	}
	table.Lean, table.Recovery = p.Template.Lean, p.Template.Recovery
	table.PythonBefore = pythonBefore
	prepared, err := table.Create(ctx)
	if err != nil {
		return fmt.Errorf("the stack is deployed, and its table is not prepared yet: "+
			"run the command again: %w", err)
	}
	body.Table = &preparedBody{p.Table, prepared}
	return nil
}

// plan returns what writes the plan for people.
func (body *deployed) plan(p *provision.Deployment) func(*bytes.Buffer) {
	return func(b *bytes.Buffer) {
		switch {
		case p.Empty():
			b.WriteString("stack " + text.Printable(p.Stack) + " is as it should be\n")
			return
		case len(p.Changes) == 0:
			b.WriteString("stack " + text.Printable(p.Stack) + " would be changed: no resource, but " +
				"outputs, parameters or tags\n")
			return
		}
		what := "would be changed"
		if p.Create {
			what = "would be made"
		}
		b.WriteString("stack " + text.Printable(p.Stack) + " " + what + "\n\n")
		t := text.Table{}
		counts := map[string]int{}
		for i := range body.Changes {
			h := &body.Changes[i]
			counts[h.Action]++
			note := strings.Join(h.Parts, ", ")
			if h.Maybe {
				note = strings.TrimPrefix(note+" (perhaps replaced)", " ")
			}
			if h.Kept {
				note = "is kept: s3://" + h.Name
			}
			t.Add(h.Action, h.Resource, h.Type, note)
		}
		t.Write(b)
		var sum []string
		for _, action := range []string{"add", "modify", "replace", "remove"} {
			if n := counts[action]; n > 0 {
				sum = append(sum, text.FormatInt(int64(n))+" to "+action)
			}
		}
		b.WriteString("\n" + strings.Join(sum, ", ") + "\n")
	}
}

// done writes for people what a deployment has done.
func (body *deployed) done(b *bytes.Buffer) {
	b.WriteString("\n")
	switch {
	case body.Created:
		b.WriteString("made the stack " + body.Stack + "\n")
	case body.Changed:
		b.WriteString("changed the stack " + body.Stack + "\n")
	}
	for i := range body.Left {
		l := &body.Left[i]
		b.WriteString("AWS could not delete " + l.Resource + ", which is no longer in the stack: " +
			text.Printable(l.Reason) + "\n")
	}
	if body.Table != nil {
		word := "is ready"
		if body.Table.Prepared {
			word = "was prepared, and is ready"
		}
		b.WriteString("table " + body.Table.Name + " " + word + "\n")
	}
}
