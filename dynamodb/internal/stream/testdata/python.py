"""Uses a table with the Python library zae-limiter 0.17, and reads what was counted.

The only argument is a JSON object: do, endpoint, table, namespace and now_ms. With do = "load", the library reserves and
settles, and the output has the units that it used, by entity and limit. With "usage", the output has what the library's
reader shows, by window, start, entity and limit. With "count", it has the number of records of the stream. With
"process", the library's aggregator counts the stream without its first skip records, and the output has its errors, the
number of all records, and the milli-units in the records that it does not count, because they create an item.
"""

import asyncio
import json
import os
import random
import sys
import warnings

warnings.simplefilter("ignore")

import boto3  # noqa: E402
from zae_limiter import RateLimiter  # noqa: E402
from zae_limiter.repository import Repository  # noqa: E402
from zae_limiter_aggregator.processor import process_stream_records  # noqa: E402


async def load(spec, repository):
    repository._now_ms = lambda: spec["now_ms"]
    limiter = RateLimiter(repository=repository)
    rng = random.Random(spec["now_ms"])
    used = {}
    for i in range(30):
        entity = f"e{rng.randrange(4)}"
        tpm, change = rng.randrange(1, 900), rng.randrange(-500, 500)
        async with limiter.acquire(entity, "gpt-4o", {"rpm": 1, "tpm": tpm}) as lease:
            await lease.adjust(tpm=change)
        used[f"{entity} rpm"] = used.get(f"{entity} rpm", 0) + 1
        used[f"{entity} tpm"] = used.get(f"{entity} tpm", 0) + tpm + change
    return used


async def usage(repository):
    shown = {}
    for i in range(4):
        found, _ = await repository.get_usage_snapshots(entity_id=f"e{i}", limit=1000)
        for s in found:
            for limit, n in s.counters.items():
                shown[f"{s.window_type} {s.window_start} {s.entity_id} {limit}"] = n
    return shown


def records(spec):
    """Returns all records of the table's stream."""
    client = boto3.client("dynamodbstreams", endpoint_url=spec["endpoint"])
    arn = client.list_streams(TableName=spec["table"])["Streams"][0]["StreamArn"]
    found = []
    for shard in client.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"]:
        iterator = client.get_shard_iterator(
            StreamArn=arn, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON"
        )["ShardIterator"]
        empty = 0
        while iterator and empty < 3:
            page = client.get_records(ShardIterator=iterator)
            empty = 0 if page["Records"] else empty + 1
            found += page["Records"]
            iterator = page.get("NextShardIterator")
    return found


def process(spec):
    os.environ["AWS_ENDPOINT_URL_DYNAMODB"] = spec["endpoint"]
    all_records = records(spec)
    read = len(all_records)
    all_records = all_records[spec.get("skip", 0) :]
    created = {}
    for r in all_records:
        image = r["dynamodb"].get("NewImage", {})
        if r["eventName"] == "INSERT" and image.get("SK", {}).get("S") == "#STATE":
            for name, value in image.items():
                if name.startswith("b_") and name.endswith("_tc") and name != "b_wcu_tc":
                    key = image["entity_id"]["S"] + " " + name[2:-3]
                    created[key] = created.get(key, 0) + int(value["N"])
    buckets = [r for r in all_records if r["dynamodb"].get("NewImage", {}).get("SK", {}).get("S") == "#STATE"]
    result = process_stream_records(buckets, spec["table"], ["hourly"])
    return {"errors": result.errors, "snapshots": result.snapshots_updated, "created": created, "read": read}


async def main(spec):
    repository = await Repository.connect(
        spec["namespace"], stack=spec["table"], endpoint_url=spec["endpoint"], region="us-east-1",
    )
    if spec["do"] == "load":
        answer = await load(spec, repository)
    elif spec["do"] == "usage":
        answer = await usage(repository)
    elif spec["do"] == "count":
        answer = {"read": len(records(spec))}
    else:
        answer = process(spec)
    print(json.dumps(answer), flush=True)
    await repository.close()


asyncio.run(main(json.loads(sys.argv[1])))
