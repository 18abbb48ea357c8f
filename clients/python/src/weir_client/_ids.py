"""Lease IDs: 48 bits of Unix milliseconds and 80 other bits, in 26 characters."""

from __future__ import annotations

import hashlib
import os
import time
from email.utils import parsedate_to_datetime

ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

# What is added to the date of the answer that refused an ID, in milliseconds. A date is cut to the
# second, and a server that was started in it refuses earlier IDs. The second correction is as far
# ahead as a server allows.
CORRECTIONS = (1_000, 60_000)


def lease_id(unix_ms: int | None = None, other_bits: bytes | None = None) -> str:
    """Return a new lease ID (a ULID). The defaults are now and random bits."""
    ms = time.time_ns() // 1_000_000 if unix_ms is None else unix_ms
    number = ms << 80 | int.from_bytes(other_bits or os.urandom(10), "big")
    return "".join(ALPHABET[number >> shift & 31] for shift in range(125, -1, -5))


def job_lease_id(job: str, attempt: int, started_unix_ms: int) -> str:
    """Return the same lease ID for the same attempt of a job, in every process.

    Store the start and the number of the attempt with the job before you reserve.
    """
    bits = hashlib.sha256(f"{job}/{attempt}".encode()).digest()[:10]
    return lease_id(started_unix_ms, bits)


class ServerClock:
    """Makes lease IDs by the server's clock, which judges the time in them."""

    def __init__(self) -> None:
        self._ahead_ms = 0

    def lease_id(self) -> str:
        return lease_id(time.time_ns() // 1_000_000 + self._ahead_ms)

    def correct(self, attempt: int, date: str) -> str | None:
        """Return the next ID after the server refused the time in one, or None if there is none.

        The date is that of the refusal; attempt counts refusals from 0.
        """
        if attempt >= len(CORRECTIONS):
            return None
        try:
            at = int(parsedate_to_datetime(date).timestamp()) * 1000 + CORRECTIONS[attempt]
        except (TypeError, ValueError):
            return None
        if attempt == 0:
            self._ahead_ms = at - time.time_ns() // 1_000_000
        return lease_id(at)
