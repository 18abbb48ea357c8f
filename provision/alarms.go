package provision

// alarm is an alarm for a metric above a threshold.
type alarm struct {
	id, name, output  string
	says              string
	namespace, metric string
	statistic         string
	threshold         int
	dimension         string
	value             any
	// periods is for how many periods of five minutes in a row it must be above.
	periods int
}

const alarmPeriodSeconds = 300

// alarms adds the alarms: two for the table, and the others for the function.
func (b *builder) alarms() {
	if b.AlarmTopic != "" {
		b.text("AlarmSNSTopicArn", "ARN of the SNS topic that is told of alarms", b.AlarmTopic)
	}
	table := sub(b.tableName())
	list := []alarm{
		{
			"DynamoDBReadThrottleAlarm", "read-throttle", "ReadThrottleAlarmName",
			"DynamoDB throttles reads of the table",
			"AWS/DynamoDB", "ReadThrottleEvents", "Sum", 1, "TableName", table, 2,
		},
		{
			"DynamoDBWriteThrottleAlarm", "write-throttle", "WriteThrottleAlarmName",
			"DynamoDB throttles writes of the table",
			"AWS/DynamoDB", "WriteThrottleEvents", "Sum", 1, "TableName", table, 2,
		},
	}
	if !b.NoAggregator {
		list = append(list, functionAlarms(table)...)
	}
	for _, a := range list {
		properties := object{
			"AlarmName": sub("${AWS::StackName}-" + a.name), "AlarmDescription": a.says,
			"Namespace": a.namespace, "MetricName": a.metric, "Statistic": a.statistic,
			"Threshold": a.threshold, "ComparisonOperator": "GreaterThanThreshold",
			"Period": alarmPeriodSeconds, "EvaluationPeriods": a.periods,
			"TreatMissingData": "notBreaching",
			"Dimensions":       []any{object{"Name": a.dimension, "Value": a.value}},
		}
		if b.AlarmTopic != "" {
			properties["AlarmActions"] = []any{ref("AlarmSNSTopicArn")}
		}
		b.add(a.id, "AWS::CloudWatch::Alarm", properties)
		b.output(a.id+"Name", a.output, "Name of the alarm: "+a.says, ref(a.id))
	}
}

// functionAlarms returns the alarms for the function. Those of the namespace weir are for the
// metrics of docs/aggregator.md, which Lambda does not count.
func functionAlarms(table any) []alarm {
	function := ref(functionID)
	return []alarm{
		{
			"LambdaErrorRateAlarm", "aggregator-error-rate", "LambdaErrorRateAlarmName",
			"The function fails", "AWS/Lambda", "Errors", "Sum", 1, "FunctionName", function, 2,
		},
		{
			"StreamIteratorAgeAlarm", "stream-iterator-age", "StreamIteratorAgeAlarmName",
			"The function is more than five minutes behind the stream",
			"AWS/Lambda", "IteratorAge", "Maximum", 300_000, "FunctionName", function, 2,
		},
		{
			"AggregatorDLQAlarm", "aggregator-dlq-alarm", "DLQAlarmName",
			"Records of the stream were given up", "AWS/SQS", "ApproximateNumberOfMessagesVisible",
			"Maximum", 0, "QueueName", attribute(queueID, "QueueName"), 1,
		},
		{
			"AggregatorFailuresAlarm", "aggregator-failures", "FailuresAlarmName",
			"The function counts batches only in part",
			"weir", "Failures", "Sum", 0, "Table", table, 2,
		},
		{
			"IsolatedRecordsAlarm", "aggregator-isolated", "IsolatedRecordsAlarmName",
			"Records of the stream cannot be read",
			"weir", "IsolatedRecords", "Sum", 0, "Table", table, 1,
		},
	}
}
