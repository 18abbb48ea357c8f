"""Uses the namespaces and the version record of a table that weir made, and makes a table of its own."""

import asyncio
import json
import sys

from zae_limiter import Repository
from zae_limiter.exceptions import NamespaceNotFoundError


async def main(table: str, other: str, endpoint: str) -> dict:
    place = {"region": "us-east-1", "endpoint_url": endpoint}
    told = {}

    repo = await Repository.connect("default", stack=table, **place)
    told["default"] = repo.namespace_id
    told["version"] = await repo.get_version_record()
    told["from_weir"] = (await Repository.connect("from-weir", stack=table, **place)).namespace_id
    told["opened"] = (await Repository.open("from-weir", stack=table, **place)).namespace_id
    told["from_python"] = await repo.register_namespace("from-python")
    told["again"] = await repo.register_namespace("from-weir")
    told["listed"] = await repo.list_namespaces()

    await repo.delete_namespace("both")
    told["orphans"] = await repo.list_orphan_namespaces()
    both = next(o["namespace_id"] for o in told["orphans"] if o["namespace"] == "both")
    told["recovered"] = await repo.recover_namespace(both)
    await repo.delete_namespace("python-deletes")
    try:
        await Repository.connect("weir-deleted", stack=table, **place)
        told["deleted"] = "still there"
    except NamespaceNotFoundError:
        told["deleted"] = "gone"

    own = Repository(name=other, _skip_deprecation_warning=True, **place)
    await own.create_table()
    told["own"] = await own.register_namespace("default")
    await own.set_version_record(
        "0.10.0", lambda_version="0.17.0", client_min_version="0.16.0", updated_by="cli:0.17.0"
    )
    return told


print(json.dumps(asyncio.run(main(*sys.argv[1:]))))
