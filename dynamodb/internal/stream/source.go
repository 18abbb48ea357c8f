package stream

import (
	"context"
	"errors"
	"fmt"
	"time"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/weir-limiter/weir/aggregator"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/internal/schema"
)

// Source has the calls to DynamoDB Streams. It is the SDK's client, except in tests.
type Source interface {
	DescribeStream(
		ctx context.Context, in *dynamodbstreams.DescribeStreamInput,
		options ...func(*dynamodbstreams.Options),
	) (*dynamodbstreams.DescribeStreamOutput, error)
	GetShardIterator(
		ctx context.Context, in *dynamodbstreams.GetShardIteratorInput,
		options ...func(*dynamodbstreams.Options),
	) (*dynamodbstreams.GetShardIteratorOutput, error)
	GetRecords(
		ctx context.Context, in *dynamodbstreams.GetRecordsInput,
		options ...func(*dynamodbstreams.Options),
	) (*dynamodbstreams.GetRecordsOutput, error)
}

// NewSource returns the SDK's client of the streams that belong to a client of tables: the same
// region, endpoint, credentials and HTTP client.
func NewSource(c *client.Client) Source {
	o := c.API.Options()
	return dynamodbstreams.New(dynamodbstreams.Options{
		Region: o.Region, BaseEndpoint: o.BaseEndpoint, Credentials: o.Credentials,
		HTTPClient: o.HTTPClient, Logger: o.Logger, AppID: o.AppID,
	})
}

// isTrimmed reports whether an error says that the stream no longer has the records to be read.
func isTrimmed(err error) bool {
	_, trimmed := errors.AsType[*types.TrimmedDataAccessException](err)
	return trimmed
}

// isExpired reports whether an error says that an iterator is older than 15 minutes.
func isExpired(err error) bool {
	_, expired := errors.AsType[*types.ExpiredIteratorException](err)
	return expired
}

// isGone reports whether an error says that the stream does not exist, or a shard of it.
func isGone(err error) bool {
	_, gone := errors.AsType[*types.ResourceNotFoundException](err)
	return gone
}

// errNoRecord is the error for a record without its parts.
var errNoRecord = errors.New("the record has no key, or no sequence number")

// convert returns a record of the SDK. move is applied to its time.
func convert(
	label string, r *types.Record, move func(time.Time) time.Time,
) (*aggregator.Record, error) {
	d := r.Dynamodb
	if d == nil {
		return nil, errNoRecord
	}
	out := &aggregator.Record{Sequence: client.Text(d.SequenceNumber), Kind: kindOf(r.EventName)}
	var err error
	if out.Position, err = aggregator.NewPosition(label, out.Sequence); err != nil {
		return nil, fmt.Errorf("%w: %w", errNoRecord, err)
	}
	if out.Key, err = schema.KeyOf(convertItem(d.Keys)); err != nil {
		return nil, fmt.Errorf("%w: %w", errNoRecord, err)
	}
	if d.ApproximateCreationDateTime != nil {
		out.At = move(*d.ApproximateCreationDateTime)
	}
	out.Old, out.New = convertItem(d.OldImage), convertItem(d.NewImage)
	if by := r.UserIdentity; by != nil {
		out.Expired = aggregator.IsExpiry(client.Text(by.Type), client.Text(by.PrincipalId))
	}
	return out, nil
}

func kindOf(name types.OperationType) aggregator.Kind {
	switch name {
	case types.OperationTypeInsert:
		return aggregator.Inserted
	case types.OperationTypeModify:
		return aggregator.Modified
	case types.OperationTypeRemove:
		return aggregator.Removed
	}
	return 0
}

// convertItem returns an item with the values of the client of tables; nil if there is none.
func convertItem(item map[string]types.AttributeValue) schema.Item {
	if len(item) == 0 {
		return nil
	}
	out := make(schema.Item, len(item))
	for name, value := range item {
		if v := convertValue(value); v != nil {
			out[name] = v
		}
	}
	return out
}

// convertValue returns a value of the client of tables; nil for an unknown type.
func convertValue(value types.AttributeValue) ddb.AttributeValue {
	switch v := value.(type) {
	case *types.AttributeValueMemberS:
		return &ddb.AttributeValueMemberS{Value: v.Value}
	case *types.AttributeValueMemberN:
		return &ddb.AttributeValueMemberN{Value: v.Value}
	case *types.AttributeValueMemberB:
		return &ddb.AttributeValueMemberB{Value: v.Value}
	case *types.AttributeValueMemberBOOL:
		return &ddb.AttributeValueMemberBOOL{Value: v.Value}
	case *types.AttributeValueMemberNULL:
		return &ddb.AttributeValueMemberNULL{Value: v.Value}
	case *types.AttributeValueMemberSS:
		return &ddb.AttributeValueMemberSS{Value: v.Value}
	case *types.AttributeValueMemberNS:
		return &ddb.AttributeValueMemberNS{Value: v.Value}
	case *types.AttributeValueMemberBS:
		return &ddb.AttributeValueMemberBS{Value: v.Value}
	case *types.AttributeValueMemberM:
		return &ddb.AttributeValueMemberM{Value: convertItem(v.Value)}
	case *types.AttributeValueMemberL:
		list := make([]ddb.AttributeValue, 0, len(v.Value))
		for _, element := range v.Value {
			list = append(list, convertValue(element))
		}
		return &ddb.AttributeValueMemberL{Value: list}
	}
	return nil
}
