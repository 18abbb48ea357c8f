package provision_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/lambda"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/testkit"
	"github.com/weir-limiter/weir/provision"
)

// hurried runs the library's command line without its wait for the stream, which moto does not need.
const hurried = `from zae_limiter.cli import cli
from zae_limiter.infra.stack_manager import StackManager
async def ready(self, *more, **options): return True
StackManager.wait_for_esm_ready = ready
cli()`

// python runs a command of the Python library on moto.
func python(t *testing.T, p *proxy, command string, flags ...string) {
	t.Helper()
	all := append([]string{
		"-c", hurried, command, "--name", "limits", "--region", "us-east-1", "--endpoint-url", p.endpoint,
	}, flags...)
	cmd := testkit.ZAE(t).Command(t.Context(), "python", all...)
	cmd.Env = append(cmd.Env, "AWS_ACCESS_KEY_ID=key", "AWS_SECRET_ACCESS_KEY=secret",
		"AWS_DEFAULT_REGION=us-east-1")
	testkit.Run(t, cmd)
}

// codeSize returns the size of the function's code, in bytes.
func codeSize(t *testing.T, p *proxy) int64 {
	t.Helper()
	out, err := p.functions().GetFunction(t.Context(),
		&lambda.GetFunctionInput{FunctionName: aws.String("limits-aggregator")})
	if err != nil {
		t.Fatal(err)
	}
	return out.Configuration.CodeSize
}

func (p *proxy) functions() *lambda.Client {
	return lambda.NewFromConfig(testkit.LocalConfig(p.endpoint),
		func(o *lambda.Options) { o.BaseEndpoint = &p.endpoint })
}

// mappings returns the states of all event source mappings, with the batch size of each.
func mappings(t *testing.T, p *proxy) []string {
	t.Helper()
	out, err := p.functions().ListEventSourceMappings(t.Context(), &lambda.ListEventSourceMappingsInput{})
	if err != nil {
		t.Fatal(err)
	}
	var states []string
	for i := range out.EventSourceMappings {
		m := &out.EventSourceMappings[i]
		states = append(states, aws.ToString(m.State)+" "+string(m.StartingPosition))
	}
	return states
}

// TestTakeOver takes over a stack that the Python library has deployed, and hands it back.
func TestTakeOver(t *testing.T) {
	t.Parallel()
	p := newProxy(t)
	a := p.account(t)
	python(t, p, "deploy", "--usage-retention-days", "45", "--lambda-timeout", "100", "--lambda-memory", "512",
		"--no-alarms", "--tag", "team=search", "--policy-name-format", "Team-{}", "--log-retention-days", "7")
	was := describe(t, a, "limits")
	if got := mappings(t, p); !slices.Equal(got, []string{"Enabled LATEST"}) {
		t.Fatalf("the library has the mappings %q", got)
	}

	of, plan := planTakeOver(t, a)
	lost := errors.New("interrupted")
	counts := 0
	count := func(context.Context) error {
		counts++
		if got := mappings(t, p); len(got) != 0 {
			t.Errorf("there are the mappings %q while weir takes over", got)
		}
		if counts == 1 {
			return lost
		}
		return nil
	}
	failToDelete(p, "AppRole")
	if err := plan.TakeOver(t.Context(), "0.17.0", count, nil); !errors.Is(err, lost) {
		t.Fatalf("got %v, want the error of counting", err)
	}
	if len(plan.Left) == 0 || plan.Left[0].ID != "AppRole" {
		t.Errorf("got %+v, want the role that is left", plan.Left)
	}
	p.answer("DescribeStackEvents", nil)
	interrupted := describe(t, a, "limits")
	_, err := a.Prepare(t.Context(), of, deployOptions(t))
	refuses(t, "a deployment then", err, weir.Conflict, "weir stack upgrade limits --take-over --yes")
	found, err := a.Check(t.Context(), interrupted)
	if err != nil || !strings.Contains(found[0].Problem, "in the middle of a take-over") {
		t.Errorf("a check found %+v, %v", found, err)
	}

	of, o := resume(t, a, count)
	is := describe(t, a, "limits")
	if is.MadeBy != provision.MadeByWeir || is.Edited || is.Tags["team"] != "search" ||
		is.Tags["zae-limiter:name"] != "" || is.Parameters["LambdaTimeout"] != "100" ||
		is.Parameters["LambdaMemorySize"] != "512" || is.Parameters["SnapshotRetentionDays"] != "45" {
		t.Errorf("got the stack %+v, want it taken over with its parameters", is)
	}
	for _, output := range []string{"TableArn", "StreamArn", "AcquireOnlyPolicyArn", "AggregatorFunctionArn"} {
		if is.Outputs[output] != was.Outputs[output] {
			t.Errorf("%s is %q, and was %q", output, is.Outputs[output], was.Outputs[output])
		}
	}
	if got := mappings(t, p); !slices.Equal(got, []string{"Enabled TRIM_HORIZON"}) || counts != 2 {
		t.Errorf("got the mappings %q after %d counts, want weir's alone", got, counts)
	}
	again, err := a.Prepare(t.Context(), of, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.TakeOver(t.Context(), "", nil, nil); err != nil || !again.Empty() { // it would call count
		t.Errorf("take it over twice: got %v and the changes %+v, want none", err, again.Changes)
	}
	handBack(t, p, a, was)
}

// resume goes on with a take-over that was interrupted, with the same command.
func resume(
	t *testing.T, a *provision.Account, count func(context.Context) error,
) (*template, *provision.DeployOptions) {
	t.Helper()
	o := deployOptions(t)
	o.TakeOver = true
	of, err := a.Upgraded(t.Context(), "limits", o)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := a.Prepare(t.Context(), of, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := plan.TakeOver(t.Context(), "", count, nil); err != nil {
		t.Fatal(err)
	}
	return of, o
}

// failToDelete adds to the events of each look a failure to delete a role.
func failToDelete(p *proxy, role string) {
	calls := 0
	p.answer("DescribeStackEvents", func(real string) string {
		calls++
		failed := event(role, "AWS::IAM::Role", "DELETE_FAILED", fmt.Sprint("is in use ", calls))
		failed = strings.Replace(failed, "<EventId>", fmt.Sprintf("<EventId>%d", calls), 1)
		return strings.Replace(real, "<StackEvents>", "<StackEvents>"+failed, 1)
	})
}

// planTakeOver plans the take-over of TestTakeOver's stack.
func planTakeOver(t *testing.T, a *provision.Account) (*template, *provision.Deployment) {
	t.Helper()
	o := deployOptions(t)
	o.TakeOver = true
	of, err := a.Inherited(t.Context(), "limits", o)
	if err != nil || of.RetentionDays != 45 || of.LogDays != 7 || !of.NoAlarms || !of.Recovery ||
		of.PolicyNameFormat != "Team-{}" || !maps.Equal(of.Tags, map[string]string{"team": "search"}) {
		t.Fatalf("got the options %+v, %v, want those of the stack", of, err)
	}
	plan, err := a.Prepare(t.Context(), of, o)
	if err != nil || plan.Empty() {
		t.Fatalf("got the plan %+v, %v", plan, err)
	}
	return of, plan
}

// handBack hands a stack back, and compares it with what it was before.
func handBack(t *testing.T, p *proxy, a *provision.Account, was *provision.Info) {
	t.Helper()
	counted := ""
	err := a.HandBack(t.Context(), "limits", func(_ context.Context, function string) error {
		counted = function
		if got := mappings(t, p); !slices.Equal(got, []string{"Disabled TRIM_HORIZON"}) {
			t.Errorf("got the mappings %q while weir ends, want them off", got)
		}
		return nil
	}, nil)
	if err != nil || counted != "0.17.0" {
		t.Fatalf("got %v after counting %q", err, counted)
	}
	is := describe(t, a, "limits")
	if is.MadeBy != provision.MadeByPython || !maps.Equal(is.Tags, was.Tags) ||
		!maps.Equal(is.Parameters, was.Parameters) || is.Template != nil {
		t.Errorf("got the stack %+v, want what it was, %+v", is, was)
	}
	if got := mappings(t, p); !slices.Equal(got, []string{"Enabled LATEST"}) {
		t.Errorf("got the mappings %q, want the library's", got)
	}
	err = a.HandBack(t.Context(), "limits", nil, nil)
	refuses(t, "hand it back twice", err, weir.Conflict, "was not taken over")
	placeholder := codeSize(t, p)
	python(t, p, "upgrade", "--force")
	if size := codeSize(t, p); size <= placeholder {
		t.Errorf("the library's function has %d bytes of code, and had %d without: want its own", size, placeholder)
	}
}

// TestTakeOverNames refuses a stack whose roles and policies cannot keep their names.
func TestTakeOverNames(t *testing.T) {
	t.Parallel()
	p := newProxy(t)
	a := p.account(t)
	python(t, p, "deploy", "--no-aggregator", "--no-provisioner", "--no-alarms")
	of, err := a.Inherited(t.Context(), "limits", &provision.DeployOptions{})
	if err != nil || !of.NoAggregator || !of.NoAlarms || of.NoPolicies {
		t.Fatalf("got %+v, %v, want a stack without a function", of, err)
	}
	name := func(parameter, value string) func(string) string {
		return func(real string) string {
			before, after, _ := strings.Cut(real, "<ParameterKey>"+parameter+"</ParameterKey>")
			_, rest, _ := strings.Cut(after, "</member>")
			return before + "<ParameterKey>" + parameter + "</ParameterKey><ParameterValue>" + value +
				"</ParameterValue></member>" + rest
		}
	}
	for _, c := range []struct{ parameter, value, want string }{
		{"AcquireOnlyPolicyName", "Team-limits-acq.p", ""},
		{"AcquireOnlyPolicyName", "anything", "AcquireOnlyPolicyName"},
		{"AggregatorRoleName", "my-role", "AggregatorRoleName"},
		{"PermissionBoundary", "bound", ""},
	} {
		p.answer("DescribeStacks", name(c.parameter, c.value))
		of, err := a.Inherited(t.Context(), "limits", &provision.DeployOptions{})
		if c.want != "" {
			refuses(t, c.value, err, weir.Unsupported, "parameters."+c.want)
			continue
		}
		if err != nil || c.parameter == "AcquireOnlyPolicyName" && of.PolicyNameFormat != "Team-{}.p" {
			t.Errorf("%+v: got %+v, %v", c, of, err)
		}
	}
	p.answer("DescribeStacks", nil)
	o := &provision.DeployOptions{TakeOver: true}
	if of, err = a.Inherited(t.Context(), "limits", o); err != nil {
		t.Fatal(err)
	}
	plan, err := a.Prepare(t.Context(), of, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := plan.TakeOver(t.Context(), "", nil, nil); err != nil {
		t.Fatal(err)
	}
	if is := describe(t, a, "limits"); is.MadeBy != provision.MadeByWeir {
		t.Errorf("got %+v, want weir's", is)
	}
	_, err = p.stacks().DeleteStack(t.Context(), &cloudformation.DeleteStackInput{StackName: aws.String("limits")})
	if err != nil {
		t.Error(err)
	}
}
