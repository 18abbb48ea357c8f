"""The client for threads."""

from __future__ import annotations

import atexit
import threading
import time
import weakref
from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import TypeVar

import httpx

from . import types
from ._call import Attempt, Patience, Pause, Reply, Steps
from ._core import (
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


started: weakref.WeakSet[threading.Thread] = weakref.WeakSet()
"""The threads of all clients that settle and cancel in the background."""


@atexit.register
def wait_for_started() -> None:
    """Let the threads finish before the process ends, for as long as they may try."""
    end = time.monotonic() + CANCEL_FOR
    for thread in list(started):
        thread.join(max(end - time.monotonic(), 0))


class Client:
    """A client of a weir server. Several threads may share it.

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
        http_client: httpx.Client | None = None,
    ) -> None:
        self._core = Core.of(base_url, token, Patience(attempts, backoff, timeout), on_unavailable)
        self._http = http_client or self._connect()
        self._owned = http_client is None
        self._background: set[threading.Thread] = set()

    def _connect(self) -> httpx.Client:
        return httpx.Client(limits=CONNECTIONS, trust_env=not reaches_loopback(self._core.base))

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Wait until reservations that were given up are cancelled, and close the connections."""
        for thread in list(self._background):
            thread.join()
        if self._owned:
            self._http.close()

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
    ) -> Lease:
        """Return a lease for a with statement.

        The statement reserves, or raises Denied. While the block runs, the lease is extended in a
        thread if it has slots that time out. At the end of the block it is settled:

        - with the last report(), whether the block succeeded or not,
        - otherwise as it was reserved, if the block succeeded or has called sent(),
        - otherwise, and after give_back(), everything is refunded.

        A failure to settle is logged. What was reserved then stays charged.

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
        return Lease(self, r, wait, refund_on)

    def reserve(
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
        return self._reserve(r, self._core.reserve(r, wait))

    def adjust(self, lease_id: str, seq: int, totals: Units) -> types.Receipt:
        """Change what a lease stands for to new totals. seq rises with each adjust."""
        return self._run(self._core.update("adjust", lease_id, seq=seq, totals=dict(totals)))

    def extend(self, lease_id: str) -> types.Receipt:
        """Renew a lease and its slots."""
        return self._run(self._core.update("extend", lease_id))

    def complete(self, lease_id: str, actuals: Units | None = None) -> types.Receipt:
        """End a lease, charged what was used. What actuals does not name stays as reserved."""
        return self._run(self._core.update("complete", lease_id, actuals=dict(actuals or {})))

    def cancel(self, lease_id: str) -> types.Receipt:
        """End a lease and refund everything."""
        return self._run(self._core.update("cancel", lease_id))

    def status(self, entity: str, resource: str | None = None) -> list[types.LimitStatus]:
        """Return what is left of each limit of an entity."""
        ask = self._core.ask("/v1/status", statuses_of, entity=entity, resource=resource)
        return self._run(ask)

    def explain(self, entity: str, resource: str) -> types.Explanation:
        """Return which limits apply to an entity on a resource, and where they come from."""
        ask = self._core.ask("/v1/explain", explanation_of, entity=entity, resource=resource)
        return self._run(ask)

    def _reserve(self, r: Reservation, steps: Steps[types.Lease]) -> types.Lease:
        try:
            lease = self._run(steps)
            r.open = False
            return lease
        except Unavailable:
            if self._core.on_unavailable == "block":
                raise
            return self._core.degraded(r)
        finally:
            for id in r.abandoned():
                until = time.monotonic() + CANCEL_FOR
                self._start(partial(self._core.cancel_abandoned, id, until))

    def _start(self, steps: Callable[[], Steps[None]]) -> None:
        """Run a call in a thread. The end of the process waits for it, for a while."""

        def run() -> None:
            # An interrupt can leave the connections of the client locked, so it has its own.
            http = self._connect() if self._owned else self._http
            try:
                self._run(steps(), http)
            except Exception:
                log.exception("a lease may not have been settled")
            finally:
                if self._owned:
                    http.close()
                self._background.discard(threading.current_thread())

        thread = threading.Thread(target=run, name="weir-client", daemon=True)
        self._background.add(thread)
        started.add(thread)
        thread.start()

    def _run(self, steps: Steps[T], http: httpx.Client | None = None) -> T:
        answer: Reply | httpx.HTTPError | None = None
        while True:
            try:
                step = steps.send(answer)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            if isinstance(step, Pause):
                time.sleep(step.seconds)
                answer = None
            else:
                answer = self._send(step, http or self._http)

    def _send(self, a: Attempt, http: httpx.Client) -> Reply | httpx.HTTPError:
        try:
            r = http.request(
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


class Lease(LeaseNotes):
    """A lease for a with statement; see Client.lease."""

    def __init__(
        self,
        client: Client,
        r: Reservation,
        wait: float | None,
        refund_on: type[BaseException] | tuple[type[BaseException], ...],
    ) -> None:
        super().__init__(refund_on)
        self._client = client
        self._reservation = r
        self._wait = wait
        self._done = threading.Event()

    def __enter__(self) -> Lease:
        r, core = self._reservation, self._client._core
        self._begin(self._client._reserve(r, core.enter(r, self._wait)))
        try:
            if self.extends:
                threading.Thread(target=self._extend, name="weir-extend", daemon=True).start()
        except BaseException as error:  # no block runs
            self.__exit__(type(error), error, None)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._done.set()
        if self.degraded:
            return
        how, until = self.settlement(error), time.monotonic() + SETTLE_FOR
        core, id = self._client._core, self.id
        try:
            self._client._run(core.settle(id, how, until))
        except Exception:
            log.exception("lease %s may not have been settled", id)
        except BaseException:  # such as a second interrupt
            self._client._start(lambda: core.settle(id, how, until))
            raise

    def adjust(self, totals: Units | None = None, /, **units: int) -> types.Receipt | None:
        """Change what the lease stands for to new totals, for an answer that outgrows it."""
        if self.degraded:
            return None
        return self._client.adjust(self.id, self._next_seq(), {**(totals or {}), **units})

    def _extend(self) -> None:
        core = self._client._core
        pause = third = renewal(self.answer)
        while not self._done.wait(pause):
            # Without an answer there is time for two more attempts before the slot is lost.
            pause, until = third / 4, time.monotonic() + third / 2
            try:
                pause = third = renewal(
                    self._client._run(core.update("extend", self.id, until=until))
                )
            except (Ended, UnknownLease) as error:
                if not self._done.is_set():
                    log.warning("lease %s ended before its block: %s", self.id, error)
                return
            except WeirError:
                pass  # the next one may succeed
            except RuntimeError:
                return  # the client was closed
