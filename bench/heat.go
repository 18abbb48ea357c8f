package main

import (
	"context"
	"fmt"
	"strconv"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// heatTable is a table that no contestant uses.
const heatTable = "bench-heat"

// heat makes writes until the server has compiled its code. A write takes three times as long in the
// beginning, and only after some 20,000 is a new server as fast as it gets; who comes first would meet
// another server than who comes next.
func heat(ctx context.Context, f field, writes int) error {
	if writes == 0 {
		return nil
	}
	if err := f.table(ctx, heatTable); err != nil {
		return err
	}
	client := f.client()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	enough := after(int64(writes))
	var group sync.WaitGroup
	for i := range contestCallers {
		group.Go(func() {
			for ctx.Err() == nil && !enough() {
				if err := heatOnce(ctx, client, strconv.Itoa(i)); err != nil {
					cancel(fmt.Errorf("heat: %w", err))
				}
			}
		})
	}
	group.Wait()
	return context.Cause(ctx)
}

// heatOnce makes a write such as the contestants make, on an item that is in two of the indexes.
func heatOnce(ctx context.Context, client *ddb.Client, key string) error {
	table := heatTable
	_, err := client.UpdateItem(ctx, &ddb.UpdateItemInput{
		TableName: &table,
		Key: map[string]types.AttributeValue{
			"PK": &types.AttributeValueMemberS{Value: key}, "SK": &types.AttributeValueMemberS{Value: key},
		},
		UpdateExpression: aws.String("SET #n0 = :v0, #n1 = :v0, #n2 = :v0, #n3 = :v0 ADD #n4 :v1, #n5 :v2"),
		ConditionExpression: aws.String("(attribute_not_exists(#n4) OR #n4 <= :v1 AND #n5 >= :v2) AND " +
			"attribute_not_exists(#n6)"),
		ExpressionAttributeNames: map[string]string{
			"#n0": "GSI2PK", "#n1": "GSI2SK", "#n2": "GSI4PK", "#n3": "GSI4SK",
			"#n4": "b_heat_tk", "#n5": "b_heat_tc", "#n6": "disabled",
		},
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":v0": &types.AttributeValueMemberS{Value: key},
			":v1": &types.AttributeValueMemberN{Value: "-1"},
			":v2": &types.AttributeValueMemberN{Value: "1"},
		},
		ReturnValues: types.ReturnValueAllNew,
	})
	return err
}
