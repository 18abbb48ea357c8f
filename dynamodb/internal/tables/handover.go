package tables

import (
	"context"
	"slices"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/internal/schema"
)

// maxUnjudged is the largest number of attributes that are listed.
const maxUnjudged = 1000

// Unjudged reads the whole table, and returns the attributes of bucket and configuration items by
// which weir does not judge; see the store's Table.Unjudged.
func (c *Table) Unjudged(ctx context.Context) ([]string, error) {
	var found []string
	in := &ddb.ScanInput{
		TableName: &c.TableName, FilterExpression: new("#n0 = :v0 OR begins_with(#n0, :v1)"),
		ExpressionAttributeNames: map[string]string{"#n0": schema.AttrSK},
		ExpressionAttributeValues: schema.Item{
			":v0": schema.String(schema.SKState), ":v1": schema.String(schema.SKConfig),
		},
	}
	for {
		out, err := c.API.Scan(ctx, in)
		if err != nil {
			return nil, client.Classify(err)
		}
		for _, item := range out.Items {
			found = append(found, unjudgedIn(item)...)
			if len(found) >= maxUnjudged {
				return found[:maxUnjudged], nil
			}
		}
		if len(out.LastEvaluatedKey) == 0 {
			slices.Sort(found)
			return found, nil
		}
		in.ExclusiveStartKey = out.LastEvaluatedKey
	}
}

// unjudgedIn returns what an item has. An item that cannot be read stands for itself.
func unjudgedIn(item schema.Item) []string {
	at := client.TextOf(item, schema.AttrPK) + " " + client.TextOf(item, schema.AttrSK)
	var attributes []string
	if client.TextOf(item, schema.AttrSK) == schema.SKState {
		b, err := schema.ParseBucket(item)
		if err != nil {
			return []string{at + " " + err.Error()}
		}
		attributes = slices.Clone(b.Unjudged)
		for i := range b.Limits {
			for _, field := range b.Limits[i].Unjudged {
				attributes = append(attributes, schema.BucketAttribute(b.Limits[i].Name, field))
			}
		}
	} else {
		config, err := schema.ParseConfig(item)
		if err != nil {
			return []string{at + " " + err.Error()}
		}
		attributes = slices.Clone(config.Unjudged)
		for i := range config.Limits {
			for _, field := range config.Limits[i].Unjudged {
				attributes = append(attributes, schema.LimitAttribute(config.Limits[i].Name, field))
			}
		}
	}
	for i, attribute := range attributes {
		attributes[i] = at + " " + attribute
	}
	return attributes
}

// SetFunction names the version of the Python library's function that counts usage in the version
// record; empty if none does.
func (c *Table) SetFunction(ctx context.Context, version string) error {
	e := &client.Expression{}
	e.RequireExists(schema.AttrPK)
	e.Set = append(e.Set,
		e.Name(schema.AttrLambdaVersion)+" = "+e.Value(schema.StringOrNull(version)))
	e.SetText(schema.AttrUpdatedAt, schema.Timestamp(c.Now()))
	e.SetText(schema.AttrUpdatedBy, updatedBy)
	_, err := c.API.UpdateItem(ctx, &ddb.UpdateItemInput{
		TableName: &c.TableName, Key: schema.VersionKey().Item(), UpdateExpression: e.Update(),
		ConditionExpression:      e.Condition(),
		ExpressionAttributeNames: e.Names, ExpressionAttributeValues: e.Values,
	})
	return client.Classify(err)
}

// EndCounting deletes the record by which weir's aggregators count the table. The usage that
// they have counted stays.
func (c *Table) EndCounting(ctx context.Context) error {
	_, err := c.API.DeleteItem(ctx, &ddb.DeleteItemInput{
		TableName: &c.TableName, Key: schema.AggregatorKey().Item(),
	})
	return client.Classify(err)
}
