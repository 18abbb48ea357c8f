"""One call of the API: its attempts, and what each answer means. It does no I/O itself.

A call is a generator. It yields an Attempt, and is sent the Reply or the error of httpx; or it
yields a Pause. So the same code serves both clients.
"""

from __future__ import annotations

import json
import math
import random
import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

import httpx

from . import types
from .errors import BY_CODE, Denied, Overloaded, PermissionDenied, Unavailable, WeirError

T = TypeVar("T")

LONGEST_PAUSE = 2.0
"""The longest pause between attempts, in seconds."""

# Errors before anything was sent.
NOT_REACHED = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)


@dataclass(frozen=True)
class Attempt:
    """One HTTP request."""

    method: str
    path: str
    body: Mapping[str, Any] | None
    params: Mapping[str, str]
    timeout: float


@dataclass(frozen=True)
class Pause:
    """A pause before the next attempt."""

    seconds: float


@dataclass(frozen=True)
class Reply:
    """The HTTP response to an attempt, from a server or from a proxy before it."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def media_type(self) -> str:
        return self.headers.get("content-type", "").split(";")[0].strip().lower()

    def retry_after(self) -> float:
        text = self.headers.get("retry-after", "")
        return float(text) if text.isdigit() and self.status in (429, 503) else 0.0


Steps = Generator[Attempt | Pause, Reply | httpx.HTTPError | None, T]
"""A call, or several, with the result T."""


@dataclass
class NoAnswer:
    """Why an attempt has no answer from weir, so that its outcome is unknown."""

    why: str
    cause: BaseException | None = None
    fault: WeirError | None = None  # the server's own error
    pause: float = 0  # what the server asks for
    refused: bool = False  # the server was too busy: the attempt changed nothing
    reached: bool = True  # the attempt may have reached the server


@dataclass
class Outcome(Generic[T]):
    """The result of a call: a value, or an error."""

    value: T | None = None
    error: WeirError | Denied | None = None
    attempts: int = 0
    # An attempt without an answer may have been carried out, or may still arrive.
    unknown: bool = False
    date: str = ""  # of the last answer

    def get(self) -> T:
        if self.error is not None:
            raise self.error
        return cast("T", self.value)


@dataclass(frozen=True)
class Patience:
    """How often, and for how long, calls are tried."""

    attempts: int
    backoff: float
    timeout: float

    def pause(self, n: int, asked: float) -> float:
        """Return the pause between attempts n and n+1, shortened at random by up to a half."""
        longest = max(LONGEST_PAUSE, self.backoff)
        pause = min(self.backoff * 2.0 ** min(n - 1, 30), longest)
        return max(pause * random.uniform(0.5, 1), min(asked, self.timeout))


def call(
    patience: Patience,
    method: str,
    path: str,
    accept: Callable[[Any], T],
    *,
    body: Mapping[str, Any] | None = None,
    params: Mapping[str, str] | None = None,
    denies: bool = False,
    attempts: float = 0,
    until: float = math.inf,
) -> Steps[Outcome[T]]:
    """Repeat a request until it has a definite answer, or the attempts or the time are used up.

    accept checks a body with status 200; it raises ValueError if weir did not write it. until is a
    time of time.monotonic.
    """
    n, unknown, reached, date = 0, False, False, ""
    while True:
        n += 1
        timeout = min(patience.timeout, max(until - time.monotonic(), 0.001))
        answer = yield Attempt(method, path, body, params or {}, timeout)
        if isinstance(answer, Reply):
            verdict = judge(answer, accept, denies)
            date = answer.headers.get("date", "")
        else:
            sent = not isinstance(answer, NOT_REACHED)
            verdict = NoAnswer(repr(answer), answer, reached=sent)
        if not isinstance(verdict, NoAnswer):
            unknown = unknown and reached and verdict.error is not None
            verdict.attempts, verdict.unknown, verdict.date = n, unknown, date
            return verdict
        # A refused attempt does not settle the outcome of an earlier one without an answer.
        unknown = unknown or not verdict.refused
        reached = reached or (verdict.reached and not verdict.refused)
        pause = patience.pause(n, verdict.pause)
        if n >= (attempts or patience.attempts) or time.monotonic() + pause >= until:
            error = unavailable(verdict) if unknown or verdict.fault is None else verdict.fault
            return Outcome(error=error, attempts=n, unknown=unknown and reached, date=date)
        yield Pause(pause)


def unavailable(last: NoAnswer) -> WeirError:
    """Return the error of a call whose last attempt had no answer."""
    if last.fault is not None and not last.refused:
        return last.fault
    error = Unavailable(f"the server did not answer: {last.why}")
    error.__cause__ = last.cause
    return error


def judge(r: Reply, accept: Callable[[Any], T], denies: bool) -> Outcome[T] | NoAnswer:
    """Return what a reply means. A reply that weir did not write is never taken for a denial."""
    media = r.media_type()
    try:
        if r.status == 200 and media == "application/json":
            return Outcome(accept(json.loads(r.body)))
        if r.status != 200 and media == "application/problem+json":
            problem = json.loads(r.body)
            if problem["status"] != r.status:
                return NoAnswer(f"the answer {r.status} has another status in its body")
            return judge_problem(r, problem, denies)
    except (ValueError, KeyError, TypeError) as error:
        return NoAnswer(f"the answer {r.status} is incomplete: {error!r}", error)
    if r.status in (401, 403, 407):  # by a proxy
        return Outcome(error=PermissionDenied(f"the answer was {r.status}"))
    return NoAnswer(f"the answer {r.status} is not from a weir server", pause=r.retry_after())


def judge_problem(r: Reply, problem: dict[str, Any], denies: bool) -> Outcome[Any] | NoAnswer:
    if r.status == 429 or "allowed" in problem:
        if not denies or r.status != 429 or problem["allowed"] is not False:
            return NoAnswer(f"the answer {r.status} is not a denial", pause=r.retry_after())
        return Outcome(error=Denied(cast("types.Denial", problem)))
    error = error_of(problem)
    if r.status == 408:
        return NoAnswer("the request did not arrive in time", fault=error, refused=True)
    if isinstance(error, Overloaded):
        error.retry_after = r.retry_after()
        return NoAnswer("the server is too busy", fault=error, pause=r.retry_after(), refused=True)
    if "code" not in problem:
        return NoAnswer(f"the answer {r.status} is not from a weir server", pause=r.retry_after())
    if isinstance(error, Unavailable):
        return NoAnswer(str(error), fault=error, pause=r.retry_after())
    if r.status == 400 and error.field == "body":
        return NoAnswer(f"the server got another body: {error}")  # the client sent a valid one
    return Outcome(error=error)


def error_of(problem: dict[str, Any]) -> WeirError:
    """Return the error that the server reports."""
    kind = BY_CODE.get(problem.get("code", ""), WeirError)
    return kind(
        problem.get("detail") or problem.get("title", ""),
        field=problem.get("field", ""),
        value=problem.get("value", ""),
        reason=problem.get("reason", ""),
        problem=problem,
    )
