"""Leases against a server: what is charged, and that nothing leaks."""

from __future__ import annotations

import decimal
import logging
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from conftest import PATIENCE, Block, Server

import weir_client

COSTS = {"calls": 1, "tokens": 500}


class Refused(Exception):
    """The model refused the call."""


def nothing(_: Any) -> None:
    pass


def sent(lease: Any) -> None:
    lease.sent()


def fail_unsent(lease: Any) -> None:
    raise Refused


def fail_sent(lease: Any) -> None:
    lease.sent()
    raise Refused


def report(lease: Any) -> None:
    lease.sent()
    lease.report({"tokens": 7})
    lease.report(tokens=40)


def report_and_fail(lease: Any) -> None:
    report(lease)
    raise Refused


def give_back(lease: Any) -> None:
    report(lease)
    lease.give_back()


def interrupt(lease: Any) -> None:
    report(lease)
    raise KeyboardInterrupt


def leave_unsent(lease: Any) -> None:
    raise GeneratorExit


@pytest.mark.parametrize(
    ("body", "more", "charged"),
    [
        (nothing, {}, (1, 500)),
        (sent, {}, (1, 500)),
        (fail_unsent, {}, (0, 0)),
        (fail_sent, {}, (1, 500)),
        (fail_sent, {"refund_on": Refused}, (0, 0)),
        (fail_sent, {"refund_on": (KeyError, Refused)}, (0, 0)),
        (fail_sent, {"refund_on": KeyError}, (1, 500)),
        (report, {}, (1, 40)),
        (report_and_fail, {}, (1, 40)),
        (report_and_fail, {"refund_on": Refused}, (1, 40)),
        (give_back, {}, (0, 0)),
        (interrupt, {}, (1, 40)),
        (leave_unsent, {}, (0, 0)),
    ],
)
@pytest.mark.parametrize("losing", [False, True], ids=["", "losing"])
def test_what_a_block_is_charged(
    server: Server,
    entity: str,
    block: Block,
    losing: bool,
    body: Callable[[Any], None],
    more: dict[str, Any],
    charged: tuple[int, int],
) -> None:
    """A lease is settled by what the block says, once, even if answers are lost."""
    url = server.losing_url if losing else server.url
    try:
        block(url, entity, COSTS, body, **more)
    except (Refused, KeyboardInterrupt, GeneratorExit) as error:
        ended: BaseException | None = error
    else:
        ended = None
    fails = body in (fail_unsent, fail_sent, report_and_fail, interrupt, leave_unsent)
    assert (ended is not None) == fails
    assert server.used(entity) == server.expect(*charged)


def test_lost_answers_are_repeated_with_the_same_id(server: Server, entity: str) -> None:
    """The reservation and the settlement are sent twice, with one lease ID."""
    sent: list[tuple[str, bytes]] = []
    hooks = {"request": [lambda r: sent.append((r.url.path, r.content))]}
    with (
        httpx.Client(event_hooks=hooks) as http,
        weir_client.Client(server.losing_url, http_client=http) as client,
        client.lease(entity, "counted", COSTS) as lease,
    ):
        assert lease.answer.get("replay")
        assert server.used(entity)["parallel" if server.slots else "calls"] == 1
        lease.report(tokens=40)
    assert [path for path, _ in sent] == [
        *("/v1/reserve", "/v1/reserve", "/v1/extend", "/v1/extend"),
        *("/v1/complete", "/v1/complete"),
    ]
    assert sent[0] == sent[1]
    assert server.used(entity) == server.expect(1, 40)


def test_a_killed_stream_is_charged_what_came(server: Server, entity: str) -> None:
    """The consumer of a stream stops in the middle."""
    with weir_client.Client(server.url) as client:

        def stream() -> Iterator[int]:
            with client.lease(entity, "counted", COSTS) as lease:
                lease.sent()
                for n in range(1, 100):
                    lease.report(tokens=100 + n)
                    yield n

        pieces = stream()
        for n in pieces:
            if n == 3:
                break
        assert server.used(entity) == server.expect(1, 500) | (
            {"parallel": 1} if server.slots else {}
        )
        pieces.close()  # type: ignore[attr-defined]
    assert server.used(entity) == server.expect(1, 103)


def test_admits_and_denies(server: Server, entity: str) -> None:
    """A request that does not fit is denied, and takes nothing."""
    client = server.client
    with client.lease(entity, "counted", {"calls": 1, "tokens": 99_999_990}) as lease:
        assert {s["limit"]: s["available"] for s in lease.limits}["tokens"] == 10
        with (
            pytest.raises(weir_client.Denied) as caught,
            client.lease(entity, "counted", {"calls": 1, "tokens": 11}),
        ):
            pytest.fail("the block of a denied lease ran")
        denied = caught.value
        assert denied.retry_after > 0
        assert [(s["limit"], s["available"]) for s in denied.exceeded] == [("tokens", 10)]
        assert not isinstance(denied, weir_client.WeirError)
        with client.lease(entity, "counted", {"calls": 1, "tokens": 10}) as other:
            other.give_back()
        lease.give_back()
    assert server.used(entity) == server.expect(0, 0)


def test_slots_are_all_that_there_are(server: Server, entity: str) -> None:
    """Five calls run at once, and the sixth is denied until one of them is settled."""
    if not server.slots:
        pytest.skip("this store has no slots")
    client = server.client
    held = [client.reserve(entity, "counted") for _ in range(5)]
    with pytest.raises(weir_client.Denied) as caught:
        client.reserve(entity, "counted")
    assert [s["limit"] for s in caught.value.exceeded] == ["parallel"]
    client.cancel(held.pop()["lease_id"])
    held.append(client.reserve(entity, "counted"))
    for lease in held:
        client.complete(lease["lease_id"])
    assert server.used(entity) == server.expect(0, 0)


def hold_past_timeout(server: Server, entity: str) -> bool:
    """Hold all slots for longer than their timeout. Return whether none was lost."""
    client = server.client
    leases = [client.lease(entity, "llm", {"rpm": 1}) for _ in range(server.slots)]
    for lease in leases:
        lease.__enter__()
    timed_out = max(lease.answer["holds_until_unix_ms"] for lease in leases)
    time.sleep(max(timed_out + 500 - time.time_ns() // 1_000_000, 0) / 1000)
    try:
        client.reserve(entity, "llm")
    except weir_client.Denied as denied:
        kept = [s["limit"] for s in denied.exceeded] == ["parallel"]
    else:
        kept = False
    for lease in leases:
        lease.__exit__(None, None, None)
    assert server.used(entity, "llm")["parallel"] == (0 if kept else 1)
    return kept


def test_slots_are_held_past_their_timeout(server: Server, entity: str) -> None:
    """While blocks run, nobody else gets their slots, even after the timeout."""
    if not server.slots:
        pytest.skip("this store has no slots")
    # On a machine that stops for a second, a slot can be lost although it is extended.
    assert any(hold_past_timeout(server, f"{entity}-{n}") for n in range(3))


def test_without_extension_slots_time_out(server: Server, entity: str) -> None:
    """The other side of the test above: a lease that nobody extends loses its slot."""
    if not server.slots:
        pytest.skip("this store has no slots")
    lease = server.client.reserve(entity, "llm")
    end = time.monotonic() + PATIENCE
    while server.used(entity, "llm")["parallel"] == 1:
        assert time.monotonic() < end
        time.sleep(0.05)
    assert time.time_ns() // 1_000_000 >= lease["holds_until_unix_ms"] - 1000


def test_waits_until_it_fits(server: Server, entity: str) -> None:
    """With wait, a denied reservation is tried again until there is room."""
    client = server.client
    first = client.reserve(entity, "counted", {"tokens": 99_999_999})
    denied = threading.Event()

    def free() -> None:
        denied.wait(PATIENCE)
        client.cancel(first["lease_id"])

    thread = threading.Thread(target=free)
    thread.start()
    tries: list[bytes] = []

    def count(r: httpx.Response) -> None:
        tries.append(r.request.content)
        if r.status_code == 429:
            denied.set()

    with httpx.Client(event_hooks={"response": [count]}) as http:
        waiting = weir_client.Client(server.url, http_client=http)
        lease = waiting.reserve(entity, "counted", {"tokens": 10}, wait=PATIENCE)
    thread.join()
    assert len(tries) >= 2
    assert len(set(tries)) == len(tries), "a lease ID was used again after a denial"
    client.cancel(lease["lease_id"])
    client.reserve(entity, "counted", {"tokens": 100_000_000})
    with pytest.raises(weir_client.Denied):
        client.reserve(entity, "counted", {"tokens": 10}, wait=0.1)


def test_mistakes_have_types(server: Server, entity: str) -> None:
    """Each code of the server is a type, and none is a denial."""
    client = server.client
    with pytest.raises(weir_client.UnknownLimit) as caught:
        client.reserve(entity, "counted", {"tokns": 1})
    assert "tokns" in caught.value.field
    with pytest.raises(weir_client.NeverSatisfiable):
        client.reserve(entity, "counted", {"tokens": 100_000_001})
    with pytest.raises(weir_client.NoLimitsConfigured):
        client.reserve(entity, "nothing", {"tokens": 1})
    with pytest.raises(weir_client.Invalid):
        client.reserve("", "counted", {"tokens": 1})
    with pytest.raises(weir_client.UnknownLease):
        client.cancel(weir_client.lease_id())
    lease = client.reserve(entity, "counted", COSTS)
    client.cancel(lease["lease_id"])
    with pytest.raises(weir_client.Ended):
        client.extend(lease["lease_id"])
    assert client.explain(entity, "counted")["limits"]["tokens"]["capacity"] == 100_000_000


def test_a_wrong_report_returns_the_slot(
    server: Server, entity: str, block: Block, caplog: pytest.LogCaptureFixture
) -> None:
    """A report that the server refuses is logged; what was reserved stays charged."""
    with caplog.at_level(logging.ERROR):
        block(server.url, entity, COSTS, lambda lease: lease.report(tokns=3))
    assert "the report is wrong" in caplog.text
    assert server.used(entity) == server.expect(1, 500)


@pytest.mark.parametrize("amount", [decimal.Decimal(42), float("nan"), 4.5, None, b"4"])
def test_a_report_that_cannot_be_sent_returns_the_slot(
    server: Server, entity: str, block: Block, caplog: pytest.LogCaptureFixture, amount: Any
) -> None:
    """What was reserved stays charged."""
    with caplog.at_level(logging.ERROR):
        block(server.url, entity, COSTS, lambda lease: lease.report(tokens=amount))
    assert "the report is wrong" in caplog.text
    assert server.used(entity) == server.expect(1, 500)


def test_refund_on_a_list(server: Server, entity: str, block: Block) -> None:
    """Errors can be listed, and a list of something else is refused before anything is reserved."""
    with pytest.raises(Refused):
        block(server.url, entity, COSTS, fail_sent, refund_on=[KeyError, Refused])
    with pytest.raises(TypeError, match="refund_on"):
        block(server.url, entity, COSTS, nothing, refund_on=["Refused"])
    assert server.used(entity) == server.expect(0, 0)


def test_a_token_that_cannot_be_sent_is_refused() -> None:
    """Such as one that was read from a file with its line end."""
    for client in (weir_client.Client, weir_client.AsyncClient):
        for token in ("secret\n", "sécret", "two words"):
            with pytest.raises(ValueError, match="token"):
                client(token=token)


def test_a_proxy_is_not_asked_for_a_server_on_this_machine(
    server: Server, entity: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The environment may name one for everything else."""
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with weir_client.Client(server.url) as client:
        client.cancel(client.reserve(entity, "counted", COSTS)["lease_id"])


def kept_with_lost_extend(server: Server, entity: str) -> bool:
    """Return whether a slot outlasts its timeout although the first extend has no answer."""
    lost = threading.Event()

    def lose(r: httpx.Request) -> None:
        if r.url.path.endswith("/extend") and not lost.is_set():
            lost.set()
            time.sleep(r.extensions["timeout"]["read"])
            raise httpx.ReadTimeout("lost", request=r)

    with (
        httpx.Client(event_hooks={"request": [lose]}) as http,
        weir_client.Client(server.url, http_client=http).lease(entity, "llm") as lease,
    ):
        held_until = lease.answer["holds_until_unix_ms"]
        time.sleep(max(held_until + 500 - time.time_ns() // 1_000_000, 0) / 1000)
        assert lost.is_set()
        return server.used(entity, "llm")["parallel"] == 1


def test_a_slot_is_kept_although_an_extend_has_no_answer(server: Server, entity: str) -> None:
    """Two more attempts fit into the timeout of the slot."""
    if not server.slots:
        pytest.skip("this store has no slots")
    # On a machine that stops for half a second, the slot can be lost.
    assert any(kept_with_lost_extend(server, f"{entity}-{n}") for n in range(3))


def test_adjust(server: Server, entity: str) -> None:
    """A lease can grow while its block runs."""
    with server.client.lease(entity, "counted", COSTS) as lease:
        lease.adjust(tokens=700)
        lease.adjust(tokens=900)
        assert server.used(entity)["tokens"] == 900
    assert server.used(entity) == server.expect(1, 900)


def test_a_job_is_charged_once(server: Server, entity: str) -> None:
    """A worker that takes over a job computes the same ID. A settled lease is not run again."""
    id = weir_client.job_lease_id(entity, 1, time.time_ns() // 1_000_000)
    crashed = server.client.reserve(entity, "counted", COSTS, lease_id=id)
    assert not crashed.get("replay")
    with server.client.lease(entity, "counted", COSTS, lease_id=id) as lease:
        assert lease.answer["replay"]
        lease.report(tokens=40)
    assert server.used(entity) == server.expect(1, 40)
    with (
        pytest.raises(weir_client.Ended),
        server.client.lease(entity, "counted", COSTS, lease_id=id),
    ):
        pytest.fail("the block of a settled lease ran")


def test_a_clock_that_is_wrong_is_corrected(
    server: Server, entity: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server refuses IDs of another time; the client makes new ones by the server's clock."""
    if not server.slots:
        pytest.skip("a machine whose clock is wrong cannot reach DynamoDB either")
    real = time.time_ns
    with weir_client.Client(server.url) as client:
        for hours in (-1, 1):
            monkeypatch.setattr(time, "time_ns", lambda: real() + hours * 3_600_000_000_000)  # noqa: B023
            with client.lease(entity, "counted", COSTS) as lease:
                lease.report(tokens=20)
    assert server.used(entity) == server.expect(2, 40)
