package provision_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	cfn "github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb"
	"github.com/weir-limiter/weir/internal/testkit"
	"github.com/weir-limiter/weir/provision"
)

// small is a stack without what moto takes long for.
func small() *template {
	return &template{Stack: "limits", NoAggregator: true, NoAlarms: true, NoPolicies: true}
}

// refuses checks that err has a code and a text.
func refuses(t *testing.T, what string, err error, code weir.Code, text string) {
	t.Helper()
	if !errors.Is(err, code) || !strings.Contains(err.Error(), text) {
		t.Errorf("%s: got %v, want %v with %q", what, err, code, text)
	}
}

// TestStatuses refuses a stack that CloudFormation would not update, with what to do.
func TestStatuses(t *testing.T) {
	t.Parallel()
	p := newProxy(t)
	a := p.account(t)
	deploy(t, a, small(), nil)
	for status, want := range map[string]string{
		"CREATE_IN_PROGRESS":                  "is being changed (CREATE_IN_PROGRESS): wait",
		"UPDATE_COMPLETE_CLEANUP_IN_PROGRESS": "is being changed",
		"DELETE_IN_PROGRESS":                  "is being changed",
		"REVIEW_IN_PROGRESS":                  "change set that was never executed",
		"ROLLBACK_COMPLETE":                   "delete it first, with weir stack delete limits --yes",
		"ROLLBACK_FAILED":                     "delete it first",
		"CREATE_FAILED":                       "delete it first",
		"DELETE_FAILED":                       "delete it first",
		"UPDATE_ROLLBACK_FAILED":              "aws cloudformation continue-update-rollback",
	} {
		p.answer("DescribeStacks", func(real string) string {
			return strings.Replace(real, ">CREATE_COMPLETE<", ">"+status+"<", 1)
		})
		_, err := a.Prepare(t.Context(), small(), nil)
		refuses(t, status, err, weir.Conflict, want)
		found, err := a.Check(t.Context(), describe(t, a, "limits"))
		if err != nil || len(found) == 0 || found[0].What != "stack" || found[0].Harmless {
			t.Errorf("%s: a check found %+v, %v, want the status", status, found, err)
		}
	}
	for _, status := range []string{"UPDATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE", "IMPORT_COMPLETE"} {
		p.answer("DescribeStacks", func(real string) string {
			return strings.Replace(real, ">CREATE_COMPLETE<", ">"+status+"<", 1)
		})
		if _, err := a.Prepare(t.Context(), small(), nil); err != nil {
			t.Errorf("%s: got %v, want a plan", status, err)
		}
	}
}

// event is an event of a stack as CloudFormation sends it.
func event(id, kind, status, reason string) string {
	return "<member><EventId>" + id + status + "</EventId><StackId>x</StackId><StackName>limits</StackName>" +
		"<LogicalResourceId>" + id + "</LogicalResourceId><ResourceType>" + kind + "</ResourceType>" +
		"<ResourceStatus>" + status + "</ResourceStatus><ResourceStatusReason>" + reason +
		"</ResourceStatusReason><Timestamp>2026-11-27T10:00:00Z</Timestamp></member>"
}

// TestFailed explains a deployment that fails by the events of the resources that failed first.
func TestFailed(t *testing.T) {
	t.Parallel()
	p := newProxy(t)
	a := p.account(t)
	looks := 0
	p.answer("DescribeStacks", func(real string) string {
		if !strings.Contains(real, "<StackStatus>") {
			return real // it does not exist yet
		}
		status := []string{"CREATE_IN_PROGRESS", "ROLLBACK_IN_PROGRESS", "ROLLBACK_COMPLETE"}[min(looks, 2)]
		looks++
		return strings.Replace(real, ">CREATE_COMPLETE<", ">"+status+"<", 1)
	})
	all := []string{ // the oldest first
		event("limits", "AWS::CloudFormation::Stack", "CREATE_IN_PROGRESS", "User Initiated"),
		event("RateLimitsTable", "AWS::DynamoDB::Table", "CREATE_FAILED", "limits already exists."),
		event("AuditArchiveBucket", "AWS::S3::Bucket", "CREATE_FAILED", "Resource creation cancelled"),
		event("limits", "AWS::CloudFormation::Stack", "ROLLBACK_IN_PROGRESS", "failed to create"),
		event("limits", "AWS::CloudFormation::Stack", "ROLLBACK_COMPLETE", ""),
	}
	p.answer("DescribeStackEvents", func(string) string {
		seen := slices.Clone(all[:min(2*looks, len(all))])
		slices.Reverse(seen)
		return "<DescribeStackEventsResponse><DescribeStackEventsResult><StackEvents>" +
			strings.Join(seen, "") + "</StackEvents></DescribeStackEventsResult></DescribeStackEventsResponse>"
	})
	plan, err := a.Prepare(t.Context(), small(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var seen []string
	err = plan.Execute(t.Context(), func(e *provision.Event) { seen = append(seen, e.ID+" "+e.Status) })
	failed, ok := errors.AsType[*provision.FailedError](err)
	if !ok || failed.Status != "ROLLBACK_COMPLETE" || len(failed.Events) != 1 ||
		failed.Events[0].ID != "RateLimitsTable" {
		t.Fatalf("got %+v, want the table's failure alone", err)
	}
	for _, want := range []string{"limits already exists", "weir stack delete limits --yes"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("got %q, want %q in it", err, want)
		}
	}
	if len(seen) != len(all) || seen[0] != "limits CREATE_IN_PROGRESS" {
		t.Errorf("got the events %q, want each of %d once, in order", seen, len(all))
	}
}

// events answers with events of a stack, of which the newest is the first.
func events(list ...string) func(string) string {
	seen := slices.Clone(list)
	slices.Reverse(seen)
	return func(string) string {
		return "<DescribeStackEventsResponse><DescribeStackEventsResult><StackEvents>" +
			strings.Join(seen, "") + "</StackEvents></DescribeStackEventsResult></DescribeStackEventsResponse>"
	}
}

// TestDeletionRefused deletes a stack that AWS does not delete, because another stack imports one of
// its outputs: the status is again what it was. Nothing that belongs to the stack is deleted then.
func TestDeletionRefused(t *testing.T) {
	t.Parallel()
	p := newProxy(t)
	a := p.account(t)
	of := small()
	of.NoAggregator, of.Protected = false, true
	deploy(t, a, of, deployOptions(t))
	was := describe(t, a, "limits")
	p.keep("DeleteStack", "<DeleteStackResponse></DeleteStackResponse>")
	calls := 0
	p.answer("DescribeStackEvents", func(string) string {
		calls++
		old := event("limits", "AWS::CloudFormation::Stack", "CREATE_COMPLETE", "")
		if calls == 1 {
			return events(old)("")
		}
		return events(old, event("limits", "AWS::CloudFormation::Stack", "DELETE_IN_PROGRESS", "User Initiated"),
			event("limits", "AWS::CloudFormation::Stack", "UPDATE_COMPLETE", "Export limits-TableArn is imported"))("")
	})
	o := &provision.DeleteOptions{Unprotect: true, Archive: true}
	_, err := a.Delete(t.Context(), "limits", o, nil)
	failed, ok := errors.AsType[*provision.FailedError](err)
	if !ok || failed.Reason != "Export limits-TableArn is imported" ||
		!strings.Contains(err.Error(), "it was not deleted") {
		t.Errorf("got %v, want the reason", err)
	}
	is := describe(t, a, "limits")
	if _, err := p.objects().HeadBucket(t.Context(),
		&s3.HeadBucketInput{Bucket: aws.String(is.Outputs["AuditArchiveBucketName"])}); err != nil {
		t.Errorf("the archive of the stack: got %v, want it as it was", err)
	}
	bucket, key := was.Parameters["CodeBucket"], was.Parameters["CodeKey"]
	if _, err := p.objects().HeadObject(t.Context(),
		&s3.HeadObjectInput{Bucket: &bucket, Key: &key}); err != nil {
		t.Errorf("the code of the stack: got %v, want it as it was", err)
	}
	_, err = a.Delete(t.Context(), "limits", nil, nil)
	refuses(t, "the table afterwards", err, weir.Conflict, "deletion protection")
}

// TestLeft reports what an update removed from a stack and AWS could not delete.
func TestLeft(t *testing.T) {
	t.Parallel()
	p := newProxy(t)
	a := p.account(t)
	of := small()
	of.NoPolicies = false
	deploy(t, a, of, nil)
	plan, err := a.Prepare(t.Context(), small(), nil)
	if err != nil {
		t.Fatal(err)
	}
	calls := 0
	p.answer("DescribeStackEvents", func(string) string {
		calls++
		if calls == 1 {
			return events()("")
		}
		return events(event("ReadOnlyPolicy", "AWS::IAM::ManagedPolicy", "DELETE_FAILED", "is attached"),
			event("limits", "AWS::CloudFormation::Stack", "UPDATE_COMPLETE", ""))("")
	})
	if err := plan.Execute(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if len(plan.Left) != 1 || plan.Left[0].ID != "ReadOnlyPolicy" || plan.Left[0].Reason != "is attached" {
		t.Errorf("got %+v, want the policy", plan.Left)
	}
}

// TestInterrupted ends the wait for a change, and says that AWS goes on.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	p := newProxy(t)
	a := p.account(t)
	ctx, cancel := context.WithCancel(t.Context())
	plan, err := a.Prepare(ctx, small(), nil)
	if err != nil {
		t.Fatal(err)
	}
	p.answer("DescribeStacks", func(real string) string {
		return strings.Replace(real, ">CREATE_COMPLETE<", ">CREATE_IN_PROGRESS<", 1)
	})
	err = plan.Execute(ctx, func(*provision.Event) { cancel() })
	refuses(t, "an interrupt", err, weir.Unavailable, "AWS goes on with it: weir stack status limits")
}

// update updates a stack with a template, as somebody may do by hand.
func update(t *testing.T, p *proxy, change func(body string) string) {
	t.Helper()
	stacks := p.stacks()
	out, err := stacks.GetTemplate(t.Context(), &cloudformation.GetTemplateInput{StackName: aws.String("limits")})
	if err != nil {
		t.Fatal(err)
	}
	body := change(*out.TemplateBody)
	if body == *out.TemplateBody {
		t.Fatal("the template was not changed")
	}
	_, err = stacks.UpdateStack(t.Context(), &cloudformation.UpdateStackInput{
		StackName: aws.String("limits"), TemplateBody: &body,
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestEdited refuses a stack whose template was changed by hand, unless it is to be overwritten.
func TestEdited(t *testing.T) {
	t.Parallel()
	p := newProxy(t)
	a := p.account(t)
	deploy(t, a, small(), nil)
	if info := describe(t, a, "limits"); info.Edited {
		t.Error("a stack that nobody changed is said to be edited")
	}
	update(t, p, func(body string) string { return strings.Replace(body, "a table of limits", "mine", 1) })
	info := describe(t, a, "limits")
	_, err := a.Prepare(t.Context(), small(), nil)
	refuses(t, "deploy", err, weir.Conflict, "was changed by hand")
	found, err := a.Check(t.Context(), info)
	if !info.Edited || err != nil || !slices.ContainsFunc(found, func(f provision.Finding) bool {
		return f.What == "template" && !f.Harmless
	}) {
		t.Errorf("got %+v and the findings %+v, %v, want that it was edited", info, found, err)
	}
	if _, err := a.Prepare(t.Context(), small(), &provision.DeployOptions{Overwrite: true}); err != nil {
		t.Errorf("overwrite: got %v, want a plan", err)
	}
}

// TestNewer refuses a stack that a newer weir has deployed.
func TestNewer(t *testing.T) {
	t.Parallel()
	p := newProxy(t)
	a := p.account(t)
	deploy(t, a, small(), nil)
	update(t, p, func(body string) string {
		return strings.Replace(body, `"revision":1`, `"revision":2,"version":"v9.9.9"`, 1)
	})
	_, err := a.Prepare(t.Context(), small(), nil)
	refuses(t, "deploy", err, weir.Unsupported, "was deployed by a newer weir (v9.9.9)")
	_, err = a.Upgraded(t.Context(), "limits", &provision.DeployOptions{})
	refuses(t, "upgrade", err, weir.Unsupported, "was deployed by a newer weir")
}

// TestKeepsData refuses an update that would lose the table, and forgets its plan.
func TestKeepsData(t *testing.T) {
	t.Parallel()
	p := newProxy(t)
	a := p.account(t)
	deploy(t, a, small(), nil)
	other := small()
	other.NoPolicies = false
	for _, c := range []struct{ action, replacement, want string }{
		{"Modify", "True", "would replace it"}, {"Remove", "", "would remove it"},
		{"Modify", "Conditional", "would perhaps replace it"}, {"Modify", "False", ""},
	} {
		p.answer("DescribeChangeSet", func(string) string {
			return "<DescribeChangeSetResponse><DescribeChangeSetResult><Status>CREATE_COMPLETE</Status>" +
				"<Changes><member><Type>Resource</Type><ResourceChange><Action>" + c.action + "</Action>" +
				"<LogicalResourceId>RateLimitsTable</LogicalResourceId>" +
				"<PhysicalResourceId>limits</PhysicalResourceId><ResourceType>AWS::DynamoDB::Table</ResourceType>" +
				"<Replacement>" + c.replacement + "</Replacement><Details><member><Target><Attribute>Properties" +
				"</Attribute><Name>KeySchema</Name></Target></member></Details></ResourceChange></member></Changes>" +
				"</DescribeChangeSetResult></DescribeChangeSetResponse>"
		})
		plan, err := a.Prepare(t.Context(), other, nil)
		made := p.made()
		discarded := len(made) > 0 && made[len(made)-1] == "DeleteChangeSet"
		if c.want == "" {
			if err != nil || discarded || !slices.Equal(plan.Changes[0].Parts, []string{"KeySchema"}) {
				t.Errorf("%+v: got %v, want a plan", c, err)
			}
			continue
		}
		refuses(t, c.action, err, weir.Conflict, c.want)
		if !discarded {
			t.Errorf("%+v: the change set is left", c)
		}
	}
}

// TestDrift finds resources that somebody changed or deleted.
func TestDrift(t *testing.T) {
	t.Parallel()
	p := newProxy(t)
	a := p.account(t)
	deploy(t, a, small(), nil)
	info := describe(t, a, "limits")
	looks := 0
	p.answer("DetectStackDrift", func(string) string {
		return "<DetectStackDriftResponse><DetectStackDriftResult><StackDriftDetectionId>1</StackDriftDetectionId>" +
			"</DetectStackDriftResult></DetectStackDriftResponse>"
	})
	p.answer("DescribeStackDriftDetectionStatus", func(string) string {
		looks++
		status := map[bool]string{true: "DETECTION_IN_PROGRESS", false: "DETECTION_COMPLETE"}[looks < 3]
		return "<DescribeStackDriftDetectionStatusResponse><DescribeStackDriftDetectionStatusResult>" +
			"<StackId>x</StackId><StackDriftDetectionId>1</StackDriftDetectionId><DetectionStatus>" + status +
			"</DetectionStatus><Timestamp>2026-11-27T10:00:00Z</Timestamp>" +
			"</DescribeStackDriftDetectionStatusResult></DescribeStackDriftDetectionStatusResponse>"
	})
	drifts := ""
	p.answer("DescribeStackResourceDrifts", func(string) string {
		return "<DescribeStackResourceDriftsResponse><DescribeStackResourceDriftsResult><StackResourceDrifts>" +
			drifts + "</StackResourceDrifts></DescribeStackResourceDriftsResult></DescribeStackResourceDriftsResponse>"
	})
	if found, err := a.Check(t.Context(), info); err != nil || len(found) != 0 || looks != 3 {
		t.Errorf("without drift: got %+v, %v after %d looks, want nothing", found, err, looks)
	}
	drifts = "<member><StackId>x</StackId><LogicalResourceId>RateLimitsTable</LogicalResourceId>" +
		"<ResourceType>AWS::DynamoDB::Table</ResourceType><StackResourceDriftStatus>MODIFIED" +
		"</StackResourceDriftStatus><PropertyDifferences><member><PropertyPath>/BillingMode</PropertyPath>" +
		"<ExpectedValue>PAY_PER_REQUEST</ExpectedValue><ActualValue>PROVISIONED</ActualValue>" +
		"<DifferenceType>NOT_EQUAL</DifferenceType></member></PropertyDifferences>" +
		"<Timestamp>2026-11-27T10:00:00Z</Timestamp></member>"
	found, err := a.Check(t.Context(), info)
	if err != nil || len(found) != 1 || found[0].What != "RateLimitsTable" || found[0].Harmless ||
		found[0].Problem != "was changed by hand: BillingMode is PROVISIONED, not PAY_PER_REQUEST" {
		t.Errorf("got %+v, %v, want the billing mode", found, err)
	}
}

// TestOthers leaves alone what is not weir's.
func TestOthers(t *testing.T) {
	t.Parallel()
	p := newProxy(t)
	a := p.account(t)
	text := string(templateJSON(t, small()))
	for _, c := range []struct{ tag, deploy, remove string }{
		{"", "is not weir's", "is not weir's"},
		{"zae-limiter", "--take-over", "zae-limiter delete --name other"},
	} {
		in := &cloudformation.CreateStackInput{StackName: aws.String("other"), TemplateBody: &text}
		if c.tag != "" {
			in.Tags = []cfn.Tag{{Key: aws.String("ManagedBy"), Value: &c.tag}}
		}
		if _, err := p.stacks().CreateStack(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		of := small()
		of.Stack = "other"
		_, err := a.Prepare(t.Context(), of, nil)
		refuses(t, "deploy", err, weir.Conflict, c.deploy)
		_, err = a.Delete(t.Context(), "other", nil, nil)
		refuses(t, "delete", err, weir.Conflict, c.remove)
		list, err := a.List(t.Context())
		if err != nil || len(list) != len(c.tag)/len("zae-limiter") {
			t.Errorf("got the list %+v, %v, want only what the tag names", list, err)
		}
		_, err = p.stacks().DeleteStack(t.Context(), &cloudformation.DeleteStackInput{StackName: aws.String("other")})
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := a.Describe(t.Context(), "limist")
	refuses(t, "a mistyped name", err, weir.NotFound, "weir stack list lists those that are there")
	_, err = a.Describe(t.Context(), "arn:aws:x")
	refuses(t, "no name", err, weir.Invalid, "must be a letter, and then letters, digits and hyphens")
	_, err = a.Delete(t.Context(), "limist", nil, nil)
	refuses(t, "delete a mistyped name", err, weir.NotFound, "does not exist")
}

// TestSameTable refuses options that would give a stack another table.
func TestSameTable(t *testing.T) {
	t.Parallel()
	p := newProxy(t)
	a := p.account(t)
	config := testkit.LocalConfig(p.endpoint)
	table := &dynamodb.Table{
		Name: "there", NoStream: true, Options: &dynamodb.Options{Config: &config, Endpoint: p.endpoint},
	}
	if _, err := table.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	of := small()
	of.Table = "there"
	_, err := a.Prepare(t.Context(), of, nil)
	refuses(t, "a new stack", err, weir.Conflict, "exists already: give --table there --existing")
	of.Existing, of.NoAggregator = true, false
	_, err = a.Prepare(t.Context(), of, deployOptions(t))
	refuses(t, "no stream", err, weir.Conflict, "turn it on with weir table stream on")
	of.Table = "nowhere"
	_, err = a.Prepare(t.Context(), of, deployOptions(t))
	refuses(t, "no table", err, weir.NotFound, "leave out --existing to create it")

	deploy(t, a, small(), nil)
	for what, change := range map[string]func(*template){
		"is not the stack's table, which is limits": func(t *template) { t.Table = "there" },
		"the kind of a table is for good":           func(t *template) { t.Lean = true },
		"the stack was deployed with false":         func(t *template) { t.Existing, t.Table, t.NoAlarms = true, "limits", false },
	} {
		of := small()
		change(of)
		_, err := a.Prepare(t.Context(), of, nil)
		refuses(t, what, err, weir.Conflict, what)
	}
}

// TestCode refuses files that cannot be the function's code.
func TestCode(t *testing.T) {
	t.Parallel()
	p := newProxy(t)
	a := p.account(t)
	for _, c := range []struct {
		data []byte
		want string
	}{
		{nil, "this build of weir has no code"},
		{[]byte("text"), "must be a zip file"},
		{[]byte{}, "must be a zip file"},
	} {
		if c.data == nil && provision.FunctionCode() != nil {
			continue
		}
		_, err := a.Prepare(t.Context(), &template{Stack: "limits"}, &provision.DeployOptions{Code: c.data})
		refuses(t, fmt.Sprintf("%q", c.data), err, weir.Invalid, c.want)
	}
	o := deployOptions(t)
	o.CodeBucket = "nowhere"
	plan, err := a.Prepare(t.Context(), &template{Stack: "limits"}, o)
	if err != nil {
		t.Fatal(err)
	}
	refuses(t, "no bucket", plan.Execute(t.Context(), nil), weir.NotFound, `code_bucket "nowhere"`)
	if _, err := a.Describe(t.Context(), "limits"); !errors.Is(err, weir.NotFound) {
		t.Errorf("without its code there is a stack: %v", err)
	}
}

// TestEmbedded checks that a build with the function's code would find the file that make release
// puts beside the package.
func TestEmbedded(t *testing.T) {
	t.Parallel()
	if provision.FunctionCode() == nil {
		t.Skip("this build has no code of the function")
	}
	want, err := os.ReadFile(filepath.Clean("weir-aggregator.zip"))
	if err != nil || string(want) != string(provision.FunctionCode()) {
		t.Errorf("got %d bytes, %v, want those of the file", len(provision.FunctionCode()), err)
	}
}
