package provision_test

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/testkit"
	"github.com/weir-limiter/weir/provision"
)

// proxy stands between an account and moto. It passes each call on, unless it has an answer for
// CloudFormation's action, because moto lacks the call or cannot fail.
type proxy struct {
	endpoint string

	mu      sync.Mutex
	kept    map[string]string                   // answers to actions that are not passed on
	answers map[string]func(real string) string // by action; real is moto's answer
	calls   []string
}

func newProxy(t *testing.T) *proxy {
	t.Helper()
	p := &proxy{answers: map[string]func(string) string{}, kept: map[string]string{}}
	moto := testkit.Moto(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		form, _ := url.ParseQuery(string(body))
		action := form.Get("Action")
		p.mu.Lock()
		own, keep := p.kept[action]
		p.mu.Unlock()
		if keep {
			_, _ = io.WriteString(w, own)
			return
		}
		on, err := http.NewRequestWithContext(r.Context(), r.Method, moto+r.URL.String(),
			bytes.NewReader(body))
		if err != nil {
			t.Error(err)
			return
		}
		on.Header, on.Host, on.ContentLength = r.Header, r.Host, int64(len(body))
		answer, err := http.DefaultClient.Do(on)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		defer answer.Body.Close() //nolint:errcheck // It was read.
		text, _ := io.ReadAll(answer.Body)
		status := answer.StatusCode
		p.mu.Lock()
		if action != "" {
			p.calls = append(p.calls, action)
		}
		if own := p.answers[action]; own != nil {
			text, status = []byte(own(string(text))), http.StatusOK
		}
		p.mu.Unlock()
		for name, values := range answer.Header {
			if name != "Content-Length" && name != "Connection" {
				w.Header()[name] = values
			}
		}
		if strings.HasPrefix(string(text), "<ErrorResponse") {
			status = http.StatusBadRequest
		}
		w.WriteHeader(status)
		_, _ = w.Write(text)
	}))
	t.Cleanup(server.Close)
	p.endpoint = server.URL
	return p
}

// keep sets the answer to an action that is not passed on.
func (p *proxy) keep(action, answer string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kept[action] = answer
}

// answer sets the answer to an action.
func (p *proxy) answer(action string, with func(real string) string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answers[action] = with
}

// made returns the actions of the calls so far that changed something, or may have.
func (p *proxy) made() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(p.calls), func(action string) bool {
		return strings.HasPrefix(action, "Describe") || strings.HasPrefix(action, "Get") ||
			strings.HasPrefix(action, "List")
	})
}

// account returns an account whose waits take no time.
func (p *proxy) account(t *testing.T) *provision.Account {
	t.Helper()
	config := testkit.LocalConfig(p.endpoint)
	a, err := provision.Open(t.Context(), &provision.Options{
		Config: &config, Endpoint: p.endpoint,
		Wait: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
	})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func (p *proxy) stacks() *cloudformation.Client {
	return cloudformation.NewFromConfig(testkit.LocalConfig(p.endpoint),
		func(o *cloudformation.Options) { o.BaseEndpoint = &p.endpoint })
}

func (p *proxy) objects() *s3.Client {
	return s3.NewFromConfig(testkit.LocalConfig(p.endpoint), func(o *s3.Options) {
		o.BaseEndpoint, o.UsePathStyle = &p.endpoint, true
	})
}

// code returns a zip file of a function, which differs by its note.
func code(t *testing.T, note string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	w, err := z.Create("bootstrap")
	if err == nil {
		_, err = w.Write([]byte("#!/bin/sh\n# " + note + "\n"))
	}
	if err = errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func deployOptions(t *testing.T) *provision.DeployOptions {
	t.Helper()
	return &provision.DeployOptions{Code: code(t, "first")}
}

// deploy deploys a stack, and returns its events.
func deploy(
	t *testing.T, a *provision.Account, of *template, o *provision.DeployOptions,
) []*provision.Event {
	t.Helper()
	p, err := a.Prepare(t.Context(), of, o)
	if err != nil {
		t.Fatal(err)
	}
	var events []*provision.Event
	if err := p.Execute(t.Context(), func(e *provision.Event) { events = append(events, e) }); err != nil {
		t.Fatal(err)
	}
	return events
}

func describe(t *testing.T, a *provision.Account, stack string) *provision.Info {
	t.Helper()
	info, err := a.Describe(t.Context(), stack)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

// TestDeploy deploys a stack, upgrades it and deletes it.
func TestDeploy(t *testing.T) {
	t.Parallel()
	p := newProxy(t)
	a := p.account(t)
	of := &template{Stack: "limits", Lean: true, Protected: true, Tags: map[string]string{"team": "search"}}
	plan, err := a.Prepare(t.Context(), of, deployOptions(t))
	if err != nil || !plan.Create || plan.Empty() || plan.Table != "limits" {
		t.Fatalf("got the plan %+v, %v, want a new stack", plan, err)
	}
	if made := p.made(); slices.ContainsFunc(made, func(c string) bool { return c != "AssumeRole" }) {
		t.Errorf("the plan made the calls %q, want none that changes something", made)
	}
	want := parse(t, of).Resources
	for i := range plan.Changes {
		c := &plan.Changes[i]
		if c.Action != provision.Add || want[c.ID].Type != c.Type {
			t.Errorf("got the change %+v, want %s added", c, want[c.ID].Type)
		}
	}
	if len(plan.Changes) != len(want) {
		t.Errorf("got %d changes, want one for each of %d resources", len(plan.Changes), len(want))
	}
	deploy(t, a, of, deployOptions(t))
	info := describe(t, a, "limits")
	if info.Status != "CREATE_COMPLETE" || info.MadeBy != provision.MadeByWeir || info.Edited ||
		info.Table() != "limits" || info.Tags["team"] != "search" || !info.Template.Lean {
		t.Errorf("got the stack %+v", info)
	}
	f, err := a.Function(t.Context(), info)
	if err != nil || f.Name != "limits-aggregator" || f.Mapping != "Enabled" {
		t.Errorf("got the function %+v, %v, want one with its stream", f, err)
	}
	list, err := a.List(t.Context())
	if err != nil || len(list) != 1 || list[0].Name != "limits" {
		t.Errorf("got the list %+v, %v, want the stack alone", list, err)
	}

	again, err := a.Prepare(t.Context(), of, deployOptions(t))
	if err != nil || !again.Empty() {
		t.Errorf("a second plan is %+v, %v, want none", again, err)
	}
	upgrade(t, p, a, info)

	refuseKept(t, p, a)
	describe(t, a, "limits")
	_, err = p.objects().PutObject(t.Context(), &s3.PutObjectInput{
		Bucket: aws.String(info.Outputs["AuditArchiveBucketName"]), Key: aws.String("audit/1"),
		Body: strings.NewReader("{}"),
	})
	if err != nil {
		t.Fatal(err)
	}
	o := &provision.DeleteOptions{Unprotect: true, Archive: true}
	done, err := a.Delete(t.Context(), "limits", o, nil)
	if err != nil || done.Table != "limits" || done.Archive != "" || done.Objects != 1 {
		t.Errorf("got %+v, %v, want all deleted", done, err)
	}
	if _, err := a.Describe(t.Context(), "limits"); !errors.Is(err, weir.NotFound) {
		t.Errorf("after the deletion: got %v, want that it does not exist", err)
	}
	left, err := p.objects().ListBuckets(t.Context(), &s3.ListBucketsInput{})
	if err != nil || len(left.Buckets) != 0 {
		t.Errorf("got the buckets %+v, %v, want none left", left, err)
	}
}

// refuseKept tries to delete a stack that is protected from it, and one whose table is.
func refuseKept(t *testing.T, p *proxy, a *provision.Account) {
	t.Helper()
	p.answer("DescribeStacks", func(real string) string {
		return strings.ReplaceAll(real, "<EnableTerminationProtection>false<",
			"<EnableTerminationProtection>true<")
	})
	_, err := a.Delete(t.Context(), "limits", &provision.DeleteOptions{Unprotect: true}, nil)
	refuses(t, "delete a kept stack", err, weir.Conflict, "has termination protection")
	p.answer("DescribeStacks", nil)
	_, err = a.Delete(t.Context(), "limits", nil, nil)
	refuses(t, "delete a protected table", err, weir.Conflict, "deletion protection")
}

// upgrade brings a stack to new code, with the options and parameters that it has.
func upgrade(t *testing.T, p *proxy, a *provision.Account, was *provision.Info) {
	t.Helper()
	o := &provision.DeployOptions{Code: code(t, "second")}
	of, err := a.Upgraded(t.Context(), was.Name, o)
	if err != nil || !of.Lean || !of.Protected || of.Tags["team"] != "search" {
		t.Fatalf("got the options %+v, %v, want those of the stack", of, err)
	}
	deploy(t, a, of, o)
	is := describe(t, a, was.Name)
	if is.Status != "UPDATE_COMPLETE" || is.Parameters["CodeKey"] == was.Parameters["CodeKey"] {
		t.Errorf("got the stack %+v, want other code", is)
	}
	for name, value := range was.Parameters {
		if name != "CodeKey" && is.Parameters[name] != value {
			t.Errorf("%s is %q after the upgrade, want %q", name, is.Parameters[name], value)
		}
	}
	bucket := was.Parameters["CodeBucket"]
	objects, err := p.objects().ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: &bucket})
	if err != nil || len(objects.Contents) != 2 {
		t.Errorf("got %+v, %v, want both versions of the code", objects, err)
	}
}

// TestParameters gives values to parameters, and refuses those that a deployment sets itself.
func TestParameters(t *testing.T) {
	t.Parallel()
	p := newProxy(t)
	a := p.account(t)
	o := deployOptions(t)
	of := &template{Stack: "limits"}
	for name, want := range map[string]string{
		"CodeKey": "is set by the deployment itself", "Colour": "is unknown: the template has",
	} {
		o.Parameters = map[string]string{name: "x"}
		if _, err := a.Prepare(t.Context(), of, o); !errors.Is(err, weir.Invalid) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", name, err, want)
		}
	}
	for value, want := range map[string]string{
		"abc": "must be a number", "1": "must be from 75 to 900", "": "must not be empty",
	} {
		o.Parameters = map[string]string{"LambdaTimeout": value}
		_, err := a.Prepare(t.Context(), of, o)
		refuses(t, value, err, weir.Invalid, want)
	}
	o.Parameters = map[string]string{"LogRetentionDays": "2"}
	_, err := a.Prepare(t.Context(), of, o)
	refuses(t, "2 days of logs", err, weir.Invalid, "must be one of [1 3 5 7")
	o.Parameters = map[string]string{"LambdaTimeout": "300"}
	deploy(t, a, of, o)
	if got := describe(t, a, "limits").Parameters["LambdaTimeout"]; got != "300" {
		t.Errorf("the timeout is %s, want 300", got)
	}
	kept := deployOptions(t)
	if _, err := a.Upgraded(t.Context(), "limits", kept); err != nil ||
		kept.Parameters["LambdaTimeout"] != "300" {
		t.Errorf("an upgrade has %v, %v, want the timeout 300", kept.Parameters, err)
	}
}
