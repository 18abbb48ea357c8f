"""What the client makes of answers. No server is needed."""

from __future__ import annotations

import asyncio
import json
import pickle
import time
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from conftest import happens, run

import weir_client
from weir_client import _async, _call

PROBLEM = {"content-type": "application/problem+json"}
JSON = {"content-type": "application/json"}


def problem(status: int, code: str, headers: dict[str, str] | None = None) -> httpx.Response:
    body = {"type": "about:blank", "title": code, "status": status, "detail": code, "code": code}
    return httpx.Response(status, json=body, headers=PROBLEM | (headers or {}))


def denial() -> httpx.Response:
    body = {"status": 429, "detail": "denied", "allowed": False, "retry_after_ms": 1500}
    return httpx.Response(429, json=body, headers=PROBLEM)


def lease(r: httpx.Request) -> httpx.Response:
    id = json.loads(r.content)["lease_id"]
    body = {"allowed": True, "lease_id": id, "reserved_at_unix_ms": 1, "limits": []}
    return httpx.Response(200, json=body, headers=JSON)


def receipt(r: httpx.Request) -> httpx.Response:
    body = {"lease_id": json.loads(r.content)["lease_id"], "at_unix_ms": 1}
    return httpx.Response(200, json=body, headers=JSON)


Answer = httpx.Response | Exception | Callable[[httpx.Request], httpx.Response]


class Script:
    """A server that gives these answers to reserves, in order, and a receipt to anything else."""

    def __init__(self, *answers: Answer, policy: Any = "block") -> None:
        self.answers = list(answers)
        self.others: list[Answer] = []  # what other verbs are answered before receipts
        self.asked: list[tuple[str, Any]] = []
        self.headers: list[httpx.Headers] = []
        http = httpx.Client(transport=httpx.MockTransport(self.answer))
        self.client = weir_client.Client(
            "http://weir.test", token="secret", backoff=0, http_client=http, on_unavailable=policy
        )

    def answer(self, r: httpx.Request) -> httpx.Response:
        self.asked.append((r.url.path, json.loads(r.content)))
        self.headers.append(r.headers)
        if r.url.path != "/v1/reserve" and not self.others:
            return receipt(r)
        if r.url.path != "/v1/reserve":
            return self.give(self.others.pop(0), r)
        return self.give(self.answers.pop(0), r)

    def give(self, given: Answer, r: httpx.Request) -> httpx.Response:
        if isinstance(given, Exception):
            raise given
        return given(r) if callable(given) else given

    def reserve(self) -> weir_client.types.Lease:
        try:
            return self.client.reserve("acme", "llm", {"rpm": 1})
        finally:
            self.client.close()

    def verbs(self) -> list[str]:
        return [path.removeprefix("/v1/") for path, _ in self.asked]


LOST = httpx.ReadError("the connection was closed")


@pytest.mark.parametrize(
    "first",
    [
        LOST,
        httpx.ConnectError("refused"),
        httpx.ReadTimeout("late"),
        httpx.Response(502, text="bad gateway"),
        httpx.Response(429, json=denial().json(), headers=JSON),  # by a proxy
        httpx.Response(429, text="slow down"),
        httpx.Response(200, text="<html>", headers={"content-type": "text/html"}),
        httpx.Response(200, text="{", headers=JSON),
        httpx.Response(200, json={"allowed": True}, headers=JSON),
        httpx.Response(200, json=[], headers=JSON),
        httpx.Response(429, json={"status": 429, "allowed": False}, headers=PROBLEM),
        httpx.Response(503, json={"status": 500, "code": "invalid"}, headers=PROBLEM),
        httpx.Response(404, json={"status": 404, "title": "a proxy's"}, headers=PROBLEM),
        problem(503, "unavailable"),
        problem(503, "overloaded"),
        problem(408, "invalid"),
    ],
)
def test_what_is_repeated(first: Answer) -> None:
    """An answer that is not definite is never a denial. The same request is sent again."""
    s = Script(first, lease)
    assert s.reserve()["allowed"]
    assert s.verbs() == ["reserve", "reserve"]
    assert s.asked[0] == s.asked[1]
    assert s.headers[0]["authorization"] == "Bearer secret"


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (denial(), weir_client.Denied),
        (problem(400, "invalid"), weir_client.Invalid),
        (problem(400, "unsupported"), weir_client.Unsupported),
        (problem(401, "permission denied"), weir_client.PermissionDenied),
        (httpx.Response(403, text="no"), weir_client.PermissionDenied),
        (problem(404, "unknown limit"), weir_client.UnknownLimit),
        (problem(404, "no limits configured"), weir_client.NoLimitsConfigured),
        (problem(409, "conflict"), weir_client.Conflict),
        (problem(409, "ended"), weir_client.Ended),
        (problem(422, "never satisfiable"), weir_client.NeverSatisfiable),
        (problem(503, "superseded"), weir_client.Superseded),
        (problem(418, "of a later release"), weir_client.WeirError),
    ],
)
def test_what_is_definite(answer: httpx.Response, kind: type[Any]) -> None:
    """A definite answer is raised at once, with its type, and nothing is cancelled."""
    s = Script(answer)
    with pytest.raises(kind) as caught:
        s.reserve()
    assert type(caught.value) is kind
    assert s.verbs() == ["reserve"]
    again = pickle.loads(pickle.dumps(caught.value))  # as between processes
    assert (type(again), str(again)) == (kind, str(caught.value))
    if isinstance(caught.value, weir_client.Denied):
        assert str(caught.value) == "denied"
        assert caught.value.retry_after == again.retry_after == 1.5
    elif caught.value.problem:
        assert again.problem["status"] == answer.status_code


@pytest.mark.parametrize("policy", ["block", "allow"])
def test_a_reserve_that_is_given_up_is_cancelled(policy: str) -> None:
    """After the last attempt the ID is cancelled, whether the call is then allowed or not."""
    s = Script(LOST, LOST, LOST, LOST, policy=policy)
    if policy == "block":
        with pytest.raises(weir_client.Unavailable):
            s.reserve()
    else:
        assert s.reserve()["degraded"]
    assert s.verbs() == ["reserve"] * 4 + ["cancel"]
    assert {body["lease_id"] for _, body in s.asked} == {s.asked[0][1]["lease_id"]}


@pytest.mark.parametrize("policy", ["block", "allow"])
def test_a_server_that_is_down(policy: str) -> None:
    """Nothing is cancelled if nothing was sent. A degraded lease settles nothing."""
    s = Script(*[httpx.ConnectError("refused")] * 4, policy=policy)
    ran = False
    if policy == "block":
        with pytest.raises(weir_client.Unavailable), s.client.lease("acme", "llm", {"rpm": 1}):
            ran = True
    else:
        with s.client.lease("acme", "llm", {"rpm": 1}) as lease:
            ran = True
            assert lease.degraded
            lease.adjust(rpm=2)
            lease.report(rpm=1)
    s.client.close()
    assert ran == (policy == "allow")
    assert s.verbs() == ["reserve"] * 4


def test_a_cancel_that_arrives_before_its_reserve() -> None:
    """The reserve may reach another server later, so the cancel is repeated."""
    s = Script(LOST, LOST, LOST, LOST)
    s.others = [problem(404, "unknown lease")] * 2
    with pytest.raises(weir_client.Unavailable):
        s.reserve()
    assert s.verbs() == ["reserve"] * 4 + ["cancel"] * 3


@pytest.mark.parametrize("verb", ["reserve", "complete"])
def test_an_interrupt_while_the_client_waits(verb: str) -> None:
    """An interrupt during a call does not lose the cancel or the settlement."""

    def interrupt(r: httpx.Request) -> httpx.Response:
        raise KeyboardInterrupt

    s = Script(interrupt if verb == "reserve" else lease)
    s.others = [] if verb == "reserve" else [interrupt]
    with pytest.raises(KeyboardInterrupt), s.client.lease("acme", "llm", {"rpm": 1}) as held:
        held.report(rpm=1)
    s.client.close()
    want = ["reserve", "cancel"] if verb == "reserve" else ["reserve", "complete", "complete"]
    assert s.verbs() == want


def test_an_overload_is_not_allowed() -> None:
    """The policy is for a server that does not answer. One that is too busy did nothing."""
    s = Script(*[problem(503, "overloaded")] * 4, policy="allow")
    with pytest.raises(weir_client.Overloaded):
        s.reserve()
    assert s.verbs() == ["reserve"] * 4


def test_a_denial_after_a_lost_answer() -> None:
    """The lost attempt may still arrive, so its ID is cancelled."""
    s = Script(LOST, denial())
    with pytest.raises(weir_client.Denied):
        s.reserve()
    assert s.verbs() == ["reserve", "reserve", "cancel"]


def test_an_id_that_the_caller_brought_is_not_cancelled() -> None:
    """The caller repeats the call or cancels it."""
    s = Script(LOST, LOST, LOST, LOST)
    with pytest.raises(weir_client.Unavailable):
        s.client.reserve("acme", "llm", {"rpm": 1}, lease_id=weir_client.lease_id())
    s.client.close()
    assert s.verbs() == ["reserve"] * 4


def test_lease_ids() -> None:
    """They have the time and other bits, and differ."""
    assert weir_client.lease_id(0, bytes(10)) == "0" * 26
    assert weir_client.lease_id(2**48 - 1, b"\xff" * 10) == "7" + "Z" * 25
    assert weir_client.lease_id(1) < weir_client.lease_id(2)
    assert len({weir_client.lease_id() for _ in range(1000)}) == 1000
    # docs/callers.md computes the same ID.
    assert weir_client.job_lease_id("job-7", 1, 0) == weir_client.job_lease_id("job-7", 1, 0)
    assert weir_client.job_lease_id("job-7", 1, 0) != weir_client.job_lease_id("job-7", 2, 0)


def test_pauses() -> None:
    """They double up to two seconds, vary, and are as long as the server asks."""
    p = _call.Patience(4, 0.05, 5)
    for n, longest in ((1, 0.05), (2, 0.1), (5, 0.8), (50, 2)):
        pauses = [p.pause(n, 0) for _ in range(100)]
        assert longest / 2 <= min(pauses) < max(pauses) <= longest
    assert p.pause(1, 3) == 3
    assert p.pause(1, 3600) == 5


def test_mistakes_of_the_caller() -> None:
    """They are refused before anything is sent."""
    for more in ({"on_unavailable": "maybe"}, {"attempts": 0}, {"timeout": 0}):
        with pytest.raises(ValueError, match=next(iter(more))):
            weir_client.Client("http://weir.test", **more)
    for url in ("weir.test", "ftp://weir.test", "http://", "http://me:secret@weir.test"):
        with pytest.raises(ValueError, match="base_url") as caught:
            weir_client.AsyncClient(url)
        assert "secret" not in str(caught.value)
    s = Script()
    with pytest.raises(ValueError, match="wait"):
        s.client.lease("acme", "llm", lease_id=weir_client.lease_id(), wait=1)


def test_the_clock_of_a_settlement_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A settlement without an answer is given up after some seconds, and logged."""
    s = Script(lease)
    now = time.monotonic()
    monkeypatch.setattr(time, "sleep", lambda _: None)
    ticks = iter(range(10_000))
    monkeypatch.setattr(time, "monotonic", lambda: now + next(ticks))
    with s.client.lease("acme", "llm", {"rpm": 1}):
        s.client._http = httpx.Client(transport=httpx.MockTransport(lost))
    assert next(ticks) < 1000


def test_a_cancelled_task_ends(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A task that is cancelled settles for some seconds at most, and then it is cancelled."""
    monkeypatch.setattr(_async, "SETTLE_FOR", 0.05)

    async def main() -> None:
        transport = httpx.MockTransport(lambda r: (lease if "reserve" in r.url.path else lost)(r))
        client = weir_client.AsyncClient(
            "http://weir.test", http_client=httpx.AsyncClient(transport=transport)
        )

        async def hold() -> None:
            async with client.lease("acme", "llm", {"rpm": 1}) as held:
                held.sent()
                entered.set()
                await asyncio.sleep(3600)

        entered = asyncio.Event()
        task = asyncio.create_task(hold())
        await happens(entered, task)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(main())
    assert "was not settled: complete" in caplog.text


def lost(r: httpx.Request) -> httpx.Response:
    raise httpx.ReadError("lost", request=r)
