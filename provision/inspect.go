package provision

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	cfn "github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"github.com/weir-limiter/weir"
)

// Function describes the function of a stack, and what sends it the stream.
type Function struct {
	Name string
	// State is Lambda's, such as "Active", and Reason says why it is another.
	State, Reason string
	// Current reports that it runs the code of this build of weir; nil if this build has none.
	Current *bool
	// Mapping is the state of the event source mapping, such as "Enabled"; empty if there is none.
	Mapping string
	// LastResult is the result of the last batch, such as "OK"; empty if Lambda has none.
	LastResult string
}

// Function describes the function of a stack; nil if it has none.
func (a *Account) Function(ctx context.Context, i *Info) (*Function, error) {
	name := i.physical(functionID)
	if name == "" {
		return nil, nil
	}
	f := &Function{Name: name}
	out, err := a.functions.GetFunction(ctx, &lambda.GetFunctionInput{FunctionName: &name})
	if _, missing := errors.AsType[*lambdatypes.ResourceNotFoundException](err); missing {
		f.State = "Missing"
		return f, nil
	}
	if err != nil {
		return nil, a.classify(i.Name, err)
	}
	if c := out.Configuration; c != nil {
		f.State, f.Reason = string(c.State), aws.ToString(c.StateReason)
		if code := FunctionCode(); code != nil {
			f.Current = aws.Bool(aws.ToString(c.CodeSha256) == sha256Text(code))
		}
	}
	mapping, err := a.mapping(ctx, name)
	if mapping != nil {
		f.Mapping = aws.ToString(mapping.State)
		f.LastResult = aws.ToString(mapping.LastProcessingResult)
	}
	return f, err
}

// physical returns the name by which AWS knows a resource of the stack; empty if there is none.
func (i *Info) physical(id string) string {
	for k := range i.Resources {
		if i.Resources[k].ID == id {
			return i.Resources[k].Physical
		}
	}
	return ""
}

// mapping returns what sends a function the stream of a table; nil if nothing does.
func (a *Account) mapping(
	ctx context.Context, function string,
) (*lambdatypes.EventSourceMappingConfiguration, error) {
	pages := lambda.NewListEventSourceMappingsPaginator(a.functions,
		&lambda.ListEventSourceMappingsInput{FunctionName: &function})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, a.classify("", err)
		}
		for i := range page.EventSourceMappings {
			m := &page.EventSourceMappings[i]
			if strings.Contains(aws.ToString(m.EventSourceArn), ":dynamodb:") {
				return m, nil
			}
		}
	}
	return nil, nil
}

// Finding is something about a stack that its operator should know.
type Finding struct {
	// What names a part of the stack, such as "template" or a resource.
	What string
	// Problem says what is wrong with it, and Todo what to do.
	Problem, Todo string
	// Harmless reports that the stack works as it is.
	Harmless bool
}

// Check looks at all parts of a stack but the items of its table, and changes nothing. It also
// compares each resource with what the template says, which takes CloudFormation a minute.
func (a *Account) Check(ctx context.Context, i *Info) ([]Finding, error) {
	found := i.checkStatus()
	if i.MadeBy != MadeByWeir || i.made == nil {
		if i.MadeBy == MadeByWeir && len(found) > 0 { // it has no template yet
			return found, nil
		}
		return nil, fault(weir.Conflict, "stack", i.Name, "is not weir's")
	}
	found = append(found, i.checkTemplate()...)
	f, err := a.Function(ctx, i)
	if err != nil {
		return found, err
	}
	found = append(found, f.check()...)
	drifted, err := a.drift(ctx, i)
	return append(found, drifted...), err
}

// checkStatus looks at the status of the stack.
func (i *Info) checkStatus() []Finding {
	err := i.settled()
	if err == nil {
		return nil
	}
	e, _ := errors.AsType[*weir.Error](err)
	problem, todo, _ := strings.Cut(e.Reason, ": ")
	return []Finding{{What: "stack", Problem: problem, Todo: todo}}
}

// checkTemplate looks at the template of the stack.
func (i *Info) checkTemplate() []Finding {
	var found []Finding
	upgrade := "weir stack upgrade " + i.Name
	switch {
	case i.made.Paused:
		found = append(found, Finding{
			What: "stack", Problem: "is in the middle of a take-over, which was interrupted",
			Todo: upgrade + " --take-over --yes goes on with it",
		})
	case i.made.Revision > revision:
		found = append(found, Finding{
			What: "template", Problem: "was written by a newer weir", Todo: "use that one",
			Harmless: true,
		})
	case i.Edited:
		found = append(found, Finding{
			What: "template", Problem: "was changed by hand after weir had written it",
			Todo: upgrade + " --overwrite replaces it",
		})
	default:
		sum := ""
		b, err := i.made.Options.build()
		if err == nil {
			sum, err = digest(b.whole)
		}
		if err != nil || sum != i.made.Digest {
			found = append(found, Finding{
				What: "template", Problem: "is not that of this version of weir", Todo: upgrade,
				Harmless: true,
			})
		}
	}
	return found
}

func (f *Function) check() []Finding {
	if f == nil {
		return nil
	}
	var found []Finding
	switch f.State {
	case "Active", "Inactive", "": // an idle function is inactive, and wakes with its next batch
	default:
		found = append(found, Finding{
			What: f.Name, Problem: strings.TrimSpace("is " + f.State + " " + f.Reason),
			Todo: "see its log",
		})
	}
	if f.Current != nil && !*f.Current {
		found = append(found, Finding{
			What: f.Name, Problem: "does not run the code of this version of weir",
			Todo: "weir stack upgrade", Harmless: true,
		})
	}
	switch {
	case f.Mapping == "" || f.Mapping == "Disabled" || f.Mapping == "Disabling":
		found = append(found, Finding{
			What: f.Name, Problem: "gets no records of the stream, so no usage is counted",
			Todo: "turn its event source mapping on; what is older than a day is marked as incomplete",
		})
	case strings.HasPrefix(f.LastResult, "PROBLEM"):
		found = append(found, Finding{
			What: f.Name, Problem: "could not process its last batch: " + f.LastResult,
			Todo: "see its log",
		})
	}
	return found
}

// driftEvery is the time between two looks at a comparison of resources, and driftLooks how many
// there are.
const (
	driftEvery = 3 * time.Second
	driftLooks = 100
)

// drift finds the resources that are not as the template says.
func (a *Account) drift(ctx context.Context, i *Info) ([]Finding, error) {
	out, err := a.stacks.DetectStackDrift(ctx,
		&cloudformation.DetectStackDriftInput{StackName: &i.ID})
	if err != nil {
		return []Finding{{
			What: "resources", Problem: "were not compared with the template: " + err.Error(),
			Todo: "the comparison needs the permission cloudformation:DetectStackDrift, and to read " +
				"each resource", Harmless: true,
		}}, ctx.Err()
	}
	for look := 0; ; look++ {
		d, err := a.stacks.DescribeStackDriftDetectionStatus(ctx,
			&cloudformation.DescribeStackDriftDetectionStatusInput{
				StackDriftDetectionId: out.StackDriftDetectionId,
			})
		if err != nil {
			return nil, a.classify(i.Name, err)
		}
		if d.DetectionStatus == cfn.StackDriftDetectionStatusDetectionFailed {
			partly := Finding{
				What: "resources", Harmless: true,
				Problem: "were only compared in part: " + aws.ToString(d.DetectionStatusReason),
			}
			found, err := a.drifted(ctx, i)
			return append(found, partly), err
		}
		if d.DetectionStatus != cfn.StackDriftDetectionStatusDetectionInProgress {
			break
		}
		if look == driftLooks {
			return nil, fault(weir.Unavailable, "stack", i.Name, "is still being compared")
		}
		if err := a.wait(ctx, driftEvery); err != nil {
			return nil, a.classify(i.Name, err)
		}
	}
	return a.drifted(ctx, i)
}

func (a *Account) drifted(ctx context.Context, i *Info) ([]Finding, error) {
	var found []Finding
	pages := cloudformation.NewDescribeStackResourceDriftsPaginator(a.stacks,
		&cloudformation.DescribeStackResourceDriftsInput{
			StackName: &i.ID, StackResourceDriftStatusFilters: []cfn.StackResourceDriftStatus{
				cfn.StackResourceDriftStatusModified, cfn.StackResourceDriftStatusDeleted,
			},
		})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, a.classify(i.Name, err)
		}
		for k := range page.StackResourceDrifts {
			found = append(found, newDrift(&page.StackResourceDrifts[k]))
		}
	}
	return found, nil
}

func newDrift(d *cfn.StackResourceDrift) Finding {
	f := Finding{What: aws.ToString(d.LogicalResourceId)}
	if d.StackResourceDriftStatus == cfn.StackResourceDriftStatusDeleted {
		f.Problem = "was deleted"
		f.Todo = "CloudFormation cannot make it again: see docs/stack.md"
		return f
	}
	parts := make([]string, 0, len(d.PropertyDifferences))
	for k := range d.PropertyDifferences {
		p := &d.PropertyDifferences[k]
		parts = append(parts, strings.TrimPrefix(aws.ToString(p.PropertyPath), "/")+" is "+
			aws.ToString(p.ActualValue)+", not "+aws.ToString(p.ExpectedValue))
	}
	f.Problem = "was changed by hand: " + strings.Join(parts, "; ")
	f.Todo = "change it back, or deploy with flags that say so"
	return f
}
