"""What a call can raise: a denial, or a failure with the server's code."""

from __future__ import annotations

from typing import Any, ClassVar

from . import types


class Denied(Exception):
    """A limit has no room. Nothing was charged. It is not a WeirError.

    To try again, wait for retry_after seconds, and reserve with a new lease ID.
    """

    def __init__(self, denial: types.Denial) -> None:
        super().__init__(denial)
        self.denial = denial
        """The whole answer."""
        self.retry_after: float = denial["retry_after_ms"] / 1000
        """Seconds until the same request fits, if no other call comes in between."""
        self.limits: list[types.LimitStatus] = denial.get("limits", [])
        """The limits that judged the request."""

    def __str__(self) -> str:
        return self.denial.get("detail", "denied")

    @property
    def exceeded(self) -> list[types.LimitStatus]:
        """The limits that denied: their entity may be a parent of the caller's."""
        return [s for s in self.limits if s["exceeded"] and not s.get("shadow")]


class WeirError(Exception):
    """A call failed. The subclass is the server's code."""

    code: ClassVar[str] = ""

    def __init__(
        self,
        message: str,
        *,
        field: str = "",
        value: str = "",
        reason: str = "",
        problem: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.field = field
        """The part of the request that has a mistake, such as "costs.tpm"."""
        self.value = value
        self.reason = reason
        self.problem: dict[str, Any] = problem or {}
        """The whole answer, if there was one."""


class Invalid(WeirError):
    """The request has a mistake. Nothing was charged."""

    code = "invalid"


class Unsupported(WeirError):
    """The server's store cannot do this."""

    code = "unsupported"


class PermissionDenied(WeirError):
    """The bearer token is missing, wrong, or of a role that may not do this."""

    code = "permission denied"


class UnknownLimit(WeirError):
    """The request names a limit that does not apply."""

    code = "unknown limit"


class NoLimitsConfigured(WeirError):
    """No limit applies to the entity and the resource."""

    code = "no limits configured"


class NotFound(WeirError):
    """The server has no such thing."""

    code = "not found"


class UnknownLease(WeirError):
    """The server has no such lease: it was never reserved, or has been forgotten."""

    code = "unknown lease"


class Conflict(WeirError):
    """The lease ID was used for another request, or the lease was settled in another way."""

    code = "conflict"


class Ended(WeirError):
    """The lease was settled, or it expired."""

    code = "ended"


class NeverSatisfiable(WeirError):
    """The request asks for more than a limit can ever hold."""

    code = "never satisfiable"


class Superseded(WeirError):
    """The server's limits are not the ones in force. Nothing was reserved."""

    code = "superseded"


class Overloaded(WeirError):
    """The server has no room for the call. Nothing was done."""

    code = "overloaded"

    retry_after: float = 0
    """Seconds after which the server asks to try again."""


class Unavailable(WeirError):
    """There was no definite answer, so the outcome is unknown."""

    code = "unavailable"


BY_CODE: dict[str, type[WeirError]] = {c.code: c for c in WeirError.__subclasses__()}
