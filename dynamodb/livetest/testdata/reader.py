"""Takes from buckets with the Python library zae-limiter 0.17, and then prints what the library reads.

The only argument is a JSON object: endpoint, table, namespace, resource, limit, entities, and take, a list of
{"entity", "costs"}. The last line of the output is a JSON object.
"""

import asyncio
import json
import sys
import warnings

warnings.simplefilter("ignore")

from zae_limiter import RateLimiter  # noqa: E402
from zae_limiter.repository import Repository  # noqa: E402


async def look(limiter, repository, spec, entity):
    buckets = await repository.get_buckets(entity)
    return {
        "available": await limiter.available(entity, spec["resource"]),
        "buckets": sorted(
            (
                {
                    "limit": b.limit_name, "tk": b.tokens_milli, "cp": b.capacity_milli, "ra": b.refill_amount_milli,
                    "rp": b.refill_period_ms, "tc": b.total_consumed_milli, "shards": b.shard_count,
                }
                for b in buckets
                if b.resource == spec["resource"]
            ),
            key=lambda b: (b["limit"], b["tk"]),
        ),
    }


async def main(spec):
    repository = await Repository.connect(
        spec["namespace"], stack=spec["table"], endpoint_url=spec["endpoint"], region="us-east-1",
    )
    limiter = RateLimiter(repository)
    for one in spec.get("take") or []:
        async with limiter.acquire(one["entity"], spec["resource"], one["costs"]):
            pass
    capacity = await limiter.get_resource_capacity(spec["resource"], spec["limit"])
    seen = {
        "entities": {e: await look(limiter, repository, spec, e) for e in spec["entities"]},
        "total_capacity": capacity.total_capacity,
        "total_available": capacity.total_available,
        "capacity": {e.entity_id: [e.capacity, e.available] for e in capacity.entities},
    }
    print(json.dumps(seen), flush=True)
    await limiter.close()


asyncio.run(main(json.loads(sys.argv[1])))
