"""Client of weir, a rate limiter for LLM calls. See Client.lease and AsyncClient.lease."""

from . import types
from ._async import AsyncClient, AsyncLease
from ._ids import job_lease_id, lease_id
from ._sync import Client, Lease
from .errors import (
    Conflict,
    Denied,
    Ended,
    Invalid,
    NeverSatisfiable,
    NoLimitsConfigured,
    NotFound,
    Overloaded,
    PermissionDenied,
    Superseded,
    Unavailable,
    UnknownLease,
    UnknownLimit,
    Unsupported,
    WeirError,
)

__all__ = [
    "AsyncClient",
    "AsyncLease",
    "Client",
    "Conflict",
    "Denied",
    "Ended",
    "Invalid",
    "Lease",
    "NeverSatisfiable",
    "NoLimitsConfigured",
    "NotFound",
    "Overloaded",
    "PermissionDenied",
    "Superseded",
    "Unavailable",
    "UnknownLease",
    "UnknownLimit",
    "Unsupported",
    "WeirError",
    "job_lease_id",
    "lease_id",
    "types",
]
