package function_test

import (
	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

// lambdaRecord returns a record of the stream as Lambda sends it.
func lambdaRecord(arn string, r *types.Record) *events.DynamoDBEventRecord {
	e := &events.DynamoDBEventRecord{
		EventID: *r.EventID, EventName: string(r.EventName), EventVersion: "1.1", EventSource: "aws:dynamodb",
		AWSRegion: "eu-central-1", EventSourceArn: arn,
		Change: events.DynamoDBStreamRecord{
			Keys: lambdaItem(r.Dynamodb.Keys), NewImage: lambdaItem(r.Dynamodb.NewImage),
			OldImage: lambdaItem(r.Dynamodb.OldImage), SequenceNumber: *r.Dynamodb.SequenceNumber,
			StreamViewType: string(r.Dynamodb.StreamViewType),
		},
	}
	e.Change.ApproximateCreationDateTime.Time = *r.Dynamodb.ApproximateCreationDateTime
	return e
}

func lambdaItem(from map[string]types.AttributeValue) map[string]events.DynamoDBAttributeValue {
	to := make(map[string]events.DynamoDBAttributeValue, len(from))
	for name, v := range from {
		to[name] = lambdaValue(v)
	}
	return to
}

func lambdaValue(v types.AttributeValue) events.DynamoDBAttributeValue {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return events.NewStringAttribute(v.Value)
	case *types.AttributeValueMemberN:
		return events.NewNumberAttribute(v.Value)
	case *types.AttributeValueMemberB:
		return events.NewBinaryAttribute(v.Value)
	case *types.AttributeValueMemberBOOL:
		return events.NewBooleanAttribute(v.Value)
	case *types.AttributeValueMemberSS:
		return events.NewStringSetAttribute(v.Value)
	case *types.AttributeValueMemberNS:
		return events.NewNumberSetAttribute(v.Value)
	case *types.AttributeValueMemberM:
		return events.NewMapAttribute(lambdaItem(v.Value))
	case *types.AttributeValueMemberL:
		var list []events.DynamoDBAttributeValue
		for _, element := range v.Value {
			list = append(list, lambdaValue(element))
		}
		return events.NewListAttribute(list)
	}
	return events.NewNullAttribute()
}
