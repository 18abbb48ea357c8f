package main

import (
	"context"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"
)

func updateOf(pk, expression string) *ddb.UpdateItemInput {
	return &ddb.UpdateItemInput{
		Key:              map[string]types.AttributeValue{"PK": &types.AttributeValueMemberS{Value: pk}},
		UpdateExpression: aws.String(expression),
	}
}

func TestBucketEntity(t *testing.T) {
	t.Parallel()
	for pk, want := range map[string]string{
		"ns/BUCKET#org#llm#0":        "org",
		"ns/BUCKET#a:b@c#gpt/mini#1": "a:b@c",
		"ns/ENTITY#org":              "",
		"":                           "",
	} {
		if got := bucketEntity(updateOf(pk, "").Key); got != want {
			t.Errorf("%q: got %q, want %q", pk, got, want)
		}
	}
	if got := bucketEntity(nil); got != "" {
		t.Errorf("no key: got %q, want nothing", got)
	}
}

// TestRequestCounter counts reads, writes and those to the parent, and copies updates only while it is
// told to.
func TestRequestCounter(t *testing.T) {
	t.Parallel()
	c := &requestCounter{parent: "org"}
	ask := func(inputs ...any) {
		for _, in := range inputs {
			next := middleware.InitializeHandlerFunc(func(
				context.Context, middleware.InitializeInput,
			) (out middleware.InitializeOutput, m middleware.Metadata, err error) {
				return out, m, nil
			})
			if _, _, err := c.count(t.Context(), middleware.InitializeInput{Parameters: in}, next); err != nil {
				t.Fatal(err)
			}
		}
	}
	org, child := updateOf("ns/BUCKET#org#llm#0", "fast"), updateOf("ns/BUCKET#child#llm#0", "fast")
	ask(org, child, &ddb.PutItemInput{}, &ddb.GetItemInput{}, &ddb.BatchGetItemInput{})
	if got, want := c.snapshot(), (requestCounts{writes: 3, parent: 1, reads: 2}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	copies := &updateCopies{shapes: map[string]*updateShape{}}
	c.copies.Store(copies)
	rare := updateOf("ns/BUCKET#child#llm#0", "refill")
	other := updateOf("ns/BUCKET#other#llm#0", "refill")
	ask(org, child, child, rare, other)
	c.copies.Store(nil)
	ask(rare, rare, rare, rare)
	usual := copies.usual()
	for entity, want := range map[string]string{"org": "fast", "child": "fast", "other": "refill"} {
		if got := value(usual[entity].UpdateExpression); got != want {
			t.Errorf("%s: got %q, want its update with %q", entity, got, want)
		}
	}
	if len(usual) != 3 {
		t.Errorf("got %d updates, want one for each of 3 entities", len(usual))
	}
}
