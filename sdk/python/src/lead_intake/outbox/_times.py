"""The times of the table, milliseconds since 1970 of the local clock; and pauses."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any

#: How often a pause checks whether to stop; seconds.
_CHECK_INTERVAL = 0.2

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def now() -> int:
    return time.time_ns() // 1_000_000


def number_of(stored: Any) -> int:
    """Returns a stored number; 0 for any other value, which SQLite may store in any column."""
    try:
        return int(stored)
    except ValueError:
        return 0


def time_of(milliseconds: int) -> datetime:
    """Converts a stored time in milliseconds to the nearest valid datetime."""
    try:
        return _EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        nearest = datetime.max if milliseconds > 0 else datetime.min
        return nearest.replace(tzinfo=timezone.utc)


def pause(seconds: float, should_stop: Callable[[], bool]) -> None:
    # Not Event.wait(): a signal handler that sets the event could deadlock on the waiter's lock.
    end = time.monotonic() + seconds
    while not should_stop() and (left := end - time.monotonic()) > 0:
        time.sleep(min(_CHECK_INTERVAL, left))
