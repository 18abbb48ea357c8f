package provision

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	cfn "github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/weir-limiter/weir"
)

// before is the state of a stack before weir took it over, for a hand-back.
type before struct {
	Template   string            `json:"template"`
	Parameters map[string]string `json:"parameters"`
	Tags       map[string]string `json:"tags"`
	// ID is the stack's, which another stack of the same name does not have.
	ID string `json:"stack_id"`
	// Function is the version of the library's function that the version record named.
	Function string `json:"function_version"`
}

func beforeKey(stack string) string { return stack + "/weir-before-take-over.json" }

// TakeOver makes the change of a plan for a stack of the Python library, or goes on with a take-over
// that was interrupted. For a stack that is weir's already it is [Deployment.Execute].
//
// Lambda allows one mapping of a stream to a function, so CloudFormation cannot replace the library's
// by weir's in one update. The steps are:
//
//  1. the library's mapping is turned off, and what Lambda has given it ends;
//  2. an update makes the stack weir's, without a mapping;
//  3. count makes weir count from where the library's function ended; see the TakeOver of
//     dynamodb.Table;
//  4. another update adds weir's mapping and schedule.
//
// function is the version of the library's function in the table's version record. Each step may be
// repeated. Errors are those of [Deployment.Execute] and of count.
func (p *Deployment) TakeOver(
	ctx context.Context, function string, count func(context.Context) error,
	progress func(*Event),
) error {
	info, err := p.account.Describe(ctx, p.Stack)
	if err != nil {
		return err
	}
	done := info.made != nil && !info.made.Paused
	if done || p.Template.NoAggregator {
		return p.Execute(ctx, progress)
	}
	if err := p.Discard(ctx); err != nil {
		return err
	}
	if err := p.account.send(ctx, p.code); err != nil {
		return err
	}
	if info.MadeBy == MadeByPython {
		if _, err := withoutMapping(info.body); err != nil { // it could not be handed back
			return err
		}
		if err := p.account.keepBefore(ctx, info, p.code, function); err != nil {
			return err
		}
	}
	if err := p.account.pause(ctx, info); err != nil {
		return err
	}
	if err := p.again(ctx, true, progress); err != nil {
		return err
	}
	if err := count(ctx); err != nil {
		return err
	}
	return p.again(ctx, false, progress)
}

// again prepares the change for the present stack, with or without the mapping and the schedule, and
// makes it. The code was sent before.
func (p *Deployment) again(ctx context.Context, paused bool, progress func(*Event)) error {
	t := *p.Template
	t.paused = paused
	step := &Deployment{
		Stack: p.Stack, Template: &t, Table: p.Table, account: p.account, named: p.named,
	}
	if _, err := step.write(); err != nil {
		return err
	}
	step.parameters = p.parameters
	if err := step.makeSet(ctx); err != nil {
		return err
	}
	err := step.Execute(ctx, progress)
	p.Left = append(p.Left, step.Left...)
	return err
}

// keepBefore stores what a stack is, unless it was stored by a take-over that was interrupted.
func (a *Account) keepBefore(ctx context.Context, i *Info, c *code, function string) error {
	text, err := json.Marshal(before{i.body, i.Parameters, i.Tags, i.ID, function})
	if err != nil {
		return fmt.Errorf("provision: %w", err)
	}
	_, err = a.objects.PutObject(ctx, &s3.PutObjectInput{
		Bucket: &c.bucket, Key: aws.String(beforeKey(i.Name)), Body: bytes.NewReader(text),
		ContentType: aws.String("application/json"), ExpectedBucketOwner: &c.account,
	})
	return a.bucketError(c.bucket, err)
}

// pauseEvery is the time between two looks at a mapping that ends, and pauseLooks how many there are.
// An invocation may take 15 minutes.
const (
	pauseEvery = 5 * time.Second
	pauseLooks = 240
)

// pause turns off the mapping of a stack's function, and waits until it is off.
func (a *Account) pause(ctx context.Context, i *Info) error {
	function := i.physical(functionID)
	if function == "" {
		return nil
	}
	for look := 0; ; look++ {
		m, err := a.mapping(ctx, function)
		if err != nil || m == nil {
			return err
		}
		switch aws.ToString(m.State) {
		case "Disabled":
			return nil
		case "Enabled", "Enabling", "Creating":
			_, err := a.functions.UpdateEventSourceMapping(ctx, &lambda.UpdateEventSourceMappingInput{
				UUID: m.UUID, Enabled: aws.Bool(false),
			})
			if err != nil {
				return a.classify(i.Name, err)
			}
		}
		if look == pauseLooks {
			return fault(weir.Unavailable, "stack", i.Name, "has an event source mapping that does not "+
				"end: it is "+aws.ToString(m.State)+"; run the command again")
		}
		if err := a.wait(ctx, pauseEvery); err != nil {
			return a.classify(i.Name, err)
		}
	}
}

// HandBack makes a stack that weir has taken over what it was before. It turns weir's mapping off,
// calls count, which makes weir count to the end and gets the version of the library's function, and
// updates the stack in two steps, as [Deployment.TakeOver] does. The library's function has no code
// then, until its own command upgrade brings it. The error has code [weir.Conflict] for a stack that
// was not taken over.
func (a *Account) HandBack(
	ctx context.Context, stack string, count func(ctx context.Context, function string) error,
	progress func(*Event),
) error {
	info, err := a.Describe(ctx, stack)
	if err != nil {
		return err
	}
	if err := info.settled(); err != nil {
		return err
	}
	if info.Edited {
		return info.editedError()
	}
	was, err := a.readBefore(ctx, info)
	if err != nil {
		return err
	}
	without, err := withoutMapping(was.Template)
	if err != nil {
		return err
	}
	if err := a.pause(ctx, info); err != nil {
		return err
	}
	if err := count(ctx, was.Function); err != nil {
		return err
	}
	for _, body := range []string{without, was.Template} {
		p := &Deployment{Stack: stack, account: a, body: body, named: true}
		for _, name := range sortedKeys(was.Parameters) {
			p.parameters = append(p.parameters,
				cfn.Parameter{ParameterKey: &name, ParameterValue: aws.String(was.Parameters[name])})
		}
		for _, key := range sortedKeys(was.Tags) {
			if !strings.HasPrefix(key, "aws:") {
				p.tags = append(p.tags, cfn.Tag{Key: &key, Value: aws.String(was.Tags[key])})
			}
		}
		if err := p.makeSet(ctx); err != nil {
			return err
		}
		if err := p.Execute(ctx, progress); err != nil {
			return err
		}
	}
	return a.deleteCode(ctx, info)
}

// readBefore returns what a stack was before weir took it over.
func (a *Account) readBefore(ctx context.Context, i *Info) (*before, error) {
	bucket, account, err := a.bucketOf(ctx, i)
	if err != nil {
		return nil, err
	}
	notTaken := fault(weir.Conflict, "stack", i.Name,
		"was not taken over from the Python library, or what it was is no longer stored")
	out, err := a.objects.GetObject(ctx, &s3.GetObjectInput{
		Bucket: &bucket, Key: aws.String(beforeKey(i.Name)), ExpectedBucketOwner: &account,
	})
	if isMissingBucket(err) || isMissingObject(err) {
		return nil, notTaken
	}
	if err != nil {
		return nil, a.bucketError(bucket, err)
	}
	text, err := io.ReadAll(out.Body)
	if err = errors.Join(err, out.Body.Close()); err != nil {
		return nil, a.bucketError(bucket, err)
	}
	was := &before{}
	if err := json.Unmarshal(text, was); err != nil || was.ID != i.ID {
		return nil, notTaken
	}
	return was, nil
}

// mappingBlock is the event source mapping in the library's template, which is YAML.
var mappingBlock = regexp.MustCompile(`(?m)^  AggregatorEventSourceMapping:\n(?:(?:    .*|)\n)*`)

// withoutMapping returns the library's template without the event source mapping.
func withoutMapping(body string) (string, error) {
	if len(mappingBlock.FindAllString(body, -1)) != 1 {
		return "", fault(weir.Unsupported, "template", "",
			"of the Python library has no event source mapping as in release 0.17")
	}
	return mappingBlock.ReplaceAllString(body, ""), nil
}
