// Package calls records what weir's calls to DynamoDB need permission for, and compares it with the
// file from which package provision makes its policies.
//
// A [Watch] is middleware of the SDK's clients of a test. It fails a call that is not in the file, so
// every test of package dynamodb shows that the policies allow what weir does. [Compare] is for the
// end of a run of all tests: it reports rows that no test has needed, or writes the file again.
package calls

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Call is what DynamoDB authorises of a call: an action on one partition of a table or an index. A
// batch or a transaction is several of them.
type Call struct {
	// Action is the name of the permission, such as GetItem. A transaction has none of its own: each
	// part of it needs that of the same call alone.
	Action string
	// Resource is "table" or the name of an index.
	Resource string
	// Partition is the value of the partition key; empty for a call that has none.
	Partition string
	// Attributes are the names of the attributes that an update names, in order, with the keys.
	Attributes []string
}

// Of returns what DynamoDB authorises of the input of a call.
func Of(operation string, input any) ([]Call, error) {
	one := func(key map[string]types.AttributeValue) []Call {
		return []Call{{Action: operation, Resource: "table", Partition: partitionOf(key)}}
	}
	switch in := input.(type) {
	case *ddb.GetItemInput:
		return one(in.Key), nil
	case *ddb.PutItemInput:
		return one(in.Item), nil
	case *ddb.DeleteItemInput:
		return one(in.Key), nil
	case *ddb.UpdateItemInput:
		return []Call{updateCall(in.Key, in.ExpressionAttributeNames)}, nil
	case *ddb.QueryInput:
		c, err := queryCall(in)
		return []Call{c}, err
	case *ddb.BatchGetItemInput, *ddb.BatchWriteItemInput:
		return batchCalls(operation, in), nil
	case *ddb.TransactWriteItemsInput:
		return transactionCalls(in), nil
	case *ddb.ScanInput:
		resource := "table"
		if in.IndexName != nil {
			resource = *in.IndexName
		}
		return []Call{{Action: operation, Resource: resource}}, nil
	case *ddb.TransactGetItemsInput, *ddb.ExecuteStatementInput, *ddb.BatchExecuteStatementInput,
		*ddb.ExecuteTransactionInput:
		return nil, fmt.Errorf("calls: no rule for the permissions of %s", operation)
	}
	return []Call{{Action: operation, Resource: "table"}}, nil // a call about the table
}

func partitionOf(key map[string]types.AttributeValue) string {
	if v, ok := key["PK"].(*types.AttributeValueMemberS); ok {
		return v.Value
	}
	return ""
}

func updateCall(key map[string]types.AttributeValue, names map[string]string) Call {
	all := append(slices.Collect(maps.Values(names)), slices.Collect(maps.Keys(key))...)
	slices.Sort(all)
	return Call{
		Action: "UpdateItem", Resource: "table", Partition: partitionOf(key),
		Attributes: slices.Compact(all),
	}
}

// queryCall reads the partition from the key condition: #n = :v, alone or before AND.
func queryCall(in *ddb.QueryInput) (Call, error) {
	c := Call{Action: "Query", Resource: "table"}
	if in.IndexName != nil {
		c.Resource = *in.IndexName
	}
	if in.KeyConditionExpression != nil {
		first, _, _ := strings.Cut(*in.KeyConditionExpression, " AND ")
		_, value, _ := strings.Cut(first, " = ")
		if v, ok := in.ExpressionAttributeValues[value].(*types.AttributeValueMemberS); ok {
			c.Partition = v.Value
			return c, nil
		}
	}
	return c, fmt.Errorf("calls: a query whose partition cannot be read: %v", in.KeyConditionExpression)
}

func batchCalls(operation string, input any) (all []Call) {
	add := func(key map[string]types.AttributeValue) {
		all = append(all, Call{Action: operation, Resource: "table", Partition: partitionOf(key)})
	}
	switch in := input.(type) {
	case *ddb.BatchGetItemInput:
		for _, of := range in.RequestItems {
			for _, key := range of.Keys {
				add(key)
			}
		}
	case *ddb.BatchWriteItemInput:
		for _, of := range in.RequestItems {
			for _, w := range of {
				if w.PutRequest != nil {
					add(w.PutRequest.Item)
				} else {
					add(w.DeleteRequest.Key)
				}
			}
		}
	}
	return all
}

func transactionCalls(in *ddb.TransactWriteItemsInput) (all []Call) {
	for _, item := range in.TransactItems {
		c := Call{Resource: "table"}
		switch {
		case item.Put != nil:
			c.Action, c.Partition = "PutItem", partitionOf(item.Put.Item)
		case item.Update != nil:
			c = updateCall(item.Update.Key, item.Update.ExpressionAttributeNames)
		case item.Delete != nil:
			c.Action, c.Partition = "DeleteItem", partitionOf(item.Delete.Key)
		case item.ConditionCheck != nil:
			c.Action, c.Partition = "ConditionCheckItem", partitionOf(item.ConditionCheck.Key)
		}
		all = append(all, c)
	}
	return all
}
