package stream_test

import (
	"context"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/weir-limiter/weir/dynamodb/internal/stream"
	"github.com/weir-limiter/weir/internal/schema"
)

// trimmed is a stream that has lost all records before the marker of a phase. It refuses to read on
// after one of them.
type trimmed struct {
	source

	before int
	from   string // the sequence number of the marker; empty before it was seen
}

func (s *trimmed) GetShardIterator(
	ctx context.Context, in *dynamodbstreams.GetShardIteratorInput, o ...func(*dynamodbstreams.Options),
) (*dynamodbstreams.GetShardIteratorOutput, error) {
	if in.SequenceNumber != nil && (s.from == "" || pad(*in.SequenceNumber) < s.from) {
		return nil, &types.TrimmedDataAccessException{}
	}
	return s.source.GetShardIterator(ctx, in, o...)
}

func (s *trimmed) GetRecords(
	ctx context.Context, in *dynamodbstreams.GetRecordsInput, o ...func(*dynamodbstreams.Options),
) (*dynamodbstreams.GetRecordsOutput, error) {
	for {
		out, err := s.source.GetRecords(ctx, in, o...)
		if err != nil {
			return nil, err
		}
		read := len(out.Records)
		out.Records = slices.DeleteFunc(out.Records, func(r types.Record) bool {
			key := stream.ConvertItem(r.Dynamodb.Keys)
			if schema.StringAttribute(key, schema.AttrPK) == marker &&
				schema.StringAttribute(key, schema.AttrSK) == fmt.Sprintf("%04d", s.before) {
				s.from = pad(*r.Dynamodb.SequenceNumber)
			}
			return s.from == "" || pad(*r.Dynamodb.SequenceNumber) < s.from
		})
		if len(out.Records) > 0 || read == 0 || out.NextShardIterator == nil {
			return out, nil
		}
		in.ShardIterator = out.NextShardIterator
	}
}

func pad(sequence string) string { return fmt.Sprintf("%40s", sequence) }
