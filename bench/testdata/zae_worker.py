"""Acquires with zae-limiter 0.17 as fast as it can: a worker of bench, whose protocol is in protocol.go.

Each line on standard input is an order in JSON, and each line on standard output the reply to it. The
first order opens a workload. An order of work says how many operations all callers do together (ops), or
for how long they do them (ns).
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


async def open_world(spec):
    """Open a limiter on the table.

    Whatever comes with the library stays on: the fast path, the cache of configuration for a minute,
    the cache of denials.
    """
    widen(spec["callers"])
    repo = await Repository.open(
        stack=spec["table"], region=spec["region"], endpoint_url=spec["endpoint"], auto_update=False
    )
    limiter = RateLimiter(repository=repo, speculative_writes=True)
    if spec.get("declare"):
        await limiter.set_system_defaults([Limit.per_minute("rpm", spec["capacity"])])
        if parent := spec.get("parent"):
            await limiter.create_entity(parent)
            for entity in spec["entities"]:
                await limiter.create_entity(entity, parent_id=parent, cascade=True)
    return limiter


def entities_of(spec, caller):
    """Return the entities that a caller of this process takes in turn."""
    entities = spec["entities"]
    first = (spec["first"] + caller) * len(entities) // spec["all"]
    each = spec.get("each") or len(entities)
    return (entities[first:] + entities[:first])[:each]


async def call(limiter, entities, enough, took, reply):
    """Acquire, one after the other, until there was enough."""
    at = 0
    while not enough():
        entity = entities[at]
        at = at + 1 if at + 1 < len(entities) else 0
        begun = time.perf_counter_ns()
        try:
            async with limiter.acquire(entity, RESOURCE, COSTS):
                pass
        except RateLimitExceeded:
            reply["denied"] += 1
        else:
            reply["admitted"] += 1
        took.append(time.perf_counter_ns() - begun)


async def work(limiter, spec, order):
    """Do what an order says, and return what became of it."""
    reply, took = {"admitted": 0, "denied": 0}, []
    left, end = order.get("ops", 0), time.perf_counter_ns() + order.get("ns", 0)

    def enough():
        nonlocal left
        left -= 1
        return time.perf_counter_ns() >= end if order.get("ns") else left < 0

    used, begun = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter_ns()
    await asyncio.gather(
        *(call(limiter, entities_of(spec, i), enough, took, reply) for i in range(spec["callers"]))
    )
    ns, now = time.perf_counter_ns() - begun, resource.getrusage(resource.RUSAGE_SELF)
    cpu = now.ru_utime - used.ru_utime + now.ru_stime - used.ru_stime
    took.sort()
    return reply | {
        "ops": len(took),
        "ns": ns,
        "cpu_ns": int(cpu * 1e9),
        "p50_ns": took[(len(took) - 1) // 2] if took else 0,
        "p99_ns": took[(len(took) - 1) * 99 // 100] if took else 0,
    }


async def main():
    lines = asyncio.StreamReader(limit=1 << 24)  # the first line has all entities
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    spec = json.loads(await lines.readline())["open"]
    async with await open_world(spec) as limiter:
        print(json.dumps({}), flush=True)
        while line := await lines.readline():
            print(json.dumps(await work(limiter, spec, json.loads(line))), flush=True)


asyncio.run(main())
