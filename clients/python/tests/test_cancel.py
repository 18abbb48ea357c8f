"""Callers that are cancelled: the settlement still reaches the server."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
from typing import Any

import anyio
import httpx
import pytest
from conftest import Server, happens, run, until

import weir_client

COSTS = {"calls": 1, "tokens": 500}


async def report_and_sleep(
    client: weir_client.AsyncClient, entity: str, entered: asyncio.Event
) -> None:
    async with client.lease(entity, "counted", COSTS) as lease:
        lease.report(tokens=40)
        entered.set()
        await asyncio.sleep(3600)


def test_a_task_that_is_cancelled_during_the_body(server: Server, entity: str) -> None:
    """When the cancelled task has ended, its lease is settled, even if answers are lost."""

    async def main() -> None:
        for url, n in ((server.url, 1), (server.losing_url, 2)):
            async with weir_client.AsyncClient(url) as client:
                entered = asyncio.Event()
                task = asyncio.create_task(report_and_sleep(client, entity, entered))
                await happens(entered, task)
                task.cancel()
                await asyncio.wait([task])
                assert task.cancelled()
                assert server.used(entity) == server.expect(n, 40 * n)

    run(main())


def test_a_task_that_is_cancelled_again_while_it_settles(
    server: Server, entity: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second cancellation does not stop the settlement; nor does a cancel scope of anyio."""
    waits = 0
    wait = asyncio.wait

    def counted(*arguments: Any, **more: Any) -> Any:
        nonlocal waits
        waits += 1
        return wait(*arguments, **more)

    monkeypatch.setattr(asyncio, "wait", counted)

    async def main() -> None:
        nonlocal waits
        async with weir_client.AsyncClient(server.losing_url, backoff=0.5) as client:

            async def body() -> None:
                async with client.lease(entity, "counted", COSTS) as lease:
                    lease.report(tokens=40)

            task = asyncio.create_task(body())
            while not task.done():
                await asyncio.sleep(0)
                if server.used(entity)["tokens"] == 40:  # it waits to repeat the complete
                    task.cancel()
            assert task.cancelled()
            waits = 0
            with anyio.CancelScope() as scope:
                async with client.lease(entity, "counted", COSTS) as lease:
                    lease.report(tokens=60)
                    scope.cancel()
                    await asyncio.sleep(3600)
            assert scope.cancelled_caught
            assert waits < 20, "the settlement was cancelled all the time"
            assert server.used(entity) == server.expect(2, 100)

    run(main())


def test_a_task_that_is_cancelled_during_reserve(server: Server, entity: str) -> None:
    """The server has made the reservation, but the answer was lost: it is cancelled."""

    async def main() -> None:
        async with weir_client.AsyncClient(server.losing_url, backoff=3600) as client:
            task = asyncio.create_task(client.reserve(entity, "counted", COSTS))
            await until(lambda: server.used(entity)["tokens"] == 500)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert server.used(entity) == server.expect(0, 0)

    run(main())


def test_the_loop_that_ends(server: Server, entity: str) -> None:
    """asyncio.run cancels the tasks that are left. Their leases are settled before it returns."""

    async def main() -> None:
        # Nobody closes the clients. One has lost an answer, and waits before it repeats the call.
        client = weir_client.AsyncClient(server.losing_url)
        waiting = weir_client.AsyncClient(server.losing_url, backoff=3600)
        entered = asyncio.Event()

        tasks.append(asyncio.create_task(report_and_sleep(client, entity, entered)))
        tasks.append(asyncio.create_task(waiting.reserve(entity, "counted", {"tokens": 5})))
        await happens(entered, tasks[0])
        await until(lambda: server.used(entity)["tokens"] == 505)

    tasks: list[asyncio.Task[Any]] = []
    run(main())
    assert all(task.cancelled() for task in tasks)
    assert server.used(entity) == server.expect(1, 40)


def test_the_loop_that_ends_during_a_settlement(server: Server, entity: str) -> None:
    """asyncio.run cancels the settlement too. It is begun again, and reaches the server."""

    async def main() -> None:
        settling = asyncio.Event()

        async def slow(r: httpx.Request) -> None:
            if r.url.path == "/v1/complete":
                settling.set()
                await asyncio.sleep(0.1)

        http = httpx.AsyncClient(event_hooks={"request": [slow]})
        client = weir_client.AsyncClient(server.url, http_client=http)

        async def body() -> None:
            async with client.lease(entity, "counted", COSTS) as lease:
                lease.report(tokens=40)

        tasks.append(asyncio.create_task(body()))
        await happens(settling, tasks[0])

    tasks: list[asyncio.Task[None]] = []
    run(main())
    assert tasks[0].cancelled()
    assert server.used(entity) == server.expect(1, 40)


def test_an_async_generator_that_is_left(server: Server, entity: str) -> None:
    """The consumer of a stream stops in the middle, and the stream is closed."""

    async def main() -> None:
        async with weir_client.AsyncClient(server.url) as client:

            async def stream():  # type: ignore[no-untyped-def]
                async with client.lease(entity, "counted", COSTS) as lease:
                    lease.sent()
                    for n in range(1, 100):
                        lease.report(tokens=100 + n)
                        yield n

            pieces = stream()  # type: ignore[no-untyped-call]
            async for n in pieces:
                if n == 3:
                    break
            await pieces.aclose()
            assert server.used(entity) == server.expect(1, 103)

    run(main())


async def caller(
    client: weir_client.AsyncClient, entity: str, seed: int, tally: dict[str, int]
) -> None:
    """Make one call under a lease, and count what it must be charged."""
    draw = random.Random(seed)
    charged = {"calls": 0, "tokens": 0}  # an error before sent() refunds everything
    try:
        async with client.lease(entity, "counted", COSTS, wait=2) as lease:
            tally["entered"] += 1
            await asyncio.sleep(draw.uniform(0, 0.02))
            lease.sent()
            charged = dict(COSTS)
            for n in range(draw.randrange(4)):
                await asyncio.sleep(draw.uniform(0, 0.02))
                charged = {"calls": 1, "tokens": 100 + n}
                lease.report(tokens=100 + n)
    except weir_client.Denied:
        tally["denied"] += 1
    except asyncio.CancelledError:
        tally["cancelled"] += 1
        raise
    finally:
        tally["calls"] += charged["calls"]
        tally["tokens"] += charged["tokens"]


def test_many_tasks_that_are_cancelled_at_random(server: Server, entity: str) -> None:
    """Of 200 tasks, cancelled at random moments, no slot and no unit leaks."""
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    draw = random.Random(seed)
    tally = {"entered": 0, "cancelled": 0, "denied": 0, "calls": 0, "tokens": 0}

    async def main() -> None:
        async with weir_client.AsyncClient(server.url) as client:
            tasks = []
            for n in range(200):
                tasks.append(asyncio.create_task(caller(client, entity, seed + n, tally)))
                if draw.random() < 0.75:
                    asyncio.get_running_loop().call_later(draw.uniform(0, 0.1), tasks[n].cancel)
                await asyncio.sleep(draw.uniform(0, 0.008))
            await asyncio.gather(*tasks, return_exceptions=True)

    run(main())
    print(tally)
    assert min(tally["entered"], tally["cancelled"]) >= 10
    assert server.used(entity) == server.expect(tally["calls"], tally["tokens"]), f"seed {seed}"


SCRIPT = """
import sys, time, weir_client
with weir_client.Client() as client, client.lease(sys.argv[1], "counted", {"tokens": 500}) as lease:
    lease.report(tokens=40)
    print("entered", flush=True)
    time.sleep(3600)
"""


@pytest.mark.skipif(os.name == "nt", reason="there are no signals there")
def test_a_process_that_is_interrupted(server: Server, entity: str) -> None:
    """An interrupt from the terminal ends the block, and the lease is settled."""
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT, entity], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"entered\n"
        process.send_signal(signal.SIGINT)
        process.communicate()
    assert process.returncode != 0
    assert server.used(entity) == server.expect(0, 40)
