"""Makes a table with an old release of the Python library zae-limiter, and fills it.

The argument is a JSON object: endpoint, table, entities (the number of entities of which each gets a bucket), and
optionally "stream", without which the table gets no stream, because each makes DynamoDB Local slower, and "reopen": then
the library opens the table as a service that starts, acquires once, and prints what happened. Every release from 0.6 to
0.10 runs it.
"""

import asyncio
import importlib
import json
import sys
import time
import warnings

warnings.simplefilter("ignore")

import boto3  # noqa: E402
from zae_limiter import Limit, OnUnavailable, RateLimiter, schema  # noqa: E402
from zae_limiter.repository import Repository  # noqa: E402

PERIOD = 1_000_000_000  # seconds, so that nothing is gained during a test


def processor():
    for name in ("zae_limiter_aggregator.processor", "zae_limiter.aggregator.processor"):
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    raise ImportError("no aggregator")


def slow(name, capacity, burst=None):
    """Returns a limit that gains nothing during a test. Releases before 0.10 have a burst above the capacity."""
    burst = burst or capacity
    try:
        return Limit(name=name, capacity=capacity, burst=burst, refill_amount=1, refill_period_seconds=PERIOD)
    except TypeError:
        return Limit(name=name, capacity=burst, refill_amount=1, refill_period_seconds=PERIOD)


async def open_repository(spec, create):
    named = hasattr(Repository, "open")
    repository = Repository(name=spec["table"], endpoint_url=spec["endpoint"], region="us-east-1")
    if create:
        define = schema.get_table_definition
        if not spec.get("stream"):
            schema.get_table_definition = lambda *a: {
                k: v for k, v in define(*a).items() if k != "StreamSpecification"
            }
        await repository.create_table()
    if named:
        await repository.close()
        return await Repository.open(
            "default", stack=spec["table"], endpoint_url=spec["endpoint"], region="us-east-1", auto_update=create,
        )
    return repository


def usage(spec, repository, entity, resource, limit, units):
    """Counts usage as the library's function does."""
    p = processor()
    fields = {"entity_id": entity, "resource": resource, "limit_name": limit,
              "tokens_delta": units * 1000, "timestamp_ms": int(time.time() * 1000)}
    if "namespace_id" in getattr(p.ConsumptionDelta, "__dataclass_fields__", {}):
        fields["namespace_id"] = repository.namespace_id
    table = boto3.resource("dynamodb", endpoint_url=spec["endpoint"], region_name="us-east-1").Table(repository.table_name)
    p.update_snapshot(table, p.ConsumptionDelta(**fields), "monthly", 90)


def acquirer(limiter):
    """Returns acquire with the limits that the table has, for all releases."""
    import inspect
    positional = inspect.signature(limiter.acquire).parameters["limits"].default is inspect.Parameter.empty

    def acquire(entity, resource, consume, limits=None):
        if positional:
            return limiter.acquire(entity, resource, limits, consume)
        return limiter.acquire(entity, resource, consume, limits=limits)

    return acquire


async def fill(spec, repository, limiter):
    acquire = acquirer(limiter)
    await limiter.set_system_defaults([slow("rpm", 50, 70)], on_unavailable=OnUnavailable.ALLOW)
    await limiter.set_resource_defaults("gpt-4", [slow("rpm", 1000, 1500), slow("tpm", 100_000)])
    await limiter.set_resource_defaults("gpt-4o", [slow("rpm", 77)])
    await limiter.create_entity("acme", name="Acme", metadata={"tier": "gold"})
    await limiter.create_entity("bot", parent_id="acme", cascade=True)
    await limiter.create_entity("lone")
    await limiter.set_limits("bot", [slow("rpm", 300), slow("tpm", 9000)], resource="gpt-4")
    await limiter.set_limits("lone", [slow("rpm", 40)])
    await limiter.set_limits("acme", [slow("rpm", 600), slow("tpm", 20_000)], resource="gpt-4")
    async with acquire("bot", "gpt-4", {"rpm": 3, "tpm": 500}) as lease:
        await lease.adjust(tpm=250)
    async with acquire("lone", "gpt-4", {"rpm": 30}) as lease:
        await lease.adjust(rpm=55)
    async with acquire("lone", "gpt-4o", {"rpm": 7}):
        pass
    async with acquire("brought", "gpt-4", {"tokens": 11}, [slow("tokens", 500, 900)]):
        pass
    async with acquire("deep", "gpt-4o", {"rpm": 70}) as lease:
        await lease.adjust(rpm=100)  # a debt of 93
    for i in range(spec["entities"]):
        async with acquire(f"user-{i}", "gpt-4", {"rpm": 1 + i % 7, "tpm": 10 * i + 1}):
            pass
    if hasattr(Repository, "open"):
        other = await Repository.open(
            "team", stack=spec["table"], endpoint_url=spec["endpoint"], region="us-east-1")
        async with acquirer(RateLimiter(repository=other))("mate", "gpt-4", {"rpm": 5}, [slow("rpm", 20)]):
            pass
        await other.close()
    usage(spec, repository, "bot", "gpt-4", "tpm", 750)
    usage(spec, repository, "lone", "gpt-4", "rpm", 85)


async def main(spec):
    create = "reopen" not in spec
    answer, repository = {}, None
    try:
        repository = await open_repository(spec, create)
        options = {} if hasattr(Repository, "open") else {"skip_version_check": False}
        answer["table"] = repository.table_name
        limiter = RateLimiter(repository=repository, **options)
        if hasattr(limiter, "_ensure_initialized"):
            await limiter._ensure_initialized()
        if create:
            await fill(spec, repository, limiter)
        else:
            async with acquirer(limiter)("late", "gpt-4", {"rpm": 5, "tpm": 5}):
                answer["admitted"] = True
    except Exception as e:
        if create:
            raise
        answer = {"error": type(e).__name__, "text": str(e)}
    print(json.dumps(answer), flush=True)
    if repository is not None:
        await repository.close()


asyncio.run(main(json.loads(sys.argv[1])))
