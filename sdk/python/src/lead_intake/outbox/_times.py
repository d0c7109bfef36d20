"""The times of the table: milliseconds since 1970 of the local clock."""

from __future__ import annotations

import time
from datetime import datetime, timedelta, timezone

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def now() -> int:
    return time.time_ns() // 1_000_000


def time_of(milliseconds: float) -> datetime:
    """Returns a stored time; the nearest one where it is outside of the range."""
    try:
        return _EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        nearest = datetime.max if milliseconds > 0 else datetime.min
        return nearest.replace(tzinfo=timezone.utc)
