"""Print the names in the template of the Python library's stack as JSON."""

import importlib.resources
import json
import sys

import yaml


class Loader(yaml.SafeLoader):
    """A loader that replaces the functions of CloudFormation by their arguments."""


def argument(loader, _, node):
    if isinstance(node, yaml.ScalarNode):
        return loader.construct_scalar(node)
    if isinstance(node, yaml.SequenceNode):
        return loader.construct_sequence(node, deep=True)
    return loader.construct_mapping(node, deep=True)


Loader.add_multi_constructor("!", argument)
text = importlib.resources.files("zae_limiter.infra").joinpath("cfn_template.yaml").read_text()
json.dump(yaml.load(text, Loader), sys.stdout)
