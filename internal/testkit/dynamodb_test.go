package testkit

import (
	"strings"
	"testing"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

// itemKey is the key of the item that putItem writes.
func itemKey(key string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"PK": text(key), "SK": text("#STATE")}
}

// putItem writes an item; if first is set, on condition that it does not exist.
func putItem(table, key string, first bool) *ddb.PutItemInput {
	in := &ddb.PutItemInput{TableName: &table, Item: map[string]types.AttributeValue{
		"PK": text(key), "SK": text("#STATE"), "GSI2PK": text("res"), "GSI2SK": text(key),
		"b_rpm_tk": &types.AttributeValueMemberN{Value: "1000"},
	}}
	if first {
		condition := "attribute_not_exists(PK)"
		in.ConditionExpression = &condition
	}
	return in
}

func TestDynamoDBTable(t *testing.T) {
	t.Parallel()
	d := DynamoDB(t)
	if again := DynamoDB(t); again.Endpoint() != d.Endpoint() {
		t.Errorf("got %s and %s, want one server for one process", d.Endpoint(), again.Endpoint())
	}
	client := d.Client()
	var gone []string
	for _, c := range []struct {
		name       string
		o          *TableOptions
		projection types.ProjectionType
		stream     bool
	}{
		{"full", nil, types.ProjectionTypeAll, false},
		{"lean", &TableOptions{Lean: true}, types.ProjectionTypeKeysOnly, false},
		{"stream", &TableOptions{Streams: true}, types.ProjectionTypeAll, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			table := d.Table(t, c.o)
			gone = append(gone, table)
			if _, err := client.PutItem(t.Context(), putItem(table, "a", true)); err != nil {
				t.Fatal(err)
			}
			get := &ddb.GetItemInput{TableName: &table, Key: itemKey("a")}
			got, err := client.GetItem(t.Context(), get)
			if err != nil || len(got.Item) != 5 {
				t.Errorf("got %v, %v, want the item", got, err)
			}
			desc, err := client.DescribeTable(t.Context(), &ddb.DescribeTableInput{TableName: &table})
			if err != nil {
				t.Fatal(err)
			}
			if n := len(desc.Table.GlobalSecondaryIndexes); n != 4 {
				t.Errorf("got %d global indexes, want 4", n)
			}
			if n := len(desc.Table.LocalSecondaryIndexes); n != 5 {
				t.Errorf("got %d local indexes, want 5", n)
			}
			for _, index := range desc.Table.GlobalSecondaryIndexes {
				if *index.IndexName == "GSI2" && index.Projection.ProjectionType != c.projection {
					t.Errorf("GSI2: got %s, want %s", index.Projection.ProjectionType, c.projection)
				}
			}
			if got := desc.Table.StreamSpecification != nil; got != c.stream {
				t.Errorf("got a stream: %v, want %v", got, c.stream)
			}
		})
	}
	list, err := client.ListTables(t.Context(), &ddb.ListTablesInput{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range gone {
		if strings.Contains(strings.Join(list.TableNames, ","), name) {
			t.Errorf("%s is still there after its test", name)
		}
	}
}
