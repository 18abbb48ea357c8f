"""Uses the Python library zae-limiter 0.17 on a table, step by step, and prints the results.

The only argument is a JSON object: endpoint and table. Standard input has a JSON list of steps, each a name with
arguments: a method of the library's repository (arguments called limits are lists of objects), "make_table",
"acquire" (entity_id, resource, consume), or "provision" (manifest), which runs the library's provisioner. No
configuration is cached. The output is a JSON list with one answer for each step.
"""

import asyncio
import datetime
import json
import os
import sys
import warnings

warnings.simplefilter("ignore")

from zae_limiter import Limit, RateLimiter  # noqa: E402
from zae_limiter.exceptions import RateLimitExceeded  # noqa: E402
from zae_limiter.repository import Repository  # noqa: E402
from zae_limiter.schedule import ScheduleEntry  # noqa: E402


def limit_of(fields):
    """Returns the limit with the given fields; reset_after is in seconds, schedule a list of objects."""
    if "reset_after" in fields:
        fields = {**fields, "reset_after": datetime.timedelta(seconds=fields["reset_after"])}
    if "schedule" in fields:
        fields = {**fields, "schedule": tuple(ScheduleEntry(**e) for e in fields["schedule"])}
    return Limit(**fields)


async def make_table(spec):
    own = Repository(name=spec["table"], endpoint_url=spec["endpoint"], region="us-east-1",
                     _skip_deprecation_warning=True)
    await own.create_table()
    await own.register_namespace("default")
    await own.set_version_record(
        "0.10.0", lambda_version="0.17.0", client_min_version="0.17.0", updated_by="cli:0.17.0"
    )
    await own.close()


def provision(spec, namespace, manifest, action="apply"):
    os.environ["AWS_ENDPOINT_URL_DYNAMODB"] = spec["endpoint"]
    from zae_limiter_provisioner.handler import on_event

    return on_event(
        {"action": action, "table_name": spec["table"], "namespace_id": namespace, "manifest": manifest}, None
    )


async def acquire(limiter, **arguments):
    try:
        async with limiter.acquire(**arguments):
            return {"allowed": True}
    except RateLimitExceeded as e:
        return {"allowed": False, "text": str(e)}


async def main(spec, steps):
    if steps and steps[0][0] == "make_table":
        await make_table(spec)
        steps = steps[1:]
    repository = await Repository.connect(
        "default", stack=spec["table"], endpoint_url=spec["endpoint"], region="us-east-1", config_cache_ttl=0,
        rejection_cache_ttl=0,
    )
    limiter = RateLimiter(repository=repository)
    answers = []
    for name, arguments in steps:
        if "limits" in arguments:
            arguments["limits"] = [limit_of(limit) for limit in arguments["limits"]]
        if name == "acquire":
            answers.append(await acquire(limiter, **arguments))
        elif name == "provision":
            answers.append(provision(spec, repository.namespace_id, **arguments))
        else:
            answers.append(await getattr(repository, name)(**arguments))
    print(json.dumps(answers, default=str), flush=True)
    await repository.close()


asyncio.run(main(json.loads(sys.argv[1]), json.load(sys.stdin)))
