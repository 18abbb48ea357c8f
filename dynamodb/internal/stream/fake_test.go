package stream_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/weir-limiter/weir/internal/schema"
)

// fakeStream is a stream with shards of its own. Every third read finds no records, and every fifth
// iterator has expired.
type fakeStream struct {
	mu     sync.Mutex
	shards []fakeShard
	calls  int
	// order are the sequence numbers of the records that were read, without repetitions.
	order []string
	read  map[string]bool
}

// fakeShard is a shard. It is closed if it has children.
type fakeShard struct {
	id, parent string
	closed     bool
	records    []types.Record
}

func (f *fakeStream) DescribeStream(
	_ context.Context, in *dynamodbstreams.DescribeStreamInput, _ ...func(*dynamodbstreams.Options),
) (*dynamodbstreams.DescribeStreamOutput, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	d := &types.StreamDescription{StreamStatus: types.StreamStatusEnabled}
	for i, s := range f.shards { // a page for each
		if in.ExclusiveStartShardId != nil {
			if *in.ExclusiveStartShardId == s.id {
				in.ExclusiveStartShardId = nil
			}
			continue
		}
		shard := types.Shard{ShardId: new(s.id)}
		if s.parent != "" {
			shard.ParentShardId = new(s.parent)
		}
		d.Shards = append(d.Shards, shard)
		if i < len(f.shards)-1 {
			d.LastEvaluatedShardId = new(s.id)
		}
		break
	}
	return &dynamodbstreams.DescribeStreamOutput{StreamDescription: d}, nil
}

func (f *fakeStream) shard(id string) *fakeShard {
	for i := range f.shards {
		if f.shards[i].id == id {
			return &f.shards[i]
		}
	}
	return nil
}

// sequenceOf returns the sequence number of a record; empty if it has none.
func sequenceOf(r *types.Record) string {
	if r.Dynamodb == nil || r.Dynamodb.SequenceNumber == nil {
		return ""
	}
	return *r.Dynamodb.SequenceNumber
}

func (f *fakeStream) GetShardIterator(
	_ context.Context, in *dynamodbstreams.GetShardIteratorInput, _ ...func(*dynamodbstreams.Options),
) (*dynamodbstreams.GetShardIteratorOutput, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s, at := f.shard(*in.ShardId), 0
	if in.SequenceNumber != nil {
		for i := range s.records {
			if sequenceOf(&s.records[i]) == *in.SequenceNumber {
				at = i + 1
			}
		}
	}
	return &dynamodbstreams.GetShardIteratorOutput{ShardIterator: new(fmt.Sprintf("%s@%d", s.id, at))}, nil
}

func (f *fakeStream) GetRecords(
	_ context.Context, in *dynamodbstreams.GetRecordsInput, _ ...func(*dynamodbstreams.Options),
) (*dynamodbstreams.GetRecordsOutput, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	id, number, _ := strings.Cut(*in.ShardIterator, "@")
	at, err := strconv.Atoi(number)
	if err != nil {
		return nil, err
	}
	f.calls++
	s := f.shard(id)
	out := &dynamodbstreams.GetRecordsOutput{}
	switch {
	case f.calls%5 == 0:
		return nil, &types.ExpiredIteratorException{}
	case f.calls%3 != 0 && at < len(s.records):
		r := s.records[at]
		out.Records = append(out.Records, r)
		if n := sequenceOf(&r); !f.read[n] {
			if f.read == nil {
				f.read = make(map[string]bool)
			}
			f.read[n], f.order = true, append(f.order, n)
		}
		at++
	}
	if !s.closed || at < len(s.records) {
		out.NextShardIterator = new(fmt.Sprintf("%s@%d", id, at))
	}
	return out, nil
}

// streamRecord returns the record of a write of a bucket item.
func streamRecord(n int, at time.Time, id schema.BucketID, before, after int64) types.Record {
	image := func(milli int64) map[string]types.AttributeValue {
		return map[string]types.AttributeValue{
			schema.AttrPK: &types.AttributeValueMemberS{Value: id.PK()},
			schema.AttrSK: &types.AttributeValueMemberS{Value: schema.SKState},
			schema.BucketAttribute("rpm", schema.FieldConsumed): &types.AttributeValueMemberN{
				Value: strconv.FormatInt(milli, 10),
			},
		}
	}
	r := types.Record{EventName: types.OperationTypeModify, Dynamodb: &types.StreamRecord{
		SequenceNumber: new(fmt.Sprintf("%021d", n)), ApproximateCreationDateTime: &at,
		Keys: map[string]types.AttributeValue{
			schema.AttrPK: image(0)[schema.AttrPK], schema.AttrSK: image(0)[schema.AttrSK],
		},
		NewImage: image(after), OldImage: image(before),
	}}
	if before == 0 {
		r.EventName, r.Dynamodb.OldImage = types.OperationTypeInsert, nil
	}
	return r
}
