"""What tests need of the servers, which clients/python_test.go starts."""

from __future__ import annotations

import asyncio
import itertools
import os
import time
import uuid
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

import weir_client

PATIENCE = 120.0
"""Seconds for which a test waits for what must happen, on a busy machine."""


class Server:
    """A server of the store under test, and what its status says."""

    def __init__(self) -> None:
        self.url = os.environ["WEIR_SERVER"]
        self.losing_url = os.environ["WEIR_LOSING_SERVER"]
        self.store = os.environ["WEIR_STORE"]
        self.slots = 0 if self.store == "dynamodb" else 5
        self.client = weir_client.Client(self.url)

    def used(self, entity: str, resource: str = "counted") -> dict[str, int]:
        """Return what an entity uses of each limit: slots are named "parallel"."""
        status = self.client.status(entity, resource)
        return {s["limit"]: s["capacity"] - s["available"] for s in status}

    def expect(self, calls: int, tokens: int) -> dict[str, int]:
        """Return what is used when every lease is settled."""
        return {"calls": calls, "tokens": tokens} | ({"parallel": 0} if self.slots else {})


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    if "WEIR_SERVER" not in os.environ:
        pytest.skip("WEIR_SERVER names no server: run `go test ./clients -run TestPython`")
    s = Server()
    yield s
    s.client.close()


@pytest.fixture
def entity() -> str:
    """Return the name of an entity that no other test uses."""
    return f"python-{uuid.uuid4()}"


async def until(holds: Callable[[], bool]) -> None:
    """Wait until something holds."""
    end = time.monotonic() + PATIENCE
    for n in itertools.count():
        if await asyncio.to_thread(holds):
            return
        assert time.monotonic() < end, "it did not happen"
        await asyncio.sleep(min(0.01 * 1.2**n, 0.5))


async def happens(event: asyncio.Event, task: asyncio.Task[Any]) -> None:
    """Wait for an event in a task, or raise the task's error."""
    waiting = asyncio.create_task(event.wait())
    await asyncio.wait([waiting, task], return_when=asyncio.FIRST_COMPLETED)
    if not event.is_set():
        waiting.cancel()
        await task
        pytest.fail("the task ended before")


Body = Callable[[weir_client.Lease | weir_client.AsyncLease], None]


def sync_block(url: str, entity: str, costs: dict[str, int], body: Body, **more: object) -> None:
    """Run a block under a lease of the client for threads."""
    with (
        weir_client.Client(url) as client,
        client.lease(entity, "counted", costs, **more) as lease,  # type: ignore[arg-type]
    ):
        body(lease)


def async_block(url: str, entity: str, costs: dict[str, int], body: Body, **more: object) -> None:
    """Run a block under a lease of the client for asyncio."""

    async def run() -> None:
        async with (
            weir_client.AsyncClient(url) as client,
            client.lease(entity, "counted", costs, **more) as lease,  # type: ignore[arg-type]
        ):
            body(lease)

    asyncio.run(run())


Block = Callable[..., None]


@pytest.fixture(params=[sync_block, async_block], ids=["sync", "async"])
def block(request: pytest.FixtureRequest) -> Block:
    """Both ways to run a block under a lease."""
    chosen: Block = request.param
    return chosen


def run(main: Awaitable[None]) -> None:
    """Run a test that is a coroutine."""

    async def bounded() -> None:
        await asyncio.wait_for(main, PATIENCE * 2)

    asyncio.run(bounded())
