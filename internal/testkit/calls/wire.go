package calls

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Proxy returns a handler that passes the calls of another program on to DynamoDB Local, and adds
// their rows, which have the given verb.
func (w *Watch) Proxy(endpoint, verb string) (http.Handler, error) {
	to, err := url.Parse(endpoint)
	if err != nil {
		return nil, err
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }}
	return http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var made []Call
		if err == nil {
			// A client may send the calls of other services here too.
			service, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
			if strings.HasPrefix(service, "DynamoDB_") {
				made, err = ofJSON(operation, body)
			}
		}
		if err == nil {
			err = w.add([]string{verb}, made)
		}
		if err != nil {
			w.t.Error(err)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		proxy.ServeHTTP(out, r)
	}), nil
}

// wireItem is an item or a key in DynamoDB's JSON. Only strings matter here.
type wireItem map[string]struct{ S *string }

func (i wireItem) item() map[string]types.AttributeValue {
	out := make(map[string]types.AttributeValue)
	for name, v := range i {
		if v.S != nil {
			out[name] = &types.AttributeValueMemberS{Value: *v.S}
		}
	}
	return out
}

// wireWrite is a write of one item.
type wireWrite struct {
	Key, Item                wireItem
	ExpressionAttributeNames map[string]string
}

// wireInput is the input of any call.
type wireInput struct {
	wireWrite

	IndexName                 *string
	KeyConditionExpression    *string
	ExpressionAttributeValues wireItem
	RequestItems              map[string]json.RawMessage
	TransactItems             []map[string]wireWrite
}

// ofJSON is [Of] for the body of a call.
func ofJSON(operation string, body []byte) ([]Call, error) {
	in := &wireInput{}
	//nolint:musttag // The fields have DynamoDB's names.
	if err := json.Unmarshal(body, in); err != nil {
		return nil, fmt.Errorf("calls: read %s: %w", operation, err)
	}
	key := in.Key.item()
	switch operation {
	case "GetItem":
		return Of(operation, &ddb.GetItemInput{Key: key})
	case "DeleteItem":
		return Of(operation, &ddb.DeleteItemInput{Key: key})
	case "PutItem":
		return Of(operation, &ddb.PutItemInput{Item: in.Item.item()})
	case "UpdateItem":
		return []Call{updateCall(key, in.ExpressionAttributeNames)}, nil
	case "Query":
		return Of(operation, &ddb.QueryInput{
			IndexName: in.IndexName, KeyConditionExpression: in.KeyConditionExpression,
			ExpressionAttributeValues: in.ExpressionAttributeValues.item(),
		})
	case "BatchGetItem", "BatchWriteItem":
		return in.batch(operation)
	case "TransactWriteItems":
		return in.transaction()
	case "DescribeTable":
		return Of(operation, nil)
	}
	return nil, fmt.Errorf("calls: no rule for %s", operation)
}

func (in *wireInput) batch(operation string) (all []Call, err error) {
	for _, of := range in.RequestItems {
		var gets struct{ Keys []wireItem }
		var writes []map[string]wireWrite
		if operation == "BatchGetItem" {
			err = json.Unmarshal(of, &gets) //nolint:musttag // As said.
		} else {
			err = json.Unmarshal(of, &writes) //nolint:musttag // As said.
		}
		if err != nil {
			return nil, fmt.Errorf("calls: read %s: %w", operation, err)
		}
		for _, write := range writes {
			for _, one := range write {
				gets.Keys = append(gets.Keys, one.Key, one.Item)
			}
		}
		for _, key := range gets.Keys {
			if key != nil {
				all = append(all,
					Call{Action: operation, Resource: "table", Partition: partitionOf(key.item())})
			}
		}
	}
	return all, nil
}

func (in *wireInput) transaction() ([]Call, error) {
	out := &ddb.TransactWriteItemsInput{}
	for _, item := range in.TransactItems {
		for kind, w := range item {
			var t types.TransactWriteItem
			switch kind {
			case "Put":
				t.Put = &types.Put{Item: w.Item.item()}
			case "Update":
				t.Update = &types.Update{
					Key: w.Key.item(), ExpressionAttributeNames: w.ExpressionAttributeNames,
				}
			case "Delete":
				t.Delete = &types.Delete{Key: w.Key.item()}
			case "ConditionCheck":
				t.ConditionCheck = &types.ConditionCheck{Key: w.Key.item()}
			}
			out.TransactItems = append(out.TransactItems, t)
		}
	}
	return Of("TransactWriteItems", out)
}
