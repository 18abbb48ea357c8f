//go:build cgo

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

// TestRequests counts reads, writes and those of the parent, and copies updates only while it is told to.
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

// TestCopyLeases shows that what is copied of weir are whole leases, whose shapes differ by the refill of
// the one bucket.
func TestCopyLeases(t *testing.T) {
	t.Parallel()
	copied, err := copyLeases(t.Context(), &spec{Entities: []string{"hot"}, All: 1})
	if err != nil {
		t.Fatal(err)
	}
	least, most := copied.shapes.least, copied.shapes.most
	if len(least.calls) != 2 || len(most.calls) != 2 || most.events-least.events > 1 {
		t.Errorf("got %d calls of %d events and %d of %d, want two calls, and one event more at most",
			len(least.calls), least.events, len(most.calls), most.events)
	}
	for _, c := range []struct {
		name   string
		events int
		fails  bool
		share  int64
	}{
		{"without a refill", least.events * 10, false, 0},
		{"half", least.events*10 + 5*(most.events-least.events), false, 500},
		{"more", most.events * 12, true, 0},
	} {
		seen := &reply{Ops: 10, Counts: map[string]int64{countCalls: 20, countEvents: int64(c.events)}}
		share, err := copied.shapes.share(seen)
		if (err != nil) != c.fails || err == nil && most.events > least.events && share != c.share {
			t.Errorf("%s: got %d, %v, want %d, fails %t", c.name, share, err, c.share, c.fails)
		}
	}
}
