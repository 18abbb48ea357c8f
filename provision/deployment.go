package provision

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	cfn "github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-limiter/weir"
)

// DeployOptions are the options of [Account.Prepare]. Nil means all defaults.
type DeployOptions struct {
	// Code is the function's zip file. Default: that of [FunctionCode].
	Code []byte
	// CodeBucket is the bucket for the zip file. Default: one of the account and region, which is
	// made when it is needed: weir-code-{account}-{region}.
	CodeBucket string
	// Parameters are values of the template's parameters, by name. Default: those of the template.
	Parameters map[string]string
	// TakeOver plans the take-over of a stack of the Python library, for [Deployment.TakeOver], or what is
	// left of one that was interrupted. Default: false, such a stack is an error.
	TakeOver bool
	// Overwrite undoes changes that were made to the stack's template by hand. Default: false, such a
	// stack is an error.
	Overwrite bool
}

// Action is the kind of a change of a resource.
type Action string

// The actions.
const (
	Add     Action = "add"
	Modify  Action = "modify"
	Replace Action = "replace"
	Remove  Action = "remove"
)

// Change is the change of one resource.
type Change struct {
	Action Action
	// ID is the name in the template, and Physical the one that AWS knows it by; empty if it is new.
	ID, Type, Physical string
	// Parts are the properties that change, if CloudFormation says which.
	Parts []string
	// Maybe reports that CloudFormation cannot tell yet whether the resource is replaced.
	Maybe bool
}

// Deployment is a change of a stack that is prepared and not made yet.
type Deployment struct {
	// Stack is the name of the stack.
	Stack string
	// Create reports that the stack does not exist yet.
	Create bool
	// Changes has the changes of resources, by ID; see [Deployment.Empty].
	Changes []Change
	// Template has the options of the stack.
	Template *Template
	// Table is the name of its table.
	Table string
	// Left has, after [Deployment.Execute], the failures to delete resources that the update removed.
	// CloudFormation has forgotten them, and they are still there.
	Left []Event

	account    *Account
	body       string
	parameters []cfn.Parameter
	tags       []cfn.Tag
	code       *code
	// set is the ID of the change set of an update; empty if there is nothing to change.
	set   string
	named bool // it makes a role or a policy with a name
}

// maxBody is the largest template that a call may have, in bytes.
const maxBody = 51_200

// Prepare prepares the deployment of a template: a new stack with the name [Template.Stack], or an
// update of the one that exists. It changes nothing, but an update leaves a change set until
// [Deployment.Execute] or [Deployment.Discard].
//
// Errors have the code [weir.Invalid] for an option that is wrong; [weir.Conflict] for a stack that
// is being changed, has failed, was edited by hand, or is not weir's, for a table that exists
// already or would be deleted, and for one that has no stream; and [weir.Unsupported] for a stack
// that a newer weir has deployed.
func (a *Account) Prepare(ctx context.Context, t *Template, o *DeployOptions) (*Deployment, error) {
	if o == nil {
		o = &DeployOptions{}
	}
	if t.Stack == "" {
		return nil, fault(weir.Invalid, "stack", "", "needs a name")
	}
	p := &Deployment{
		Stack: t.Stack, Template: t, Table: cmp.Or(t.Table, t.Stack), account: a,
		named: !t.NoPolicies || !t.NoAggregator && t.FunctionRole == "",
	}
	b, err := p.write()
	if err != nil {
		return nil, err
	}
	info, err := a.exists(ctx, t.Stack)
	if err != nil {
		return nil, err
	}
	if info != nil {
		if err := info.mayUpdate(t, o); err != nil {
			return nil, err
		}
	}
	p.Create = info == nil
	if err := a.checkTable(ctx, t, p.Create); err != nil {
		return nil, err
	}
	if !t.NoAggregator {
		if p.code, err = a.newCode(ctx, t.Stack, o); err != nil {
			return nil, err
		}
	}
	if err := p.setParameters(ctx, b, o.Parameters); err != nil {
		return nil, err
	}
	if p.Create {
		p.addAll(b)
		return p, nil
	}
	return p, p.makeSet(ctx)
}

// write writes the template as a call may have it. Tags that are too many for that stay out of the
// template: CloudFormation gives a resource the tags of its stack too.
func (p *Deployment) write() (*builder, error) {
	tags := maps.Clone(p.Template.Tags)
	if tags == nil {
		tags = map[string]string{}
	}
	tags[managedBy] = MadeByWeir
	for _, key := range sortedKeys(tags) {
		p.tags = append(p.tags, cfn.Tag{Key: &key, Value: aws.String(tags[key])})
	}
	for _, t := range []*Template{p.Template, untagged(p.Template)} {
		b, err := t.build()
		if err != nil {
			return nil, err
		}
		text, err := json.Marshal(b.whole)
		if err != nil {
			return nil, fmt.Errorf("provision: %w", err)
		}
		if p.body = string(text); len(text) <= maxBody {
			return b, nil
		}
	}
	return nil, fault(weir.Unsupported, "stack", p.Stack,
		fmt.Sprintf("has a template of %d bytes: a call may have %d", len(p.body), maxBody))
}

func untagged(t *Template) *Template {
	plain := *t
	plain.Tags = nil
	return &plain
}

// setParameters sets the value of each parameter.
func (p *Deployment) setParameters(ctx context.Context, b *builder, given map[string]string) error {
	own := map[string]string{}
	if p.code != nil {
		own[codeBucketParameter], own[codeKeyParameter] = p.code.bucket, p.code.key
	}
	if _, has := b.parameters[streamParameter]; has {
		stream, err := p.account.streamOf(ctx, p.Table)
		if err != nil {
			return err
		}
		own[streamParameter] = stream
	}
	for _, name := range sortedKeys(given) {
		_, has := b.parameters[name]
		switch reason := parameterFault(b.parameters[name], given[name]); {
		case own[name] != "":
			return fault(weir.Invalid, "parameters."+name, given[name], "is set by the deployment itself")
		case !has && len(b.parameters) == 0:
			return fault(weir.Invalid, "parameters."+name, given[name], "is unknown: the template has none")
		case !has:
			return fault(weir.Invalid, "parameters."+name, given[name],
				"is unknown: the template has "+strings.Join(slices.Sorted(maps.Keys(b.parameters)), ", "))
		case reason != "":
			return fault(weir.Invalid, "parameters."+name, given[name], reason)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(b.parameters)) {
		value := cmp.Or(given[name], own[name])
		if value == "" {
			parameter, _ := b.parameters[name].(object)
			value = fmt.Sprint(parameter["Default"])
		}
		p.parameters = append(p.parameters, cfn.Parameter{ParameterKey: &name, ParameterValue: &value})
	}
	return nil
}

// parameterFault returns the reason why CloudFormation would refuse a value of a parameter.
func parameterFault(parameter any, value string) string {
	p, _ := parameter.(object)
	if value == "" {
		return "must not be empty"
	}
	if p["Type"] != "Number" {
		return ""
	}
	n, err := strconv.Atoi(value)
	least, bounded := p["MinValue"].(int)
	most, _ := p["MaxValue"].(int)
	allowed, listed := p["AllowedValues"].([]int)
	switch {
	case err != nil:
		return "must be a number"
	case bounded && (n < least || n > most):
		return fmt.Sprintf("must be from %d to %d", least, most)
	case listed && !slices.Contains(allowed, n):
		return fmt.Sprintf("must be one of %d", allowed)
	}
	return ""
}

// addAll fills in the changes of a new stack: each resource is added.
func (p *Deployment) addAll(b *builder) {
	for _, id := range slices.Sorted(maps.Keys(b.resources)) {
		r, _ := b.resources[id].(object)
		p.Changes = append(p.Changes, Change{Action: Add, ID: id, Type: fmt.Sprint(r["Type"])})
	}
}

func (p *Deployment) capabilities() []cfn.Capability {
	if p.named {
		return []cfn.Capability{cfn.CapabilityCapabilityNamedIam}
	}
	return nil
}

// setEvery is the time between two looks at a change set, and setLooks how many there are.
const (
	setEvery = 2 * time.Second
	setLooks = 150
)

// makeSet makes the change set of an update, and fills in its changes.
func (p *Deployment) makeSet(ctx context.Context) error {
	stacks := p.account.stacks
	name := "weir-" + time.Now().UTC().Format("20060102-150405.000000000")
	out, err := stacks.CreateChangeSet(ctx, &cloudformation.CreateChangeSetInput{
		StackName: &p.Stack, ChangeSetName: aws.String(strings.ReplaceAll(name, ".", "-")),
		ChangeSetType: cfn.ChangeSetTypeUpdate, TemplateBody: &p.body, Parameters: p.parameters,
		Tags: p.tags, Capabilities: p.capabilities(),
	})
	if isUnchanged(err) {
		return nil
	}
	if err != nil {
		return p.account.classify(p.Stack, err)
	}
	p.set = aws.ToString(out.Id)
	unchanged, err := p.readSet(ctx)
	if err == nil && !unchanged {
		err = p.keepsData()
	}
	if err != nil || unchanged {
		err = errors.Join(err, p.Discard(ctx))
	}
	return err
}

// unchangedReasons are how CloudFormation says that there is nothing to change.
func unchangedReasons() []string {
	return []string{"didn't contain changes", "No updates are to be performed"}
}

func isUnchanged(err error) bool {
	return err != nil && slices.ContainsFunc(unchangedReasons(),
		func(reason string) bool { return strings.Contains(err.Error(), reason) })
}

// readSet waits for the change set, and reads it.
func (p *Deployment) readSet(ctx context.Context) (unchanged bool, err error) {
	in := &cloudformation.DescribeChangeSetInput{ChangeSetName: &p.set, StackName: &p.Stack}
	for look := 0; ; look++ {
		out, err := p.account.stacks.DescribeChangeSet(ctx, in)
		if err != nil {
			return false, p.account.classify(p.Stack, err)
		}
		switch out.Status {
		case cfn.ChangeSetStatusCreatePending, cfn.ChangeSetStatusCreateInProgress:
			if look == setLooks {
				return false, fault(weir.Unavailable, "stack", p.Stack,
					"has no plan yet: CloudFormation is still working on it")
			}
			if err := p.account.wait(ctx, setEvery); err != nil {
				return false, err
			}
			continue
		case cfn.ChangeSetStatusFailed:
			reason := aws.ToString(out.StatusReason)
			if isUnchanged(errors.New(reason)) {
				return true, nil
			}
			return false, fault(weir.Conflict, "stack", p.Stack, "cannot be changed so: "+reason)
		}
		for i := range out.Changes {
			if r := out.Changes[i].ResourceChange; r != nil {
				p.Changes = append(p.Changes, newChange(r))
			}
		}
		if out.NextToken == nil {
			break
		}
		in.NextToken = out.NextToken
	}
	slices.SortFunc(p.Changes, func(a, b Change) int { return strings.Compare(a.ID, b.ID) })
	return false, nil
}

func newChange(r *cfn.ResourceChange) Change {
	c := Change{
		Action: Action(strings.ToLower(string(r.Action))), ID: aws.ToString(r.LogicalResourceId),
		Type: aws.ToString(r.ResourceType), Physical: aws.ToString(r.PhysicalResourceId),
	}
	switch r.Replacement {
	case cfn.ReplacementTrue:
		c.Action = Replace
	case cfn.ReplacementConditional:
		c.Maybe = true
	}
	for i := range r.Details {
		if target := r.Details[i].Target; target != nil {
			name := cmp.Or(aws.ToString(target.Name), string(target.Attribute))
			if !slices.Contains(c.Parts, name) {
				c.Parts = append(c.Parts, name)
			}
		}
	}
	slices.Sort(c.Parts)
	return c
}

// keepsData returns an error for a plan that would lose the table's items.
func (p *Deployment) keepsData() error {
	for i := range p.Changes {
		c := &p.Changes[i]
		if c.ID != tableID || c.Action != Remove && c.Action != Replace && !c.Maybe {
			continue
		}
		return fault(weir.Conflict, "stack", p.Stack, "would lose its table "+c.Physical+
			", because the update would "+c.Action.of(c.Maybe)+" it: deploy with the flags that it has, "+
			"which weir stack status prints, or use another stack")
	}
	return nil
}

// of returns what an action does, or may do.
func (a Action) of(maybe bool) string {
	if maybe {
		return "perhaps " + string(Replace)
	}
	return string(a)
}

// Discard forgets a plan. It deletes the change set of an update.
func (p *Deployment) Discard(ctx context.Context) error {
	if p.set == "" {
		return nil
	}
	_, err := p.account.stacks.DeleteChangeSet(context.WithoutCancel(ctx),
		&cloudformation.DeleteChangeSetInput{ChangeSetName: &p.set, StackName: &p.Stack})
	p.set = ""
	return p.account.classify(p.Stack, err)
}

// streamOf returns the ARN of a table's stream.
func (a *Account) streamOf(ctx context.Context, table string) (string, error) {
	d, err := a.describeTable(ctx, table)
	switch {
	case err != nil:
		return "", err
	case d == nil:
		return "", a.noTable(table)
	case d.LatestStreamArn == nil || d.StreamSpecification == nil ||
		d.StreamSpecification.StreamViewType != ddb.StreamViewTypeNewAndOldImages:
		return "", fault(weir.Conflict, "table", table,
			"has no stream of new and old images, which the function reads: turn it on with "+
				"weir table stream on")
	}
	return *d.LatestStreamArn, nil
}

func (a *Account) noTable(name string) error {
	return fault(weir.NotFound, "table", name, "does not exist in region "+a.region+
		": name another, or leave out --existing to create it")
}

// describeTable describes a table; nil if it does not exist.
func (a *Account) describeTable(ctx context.Context, table string) (*ddb.TableDescription, error) {
	out, err := a.tables.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &table})
	if _, missing := errors.AsType[*ddb.ResourceNotFoundException](err); missing {
		return nil, nil
	}
	if err != nil {
		return nil, a.classify("", err)
	}
	return out.Table, nil
}
