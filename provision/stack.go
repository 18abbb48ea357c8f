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
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/awsconfig"
)

// Options say how AWS is reached. Nil means all defaults.
type Options struct {
	// Region is the region of the stack. Default: the region that the SDK's own chain finds.
	Region string
	// Endpoint is the address of another service than Amazon's, for all calls. Default: the
	// endpoints of the region.
	Endpoint string
	// Config is the SDK's configuration, with credentials. Default: the configuration that the
	// SDK's own chain finds.
	Config *aws.Config
	// Wait waits between two looks at a change that AWS is making. Default: with a timer.
	Wait func(ctx context.Context, d time.Duration) error
}

// Account deploys and finds the stacks of one AWS account in one region. All methods may be called
// concurrently, but CloudFormation makes one change of a stack at a time.
type Account struct {
	stacks    *cloudformation.Client
	tables    *dynamodb.Client
	functions *lambda.Client
	objects   *s3.Client
	callers   *sts.Client
	region    string
	wait      func(ctx context.Context, d time.Duration) error
}

// Open returns the account of the credentials. It sends nothing yet. If an option is wrong, the
// error has code [weir.Invalid].
func Open(ctx context.Context, o *Options) (*Account, error) {
	if o == nil {
		o = &Options{}
	}
	local, err := awsconfig.CheckEndpoint("endpoint", o.Endpoint)
	if err != nil {
		return nil, err
	}
	if !only(o.Region, "-") {
		return nil, fault(weir.Invalid, "region", o.Region, "must be a region like eu-central-1")
	}
	cfg := aws.Config{}
	if o.Config != nil {
		cfg = o.Config.Copy()
	} else if cfg, err = awsconfig.Load(ctx, o.Region, local); err != nil {
		return nil, &weir.Error{
			Code: weir.Invalid, Reason: "the configuration of the AWS SDK cannot be loaded", Err: err,
		}
	}
	if o.Region != "" {
		cfg.Region = o.Region
	}
	if o.Endpoint != "" {
		cfg.BaseEndpoint = &o.Endpoint
	}
	if cfg.Region == "" {
		return nil, fault(weir.Invalid, "region", "",
			"is not set: give it with --region or in AWS_REGION")
	}
	if cfg.BaseEndpoint != nil { // perhaps of AWS_ENDPOINT_URL
		local, _ = awsconfig.CheckEndpoint("endpoint", *cfg.BaseEndpoint)
	}
	a := &Account{
		stacks: cloudformation.NewFromConfig(cfg), tables: dynamodb.NewFromConfig(cfg),
		functions: lambda.NewFromConfig(cfg), callers: sts.NewFromConfig(cfg),
		objects: s3.NewFromConfig(cfg, func(so *s3.Options) {
			so.UsePathStyle, so.DisableLogOutputChecksumValidationSkipped = local, true
		}),
		region: cfg.Region, wait: o.Wait,
	}
	if a.wait == nil {
		a.wait = wait
	}
	return a, nil
}

func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// Makers of stacks, as their tag ManagedBy names them.
const (
	MadeByWeir   = "weir"
	MadeByPython = "zae-limiter"
)

// Info describes a stack.
type Info struct {
	Name string
	ID   string
	// Status and Reason are CloudFormation's, such as "UPDATE_COMPLETE".
	Status string
	Reason string
	// Created and Updated are when the stack was made, and when it was changed last; Updated is zero
	// if it never was.
	Created time.Time
	Updated time.Time
	// MadeBy is [MadeByWeir], [MadeByPython], or empty for a stack of something else.
	MadeBy     string
	Tags       map[string]string
	Parameters map[string]string
	Outputs    map[string]string

	// Template has the options that the stack was deployed with; nil for a stack that weir has not
	// made. This and what follows is not in a list.
	Template *Template
	// Version is the version of weir that deployed it; empty if it is not known.
	Version string
	// Edited reports that the template was changed by hand after weir had written it.
	Edited    bool
	Resources []Resource

	made *metadata
	body string
	kept bool // CloudFormation refuses to delete it
}

// Resource is a resource of a stack.
type Resource struct {
	// ID is the name in the template, and Physical the one that AWS knows it by.
	ID, Type, Physical, Status string
	// Reason explains the status; usually empty.
	Reason string
}

// Table returns the name of the stack's table; empty if it is not known yet.
func (i *Info) Table() string { return i.Outputs["TableName"] }

func newInfo(s *cfn.Stack) *Info {
	i := &Info{
		Name: aws.ToString(s.StackName), ID: aws.ToString(s.StackId), Status: string(s.StackStatus),
		Reason:  aws.ToString(s.StackStatusReason),
		Created: aws.ToTime(s.CreationTime), Updated: aws.ToTime(s.LastUpdatedTime),
		kept: aws.ToBool(s.EnableTerminationProtection),
		Tags: map[string]string{}, Parameters: map[string]string{}, Outputs: map[string]string{},
	}
	for _, t := range s.Tags {
		i.Tags[aws.ToString(t.Key)] = aws.ToString(t.Value)
	}
	for _, p := range s.Parameters {
		i.Parameters[aws.ToString(p.ParameterKey)] = aws.ToString(p.ParameterValue)
	}
	for _, o := range s.Outputs {
		i.Outputs[aws.ToString(o.OutputKey)] = aws.ToString(o.OutputValue)
	}
	switch made := i.Tags[managedBy]; {
	case made == MadeByWeir, made == MadeByPython:
		i.MadeBy = made
	case strings.HasPrefix(i.Name, "ZAEL-"): // a stack of before the library used tags
		i.MadeBy = MadeByPython
	}
	return i
}

// List returns the stacks that weir or the Python library has made, by name, without deleted ones.
func (a *Account) List(ctx context.Context) ([]*Info, error) {
	var found []*Info
	pages := cloudformation.NewDescribeStacksPaginator(a.stacks, &cloudformation.DescribeStacksInput{})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, a.classify("", err)
		}
		for i := range page.Stacks {
			if info := newInfo(&page.Stacks[i]); info.MadeBy != "" {
				found = append(found, info)
			}
		}
	}
	slices.SortFunc(found, func(x, y *Info) int { return strings.Compare(x.Name, y.Name) })
	return found, nil
}

// Describe describes a stack with its resources. If it does not exist, the error has code
// [weir.NotFound].
func (a *Account) Describe(ctx context.Context, stack string) (*Info, error) {
	info, err := a.find(ctx, stack)
	if err != nil {
		return nil, err
	}
	if info.Status == string(cfn.StackStatusReviewInProgress) { // it has no template yet
		return info, nil
	}
	out, err := a.stacks.GetTemplate(ctx, &cloudformation.GetTemplateInput{StackName: &info.ID})
	if err != nil {
		return nil, a.classify(stack, err)
	}
	info.body = aws.ToString(out.TemplateBody)
	if m, edited := readTemplate(info.body); m != nil {
		info.made, info.Edited = m, edited
		info.Template, info.Version = m.Options, m.Version
		info.Template.Stack = info.Name
	}
	info.Resources, err = a.resources(ctx, info.ID)
	return info, err
}

// find describes a stack as a list does.
func (a *Account) find(ctx context.Context, stack string) (*Info, error) {
	if reason := stackNameFault(stack); reason != "" {
		return nil, fault(weir.Invalid, "stack", stack, reason)
	}
	return a.lookUp(ctx, stack)
}

// lookUp describes a stack by its name or ID. A deleted one is found by its ID only.
func (a *Account) lookUp(ctx context.Context, stack string) (*Info, error) {
	out, err := a.stacks.DescribeStacks(ctx, &cloudformation.DescribeStacksInput{StackName: &stack})
	if err != nil {
		return nil, a.classify(stack, err)
	}
	if len(out.Stacks) == 0 {
		return nil, a.missing(stack)
	}
	return newInfo(&out.Stacks[0]), nil
}

func (a *Account) missing(stack string) error {
	return fault(weir.NotFound, "stack", stack, "does not exist in region "+a.region+
		": name another, or another region; weir stack list lists those that are there")
}

func (a *Account) resources(ctx context.Context, stack string) ([]Resource, error) {
	var found []Resource
	pages := cloudformation.NewListStackResourcesPaginator(a.stacks,
		&cloudformation.ListStackResourcesInput{StackName: &stack})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, a.classify(stack, err)
		}
		for i := range page.StackResourceSummaries {
			r := &page.StackResourceSummaries[i]
			if aws.ToString(r.LogicalResourceId) == "" { // moto's, for a type that it does not have
				continue
			}
			found = append(found, Resource{
				ID: aws.ToString(r.LogicalResourceId), Type: aws.ToString(r.ResourceType),
				Physical: aws.ToString(r.PhysicalResourceId), Status: string(r.ResourceStatus),
				Reason: aws.ToString(r.ResourceStatusReason),
			})
		}
	}
	slices.SortFunc(found, func(x, y Resource) int { return strings.Compare(x.ID, y.ID) })
	return found, nil
}

// exists reports whether a stack exists, with what is known of it.
func (a *Account) exists(ctx context.Context, stack string) (*Info, error) {
	info, err := a.Describe(ctx, stack)
	if errors.Is(err, weir.NotFound) {
		return nil, nil
	}
	return info, err
}
