package provision

import (
	"cmp"
	"context"
	"errors"
	"strings"

	cfn "github.com/aws/aws-sdk-go-v2/service/cloudformation/types"

	"github.com/weir-limiter/weir"
)

// mayUpdate returns an error for a stack that a deployment of t must not change.
func (i *Info) mayUpdate(t *Template, o *DeployOptions) error {
	if err := i.settled(); err != nil {
		return err
	}
	switch {
	case i.MadeBy == MadeByPython && o.TakeOver:
		return nil
	case i.MadeBy == MadeByPython:
		return fault(weir.Conflict, "stack", i.Name, "was deployed by the Python library: "+
			"weir stack upgrade --take-over takes it over")
	case i.MadeBy == "" || i.made == nil:
		return fault(weir.Conflict, "stack", i.Name, "is not weir's: name another stack")
	case i.made.Paused && !o.TakeOver:
		return fault(weir.Conflict, "stack", i.Name, "is in the middle of a take-over, which was "+
			"interrupted: go on with weir stack upgrade "+i.Name+" --take-over --yes")
	case i.Edited && !o.Overwrite:
		return i.editedError()
	}
	if err := i.made.newer(i.Name); err != nil {
		return err
	}
	return i.sameTable(t)
}

// settled returns an error for a stack that is being changed or has failed, with what to do.
func (i *Info) settled() error {
	status, say := cfn.StackStatus(i.Status), ""
	switch status {
	case cfn.StackStatusReviewInProgress:
		say = "has a change set that was never executed, and nothing else: delete it first, with " +
			"weir stack delete " + i.Name + " --yes"
	case cfn.StackStatusRollbackComplete, cfn.StackStatusRollbackFailed,
		cfn.StackStatusCreateFailed, cfn.StackStatusDeleteFailed:
		say = "is " + i.Status + ", from which it cannot be updated: delete it first, with " +
			"weir stack delete " + i.Name + " --yes"
	case cfn.StackStatusUpdateRollbackFailed, cfn.StackStatusUpdateFailed:
		say = "is " + i.Status + ": mend what its events name, and end its last update with " +
			"aws cloudformation continue-update-rollback --stack-name " + i.Name
	default:
		if strings.HasSuffix(i.Status, "_IN_PROGRESS") {
			say = "is being changed (" + i.Status + "): wait until that has ended; " +
				"weir stack status " + i.Name + " shows it"
		}
	}
	if say == "" {
		return nil
	}
	return fault(weir.Conflict, "stack", i.Name, say)
}

func (i *Info) editedError() error {
	return fault(weir.Conflict, "stack", i.Name, "has a template that was changed by hand after weir "+
		"wrote it: look at it with aws cloudformation get-template --stack-name "+i.Name+
		", and give --overwrite to replace it")
}

// sameTable returns an error if a template would give a stack another table, or another kind of
// table.
func (i *Info) sameTable(t *Template) error {
	old := i.made.Options
	was, is := cmp.Or(old.Table, i.Name), cmp.Or(t.Table, t.Stack)
	switch {
	case was != is:
		return fault(weir.Conflict, "table", is, "is not the stack's table, which is "+was+
			": the table of a stack cannot be changed")
	case old.Existing != t.Existing:
		return fault(weir.Conflict, "existing", boolText(t.Existing),
			"cannot be changed: the stack was deployed with "+boolText(old.Existing))
	case old.Lean != t.Lean:
		return fault(weir.Conflict, "lean", boolText(t.Lean),
			"cannot be changed: the kind of a table is for good")
	}
	return nil
}

func boolText(b bool) string {
	if b {
		return "true"
	}
	return "false"
}

// checkTable returns an error for a new stack whose table exists already, and for a stack of an
// existing table that does not.
func (a *Account) checkTable(ctx context.Context, t *Template, create bool) error {
	name := cmp.Or(t.Table, t.Stack)
	d, err := a.describeTable(ctx, name)
	switch {
	case errors.Is(err, weir.PermissionDenied):
		return nil // CloudFormation will find out
	case err != nil:
		return err
	case t.Existing && d == nil:
		return a.noTable(name)
	case !t.Existing && !create && d == nil:
		return fault(weir.Conflict, "stack", t.Stack, "has lost its table "+name+", which CloudFormation "+
			"does not make again: delete the stack, and deploy it again")
	case !t.Existing && create && d != nil:
		return fault(weir.Conflict, "table", name, "exists already: give --table "+name+
			" --existing for a stack of what belongs to it, or name another table")
	}
	return nil
}
