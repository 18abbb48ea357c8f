package provision

import (
	"context"
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
		out, err := p.account.stacks.CreateStack(ctx, &cloudformation.CreateStackInput{
			StackName: &p.Stack, TemplateBody: &p.body, Parameters: p.parameters, Tags: p.tags,
			Capabilities: p.capabilities(),
			// Otherwise a failure would leave the archive's bucket, which a deletion keeps.
			RetainExceptOnCreate: aws.Bool(true),
		})
		if err != nil {
			return p.account.classify(p.Stack, err)
		}
		return p.account.follow(ctx, p.Stack, aws.ToString(out.StackId), "", progress)
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
	})
	if err != nil {
		return p.account.classify(p.Stack, err)
	}
	p.set = ""
	return p.account.follow(ctx, p.Stack, info.ID, last, progress)
}

// Empty reports that the stack is as it should be. A plan without changes of resources may still
// change outputs, parameters or tags.
func (p *Deployment) Empty() bool { return !p.Create && p.set == "" }

// followEvery is the time between two looks at a stack that is being changed.
const followEvery = 3 * time.Second

// follow waits until the change of a stack has ended, and reports the events after last.
func (a *Account) follow(
	ctx context.Context, stack, id, last string, progress func(*Event),
) error {
	var failed []Event
	for {
		// The status is read before the events, so that none is missed at the end. A stack that is
		// gone has no name any more, but events by its ID.
		info, err := a.lookUp(ctx, stack)
		if gone := errors.Is(err, weir.NotFound) || err == nil && info.ID != id; gone {
			info = &Info{Status: string(cfn.StackStatusDeleteComplete)}
		} else if err != nil {
			return err
		}
		events, newest, err := a.events(ctx, id, last)
		if err != nil {
			return err
		}
		last = newest
		for i := range events {
			e := &events[i]
			if progress != nil {
				progress(e)
			}
			if e.Failed() && !strings.HasPrefix(e.Reason, "Resource creation cancelled") &&
				!strings.HasPrefix(e.Reason, "Resource update cancelled") && e.ID != stack {
				failed = append(failed, *e)
			}
		}
		switch status := cfn.StackStatus(info.Status); {
		case strings.HasSuffix(info.Status, "_IN_PROGRESS"):
		case status == cfn.StackStatusCreateComplete, status == cfn.StackStatusUpdateComplete,
			status == cfn.StackStatusDeleteComplete:
			return nil
		default:
			return &FailedError{
				Stack: stack, Status: info.Status, Events: failed, Advice: adviceAfter(status, stack),
			}
		}
		if err := a.wait(ctx, followEvery); err != nil {
			return &weir.Error{
				Code: weir.Unavailable, Field: "stack", Value: stack, Err: err,
				Reason: "is still being changed (" + info.Status + "), and AWS goes on with it: " +
					"weir stack status " + stack + " shows it",
			}
		}
	}
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
