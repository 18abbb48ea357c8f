"""Calls acquire of the Python library zae-limiter 0.17, one call for each line of its input.

The only argument is a JSON object: endpoint and namespace. Each line of the input is a JSON object: table, now_ms,
entity, resource and costs. All calls of a table come from one limiter. The answer to it is a line: whether the call was admitted, the requests that it sent to
DynamoDB, and the write units that it used. A refused write counts as the one unit that DynamoDB charges for it.
"""

import asyncio
import json
import sys
import warnings

warnings.simplefilter("ignore")

from zae_limiter import RateLimiter, RateLimitExceeded  # noqa: E402
from zae_limiter.repository import Repository  # noqa: E402

WRITES = {"UpdateItem", "PutItem", "DeleteItem", "TransactWriteItems", "BatchWriteItem"}


class Counter:
    """Counts the requests of a client, and their write units."""

    def __init__(self, client):
        self.requests, self.units = 0, 0.0
        events = client.meta.events
        events.register("before-parameter-build.dynamodb", self.ask)
        events.register("before-send.dynamodb", self.send)
        events.register("after-call.dynamodb", self.answer)

    def ask(self, params, model, **_):
        if "ReturnConsumedCapacity" in model.input_shape.members:
            params["ReturnConsumedCapacity"] = "TOTAL"

    def send(self, **_):
        self.requests += 1

    def answer(self, parsed, model, **_):
        if model.name not in WRITES:
            return
        if parsed.get("Error", {}).get("Code") == "ConditionalCheckFailedException":
            self.units += 1
        consumed = parsed.get("ConsumedCapacity") or []
        for table in consumed if isinstance(consumed, list) else [consumed]:
            self.units += table["CapacityUnits"]


async def main(spec):
    limiters = {}
    now = 0
    for line in sys.stdin:
        call = json.loads(line)
        now = call["now_ms"]
        if call["table"] not in limiters:
            repository = await Repository.connect(
                spec["namespace"], stack=call["table"], endpoint_url=spec["endpoint"], region="us-east-1",
            )
            repository._now_ms = lambda: now
            repository._rejection_cache._clock = lambda: now / 1000
            counter = Counter(await repository._get_client())
            limiters[call["table"]] = RateLimiter(repository=repository), repository, counter
        limiter, _, counter = limiters[call["table"]]
        counter.requests, counter.units, admitted = 0, 0.0, True
        try:
            async with limiter.acquire(call["entity"], call["resource"], call["costs"]):
                pass
        except RateLimitExceeded:
            admitted = False
        answer = {"admitted": admitted, "trips": counter.requests, "milli_units": int(counter.units * 1000)}
        print(json.dumps(answer), flush=True)
    for _, repository, _ in limiters.values():
        await repository.close()


asyncio.run(main(json.loads(sys.argv[1])))
