"""The client for asyncio."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import TypeVar

import anyio
import httpx

from . import types
from ._call import Attempt, Patience, Pause, Reply, Steps
from ._core import (
    ANSWERED_FOR,
    CANCEL_FOR,
    CONNECTIONS,
    SETTLE_FOR,
    Core,
    LeaseNotes,
    OnUnavailable,
    Reservation,
    Units,
    explanation_of,
    log,
    reaches_loopback,
    renewal,
    statuses_of,
)
from .errors import Ended, Unavailable, UnknownLease, WeirError

T = TypeVar("T")


class AsyncClient:
    """A client of a weir server for the tasks of one asyncio event loop.

    Args:
        base_url: The server. Default: the variable WEIR_SERVER, or http://127.0.0.1:7117.
        token: The bearer token, for a server with https. Default: the variable WEIR_TOKEN, or none.
        timeout: Seconds for one attempt to connect, send or receive. Default: 5.
        attempts: How often a call without a definite answer is tried. Default: 4.
        backoff: Seconds before the second attempt; then twice as long each time. Default: 0.05.
        on_unavailable: What a reservation becomes if the server does not answer. "block" raises
            Unavailable; "allow" returns a degraded lease, which charges nothing. Default: "block".
        http_client: Sends the requests, and is not closed. Default: one of its own.
    """

    def __init__(
        self,
        base_url: str | None = None,
        *,
        token: str | None = None,
        timeout: float = 5.0,
        attempts: int = 4,
        backoff: float = 0.05,
        on_unavailable: OnUnavailable = "block",
        http_client: httpx.AsyncClient | None = None,
    ) -> None:
        self._core = Core.of(base_url, token, Patience(attempts, backoff, timeout), on_unavailable)
        trust_env = not reaches_loopback(self._core.base)
        self._http = http_client or httpx.AsyncClient(limits=CONNECTIONS, trust_env=trust_env)
        self._owned = http_client is None
        self._background: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Wait until reservations that were given up are cancelled, and close the connections."""
        while self._background:
            await asyncio.wait(self._background)
        if self._owned:
            await self._http.aclose()

    def lease(
        self,
        entity: str,
        resource: str,
        costs: Units | None = None,
        *,
        lease_id: str | None = None,
        limits: types.Limits | None = None,
        wait: float | None = None,
        refund_on: type[BaseException] | tuple[type[BaseException], ...] = (),
    ) -> AsyncLease:
        """Return a lease for an async with statement.

        The statement reserves, or raises Denied. While the block runs, the lease is extended in a
        task if it has slots that time out. At the end of the block it is settled:

        - with the last report(), whether the block succeeded or not,
        - otherwise as it was reserved, if the block succeeded or has called sent(),
        - otherwise, and after give_back(), everything is refunded.

        If the task is cancelled, the lease is settled before the cancellation goes on; that may
        take some seconds if the server does not answer. A failure to settle is logged. What was
        reserved then stays charged.

        Args:
            entity: Who calls.
            resource: What is called.
            costs: The most that the call may use, by the name of the limit. A limit that is not
                named is not charged; each concurrency limit takes a slot.
            lease_id: An ID of your own, such as from job_lease_id. It is not cancelled if the
                reservation is given up. Default: a new one.
            limits: Limits of the request, if none are configured.
            wait: Seconds for which a denied reservation is tried again. Default: not at all.
            refund_on: Errors that mean that the model has not billed the call although it was sent.
        """
        r = self._core.reservation(entity, resource, costs, lease_id, limits, wait)
        return AsyncLease(self, r, wait, refund_on)

    async def reserve(
        self,
        entity: str,
        resource: str,
        costs: Units | None = None,
        *,
        lease_id: str | None = None,
        limits: types.Limits | None = None,
        wait: float | None = None,
    ) -> types.Lease:
        """Reserve, or raise Denied. The caller extends and settles; lease() does that by itself.

        Do not settle a lease that is degraded. The arguments are those of lease().
        """
        r = self._core.reservation(entity, resource, costs, lease_id, limits, wait)
        return await self._reserve(r, self._core.reserve(r, wait))

    async def adjust(self, lease_id: str, seq: int, totals: Units) -> types.Receipt:
        """Change what a lease stands for to new totals. seq rises with each adjust."""
        return await self._run(self._core.update("adjust", lease_id, seq=seq, totals=dict(totals)))

    async def extend(self, lease_id: str) -> types.Receipt:
        """Renew a lease and its slots."""
        return await self._run(self._core.update("extend", lease_id))

    async def complete(self, lease_id: str, actuals: Units | None = None) -> types.Receipt:
        """End a lease, charged what was used. What actuals does not name stays as reserved."""
        return await self._run(self._core.update("complete", lease_id, actuals=dict(actuals or {})))

    async def cancel(self, lease_id: str) -> types.Receipt:
        """End a lease and refund everything."""
        return await self._run(self._core.update("cancel", lease_id))

    async def status(self, entity: str, resource: str | None = None) -> list[types.LimitStatus]:
        """Return what is left of each limit of an entity."""
        ask = self._core.ask("/v1/status", statuses_of, entity=entity, resource=resource)
        return await self._run(ask)

    async def explain(self, entity: str, resource: str) -> types.Explanation:
        """Return which limits apply to an entity on a resource, and where they come from."""
        ask = self._core.ask("/v1/explain", explanation_of, entity=entity, resource=resource)
        return await self._run(ask)

    async def _reserve(self, r: Reservation, steps: Steps[types.Lease]) -> types.Lease:
        try:
            lease = await self._run(steps)
            r.open = False
            return lease
        except Unavailable:
            if self._core.on_unavailable == "block":
                raise
            return self._core.degraded(r)
        except asyncio.CancelledError:
            for answered in self._abandon(r):
                await outlast(answered, ANSWERED_FOR)
            raise
        finally:
            self._abandon(r)

    def _abandon(self, r: Reservation) -> list[asyncio.Future[None]]:
        """Cancel what was given up. The futures have results after the first answers."""
        futures = []
        for id in r.abandoned():
            answered: asyncio.Future[None] = asyncio.get_running_loop().create_future()

            def answer(_: object = None, answered: asyncio.Future[None] = answered) -> None:
                if not answered.done():
                    answered.set_result(None)

            until = time.monotonic() + CANCEL_FOR
            task = self._start(partial(self._core.cancel_abandoned, id, until, answer))
            task.add_done_callback(answer)
            futures.append(answered)
        return futures

    def _start(self, steps: Callable[[], Steps[None]]) -> asyncio.Task[None]:
        """Run a call in a task that goes on if it is cancelled, as by the end of asyncio.run."""

        async def run() -> None:
            while True:
                try:
                    return await self._run(steps())
                except asyncio.CancelledError:
                    continue  # the same call again; its time is bounded
                except Exception:
                    return log.exception("a lease may not have been settled")

        task = asyncio.get_running_loop().create_task(run(), name="weir-client")
        self._background.add(task)
        task.add_done_callback(self._background.discard)
        return task

    async def _run(self, steps: Steps[T]) -> T:
        answer: Reply | httpx.HTTPError | None = None
        while True:
            try:
                step = steps.send(answer)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            if isinstance(step, Pause):
                await asyncio.sleep(step.seconds)
                answer = None
            else:
                answer = await self._send(step)

    async def _send(self, a: Attempt) -> Reply | httpx.HTTPError:
        try:
            r = await self._http.request(
                a.method,
                self._core.base + a.path,
                json=a.body,
                params=a.params or None,
                headers=self._core.headers,
                timeout=a.timeout,
                follow_redirects=False,
            )
        except httpx.HTTPError as error:
            return error
        return Reply(r.status_code, r.headers, r.content)


class AsyncLease(LeaseNotes):
    """A lease for an async with statement; see AsyncClient.lease."""

    def __init__(
        self,
        client: AsyncClient,
        r: Reservation,
        wait: float | None,
        refund_on: type[BaseException] | tuple[type[BaseException], ...],
    ) -> None:
        super().__init__(refund_on)
        self._client = client
        self._reservation = r
        self._wait = wait
        self._extender: asyncio.Task[None] | None = None

    async def __aenter__(self) -> AsyncLease:
        r, core = self._reservation, self._client._core
        self._begin(await self._client._reserve(r, core.enter(r, self._wait)))
        if self.extends:
            loop = asyncio.get_running_loop()
            self._extender = loop.create_task(self._extend(), name="weir-extend")
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._extender is not None:
            self._extender.cancel()
        if self.degraded:
            return
        how, until = self.settlement(error), time.monotonic() + SETTLE_FOR
        task = self._client._start(lambda: self._client._core.settle(self.id, how, until))
        await outlast(task, 2 * SETTLE_FOR)

    async def adjust(self, totals: Units | None = None, /, **units: int) -> types.Receipt | None:
        """Change what the lease stands for to new totals, for an answer that outgrows it."""
        if self.degraded:
            return None
        return await self._client.adjust(self.id, self._next_seq(), {**(totals or {}), **units})

    async def _extend(self) -> None:
        core = self._client._core
        pause = third = renewal(self.answer)
        while True:
            await asyncio.sleep(pause)
            # Without an answer there is time for two more attempts before the slot is lost.
            pause, until = third / 4, time.monotonic() + third / 2
            try:
                pause = third = renewal(
                    await self._client._run(core.update("extend", self.id, until=until))
                )
            except (Ended, UnknownLease) as error:
                log.warning("lease %s ended before its block: %s", self.id, error)
                return
            except WeirError:
                pass  # the next one may succeed
            except RuntimeError:
                return  # the client was closed


async def outlast(done: asyncio.Future[None], seconds: float) -> None:
    """Wait until a future is done, even if this task is cancelled. Then raise the cancellation."""
    end = time.monotonic() + seconds
    cancelled: asyncio.CancelledError | None = None
    with anyio.CancelScope(shield=True):  # against the scopes of anyio
        while not done.done() and (left := end - time.monotonic()) > 0:
            try:
                await asyncio.wait([done], timeout=left)
            except asyncio.CancelledError as again:
                cancelled = again
    if cancelled is not None:
        raise cancelled
