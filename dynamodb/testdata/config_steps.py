"""Calls the Python library zae-limiter 0.17 on a table, step by step, and prints the results.

The only argument is a JSON object: endpoint, table and namespace. Standard input has a JSON list of steps, each a
method of the library's repository with its arguments by name; arguments called limits are lists of objects. The step
"count" lets the library's aggregator count usage, and "acquire" acquires with the library's limiter. The output is a JSON list with one answer for each step.
"""

import asyncio
import dataclasses
import datetime
import json
import sys
import warnings

warnings.simplefilter("ignore")

import boto3  # noqa: E402
from zae_limiter import Limit, RateLimiter  # noqa: E402
from zae_limiter.repository import Repository  # noqa: E402
from zae_limiter_aggregator.processor import ConsumptionDelta, update_snapshot  # noqa: E402


def plain(value):
    """Converts an answer to a value that JSON can encode."""
    if isinstance(value, Limit):
        return [value.name, value.capacity, value.refill_amount, value.refill_period_seconds]
    if dataclasses.is_dataclass(value):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    return value


def limit_of(fields):
    """Returns the limit with the given fields; reset_after is in seconds."""
    if "reset_after" in fields:
        fields = {**fields, "reset_after": datetime.timedelta(seconds=fields["reset_after"])}
    return Limit(**fields)


def count(spec, namespace, windows, **delta):
    table = boto3.resource("dynamodb", endpoint_url=spec["endpoint"], region_name="us-east-1").Table(spec["table"])
    for window in windows:
        update_snapshot(table, ConsumptionDelta(namespace_id=namespace, **delta), window, 90)


async def acquire(repository, entity_id, resource, consume):
    async with RateLimiter(repository=repository).acquire(entity_id, resource, consume):
        return "admitted"


async def main(spec, steps):
    repository = await Repository.connect(
        spec["namespace"], stack=spec["table"], endpoint_url=spec["endpoint"], region="us-east-1",
    )
    answers = []
    for name, arguments in steps:
        if "limits" in arguments:
            arguments["limits"] = [limit_of(limit) for limit in arguments["limits"]]
        if name == "count":
            answers.append(count(spec, repository.namespace_id, **arguments))
            continue
        try:
            if name == "acquire":
                answers.append(await acquire(repository, **arguments))
            else:
                answers.append(plain(await getattr(repository, name)(**arguments)))
        except Exception as e:
            answers.append({"error": type(e).__name__, "text": str(e)})
    print(json.dumps(answers), flush=True)
    await repository.close()


asyncio.run(main(json.loads(sys.argv[1]), json.load(sys.stdin)))
