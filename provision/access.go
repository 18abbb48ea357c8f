package provision

import "strings"

// statement returns a statement of a policy that allows actions.
func statement(resource any, actions ...string) object {
	return object{"Effect": "Allow", "Action": actions, "Resource": resource}
}

func policy(statements ...any) object {
	return object{"Version": "2012-10-17", "Statement": statements}
}

// role adds the role of the function.
func (b *builder) role() {
	group := "arn:${AWS::Partition}:logs:${AWS::Region}:${AWS::AccountId}:log-group:/aws/lambda/" +
		functionName + ":*"
	statements := append(b.statements(recordedCalls(verbAggregate), anyNamespace),
		// What Lambda reads the stream with is not in the recording.
		statement(sub(b.tableARN()+"/stream/*"), "dynamodb:DescribeStream", "dynamodb:GetRecords",
			"dynamodb:GetShardIterator", "dynamodb:ListStreams"),
		statement(sub(group), "logs:CreateLogStream", "logs:PutLogEvents"),
		statement(attribute(queueID, "Arn"), "sqs:SendMessage"),
	)
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

// policies adds the managed policies: one for each kind of caller, on the whole table and on the
// namespace whose ID the caller is tagged with. Their descriptions are the Python library's, because
// CloudFormation cannot change the description of a policy that exists.
func (b *builder) policies() {
	use, read := recordedCalls(verbUse), recordedCalls(verbRead, verbInspect)
	full := recordedCalls(verbUse, verbRead, verbInspect, verbAdminister, verbNamespaces)
	b.policy("ReadOnlyPolicy", "read", "Rate limiter read-only access (monitoring)",
		"reads all that is on the table", b.statements(read, anyNamespace))
	b.policy("AcquireOnlyPolicy", "acq",
		"Rate limiter acquire-only access (read + transact write)", "limits calls",
		b.statements(use, anyNamespace))
	b.policy("FullAccessPolicy", "full", "Rate limiter full access (all operations)",
		"limits calls and administers", b.statements(full, anyNamespace))

	tenant := func(verbs ...string) []any {
		return b.statements(within(recordedCalls(verbs...)), namespaceVariable)
	}
	b.policy("NamespaceReadOnlyPolicy", "ns-read",
		"Namespace-scoped read-only access (monitoring within namespace)",
		"reads what is in its namespace", tenant(verbRead))
	b.policy("NamespaceAcquirePolicy", "ns-acq",
		"Namespace-scoped acquire-only access (read + update within namespace)",
		"limits calls in its namespace", tenant(verbUse))
	b.policy("NamespaceFullAccessPolicy", "ns-full",
		"Namespace-scoped full access (all operations within namespace)",
		"limits calls and administers in its namespace",
		tenant(verbUse, verbRead, verbAdminister))
}

func (b *builder) policy(id, suffix, description, says string, statements []any) {
	b.addUntagged(id, "AWS::IAM::ManagedPolicy", object{
		"ManagedPolicyName": sub(inFormat(b.PolicyNameFormat, suffix)), "Description": description,
		"PolicyDocument": policy(statements...),
	})
	b.output(id+"Arn", id+"Arn", "ARN of the policy for what "+says, ref(id))
}

// placeholder stands for a name in a format.
const placeholder = "{}"

// inFormat returns the name of a role or a policy of the stack, for [sub].
func inFormat(format, suffix string) string {
	return strings.Replace(format, placeholder, "${AWS::StackName}-"+suffix, 1)
}
