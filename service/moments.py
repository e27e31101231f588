"""Moments as people and programs read them: ISO 8601, in UTC."""

from datetime import UTC, datetime
from typing import Literal


def moment(seconds: float, *, to: Literal["minutes", "milliseconds"] = "milliseconds") -> str:
    """Write a moment, given in seconds since 1970."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec=to).replace("+00:00", "Z")
