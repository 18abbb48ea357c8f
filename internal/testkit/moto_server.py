"""Run moto's server with what its CloudFormation lacks.

Weir's stacks and those of the Python library need more than moto has: it executes a change set
without the new outputs, parameters and tags; it keeps resources that it removed, forgets those that
it cannot update, and leaves managed policies behind; it knows no condition inside of another one or
of an output, keeps AWS::NoValue in lists, and makes environments of functions of numbers. It also
needs Docker for a function that gets a stream.

Here a resource that moto cannot update stays as it is, except that a table gets its deletion
protection, and functions do not run.
"""

import base64
import copy
import sys

from moto.awslambda.models import LambdaBackend, LambdaFunction
from moto.cloudformation import models, parsing
from moto.iam.models import ManagedPolicy, iam_backends
from moto.server import main

parse_condition = parsing.parse_condition


def parse_any_condition(condition, resources, conditions):
    for form in ("Condition", "Fn::Condition"):  # in JSON, and !Condition of YAML
        if isinstance(condition, dict) and form in condition:
            return conditions[condition[form]]
    return parse_condition(condition, resources, conditions)


parsing.parse_condition = parse_any_condition

clean_json = parsing.clean_json


def clean_without_none(value, resources):
    found = clean_json(value, resources)
    return [v for v in found if v is not None] if isinstance(found, list) else found


parsing.clean_json = clean_without_none

LambdaBackend.send_dynamodb_items = lambda *arguments: None  # it would need Docker

make_outputs = parsing.OutputMap.__init__


def make_shown_outputs(self, resources, template, stack_id):
    shown = {
        name: output
        for name, output in (template.get("Outputs") or {}).items()
        if resources.lazy_condition_map.get(output.get("Condition"), True)
    }
    make_outputs(self, resources, {**template, "Outputs": shown}, stack_id)


parsing.OutputMap.__init__ = make_shown_outputs

generate_name = parsing.parse_resource_and_generate_name


def generate_name_with_text(logical_id, resource_json, resources):
    found = generate_name(logical_id, resource_json, resources)
    if found and found[1].get("Type") == "AWS::Lambda::Function":
        environment = found[1]["Properties"].get("Environment", {})
        variables = environment.get("Variables", {})
        environment["Variables"] = {k: str(v) for k, v in variables.items()}
    return found


parsing.parse_resource_and_generate_name = generate_name_with_text

update_resource = parsing.parse_and_update_resource


def update_or_keep(logical_id, resource_json, resources, account_id, region_name):
    old = resources[logical_id]
    if resource_json["Type"] == "AWS::S3::Bucket":  # it would need a name in the template
        return old
    code = resource_json.get("Properties", {}).get("Code", {})
    if resource_json["Type"] == "AWS::Lambda::Function" and "ZipFile" in code:  # a text
        zipped = LambdaFunction._create_zipfile_from_plaintext_code(code["ZipFile"])
        resource_json = copy.deepcopy(resource_json)
        resource_json["Properties"]["Code"]["ZipFile"] = base64.b64encode(zipped)
    new = update_resource(logical_id, resource_json, resources, account_id, region_name)
    if new is not None:
        return new
    if resource_json["Type"] == "AWS::DynamoDB::Table":
        protected = resource_json.get("Properties", {}).get("DeletionProtectionEnabled", False)
        old.deletion_protection_enabled = parsing.clean_json(protected, resources) in (True, "true")
    return old


parsing.parse_and_update_resource = update_or_keep


def apply(self):
    stack = self.stack
    old = set(stack.template_dict["Resources"])
    stack.template = self.template
    stack._parse_template()
    stack.resource_map.resolved_parameters.clear()
    stack.resource_map.update(self.template_dict, self.parameters)
    for removed in old - set(self.template_dict["Resources"]):
        stack.resource_map._parsed_resources.pop(removed, None)
    stack.parameters = self.parameters
    stack.tags = self.tags or {}
    stack.output_map = stack._create_output_map()


models.ChangeSet.apply = apply


def delete_policy(cls, resource_name, resource_json, account_id, region_name):
    backend = iam_backends[account_id]["aws"]
    backend.managed_policies.pop(resource_name, None)


ManagedPolicy.delete_from_cloudformation_json = classmethod(delete_policy)

main(sys.argv[1:])
