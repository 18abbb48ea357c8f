package provision

import (
	"encoding/json"
	"fmt"

	"github.com/weir-limiter/weir/internal/schema"
)

// The names of resources that others refer to.
const (
	tableID    = "RateLimitsTable"
	functionID = "AggregatorFunction"
	queueID    = "AggregatorDLQ"
	bucketID   = "AuditArchiveBucket"
	roleID     = "AggregatorRole"
	logID      = "AggregatorLogGroup"
	ruleID     = "AggregatorSchedule"
)

// tableName returns the name of the table, for [sub].
func (b *builder) tableName() string {
	if b.Table == "" {
		return "${AWS::StackName}"
	}
	return b.Table
}

// tableARN returns the ARN of the table, for [sub].
func (b *builder) tableARN() string {
	return "arn:${AWS::Partition}:dynamodb:${AWS::Region}:${AWS::AccountId}:table/" + b.tableName()
}

// streamARN returns the reference to the ARN of the table's stream.
func (b *builder) streamARN() any {
	if b.Existing {
		return ref(streamParameter)
	}
	return attribute(tableID, "StreamArn")
}

const streamParameter = "StreamArn"

func (b *builder) table() {
	name, arn := ref(tableID), attribute(tableID, "Arn")
	if b.Existing {
		name, arn = b.Table, sub(b.tableARN())
	} else {
		t := schema.Table{
			Lean: b.Lean, Stream: true, Protected: b.Protected, Recovery: b.Recovery,
		}
		properties := tableProperties(t)
		properties["TableName"] = sub(b.tableName())
		// The stack can be deleted, but no update of it may replace the table by an empty one.
		fate(b.add(tableID, "AWS::DynamoDB::Table", properties), "Delete", "Retain")
	}
	if b.Existing && !b.NoAggregator {
		b.text(streamParameter, "ARN of the stream of the table", "")
	}
	b.output("TableName", "TableName", "Name of the table", name)
	b.output("TableArn", "TableArn", "ARN of the table", arn)
	if !b.Existing || !b.NoAggregator {
		b.output("StreamArn", "StreamArn", "ARN of the stream of the table", b.streamARN())
	}
}

// tableProperties returns the definition of a table without its name. CloudFormation has the names
// of DynamoDB's calls for it, but has in one resource what several calls set.
func tableProperties(t schema.Table) object {
	text, err := json.Marshal(t.CreateInput())
	properties := object{}
	if err == nil {
		err = json.Unmarshal(text, &properties)
	}
	if err != nil {
		panic(fmt.Sprintf("the definition of a table is not JSON: %v", err)) // It has only strings.
	}
	dropNulls(properties)
	if stream, ok := properties["StreamSpecification"].(object); ok {
		delete(stream, "StreamEnabled")
	}
	properties["TimeToLiveSpecification"] = object{"AttributeName": schema.AttrTTL, "Enabled": true}
	properties["DeletionProtectionEnabled"] = t.Protected
	properties["PointInTimeRecoverySpecification"] = object{
		"PointInTimeRecoveryEnabled": t.Recovery,
	}
	return properties
}

// dropNulls removes the fields of a call that are not set, at each level.
func dropNulls(value any) {
	switch v := value.(type) {
	case object:
		for name, field := range v {
			if field == nil || field == "" {
				delete(v, name)
				continue
			}
			dropNulls(field)
		}
	case []any:
		for _, element := range v {
			dropNulls(element)
		}
	}
}
