package testkit

import (
	"context"
	"crypto/rand"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

const (
	// tableTimeout bounds the calls that create and delete a test's table.
	tableTimeout = 30 * time.Second
	// localIndexes is the number of local secondary indexes of a table of the Python library.
	localIndexes = 5
)

// TableOptions are the options of a test's table.
type TableOptions struct {
	// Lean leaves the attributes of an item out of the index GSI2. Default: false.
	Lean bool
	// Streams turns the stream on. Each table with a stream slows the server down fourfold within
	// minutes, so only tests that read the stream set it. Default: false.
	Streams bool
}

// Table makes an empty table like one of the Python library, without its version record, and
// returns its name, which is unique. The table is deleted when the test ends.
func (d *DynamoDBLocal) Table(t testing.TB, o *TableOptions) string {
	t.Helper()
	if o == nil {
		o = &TableOptions{}
	}
	client := d.Client()
	name := "weir-" + rand.Text()[:16]
	ctx, cancel := context.WithTimeout(t.Context(), tableTimeout)
	defer cancel()
	if _, err := client.CreateTable(ctx, tableInput(name, o)); err != nil {
		t.Fatalf("create table %s: %v", name, err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), tableTimeout)
		defer cancel()
		if _, err := client.DeleteTable(ctx, &ddb.DeleteTableInput{TableName: &name}); err != nil {
			t.Errorf("delete table %s: %v", name, err)
		}
	})
	return name
}

func tableInput(name string, o *TableOptions) *ddb.CreateTableInput {
	in := &ddb.CreateTableInput{
		TableName: &name, BillingMode: types.BillingModePayPerRequest,
		KeySchema: keySchema("PK", "SK"),
	}
	attributes := []string{"PK", "SK"}
	for i, all := range []bool{true, !o.Lean, false, false} {
		index := fmt.Sprintf("GSI%d", i+1)
		attributes = append(attributes, index+"PK", index+"SK")
		in.GlobalSecondaryIndexes = append(in.GlobalSecondaryIndexes, types.GlobalSecondaryIndex{
			IndexName: &index, KeySchema: keySchema(index+"PK", index+"SK"),
			Projection: projection(all),
		})
	}
	for i := range localIndexes {
		index := fmt.Sprintf("LSI%d", i+1)
		attributes = append(attributes, index+"SK")
		in.LocalSecondaryIndexes = append(in.LocalSecondaryIndexes, types.LocalSecondaryIndex{
			IndexName: &index, KeySchema: keySchema("PK", index+"SK"),
			Projection: projection(i%2 == 0),
		})
	}
	for _, a := range attributes {
		in.AttributeDefinitions = append(in.AttributeDefinitions, types.AttributeDefinition{
			AttributeName: &a, AttributeType: types.ScalarAttributeTypeS,
		})
	}
	if o.Streams {
		in.StreamSpecification = &types.StreamSpecification{
			StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewAndOldImages,
		}
	}
	return in
}

func keySchema(hash, sort string) []types.KeySchemaElement {
	return []types.KeySchemaElement{
		{AttributeName: &hash, KeyType: types.KeyTypeHash},
		{AttributeName: &sort, KeyType: types.KeyTypeRange},
	}
}

func projection(all bool) *types.Projection {
	kind := types.ProjectionTypeKeysOnly
	if all {
		kind = types.ProjectionTypeAll
	}
	return &types.Projection{ProjectionType: kind}
}
