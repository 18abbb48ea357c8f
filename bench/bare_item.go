package main

import (
	"context"
	"errors"
	"regexp"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// refilledAt is the attribute that a write which refills locks by: it requires the value that was
// read, and sets the time.
const refilledAt = "rf"

// equation is a name and a value that are set or required to be equal.
var equation = regexp.MustCompile(`(#n\d+) = (:v\d+)`)

// balanceOf is what the benchmark's limit has.
const balanceOf = "b_rpm_tk"

// span is a name and the values that it is required to lie between.
var span = regexp.MustCompile(`(#n\d+) BETWEEN (:v\d+) AND (:v\d+)`)

// bareItem is an item and the update that is made of it over and over. As with weir, one is under way
// at a time.
type bareItem struct {
	mu     sync.Mutex
	update *ddb.UpdateItemInput
	// sets and requires are where the update has the time of the refill; empty where it has none.
	sets, requires string
	refilled       string
	// exact are where the update requires the balance that was seen; empty where it does not.
	exact   []string
	balance string
}

// newBareItem takes the update over, and brings the item to where it succeeds however often it is made:
// the limit is half full, and so is what counts the writes, unless the update draws on that.
func newBareItem(
	ctx context.Context, client *ddb.Client, update *ddb.UpdateItemInput, capacity int64,
) (*bareItem, error) {
	b := &bareItem{
		update:   update,
		sets:     valueOf(update, value(update.UpdateExpression)),
		requires: valueOf(update, value(update.ConditionExpression)),
		exact:    exactBalance(update),
	}
	const fullWrites, plentyWrites = 1_000_000, 1_000_000_000_000 // in thousandths
	writes := int64(plentyWrites)
	if b.requires != "" {
		writes = fullWrites / 2
	}
	out, err := client.UpdateItem(ctx, &ddb.UpdateItemInput{
		TableName: update.TableName, Key: update.Key,
		UpdateExpression:         aws.String("SET #n0 = :v0, #n1 = :v1"),
		ExpressionAttributeNames: map[string]string{"#n0": balanceOf, "#n1": "b_wcu_tk"},
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":v0": numberValue(capacity * 1000 / 2), ":v1": numberValue(writes),
		},
		ReturnValues: types.ReturnValueAllNew,
	})
	if err != nil {
		return nil, err
	}
	refilled, ok := out.Attributes[refilledAt].(*types.AttributeValueMemberN)
	if !ok {
		return nil, errors.New("the item says no time of its refill")
	}
	b.refilled = refilled.Value
	return b, b.see(out.Attributes)
}

// see notes what the item has, for an update that requires it.
func (b *bareItem) see(item map[string]types.AttributeValue) error {
	if len(b.exact) == 0 {
		return nil
	}
	balance, ok := item[balanceOf].(*types.AttributeValueMemberN)
	if !ok {
		return errors.New("the item says no balance")
	}
	b.balance = balance.Value
	return nil
}

// write makes the update.
func (b *bareItem) write(ctx context.Context, client *ddb.Client) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := strconv.FormatInt(time.Now().UnixMilli(), 10)
	if b.requires != "" {
		b.update.ExpressionAttributeValues[b.requires] = &types.AttributeValueMemberN{Value: b.refilled}
	}
	if b.sets != "" {
		b.update.ExpressionAttributeValues[b.sets] = &types.AttributeValueMemberN{Value: now}
	}
	for _, name := range b.exact {
		b.update.ExpressionAttributeValues[name] = &types.AttributeValueMemberN{Value: b.balance}
	}
	out, err := client.UpdateItem(ctx, b.update)
	if err != nil {
		return err
	}
	if b.sets != "" {
		b.refilled = now
	}
	return b.see(out.Attributes)
}

// exactBalance are the values of an update's condition that the balance must be equal to.
func exactBalance(update *ddb.UpdateItemInput) []string {
	for _, m := range span.FindAllStringSubmatch(value(update.ConditionExpression), -1) {
		low, isLow := update.ExpressionAttributeValues[m[2]].(*types.AttributeValueMemberN)
		high, isHigh := update.ExpressionAttributeValues[m[3]].(*types.AttributeValueMemberN)
		if update.ExpressionAttributeNames[m[1]] == balanceOf && isLow && isHigh && low.Value == high.Value {
			return m[2:]
		}
	}
	return nil
}

// valueOf is the value that an expression of the update sets or requires of the time of the refill.
func valueOf(update *ddb.UpdateItemInput, expression string) string {
	for _, m := range equation.FindAllStringSubmatch(expression, -1) {
		if update.ExpressionAttributeNames[m[1]] == refilledAt {
			return m[2]
		}
	}
	return ""
}

func numberValue(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}
