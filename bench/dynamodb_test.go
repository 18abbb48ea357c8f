package main

import (
	"context"
	"maps"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"
)

// TestRequests checks the counts of reads, writes and parent writes, and that updates are copied on
// request.
func TestRequests(t *testing.T) {
	t.Parallel()
	r := &requests{parent: "org"}
	ask := func(inputs ...any) {
		for _, in := range inputs {
			next := middleware.InitializeHandlerFunc(func(
				context.Context, middleware.InitializeInput,
			) (out middleware.InitializeOutput, m middleware.Metadata, err error) {
				return out, m, nil
			})
			if _, _, err := r.count(t.Context(), middleware.InitializeInput{Parameters: in}, next); err != nil {
				t.Fatal(err)
			}
		}
	}
	update := func(entity, expression string) *ddb.UpdateItemInput {
		return &ddb.UpdateItemInput{
			Key: map[string]types.AttributeValue{
				"PK": &types.AttributeValueMemberS{Value: "ns/BUCKET#" + entity + "#llm#0"},
			},
			UpdateExpression: aws.String(expression),
		}
	}
	ask(update("org", "fast"), update("a:b@c", "fast"), &ddb.UpdateItemInput{}, &ddb.PutItemInput{},
		&ddb.GetItemInput{}, &ddb.BatchGetItemInput{})
	if got, want := r.counts(), (map[string]int64{countWrites: 4, countParents: 1, countReads: 2}); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	copies := &updateCopies{shapes: make(map[string]*updateShape)}
	r.copies.Store(copies)
	ask(update("org", "fast"), update("child", "fast"), update("child", "refill"), update("other", "refill"),
		update("child", "fast"))
	r.copies.Store(nil)
	ask(update("child", "refill"), update("child", "refill"), update("child", "refill"))
	usual := copies.usual()
	want := map[string]string{"org": "fast", "child": "fast", "other": "refill"}
	for entity, expression := range want {
		if in := usual[entity]; in == nil || aws.ToString(in.UpdateExpression) != expression {
			t.Errorf("%s: got %+v, want its update with %q", entity, in, expression)
		}
	}
	if len(usual) != len(want) {
		t.Errorf("got %d updates, want one for each of %d entities", len(usual), len(want))
	}
}
