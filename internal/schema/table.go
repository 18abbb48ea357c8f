package schema

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Table is what a table is like.
type Table struct {
	Name string
	// Lean keeps only keys in GSI2, which halves what a bucket write costs. The Python library cannot
	// read the buckets, the capacity and the usage of a resource on such a table.
	Lean bool
	// Stream keeps a stream of old and new items, which the aggregator reads.
	Stream bool
}

// index is an index's keys and what it keeps of an item.
type index struct {
	name, hash, sort string
	keeps            types.ProjectionType
}

// indexes returns the global and the local indexes. The local ones are reserved: no item has their
// keys, but they cannot be added later.
func (t Table) indexes() (global, local []index) {
	resources := types.ProjectionTypeAll
	if t.Lean {
		resources = types.ProjectionTypeKeysOnly
	}
	return []index{
			{GSI1, AttrGSI1PK, AttrGSI1SK, types.ProjectionTypeAll},
			{GSI2, AttrGSI2PK, AttrGSI2SK, resources},
			{GSI3, AttrGSI3PK, AttrGSI3SK, types.ProjectionTypeKeysOnly},
			{GSI4, AttrGSI4PK, AttrGSI4SK, types.ProjectionTypeKeysOnly},
		}, []index{
			{"LSI1", AttrPK, "LSI1SK", types.ProjectionTypeAll},
			{"LSI2", AttrPK, "LSI2SK", types.ProjectionTypeKeysOnly},
			{"LSI3", AttrPK, "LSI3SK", types.ProjectionTypeAll},
			{"LSI4", AttrPK, "LSI4SK", types.ProjectionTypeKeysOnly},
			{"LSI5", AttrPK, "LSI5SK", types.ProjectionTypeAll},
		}
}

// CreateInput returns the call that makes the table, paid by request. Its time to live, on
// [AttrTTL], has to be switched on by another call.
func (t Table) CreateInput() *dynamodb.CreateTableInput {
	global, local := t.indexes()
	in := &dynamodb.CreateTableInput{
		TableName:            aws.String(t.Name),
		BillingMode:          types.BillingModePayPerRequest,
		KeySchema:            keySchema(AttrPK, AttrSK),
		AttributeDefinitions: definitions(AttrPK, AttrSK),
	}
	for _, x := range global {
		in.AttributeDefinitions = append(in.AttributeDefinitions, definitions(x.hash, x.sort)...)
		in.GlobalSecondaryIndexes = append(in.GlobalSecondaryIndexes, types.GlobalSecondaryIndex{
			IndexName: aws.String(x.name), KeySchema: keySchema(x.hash, x.sort),
			Projection: &types.Projection{ProjectionType: x.keeps},
		})
	}
	for _, x := range local {
		in.AttributeDefinitions = append(in.AttributeDefinitions, definitions(x.sort)...)
		in.LocalSecondaryIndexes = append(in.LocalSecondaryIndexes, types.LocalSecondaryIndex{
			IndexName: aws.String(x.name), KeySchema: keySchema(x.hash, x.sort),
			Projection: &types.Projection{ProjectionType: x.keeps},
		})
	}
	if t.Stream {
		in.StreamSpecification = &types.StreamSpecification{
			StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewAndOldImages,
		}
	}
	return in
}

func keySchema(hash, sort string) []types.KeySchemaElement {
	return []types.KeySchemaElement{
		{AttributeName: aws.String(hash), KeyType: types.KeyTypeHash},
		{AttributeName: aws.String(sort), KeyType: types.KeyTypeRange},
	}
}

func definitions(names ...string) []types.AttributeDefinition {
	list := make([]types.AttributeDefinition, len(names))
	for i, name := range names {
		list[i] = types.AttributeDefinition{
			AttributeName: aws.String(name), AttributeType: types.ScalarAttributeTypeS,
		}
	}
	return list
}
