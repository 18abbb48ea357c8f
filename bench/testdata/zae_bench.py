"""Acquires with zae-limiter 0.17 as fast as it can, on orders from standard input.

The first line is a JSON object: the table and its endpoint, the entities of the callers, one list for
each caller, and whether the limits and entities are to be declared or are there. Then come orders,
each a line, each answered by a line of JSON:

    warm N         N acquires, by all callers together
    run SECONDS    acquires until the time is over
"""

import asyncio
import json
import resource
import sys
import time

import zae_limiter.repository as repository
from aiobotocore.config import AioConfig
from aiobotocore.session import get_session
from zae_limiter import Limit, RateLimiter, Repository
from zae_limiter.exceptions import RateLimitExceeded

RESOURCE = "llm"
COSTS = {"rpm": 1}


def widen(connections):
    """Give the library's client as many connections as it has callers.

    The library leaves botocore's ten, and has no option for it.
    """

    def session():
        made = get_session()
        made.set_default_client_config(
            AioConfig(max_pool_connections=connections, parameter_validation=False)
        )
        return made

    repository.get_session = session


async def declare(limiter, spec):
    """One limit for everybody, so wide that nothing is denied, and the family of a cascade."""
    await limiter.set_system_defaults([Limit.per_minute("rpm", spec["capacity"])])
    if spec["parent"]:
        await limiter.create_entity(spec["parent"])
        for entities in spec["everybody"]:
            for entity in entities:
                await limiter.create_entity(entity, parent_id=spec["parent"], cascade=True)


async def call(limiter, entities, tally, enough):
    """Acquires, one after the other, until there was enough."""
    at = 0
    while not enough():
        entity = entities[at]
        at = at + 1 if at + 1 < len(entities) else 0
        try:
            async with limiter.acquire(entity, RESOURCE, COSTS):
                pass
        except RateLimitExceeded:
            tally["denied"] += 1
        else:
            tally["admitted"] += 1


async def obey(limiter, spec, order):
    """Does what one line says, and returns what became of it."""
    what, _, much = order.partition(" ")
    tally = {"admitted": 0, "denied": 0}
    if what == "warm":
        left = [int(much)]

        def enough():
            left[0] -= 1
            return left[0] < 0

    elif what == "run":
        end = time.perf_counter() + float(much)

        def enough():
            return time.perf_counter() >= end

    else:
        raise ValueError(f"order {order!r}: must be warm or run")
    used, begun = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter_ns()
    await asyncio.gather(*(call(limiter, mine, tally, enough) for mine in spec["callers"]))
    took, now = time.perf_counter_ns() - begun, resource.getrusage(resource.RUSAGE_SELF)
    cpu = now.ru_utime - used.ru_utime + now.ru_stime - used.ru_stime
    return tally | {"ns": took, "cpu_ns": int(cpu * 1e9)}


async def main():
    lines = asyncio.StreamReader(limit=1 << 24)  # the first line has all entities
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    spec = json.loads(await lines.readline())
    if spec["connections"]:
        widen(spec["connections"])
    # Whatever comes with the library stays on: the fast path, the cache of configuration for a
    # minute, the cache of denials.
    repo = await Repository.open(
        stack=spec["table"], region=spec["region"], endpoint_url=spec["endpoint"], auto_update=False
    )
    limiter = RateLimiter(repository=repo, speculative_writes=True)
    async with limiter:
        if spec["declare"]:
            await declare(limiter, spec)
        print(json.dumps({}), flush=True)
        while order := (await lines.readline()).decode().strip():
            print(json.dumps(await obey(limiter, spec, order)), flush=True)


asyncio.run(main())
