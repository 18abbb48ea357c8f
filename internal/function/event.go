package function

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-limiter/weir/aggregator"
	"github.com/weir-limiter/weir/internal/schema"
)

// streamEvent is an event of a stream with a tumbling window, or of a schedule. The records are
// decoded one by one, so that one that cannot be decoded leaves the others.
type streamEvent struct {
	Records []json.RawMessage `json:"Records"`
	ShardID string            `json:"shardId"`
	// State was handed on by an earlier invocation of the window, perhaps of other code.
	State json.RawMessage `json:"state"`
	// StreamARN is set if there are no records, which have it too.
	StreamARN string `json:"eventSourceARN"`

	DetailType string `json:"detail-type"`
}

// read decodes the records of an event.
func (f *Function) read(e *streamEvent) (*aggregator.Batch, *isolation, error) {
	b := &aggregator.Batch{Shard: e.ShardID}
	i := &isolation{
		shard: e.ShardID, raw: make(map[string]json.RawMessage), reasons: make(map[string]string),
	}
	if len(e.Records) == 0 { // the end of a window
		var err error
		b.Label, err = aggregator.StreamLabel(e.StreamARN)
		return b, i, err
	}
	for _, raw := range e.Records {
		record, label, err := decode(raw)
		if b.Label = cmp.Or(b.Label, label); record == nil {
			i.records = append(i.records, &isolated{sequenceOf(raw), []string{err.Error()}, raw})
			continue
		}
		if err != nil {
			i.reasons[record.Sequence] = err.Error()
		}
		i.raw[record.Sequence] = raw
		b.Records = append(b.Records, record)
	}
	if b.Label == "" {
		return nil, nil, fmt.Errorf("no record of the event is one of a DynamoDB stream: %s",
			i.records[0].reasons[0])
	}
	return b, i, nil
}

// decode decodes a record. If a bucket item's record can be decoded only in part, it returns that
// part too: without the item, the record marks its hour as incomplete.
func decode(raw json.RawMessage) (record *aggregator.Record, label string, err error) {
	var e events.DynamoDBEventRecord
	if err = json.Unmarshal(raw, &e); err != nil {
		record, label = decodePart(raw)
		return record, label, err
	}
	if label, err = aggregator.StreamLabel(e.EventSourceArn); err != nil {
		return nil, "", err
	}
	record = &aggregator.Record{
		Sequence: e.Change.SequenceNumber, At: e.Change.ApproximateCreationDateTime.Time,
		Old: item(e.Change.OldImage), New: item(e.Change.NewImage),
	}
	if record.Position, err = aggregator.NewPosition(label, record.Sequence); err != nil {
		return nil, label, err
	}
	if record.Key, err = schema.KeyOf(item(e.Change.Keys)); err != nil {
		return nil, label, err
	}
	switch events.DynamoDBOperationType(e.EventName) {
	case events.DynamoDBOperationTypeInsert:
		record.Kind = aggregator.Inserted
	case events.DynamoDBOperationTypeModify:
		record.Kind = aggregator.Modified
	case events.DynamoDBOperationTypeRemove:
		record.Kind = aggregator.Removed
	}
	if by := e.UserIdentity; by != nil {
		record.Expired = aggregator.IsExpiry(by.Type, by.PrincipalID)
	}
	return record, label, nil
}

// decodePart decodes the record of a bucket item without the images of the item; nil if it is not
// one, or if its key or position cannot be decoded either.
func decodePart(raw json.RawMessage) (record *aggregator.Record, label string) {
	var e struct {
		ARN    string `json:"eventSourceARN"`
		Change struct {
			Sequence string                                   `json:"SequenceNumber"`
			At       events.SecondsEpochTime                  `json:"ApproximateCreationDateTime"`
			Keys     map[string]events.DynamoDBAttributeValue `json:"Keys"`
		} `json:"dynamodb"`
	}
	if json.Unmarshal(raw, &e) != nil {
		return nil, ""
	}
	label, err := aggregator.StreamLabel(e.ARN)
	if err != nil {
		return nil, ""
	}
	record = &aggregator.Record{Sequence: e.Change.Sequence, At: e.Change.At.Time, Kind: aggregator.Modified}
	if record.Position, err = aggregator.NewPosition(label, record.Sequence); err != nil {
		return nil, label
	}
	if record.Key, err = schema.KeyOf(item(e.Change.Keys)); err != nil || record.Key.SK != schema.SKState {
		return nil, label
	}
	return record, label
}

// sequenceOf returns the sequence number of a record that cannot be decoded; empty if it has none.
func sequenceOf(raw json.RawMessage) string {
	var e struct {
		Change struct {
			Sequence string `json:"SequenceNumber"`
		} `json:"dynamodb"`
	}
	if json.Unmarshal(raw, &e) != nil {
		return ""
	}
	return e.Change.Sequence
}

// item returns an item in the form of the client of tables; nil if there is none.
func item(from map[string]events.DynamoDBAttributeValue) schema.Item {
	if len(from) == 0 {
		return nil
	}
	to := make(schema.Item, len(from))
	for name, v := range from {
		to[name] = value(v)
	}
	return to
}

// value returns a value in the form of the client of tables.
func value(v events.DynamoDBAttributeValue) types.AttributeValue {
	switch v.DataType() {
	case events.DataTypeString:
		return &types.AttributeValueMemberS{Value: v.String()}
	case events.DataTypeNumber:
		return &types.AttributeValueMemberN{Value: v.Number()}
	case events.DataTypeBinary:
		return &types.AttributeValueMemberB{Value: v.Binary()}
	case events.DataTypeBoolean:
		return &types.AttributeValueMemberBOOL{Value: v.Boolean()}
	case events.DataTypeNull:
		return &types.AttributeValueMemberNULL{Value: true}
	case events.DataTypeStringSet:
		return &types.AttributeValueMemberSS{Value: v.StringSet()}
	case events.DataTypeNumberSet:
		return &types.AttributeValueMemberNS{Value: v.NumberSet()}
	case events.DataTypeBinarySet:
		return &types.AttributeValueMemberBS{Value: v.BinarySet()}
	case events.DataTypeMap:
		m := make(schema.Item, len(v.Map()))
		for name, element := range v.Map() {
			m[name] = value(element)
		}
		return &types.AttributeValueMemberM{Value: m}
	case events.DataTypeList:
		list := make([]types.AttributeValue, 0, len(v.List()))
		for _, element := range v.List() {
			list = append(list, value(element))
		}
		return &types.AttributeValueMemberL{Value: list}
	}
	return nil
}
