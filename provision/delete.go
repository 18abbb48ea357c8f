package provision

import (
	"context"
	"errors"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	cfn "github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/weir-limiter/weir"
)

// DeleteOptions are the options of [Account.Delete]. Nil means all defaults.
type DeleteOptions struct {
	// Unprotect takes off the table's deletion protection first. Default: false, such a stack is an
	// error.
	Unprotect bool
	// Archive also deletes the archive of the audit with all objects in it. Default: false, the
	// bucket is kept.
	Archive bool
}

// Deleted says what was deleted with a stack, and what is left of it.
type Deleted struct {
	// Table is the name of the table that was deleted; empty if the stack had none of its own.
	Table string
	// Archive is the bucket of the archive that is left; empty if none is.
	Archive string
	// DeletedArchive is the bucket of the archive that was deleted; empty if none was.
	DeletedArchive string
	// Objects is the number of objects that were in it.
	Objects int
}

// Delete deletes a stack with its table, and the function's code, and waits until it is gone. It
// calls progress, which may be nil, with each event. Errors have the code [weir.NotFound] for a
// stack that does not exist, and [weir.Conflict] for one that is being changed, is not weir's, or
// has a protected table. If the deletion fails, the error is a [*FailedError].
func (a *Account) Delete(
	ctx context.Context, stack string, o *DeleteOptions, progress func(*Event),
) (*Deleted, error) {
	if o == nil {
		o = &DeleteOptions{}
	}
	info, err := a.Describe(ctx, stack)
	if err != nil {
		return nil, err
	}
	if err := info.mayDelete(); err != nil {
		return nil, err
	}
	done := &Deleted{}
	for i := range info.Resources {
		switch r := &info.Resources[i]; {
		case r.Status == string(cfn.ResourceStatusDeleteComplete) || r.Physical == "":
		case r.ID == tableID:
			done.Table = r.Physical
		case r.ID == bucketID:
			done.Archive = r.Physical
		}
	}
	if err := a.unprotect(ctx, stack, done.Table, o.Unprotect); err != nil {
		return nil, err
	}
	last, err := a.lastEvent(ctx, info.ID)
	if err != nil {
		return nil, err
	}
	if _, err := a.stacks.DeleteStack(ctx,
		&cloudformation.DeleteStackInput{StackName: &stack}); err != nil {
		return nil, a.classify(stack, err)
	}
	if err := a.follow(ctx, stack, info.ID, last, progress); err != nil {
		return nil, err
	}
	if o.Archive && done.Archive != "" {
		if done.Objects, err = a.empty(ctx, done.Archive, "", true); err != nil {
			return done, err
		}
		done.Archive, done.DeletedArchive = "", done.Archive
	}
	return done, a.deleteCode(ctx, info)
}

// mayDelete returns an error for a stack that must not be deleted.
func (i *Info) mayDelete() error {
	switch {
	case i.MadeBy == MadeByPython:
		return fault(weir.Conflict, "stack", i.Name,
			"was deployed by the Python library: delete it with zae-limiter delete --name "+i.Name)
	case i.MadeBy == "":
		return fault(weir.Conflict, "stack", i.Name, "is not weir's")
	case strings.HasSuffix(i.Status, "_IN_PROGRESS") &&
		i.Status != string(cfn.StackStatusReviewInProgress):
		return i.settled()
	}
	return nil
}

// unprotect takes off the deletion protection of a table, or refuses a table that has it.
func (a *Account) unprotect(ctx context.Context, stack, table string, off bool) error {
	if table == "" {
		return nil
	}
	d, err := a.describeTable(ctx, table)
	if err != nil || d == nil || !aws.ToBool(d.DeletionProtectionEnabled) {
		return err
	}
	if !off {
		return fault(weir.Conflict, "stack", stack, "has a table with deletion protection, "+table+
			": --unprotect takes it off and deletes the table with all its items")
	}
	_, err = a.tables.UpdateTable(ctx, &dynamodb.UpdateTableInput{
		TableName: &table, DeletionProtectionEnabled: aws.Bool(false),
	})
	return a.classify(stack, err)
}

// deleteCode deletes the function's code, in all its versions.
func (a *Account) deleteCode(ctx context.Context, info *Info) error {
	if info.Parameters[codeBucketParameter] == "" {
		return nil
	}
	bucket, account, err := a.bucketOf(ctx, info)
	if err != nil {
		return err
	}
	_, err = a.empty(ctx, bucket, codePrefix(info.Name), bucket == a.codeBucket(account))
	if e, ok := errors.AsType[*weir.Error](err); ok {
		e.Reason = "the stack is deleted, and the code of its function is left: " + e.Reason
	}
	return err
}
