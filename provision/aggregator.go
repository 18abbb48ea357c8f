package provision

import (
	"fmt"
	"strconv"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/schema"
)

// StreamFilter returns the patterns by which Lambda selects the records of the table's stream that
// the function reads: those of bucket items, and those of audit events that have expired.
func StreamFilter() []string {
	const pattern = `{"dynamodb": {"Keys": {"SK": {"S": [%q]}}}}`
	const expired = `{"userIdentity": {"type": ["Service"], ` +
		`"principalId": ["dynamodb.amazonaws.com"]}, "dynamodb": {"Keys": {"SK": {"S": [{"prefix": %q}]}}}}`
	return []string{
		fmt.Sprintf(pattern, schema.SKState), fmt.Sprintf(expired, schema.SKAuditPrefix),
	}
}

const (
	defaultRetentionDays = 90
	defaultLogDays       = 30
	defaultArchiveDays   = 90
	maxDays              = weir.MaxRetentionDays

	functionMemoryMiB = 256
	functionSeconds   = 120
	// leastFunctionSeconds is more than the minute that the function waits at the end of a month.
	leastFunctionSeconds = 75
	deadLetterSeconds    = 14 * 24 * 60 * 60
)

// functionName returns the name of the function, for [sub].
const functionName = "${AWS::StackName}-aggregator"

// aggregator adds the function, what invokes it, its log, and its queue of dead letters.
func (b *builder) aggregator() {
	const days = "LogRetentionDays"
	b.parameters[days] = object{
		"Type": "Number", "Description": "Days for which the function's log is kept",
		"Default": b.LogDays, "AllowedValues": logDays(),
	}
	fate(b.add(logID, "AWS::Logs::LogGroup", object{
		"LogGroupName": sub("/aws/lambda/" + functionName), "RetentionInDays": ref(days),
	}), "Delete", "Delete")
	fate(b.add(queueID, "AWS::SQS::Queue", object{
		"QueueName": sub(functionName + "-dlq"), "MessageRetentionPeriod": deadLetterSeconds,
		"SqsManagedSseEnabled": true,
	}), "Delete", "Delete")
	b.function()
	if !b.paused {
		b.mapping()
		b.schedule()
	}
	b.output("AggregatorFunctionArn", "AggregatorArn", "ARN of the function",
		attribute(functionID, "Arn"))
	b.output("AggregatorFunctionName", "AggregatorName", "Name of the function", ref(functionID))
	b.output("AggregatorDLQUrl", "DLQUrl", "URL of the queue of dead letters", ref(queueID))
	b.output("AggregatorDLQArn", "DLQArn", "ARN of the queue of dead letters",
		attribute(queueID, "Arn"))
}

// function adds the function. Its environment is that of internal/function.
func (b *builder) function() {
	role := attribute(roleID, "Arn")
	if b.FunctionRole != "" {
		role = b.text("AggregatorRoleArn", "ARN of the role of the function", b.FunctionRole)
	} else {
		b.role()
	}
	variables := object{
		"WEIR_STORE": sub("dynamodb://" + b.tableName()),
		"WEIR_RETENTION_DAYS": b.number("SnapshotRetentionDays", "Days for which usage is kept",
			b.RetentionDays, 1, maxDays),
		"WEIR_REFILL": strconv.FormatBool(b.Refill),
	}
	if !b.NoArchive {
		variables["WEIR_ARCHIVE"] = sub("s3://${" + bucketID + "}")
	}
	tracing := "PassThrough"
	if b.Tracing {
		tracing = "Active"
	}
	f := b.add(functionID, "AWS::Lambda::Function", object{
		"FunctionName":  sub(functionName),
		"Description":   "Counts the usage of a table of weir",
		"Runtime":       "provided.al2023",
		"Architectures": []string{"arm64"},
		"Handler":       "bootstrap",
		"MemorySize": b.number("LambdaMemorySize", "Memory of the function, in MiB",
			functionMemoryMiB, 128, 3008),
		"Timeout": b.number("LambdaTimeout", "Time of the function, in seconds",
			functionSeconds, leastFunctionSeconds, 900),
		"Role":          role,
		"TracingConfig": object{"Mode": tracing},
		"Environment":   object{"Variables": variables},
		"Code": object{
			"S3Bucket": b.text(codeBucketParameter, "Bucket with the function's zip file", ""),
			"S3Key":    b.text(codeKeyParameter, "Key of the zip file; a new one for each version", ""),
		},
	})
	f["DependsOn"] = []string{logID}
}

// mapping adds what sends the records of the stream to the function; docs/aggregator.md has the
// reasons for its settings.
func (b *builder) mapping() {
	var filters []any
	for _, pattern := range StreamFilter() {
		filters = append(filters, object{"Pattern": pattern})
	}
	b.add("AggregatorEventSourceMapping", "AWS::Lambda::EventSourceMapping", object{
		"EventSourceArn": b.streamARN(), "FunctionName": ref(functionID),
		"StartingPosition": "TRIM_HORIZON", "BatchSize": 1000, "MaximumBatchingWindowInSeconds": 5,
		"TumblingWindowInSeconds": 60, "FunctionResponseTypes": []string{"ReportBatchItemFailures"},
		"BisectBatchOnFunctionError": true, "FilterCriteria": object{"Filters": filters},
		"DestinationConfig": object{"OnFailure": object{"Destination": attribute(queueID, "Arn")}},
	})
}

func (b *builder) schedule() {
	b.add(ruleID, "AWS::Events::Rule", object{
		"Description":        "Once an hour, for what no batch of the stream can do",
		"ScheduleExpression": "rate(1 hour)",
		"Targets":            []any{object{"Arn": attribute(functionID, "Arn"), "Id": "aggregator"}},
	})
	b.addUntagged("AggregatorSchedulePermission", "AWS::Lambda::Permission", object{
		"Action": "lambda:InvokeFunction", "FunctionName": ref(functionID),
		"Principal": "events.amazonaws.com", "SourceArn": attribute(ruleID, "Arn"),
	})
}

// archive adds the bucket for expired audit events. It outlives the stack: it has what the table no
// longer has, and CloudFormation cannot delete a bucket that is not empty.
func (b *builder) archive() {
	if b.NoArchive {
		return
	}
	days := b.number("AuditArchiveGlacierTransitionDays",
		"Days after which archived events move to S3 Glacier Instant Retrieval",
		b.ArchiveDays, 1, maxDays)
	fate(b.add(bucketID, "AWS::S3::Bucket", object{
		"BucketEncryption": object{"ServerSideEncryptionConfiguration": []any{object{
			"ServerSideEncryptionByDefault": object{"SSEAlgorithm": "AES256"},
		}}},
		"PublicAccessBlockConfiguration": object{
			"BlockPublicAcls": true, "BlockPublicPolicy": true,
			"IgnorePublicAcls": true, "RestrictPublicBuckets": true,
		},
		"LifecycleConfiguration": object{"Rules": []any{object{
			"Id": "TransitionToGlacier", "Status": "Enabled",
			"Transitions": []any{object{"TransitionInDays": days, "StorageClass": "GLACIER_IR"}},
		}}},
	}), "Retain", "Retain")
	b.output("AuditArchiveBucketName", "AuditArchiveBucketName", "Name of the archive's bucket",
		ref(bucketID))
	b.output("AuditArchiveBucketArn", "AuditArchiveBucketArn", "ARN of the archive's bucket",
		attribute(bucketID, "Arn"))
}
