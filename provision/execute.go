package provision

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	cfn "github.com/aws/aws-sdk-go-v2/service/cloudformation/types"

	"github.com/weir-limiter/weir"
)

// Event says what happened to a resource of a stack, or to the stack itself.
type Event struct {
	At time.Time
	// ID is the name of the resource in the template, or that of the stack.
	ID, Type, Status string
	// Reason explains the status; usually empty.
	Reason string
}

// Failed reports that the resource failed.
func (e *Event) Failed() bool { return strings.HasSuffix(e.Status, "_FAILED") }

// Execute makes the change of a plan, and waits until it is made. It calls progress, which may be
// nil, with each event. If the change fails, the error is a [*FailedError]. If ctx ends first,
// CloudFormation goes on.
func (p *Deployment) Execute(ctx context.Context, progress func(*Event)) error {
	if p.Empty() {
		return nil
	}
	if p.code != nil {
		if err := p.account.send(ctx, p.code); err != nil {
			return err
		}
	}
	if p.Create {
		return p.create(ctx, progress)
	}
	info, err := p.account.lookUp(ctx, p.Stack)
	if err != nil {
		return err
	}
	last, err := p.account.lastEvent(ctx, info.ID)
	if err != nil {
		return err
	}
	_, err = p.account.stacks.ExecuteChangeSet(ctx, &cloudformation.ExecuteChangeSetInput{
		ChangeSetName: &p.set, StackName: &p.Stack, RetainExceptOnCreate: aws.Bool(true),
		ClientRequestToken: aws.String("weir-" + rand.Text()),
	})
	if err != nil {
		return p.account.classify(p.Stack, err)
	}
	p.set = ""
	f := &following{stack: p.Stack, id: info.ID, last: last, progress: progress}
	err = p.account.follow(ctx, f)
	if err == nil {
		p.Left = f.failed
	}
	return err
}

// create makes a new stack. If AWS refuses it, the code does not stay.
func (p *Deployment) create(ctx context.Context, progress func(*Event)) error {
	out, err := p.account.stacks.CreateStack(ctx, &cloudformation.CreateStackInput{
		StackName: &p.Stack, TemplateBody: &p.body, Parameters: p.parameters, Tags: p.tags,
		Capabilities: p.capabilities(), ClientRequestToken: aws.String("weir-" + rand.Text()),
		// Otherwise a failure would leave the archive's bucket, which a deletion keeps.
		RetainExceptOnCreate: aws.Bool(true),
	})
	if _, there := errors.AsType[*cfn.AlreadyExistsException](err); there {
		return fault(weir.Conflict, "stack", p.Stack, "exists already: another deployment was faster")
	}
	if err != nil {
		err = p.account.classify(p.Stack, err)
		if c := p.code; c != nil && !errors.Is(err, weir.Unavailable) {
			_, left := p.account.empty(ctx, c.bucket, c.key)
			if left == nil && c.ours {
				left = p.account.deleteIfEmpty(ctx, c.bucket)
			}
			err = errors.Join(err, left)
		}
		return err
	}
	return p.account.follow(ctx,
		&following{stack: p.Stack, id: aws.ToString(out.StackId), progress: progress})
}

// Empty reports that the stack is as it should be. A plan without changes of resources may still
// change outputs, parameters or tags.
func (p *Deployment) Empty() bool { return !p.Create && p.set == "" }

// followEvery is the time between two looks at a stack that is being changed.
const followEvery = 3 * time.Second

// following is a change of a stack that is waited for.
type following struct {
	stack, id string
	last      string // the ID of the newest event before the change
	deletion  bool
	progress  func(*Event) // may be nil

	seen    bool // an event of the change
	failed  []Event
	reasons []string // of the stack itself, for a failure that no resource has
}

// The bounds of what a wait for a change puts up with.
const (
	// maxUnanswered is the largest number of looks in a row that AWS does not answer.
	maxUnanswered = 10
	// maxUnseen is the largest number of looks before the first event, while the stack may still have
	// its status of before.
	maxUnseen = 20
)

// follow waits until the change of a stack has ended, and reports its events.
func (a *Account) follow(ctx context.Context, f *following) error {
	unanswered, unseen := 0, 0
	status := ""
	for {
		info, err := a.look(ctx, f)
		switch {
		case err == nil:
			unanswered, status = 0, info.Status
			if !f.seen {
				unseen++
			}
			if strings.HasSuffix(status, "_IN_PROGRESS") || !f.seen && unseen < maxUnseen {
				break
			}
			return f.end(info)
		case ctx.Err() == nil:
			if unanswered++; unanswered > maxUnanswered || !errors.Is(err, weir.Unavailable) {
				return err
			}
		}
		if err := a.wait(ctx, followEvery); err != nil {
			return &weir.Error{
				Code: weir.Unavailable, Field: "stack", Value: f.stack, Err: err,
				Reason: "is still being changed (" + status + "), and AWS goes on with it: " +
					"weir stack status " + f.stack + " shows it",
			}
		}
	}
}

// look reads the status of the stack and then its new events, so that none is missed at the end. A
// stack that is gone has no name any more, but events by its ID.
func (a *Account) look(ctx context.Context, f *following) (*Info, error) {
	info, err := a.lookUp(ctx, f.stack)
	if gone := errors.Is(err, weir.NotFound) || err == nil && info.ID != f.id; gone {
		info, f.seen = &Info{Status: string(cfn.StackStatusDeleteComplete)}, true
	} else if err != nil {
		return nil, err
	}
	events, newest, err := a.events(ctx, f.id, f.last)
	if err != nil {
		return nil, err
	}
	f.last = newest
	for i := range events {
		e := &events[i]
		f.seen = true
		if f.progress != nil {
			f.progress(e)
		}
		switch {
		case e.ID == f.stack && e.Reason != "" && e.Reason != "User Initiated":
			f.reasons = append(f.reasons, e.Reason)
		case e.ID != f.stack && e.Failed() && !strings.HasPrefix(e.Reason, "Resource creation cancelled") &&
			!strings.HasPrefix(e.Reason, "Resource update cancelled"):
			f.failed = append(f.failed, *e)
		}
	}
	return info, nil
}

// end returns the result of a change that has ended. CloudFormation may refuse a deletion by making
// the status again what it was.
func (f *following) end(info *Info) error {
	status := cfn.StackStatus(info.Status)
	switch {
	case status == cfn.StackStatusDeleteComplete && f.deletion,
		status == cfn.StackStatusCreateComplete && !f.deletion,
		status == cfn.StackStatusUpdateComplete && !f.deletion:
		return nil
	}
	e := &FailedError{
		Stack: f.stack, Status: info.Status, Events: f.failed, Advice: adviceAfter(status, f.stack),
	}
	if len(f.failed) == 0 {
		e.Reason = info.Reason
		if len(f.reasons) > 0 {
			e.Reason = f.reasons[0]
		}
	}
	if f.deletion && status != cfn.StackStatusDeleteFailed {
		e.Advice = "it was not deleted: mend the cause, and delete it again"
	}
	return e
}

// adviceAfter says what to do with a stack after a change of it has failed.
func adviceAfter(status cfn.StackStatus, stack string) string {
	switch status {
	case cfn.StackStatusUpdateRollbackComplete:
		return "it is again as it was before"
	case cfn.StackStatusRollbackComplete, cfn.StackStatusRollbackFailed, cfn.StackStatusCreateFailed:
		return "mend the cause, and delete it with weir stack delete " + stack +
			" --yes before the next attempt"
	case cfn.StackStatusUpdateRollbackFailed:
		return "mend the cause, and run aws cloudformation continue-update-rollback --stack-name " +
			stack
	case cfn.StackStatusDeleteFailed:
		return "mend the cause, and delete it again"
	}
	return ""
}

// events returns the events of a stack after one, the oldest first, and the ID of the newest.
func (a *Account) events(
	ctx context.Context, stack, after string,
) (found []Event, newest string, err error) {
	newest = after
	pages := cloudformation.NewDescribeStackEventsPaginator(a.stacks,
		&cloudformation.DescribeStackEventsInput{StackName: &stack})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, after, a.classify(stack, err)
		}
		for i := range page.StackEvents {
			e := &page.StackEvents[i]
			if aws.ToString(e.EventId) == after {
				slices.Reverse(found)
				return found, newest, nil
			}
			if newest == after {
				newest = aws.ToString(e.EventId)
			}
			found = append(found, Event{
				At: aws.ToTime(e.Timestamp), ID: aws.ToString(e.LogicalResourceId),
				Type: aws.ToString(e.ResourceType), Status: string(e.ResourceStatus),
				Reason: aws.ToString(e.ResourceStatusReason),
			})
		}
	}
	slices.Reverse(found)
	return found, newest, nil
}

// lastEvent returns the ID of the newest event of a stack.
func (a *Account) lastEvent(ctx context.Context, stack string) (string, error) {
	out, err := a.stacks.DescribeStackEvents(ctx,
		&cloudformation.DescribeStackEventsInput{StackName: &stack})
	if err != nil {
		return "", a.classify(stack, err)
	}
	if len(out.StackEvents) == 0 {
		return "", nil
	}
	return aws.ToString(out.StackEvents[0].EventId), nil
}
