"""Prepares a table with the Python library zae-limiter 0.17, as its users do.

The only argument is a JSON object: endpoint, table, namespace, resource, limits (by entity), parents and
shards (by entity). The buckets named in shards are made, full; all others are made by the first call. The
last line of the output has the namespace's ID.
"""

import asyncio
import json
import sys
import warnings

warnings.simplefilter("ignore")

from zae_limiter import Limit, RateLimiter  # noqa: E402
from zae_limiter.models import BucketState  # noqa: E402
from zae_limiter.repository import Repository  # noqa: E402


async def register(spec):
    repository = Repository(
        name=spec["table"], endpoint_url=spec["endpoint"], region="us-east-1",
        _skip_deprecation_warning=True,
    )
    await repository._initialize_version_record()
    for name in dict.fromkeys(["default", spec["namespace"]]):
        await repository.register_namespace(name)
    await repository.close()


async def make_shards(repository, entity, resource, limits, count):
    """Makes the bucket with that number of shards, as if it had been doubled long ago."""
    client, now = await repository._get_client(), repository._now_ms()
    for shard in range(count):
        states = [
            BucketState.from_limit(entity, resource, limit, now, shard_count=count) for limit in limits
        ]
        made = repository.build_composite_create(
            entity_id=entity, resource=resource, states=states, now_ms=now, ttl_seconds=None,
            shard_id=shard, shard_count=count,
        )["Put"]
        await client.put_item(**made)


async def main(spec):
    await register(spec)
    repository = await Repository.connect(
        spec["namespace"], stack=spec["table"], endpoint_url=spec["endpoint"], region="us-east-1",
    )
    limiter = RateLimiter(repository)
    parents = spec.get("parents") or {}
    for entity in sorted(spec["limits"], key=lambda e: e in parents):
        await limiter.create_entity(entity, parent_id=parents.get(entity), cascade=entity in parents)
    for entity, definitions in sorted(spec["limits"].items()):
        limits = [
            Limit.custom(
                name, capacity=d["capacity"], refill_amount=d["refill"], refill_period_seconds=d["period_s"]
            )
            for name, d in sorted(definitions.items())
        ]
        await limiter.set_limits(entity, limits, resource=spec["resource"])
        count = (spec.get("shards") or {}).get(entity, 0)
        await make_shards(repository, entity, spec["resource"], limits, count)
    print(repository.namespace_id, flush=True)
    await limiter.close()


asyncio.run(main(json.loads(sys.argv[1])))
