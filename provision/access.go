package provision

import (
	"slices"
	"strings"
)

// statement returns a statement of a policy that allows actions.
func statement(resource any, actions ...string) object {
	return object{"Effect": "Allow", "Action": actions, "Resource": resource}
}

func policy(statements ...any) object {
	return object{"Version": "2012-10-17", "Statement": statements}
}

// onTable returns actions of DynamoDB on the table.
func (b *builder) onTable(names ...string) object {
	return statement(sub(b.tableARN()), dynamodbActions(names)...)
}

// onIndexes returns the statement that allows queries of an index; * are all.
func (b *builder) onIndexes(index string) object {
	return statement(sub(b.tableARN()+"/index/"+index), "dynamodb:Query")
}

func dynamodbActions(names []string) []string {
	actions := make([]string, len(names))
	for i, name := range names {
		actions[i] = "dynamodb:" + name
	}
	return actions
}

// role adds the role of the function.
func (b *builder) role() {
	group := "arn:${AWS::Partition}:logs:${AWS::Region}:${AWS::AccountId}:log-group:/aws/lambda/" +
		functionName + ":*"
	statements := []any{
		b.onTable("DescribeTable", "GetItem", "BatchGetItem", "Query", "PutItem", "UpdateItem"),
		b.onIndexes("GSI2"),
		statement(sub(b.tableARN()+"/stream/*"), dynamodbActions([]string{
			"DescribeStream", "GetRecords", "GetShardIterator", "ListStreams",
		})...),
		statement(sub(group), "logs:CreateLogStream", "logs:PutLogEvents"),
		statement(attribute(queueID, "Arn"), "sqs:SendMessage"),
	}
	if !b.NoArchive {
		within := "${" + bucketID + ".Arn}/"
		objects := []any{sub(within + "audit/*"), sub(within + "isolated/*")}
		statements = append(statements, statement(objects, "s3:PutObject"))
	}
	if b.Tracing { // The actions of X-Ray are on no resource.
		statements = append(statements,
			statement("*", "xray:PutTraceSegments", "xray:PutTelemetryRecords"))
	}
	properties := object{
		"RoleName": sub(inFormat(b.RoleNameFormat, "aggr")),
		"AssumeRolePolicyDocument": policy(object{
			"Effect": "Allow", "Action": "sts:AssumeRole",
			"Principal": object{"Service": "lambda.amazonaws.com"},
		}),
		"Policies": []any{object{
			"PolicyName": "aggregator", "PolicyDocument": policy(statements...),
		}},
	}
	if b.PermissionBoundary != "" {
		properties["PermissionsBoundary"] = b.text("PermissionBoundary",
			"ARN of the policy that bounds the function's role", b.PermissionBoundary)
		b.output("PermissionBoundaryArn", "PermissionBoundaryArn",
			"ARN of the policy that bounds the function's role", ref("PermissionBoundary"))
	}
	if b.RoleNameFormat != placeholder {
		b.output("RoleNameFormat", "RoleNameFormat", "Format of the names of roles",
			b.RoleNameFormat)
	}
	b.add(roleID, "AWS::IAM::Role", properties)
}

// policies adds a managed policy for each kind of caller. Their descriptions are the Python
// library's, because CloudFormation cannot change the description of a policy that exists.
func (b *builder) policies() {
	read := []string{"DescribeTable", "GetItem", "BatchGetItem", "Query"}
	use := slices.Concat(read, []string{"PutItem", "UpdateItem"})
	describe := []string{"DescribeTimeToLive", "DescribeContinuousBackups"}
	administer := []string{"DeleteItem", "BatchWriteItem", "ConditionCheckItem", "Scan"}
	b.policy("ReadOnlyPolicy", "read", "Rate limiter read-only access (monitoring)",
		"reads all that is on the table", slices.Concat(read, describe))
	b.policy("AcquireOnlyPolicy", "acq",
		"Rate limiter acquire-only access (read + transact write)", "limits calls", use)
	b.policy("FullAccessPolicy", "full", "Rate limiter full access (all operations)",
		"limits calls and administers", slices.Concat(use, describe, administer))
}

func (b *builder) policy(id, suffix, description, says string, actions []string) {
	b.addUntagged(id, "AWS::IAM::ManagedPolicy", object{
		"ManagedPolicyName": sub(inFormat(b.PolicyNameFormat, suffix)), "Description": description,
		"PolicyDocument": policy(b.onTable(actions...), b.onIndexes("*")),
	})
	b.output(id+"Arn", id+"Arn", "ARN of the policy for what "+says, ref(id))
}

// placeholder stands for a name in a format.
const placeholder = "{}"

// inFormat returns the name of a role or a policy of the stack, for [sub].
func inFormat(format, suffix string) string {
	return strings.Replace(format, placeholder, "${AWS::StackName}-"+suffix, 1)
}
