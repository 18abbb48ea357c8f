package provision

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	cfn "github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"

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
	unprotected, err := a.unprotect(ctx, stack, done.Table, o.Unprotect)
	if err != nil {
		return nil, err
	}
	if err := a.deleteStack(ctx, info, progress); err != nil {
		if unprotected {
			err = errors.Join(err, a.protect(ctx, done.Table, true))
		}
		return nil, err
	}
	if o.Archive && done.Archive != "" {
		done.Objects, err = a.empty(ctx, done.Archive, "")
		if err == nil {
			_, err = a.objects.DeleteBucket(ctx, &s3.DeleteBucketInput{Bucket: &done.Archive})
			err = a.bucketError(done.Archive, err)
		}
		if err != nil {
			return done, fmt.Errorf("the stack is deleted, and its archive is not: %w", err)
		}
		done.Archive, done.DeletedArchive = "", done.Archive
	}
	err = a.deleteCode(ctx, info)
	if e, ok := errors.AsType[*weir.Error](err); ok {
		e.Reason = "the stack is deleted, and the code of its function is left: " + e.Reason
	}
	return done, err
}

// deleteStack deletes the stack alone.
func (a *Account) deleteStack(ctx context.Context, info *Info, progress func(*Event)) error {
	last, err := a.lastEvent(ctx, info.ID)
	if err != nil {
		return err
	}
	_, err = a.stacks.DeleteStack(ctx, &cloudformation.DeleteStackInput{
		StackName: &info.Name, ClientRequestToken: aws.String("weir-" + rand.Text()),
	})
	if err != nil {
		return a.classify(info.Name, err)
	}
	return a.follow(ctx, &following{
		stack: info.Name, id: info.ID, last: last, deletion: true, progress: progress,
	})
}

// mayDelete returns an error for a stack that must not be deleted.
func (i *Info) mayDelete() error {
	switch {
	case i.MadeBy == MadeByPython:
		return fault(weir.Conflict, "stack", i.Name,
			"was deployed by the Python library: delete it with zae-limiter delete --name "+i.Name)
	case i.MadeBy == "",
		i.made == nil && i.Status != string(cfn.StackStatusReviewInProgress):
		return fault(weir.Conflict, "stack", i.Name, "is not weir's")
	case i.kept:
		return fault(weir.Conflict, "stack", i.Name, "has termination protection: take it off with "+
			"aws cloudformation update-termination-protection --no-enable-termination-protection "+
			"--stack-name "+i.Name)
	case strings.HasSuffix(i.Status, "_IN_PROGRESS") &&
		i.Status != string(cfn.StackStatusReviewInProgress):
		return i.settled()
	}
	return nil
}

// unprotect takes off the deletion protection of a table, or refuses a table that has it.
func (a *Account) unprotect(
	ctx context.Context, stack, table string, off bool,
) (changed bool, err error) {
	if table == "" {
		return false, nil
	}
	d, err := a.describeTable(ctx, table)
	if err != nil || d == nil || !aws.ToBool(d.DeletionProtectionEnabled) {
		return false, err
	}
	if !off {
		return false, fault(weir.Conflict, "stack", stack, "has a table with deletion protection, "+
			table+": --unprotect takes it off and deletes the table with all its items")
	}
	return true, a.protect(ctx, table, false)
}

// protect turns the deletion protection of a table on or off. A table that does not exist needs none.
func (a *Account) protect(ctx context.Context, table string, on bool) error {
	_, err := a.tables.UpdateTable(context.WithoutCancel(ctx), &dynamodb.UpdateTableInput{
		TableName: &table, DeletionProtectionEnabled: &on,
	})
	if _, missing := errors.AsType[*ddb.ResourceNotFoundException](err); missing {
		return nil
	}
	return a.classify("", err)
}
