"""What both clients share, as generators (see _call): the verbs, waiting, settling, giving up."""

from __future__ import annotations

import ipaddress
import json
import logging
import math
import os
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar, cast

import httpx

from . import _ids, types
from ._call import Outcome, Patience, Pause, Steps, call
from .errors import (
    Denied,
    Ended,
    Invalid,
    Overloaded,
    Unavailable,
    UnknownLease,
    UnknownLimit,
    WeirError,
)

T = TypeVar("T")

log = logging.getLogger("weir_client")

Units = Mapping[str, int]
"""Units by the name of the limit."""

OnUnavailable = Literal["block", "allow"]

SETTLE_FOR = 10.0
"""Seconds for which a lease is settled before that is given up."""

CONNECTIONS = httpx.Limits(max_connections=256, max_keepalive_connections=256)

CANCEL_FOR = 10.0
"""Seconds for which a reservation that was given up is cancelled."""

ANSWERED_FOR = 2.0
"""Seconds for which a cancelled task waits for the first answer to that cancel."""

# A reserve that was given up may still be on its way when its cancel is answered 404, and may reach
# another server. So the cancel is repeated this often.
CANCELS_AFTER_404 = 4

FIRST_WAIT, LONGEST_WAIT = 0.025, 1.0


@dataclass
class Reservation:
    """A reservation that is being made. It says which IDs to cancel if it is given up."""

    body: dict[str, Any]
    id: str
    own: bool  # the client made the ID
    open: bool = False  # something may be reserved under the ID
    strays: list[str] = field(default_factory=list)  # earlier IDs that may hold something

    def abandoned(self) -> list[str]:
        """Return the IDs to cancel. A caller that brought its ID repeats or cancels it itself."""
        ids = self.strays + ([self.id] if self.open else [])
        self.strays, self.open = [], False
        return ids if self.own else []

    def renew(self, id: str) -> None:
        if self.open:
            self.strays.append(self.id)
        self.id, self.open = id, False


@dataclass(frozen=True)
class Core:
    """The verbs of one server."""

    base: str
    headers: Mapping[str, str]
    patience: Patience
    on_unavailable: OnUnavailable
    clock: _ids.ServerClock = field(default_factory=_ids.ServerClock)

    @classmethod
    def of(
        cls, base_url: str | None, token: str | None, patience: Patience, policy: OnUnavailable
    ) -> Core:
        """Fill in the defaults from the environment, as the commands of weir do."""
        base = base_url or os.environ.get("WEIR_SERVER") or "http://127.0.0.1:7117"
        token = os.environ.get("WEIR_TOKEN", "") if token is None else token
        url = httpx.URL(base)
        if url.scheme not in ("http", "https") or not url.host or url.userinfo:
            raise ValueError("base_url must be http:// or https:// and a host, without a password")
        if not all("!" <= c <= "~" for c in token):
            raise ValueError("token must have printable ASCII characters only, without line ends")
        if policy not in ("block", "allow"):
            raise ValueError(f"on_unavailable {policy!r}: must be block or allow")
        if patience.attempts < 1 or patience.backoff < 0 or patience.timeout <= 0:
            raise ValueError("attempts and timeout must be above zero, and backoff not below")
        headers = {"Accept": "application/json, application/problem+json"}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        return cls(base.rstrip("/"), headers, patience, policy)

    def reservation(
        self,
        entity: str,
        resource: str,
        costs: Units | None,
        lease_id: str | None,
        limits: types.Limits | None,
        wait: float | None,
    ) -> Reservation:
        if lease_id is not None and wait is not None:
            raise ValueError("wait needs a new lease ID for each attempt: do not bring one")
        body: dict[str, Any] = {
            "entity": entity,
            "resource": resource,
            "costs": dict(costs or {}),
        }
        if limits is not None:
            body["limits"] = limits
        return Reservation(body, lease_id or self.clock.lease_id(), lease_id is None)

    def reserve(self, r: Reservation, wait: float | None) -> Steps[types.Lease]:
        """Reserve. After a denial, try again until wait seconds have passed."""
        until = time.monotonic() + (wait or 0)
        pause = FIRST_WAIT
        while True:
            try:
                return (yield from self._reserve_once(r))
            except (Denied, Overloaded) as denied:
                left = until - time.monotonic()
                if wait is None or left <= 0:
                    raise
                # A random part keeps callers that were denied together from coming back together.
                after = wait_after(denied, pause) * random.uniform(1, 1.125)
            yield Pause(min(after, left))
            pause = min(2 * pause, LONGEST_WAIT)
            r.renew(self.clock.lease_id())

    def _reserve_once(self, r: Reservation) -> Steps[types.Lease]:
        left, corrections = self.patience.attempts, 0
        while True:
            r.open = True
            out: Outcome[types.Lease] = yield from call(
                self.patience,
                "POST",
                "/v1/reserve",
                lambda body: lease_of(body, r.id),
                body={"lease_id": r.id, **r.body},
                denies=True,
                attempts=left,
            )
            error = out.error
            if error is None:
                return out.get()
            r.open = out.unknown
            if r.own and not out.unknown and refuses_id(error):
                # The server refused the time in the ID, and charged nothing.
                id = self.clock.correct(corrections, out.date)
                if id is not None:
                    corrections += 1
                    r.renew(id)
                    continue
            if out.unknown and (isinstance(error, Ended) or refuses_id(error)):
                left -= out.attempts
                if r.own and isinstance(error, Ended) and left > 0:
                    # The server has cancelled an earlier attempt: nothing is charged for this ID.
                    r.open = False
                    r.renew(self.clock.lease_id())
                    continue
                # An earlier attempt may have used the ID, so the outcome is unknown.
                raise Unavailable("the server did not answer") from error
            raise error

    def enter(self, r: Reservation, wait: float | None) -> Steps[types.Lease]:
        """Reserve for a block of code. A repeated reservation may be old, so it is extended."""
        lease = yield from self.reserve(r, wait)
        if lease.get("replay"):
            try:
                receipt = yield from self.update("extend", r.id)
            except (Unavailable, Overloaded):
                pass  # it is extended again while the block runs
            else:
                if "holds_until_unix_ms" in lease and "holds_until_unix_ms" not in receipt:
                    raise Ended("the slots of the lease have timed out", field="lease_id")
                for name in ("expires_at_unix_ms", "holds_until_unix_ms"):
                    if name in receipt:
                        lease[name] = receipt[name]
        r.open = False
        return lease

    def degraded(self, r: Reservation) -> types.Lease:
        """Return the lease of a call that is allowed although the server does not answer."""
        return {
            "allowed": True,
            "lease_id": r.id,
            "reserved_at_unix_ms": time.time_ns() // 1_000_000,
            "degraded": True,
            "limits": [],
        }

    def update(
        self, verb: str, id: str, *, until: float = math.inf, **members: Any
    ) -> Steps[types.Receipt]:
        """Adjust, extend, complete or cancel a lease."""
        out = yield from call(
            self.patience,
            "POST",
            f"/v1/{verb}",
            lambda body: receipt_of(body, id),
            body={"lease_id": id, **members},
            until=until,
        )
        return out.get()

    def ask(self, path: str, accept: Callable[[Any], T], **params: str | None) -> Steps[T]:
        """Ask a question."""
        given = {name: value for name, value in params.items() if value is not None}
        out = yield from call(self.patience, "GET", path, accept, params=given)
        return out.get()

    def settle(self, id: str, settlement: Settlement, until: float) -> Steps[None]:
        """End a lease. A failure is logged and not raised, so that no model's answer is lost."""
        verb, members = settlement
        try:
            json.dumps(members, allow_nan=False)
        except (TypeError, ValueError) as mistake:  # it cannot be sent at all
            log.error("lease %s: the report is wrong, so what was reserved stays: %s", id, mistake)
            members = {}
        try:
            try:
                yield from self.update(verb, id, until=until, **members)
            except (Invalid, UnknownLimit) as mistake:
                if not members:
                    raise
                # The amounts stay as reserved, but the slots return.
                log.error(
                    "lease %s: the report is wrong, so what was reserved stays: %s", id, mistake
                )
                yield from self.update(verb, id, until=until)
        except WeirError as failed:
            log.error("lease %s was not settled: %s: %s", id, verb, failed)

    def cancel_abandoned(
        self, id: str, until: float, answered: Callable[[], None] = lambda: None
    ) -> Steps[None]:
        """Cancel a reservation that was given up. It may not have arrived yet.

        answered is called after the first answer. From then on that server refuses the ID.
        """
        for n in range(CANCELS_AFTER_404):
            out: Outcome[types.Receipt] = yield from call(
                self.patience,
                "POST",
                "/v1/cancel",
                lambda body: receipt_of(body, id),
                body={"lease_id": id},
                attempts=math.inf,
                until=until,
            )
            answered()
            if not isinstance(out.error, UnknownLease):
                if out.error is not None and not isinstance(out.error, Ended):
                    log.error("reservation %s was given up, not cancelled: %s", id, out.error)
                return
            yield Pause(0.1 * 2**n)


Settlement = tuple[str, dict[str, Any]]
"""A verb that ends a lease, and the members of its body."""


class LeaseNotes:
    """What the block under a lease says about it."""

    def __init__(self, refund_on: type[BaseException] | tuple[type[BaseException], ...]) -> None:
        kinds = (refund_on,) if isinstance(refund_on, type) else tuple(refund_on)
        if not all(isinstance(kind, type) and issubclass(kind, BaseException) for kind in kinds):
            raise TypeError(f"refund_on {refund_on!r}: must be a type of errors, or several")
        self._refund_on = kinds
        self._sent = False
        self._given_back = False
        self._report: Units | None = None
        self._seq = 0

    def _begin(self, lease: types.Lease) -> None:
        self.answer = lease
        """The server's answer."""
        self.id = lease["lease_id"]
        """The lease ID."""
        self.degraded = lease.get("degraded", False)
        """Whether the store or the server did not answer and the policy is to allow calls."""
        self._seq = lease.get("seq", 0)

    @property
    def limits(self) -> list[types.LimitStatus]:
        """The limits that judged the request, with what was left after it."""
        return self.answer["limits"]

    @property
    def extends(self) -> bool:
        """Whether the lease is extended while the block runs: it has slots that time out."""
        return not self.degraded and "holds_until_unix_ms" in self.answer

    def _next_seq(self) -> int:
        self._seq += 1
        return self._seq

    def sent(self) -> None:
        """Say that the call of the model begins: from now on an error does not refund it."""
        self._sent = True

    def report(self, actuals: Units | None = None, /, **units: int) -> None:
        """Say what was used so far. The last report is charged, even if the block fails.

        A limit that it does not name keeps what was reserved.
        """
        self._report = {**(actuals or {}), **units}
        self._given_back = False

    def give_back(self) -> None:
        """Say that nothing was used: everything is refunded, even if the block succeeds."""
        self._given_back = True

    def settlement(self, error: BaseException | None) -> Settlement:
        """Return how to end the lease after a block that ended with an error or without one."""
        if self._given_back:
            return "cancel", {}
        if self._report is not None:
            return "complete", {"actuals": self._report}
        if error is not None and (not self._sent or isinstance(error, self._refund_on)):
            return "cancel", {}
        return "complete", {}


def refuses_id(error: Exception | None) -> bool:
    return isinstance(error, Invalid) and error.field == "lease_id"


def wait_after(denied: Denied | Overloaded, pause: float) -> float:
    """Return how long to wait before the next attempt, in seconds."""
    if isinstance(denied, Denied) and any("retry_likely_ms" in s for s in denied.limits):
        return denied.retry_after  # each denied caller is given a time of its own
    return min(denied.retry_after, pause) if denied.retry_after > 0 else pause


def reaches_loopback(base: str) -> bool:
    """Return whether the URL is of this machine, so that no proxy of the environment is asked."""
    host = httpx.URL(base).host
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def renewal(lease: types.Lease | types.Receipt) -> float:
    """Return the seconds until the lease is to be extended: a third of what is left.

    So two extensions in a row may fail before a slot is lost.
    """
    at = cast("int", lease.get("at_unix_ms") or lease.get("reserved_at_unix_ms") or 0)
    ends = [lease[m] for m in ("expires_at_unix_ms", "holds_until_unix_ms") if m in lease]
    return max((min(ends) - at) / 3000, 0.01) if ends else 60.0


def lease_of(body: Any, id: str) -> types.Lease:
    """Return the body as a lease. Raise ValueError if it is not one."""
    complete = (
        body["allowed"] is True
        and body["lease_id"].upper() == id.upper()
        and body["reserved_at_unix_ms"] > 0
        and isinstance(body["limits"], list)
    )
    if not complete:
        raise ValueError("it is not the answer about this lease")
    return cast("types.Lease", body)


def receipt_of(body: Any, id: str) -> types.Receipt:
    """Return the body as a receipt. Raise ValueError if it is not one."""
    if body["lease_id"].upper() != id.upper() or body["at_unix_ms"] <= 0:
        raise ValueError("it is not the answer about this lease")
    return cast("types.Receipt", body)


def statuses_of(body: Any) -> list[types.LimitStatus]:
    """Return the limits of a status."""
    return cast("list[types.LimitStatus]", body["limits"])


def explanation_of(body: Any) -> types.Explanation:
    """Return the body as an explanation."""
    if "limits" not in body:
        raise ValueError("it is not an explanation")
    return cast("types.Explanation", body)
