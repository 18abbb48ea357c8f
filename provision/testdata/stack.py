"""Create the stack of a template on moto, and print what is there as JSON.

Arguments: moto's URL, the template's file, the stack's name, and parameters as JSON.
"""

import io
import json
import sys
import zipfile

import boto3

endpoint, template, name, parameters = sys.argv[1:]
session = boto3.Session("key", "secret", region_name="us-east-1")


def client(service):
    return session.client(service, endpoint_url=endpoint)


code = io.BytesIO()
with zipfile.ZipFile(code, "w") as z:
    z.writestr("bootstrap", "#!/bin/sh\n")
client("s3").create_bucket(Bucket="code")
client("s3").put_object(Bucket="code", Key="weir-aggregator.zip", Body=code.getvalue())

stacks = client("cloudformation")
with open(template, encoding="utf-8") as f:
    body = f.read()
stacks.create_stack(
    StackName=name,
    TemplateBody=body,
    Capabilities=["CAPABILITY_NAMED_IAM"],
    Parameters=[{"ParameterKey": k, "ParameterValue": v} for k, v in json.loads(parameters).items()],
)
stacks.get_waiter("stack_create_complete").wait(StackName=name, WaiterConfig={"Delay": 1})
stack = stacks.describe_stacks(StackName=name)["Stacks"][0]
resources = {
    r["LogicalResourceId"]: r
    for r in stacks.list_stack_resources(StackName=name)["StackResourceSummaries"]
}


def physical(logical):
    return resources[logical]["PhysicalResourceId"] if logical in resources else None


def tags(listed):
    return {t["Key"]: t["Value"] for t in listed}


found = {
    "status": stack["StackStatus"],
    "outputs": {o["OutputKey"]: o.get("OutputValue") for o in stack.get("Outputs", [])},
    "exports": {e["Name"]: e.get("Value") for e in stacks.list_exports()["Exports"]},
    "types": {k: r["ResourceType"] for k, r in resources.items()},
    "tags": {},
}
if table := physical("RateLimitsTable"):
    arn = client("dynamodb").describe_table(TableName=table)["Table"]["TableArn"]
    found["tags"]["table"] = tags(client("dynamodb").list_tags_of_resource(ResourceArn=arn)["Tags"])
if function := physical("AggregatorFunction"):
    awslambda = client("lambda")
    got = awslambda.get_function(FunctionName=function)
    found["function"] = got["Configuration"]
    found["policy"] = json.loads(awslambda.get_policy(FunctionName=function)["Policy"])
    found["mappings"] = awslambda.list_event_source_mappings(FunctionName=function)[
        "EventSourceMappings"
    ]
    group = "/aws/lambda/" + function
    found["log_days"] = client("logs").describe_log_groups(logGroupNamePrefix=group)["logGroups"][0][
        "retentionInDays"
    ]
    rule = physical("AggregatorSchedule")
    found["rule"] = client("events").describe_rule(Name=rule)
    found["targets"] = client("events").list_targets_by_rule(Rule=rule)["Targets"]
    sqs = client("sqs")
    found["tags"]["queue"] = sqs.list_queue_tags(QueueUrl=physical("AggregatorDLQ")).get("Tags")
if role := physical("AggregatorRole"):
    got = client("iam").get_role(RoleName=role)["Role"]
    found["role"] = got
    found["role_policy"] = client("iam").get_role_policy(RoleName=role, PolicyName="aggregator")[
        "PolicyDocument"
    ]
    found["tags"]["role"] = tags(got.get("Tags", []))
if bucket := physical("AuditArchiveBucket"):
    s3 = client("s3")
    found["encryption"] = s3.get_bucket_encryption(Bucket=bucket)[
        "ServerSideEncryptionConfiguration"
    ]["Rules"]
    found["tags"]["bucket"] = tags(s3.get_bucket_tagging(Bucket=bucket)["TagSet"])
found["policies"] = {}
for logical, resource in resources.items():
    if resource["ResourceType"] == "AWS::IAM::ManagedPolicy":
        arn = physical(logical)
        got = client("iam").get_policy_version(PolicyArn=arn, VersionId="v1")["PolicyVersion"]
        found["policies"][arn] = got["Document"]
json.dump(found, sys.stdout, default=str)
