"""Prints the library's results for the arguments of python_test.go, as one JSON object."""

import asyncio
import json
import sys
import warnings

from zae_limiter import schema
from zae_limiter.models import BucketState, Limit
from zae_limiter.repository import Repository
from zae_limiter_aggregator.processor import get_window_key


def repository():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = Repository("weir")
    made._namespace_id = "ns"
    return made


def limits_of(raw):
    return [
        Limit(
            name=one["name"],
            capacity=one["capacity"],
            refill_amount=one["refill"],
            refill_period_seconds=one["seconds"],
        )
        for one in raw
    ]


def bucket(repo, case):
    limits = limits_of(case["limits"])
    states = [
        BucketState.from_limit(case["entity"], case["resource"], one, case["now"]) for one in limits
    ]
    put = repo.build_composite_create(
        case["entity"],
        case["resource"],
        states,
        case["now"],
        ttl_seconds=schema.calculate_bucket_ttl_seconds(limits, case["multiplier"]),
        cascade=case["cascade"],
        parent_id=case["parent"] or None,
        shard_id=case["shard"],
        shard_count=case["shards"],
        pgen=case["pgen"],
        pinc=case["pinc"],
    )
    return put["Put"]["Item"]


def config(repo, case):
    return repo._serialize_composite_limits(limits_of(case["limits"]), {})


def read(repo, case):
    """Returns the values that the library reads from items that weir wrote."""
    buckets = {
        one.limit_name: [
            one.tokens_milli,
            one.capacity_milli,
            one.refill_amount_milli,
            one.refill_period_ms,
            one.total_consumed_milli,
            one.last_refill_ms,
            one.shard_count,
        ]
        for one in repo._deserialize_composite_bucket(case["bucket"])
        if one.limit_name != schema.WCU_LIMIT_NAME
    }
    stored = repo._deserialize_composite_limits(case["config"])
    entity = repo._deserialize_entity(case["entity"])
    event = repo._deserialize_audit_event(case["event"])
    usage = repo._deserialize_usage_snapshot(case["usage"])
    return {
        "bucket": buckets,
        "config": {
            one.name: [one.capacity, one.refill_amount, one.refill_period_seconds] for one in stored
        },
        "entity": [
            entity.id,
            entity.name,
            entity.parent_id,
            entity.cascade,
            entity.metadata,
            entity.created_at,
            entity.parent_generation,
            entity.incarnation,
        ],
        "event": [event.event_id, event.action, event.principal, event.resource, event.details],
        "usage": [
            usage.entity_id,
            usage.resource,
            usage.window_type,
            usage.window_start,
            usage.total_events,
            usage.counters,
            usage.overdrawn,
        ],
    }


async def main():
    asked = json.load(sys.stdin)
    repo = repository()
    answer = {
        "buckets": [bucket(repo, case) for case in asked["buckets"]],
        "configs": [config(repo, case) for case in asked["buckets"]],
        "seconds": [
            schema.calculate_bucket_ttl_seconds(limits_of([one]), one["multiplier"])
            for one in asked["seconds"]
        ],
        "read": read(repo, asked["read"]),
        "hour": get_window_key(asked["hour"], "hourly"),
        "table": schema.get_table_definition("weir"),
    }
    json.dump(answer, sys.stdout)


asyncio.run(main())
