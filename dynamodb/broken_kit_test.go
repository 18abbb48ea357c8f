package dynamodb

import (
	"context"
	"strings"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/middleware"

	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/internal/schema"
)

// wrong is one fault that is injected between weir and the table. Each part may be nil.
type wrong struct {
	name string
	// caught are prefixes of the names of the cases that catch the fault.
	caught []string
	// update changes an update of a bucket item.
	update func(u *bucketUpdate)
	// put changes a new item, or the call that creates it.
	put func(in *ddb.PutItemInput)
	// create is called before a new item is put.
	create func()
	// send replaces the sending of an update.
	send func(ctx context.Context, u *bucketUpdate, send func() error) error
	// store replaces the store.
	store func(s *Store) driver.Store
}

func (x *wrong) install(o *ddb.Options) {
	o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
		return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("test:wrong", x.handle), middleware.After)
	})
}

func (x *wrong) handle(
	ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler,
) (out middleware.InitializeOutput, metadata middleware.Metadata, err error) {
	if put, ok := in.Parameters.(*ddb.PutItemInput); ok {
		if _, malformed := schema.ParseBucketPK(client.TextOf(put.Item, schema.AttrPK)); malformed == nil {
			if x.create != nil {
				x.create()
			}
			if x.put != nil {
				x.put(put)
			}
		}
	}
	if t, ok := in.Parameters.(*ddb.TransactWriteItemsInput); ok {
		x.transaction(t)
	}
	u := takeApart(in.Parameters)
	if u != nil && x.update != nil {
		x.update(u)
		in.Parameters = u.input()
	}
	send := func() error {
		out, metadata, err = next.HandleInitialize(ctx, in)
		return err
	}
	if u == nil || x.send == nil {
		err = send()
		return out, metadata, err
	}
	err = x.send(ctx, u, send)
	return out, metadata, err
}

// transaction injects the fault into the parts of a transaction.
func (x *wrong) transaction(t *ddb.TransactWriteItemsInput) {
	for _, item := range t.TransactItems {
		if p := item.Put; p != nil && x.put != nil {
			in := &ddb.PutItemInput{
				Item: p.Item, ConditionExpression: p.ConditionExpression,
				ExpressionAttributeNames: p.ExpressionAttributeNames,
			}
			if _, malformed := schema.ParseBucketPK(client.TextOf(p.Item, schema.AttrPK)); malformed == nil {
				x.put(in)
			}
			p.Item, p.ConditionExpression = in.Item, in.ConditionExpression
			p.ExpressionAttributeNames = in.ExpressionAttributeNames
		}
		if p := item.Update; p != nil && x.update != nil {
			u := takeApart(&ddb.UpdateItemInput{
				Key: p.Key, UpdateExpression: p.UpdateExpression, ConditionExpression: p.ConditionExpression,
				ExpressionAttributeNames:  p.ExpressionAttributeNames,
				ExpressionAttributeValues: p.ExpressionAttributeValues,
			})
			if u == nil {
				continue
			}
			u.together = true
			x.update(u)
			in := u.input()
			p.Key, p.UpdateExpression, p.ConditionExpression = in.Key, in.UpdateExpression, in.ConditionExpression
			p.ExpressionAttributeNames = in.ExpressionAttributeNames
			p.ExpressionAttributeValues = in.ExpressionAttributeValues
		}
	}
}

// without returns the clauses that do not match.
func without(clauses []string, match func(clause string) bool) []string {
	var left []string
	for _, c := range clauses {
		if !match(c) {
			left = append(left, c)
		}
	}
	return left
}

// of matches the clauses about an attribute, or about a field of any limit except wcu.
func (u *bucketUpdate) of(attribute string) func(clause string) bool {
	return func(clause string) bool {
		a := u.attribute(clause)
		limit, field, ok := schema.ParseBucketAttribute(a)
		return a == attribute || ok && limit != schema.WritesLimit && field == attribute
	}
}

// unbounded replaces every BETWEEN with its one bound that is not removed.
func (u *bucketUpdate) unbounded(lower, upper bool) {
	for i, c := range u.requires {
		words := strings.Fields(c) // #n BETWEEN :low AND :high
		if len(words) != 5 || words[1] != "BETWEEN" {
			continue
		}
		switch {
		case lower:
			u.requires[i] = words[0] + " <= " + words[4]
		case upper:
			u.requires[i] = words[0] + " >= " + words[2]
		}
	}
}
