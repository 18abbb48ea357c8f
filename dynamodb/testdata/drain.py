"""Drains one bucket with the Python library zae-limiter 0.17 alone, and prints the admitted units.

The only argument is a JSON object: endpoint, table, namespace, entity, resource, limit and callers. The callers ask
for one unit at a time until each was denied many times in a row. The clock stands still, so nothing is refilled. The
output is a JSON object with the admitted units.
"""

import asyncio
import json
import sys
import time
import warnings

warnings.simplefilter("ignore")

from zae_limiter import RateLimiter, RateLimitExceeded  # noqa: E402
from zae_limiter.repository import Repository  # noqa: E402

# With 32 shards, a bucket that has a unit left is found by one draw in 32.
IN_A_ROW = 200


async def main(spec):
    repository = await Repository.connect(
        spec["namespace"], stack=spec["table"], endpoint_url=spec["endpoint"], region="us-east-1",
    )
    now = time.time_ns() // 1_000_000
    repository._now_ms = lambda: now
    limiter = RateLimiter(repository=repository)
    admitted = denied = 0

    async def caller():
        nonlocal admitted, denied
        while denied < IN_A_ROW:
            try:
                async with limiter.acquire(spec["entity"], spec["resource"], {spec["limit"]: 1}):
                    pass
                admitted, denied = admitted + 1, 0
            except RateLimitExceeded:
                denied += 1

    await asyncio.gather(*(caller() for _ in range(spec["callers"])))
    print(json.dumps({"admitted": admitted}), flush=True)
    await repository.close()


asyncio.run(main(json.loads(sys.argv[1])))
