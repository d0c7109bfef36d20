"""Summarizes waiting leads, and reports those that have waited for more than a day."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from .._outcomes import SQL_WITH_DATA
from ._database import Database
from ._memo import Memo
from ._reconciliation import WaitingLeads
from ._times import now, number_of, time_of

#: Called with the leads that have waited.
OnWaiting = Callable[[WaitingLeads], object]

_HOUR_MS = 60 * 60 * 1000
_DAY_MS = 24 * _HOUR_MS

#: The length of a reason's beginning by which leads are counted, and the maximum number of reasons.
_REASON_START = 36
_MAX_REASONS = 20


def tell_waiting(database: Database, table: str, on_waiting: OnWaiting) -> None:
    """Reports at most once a day, and again an hour after a failure."""
    at = now()
    memo = Memo(database, table, "waiting")
    _, token = memo.read()
    if abs(at - int(token or 0)) < _DAY_MS:
        return
    # One of several workers looks. It looks again in an hour if there is nothing to report or the report fails.
    an_hour_on = str(at - _DAY_MS + _HOUR_MS)
    if not memo.write("", an_hour_on, token):
        return
    waiting = waiting_in(
        database, table, f"{SQL_WITH_DATA} AND (created_at < ? OR created_at > ?)", at - _DAY_MS, at + _DAY_MS
    )
    if waiting is not None:
        on_waiting(waiting)
        memo.write("", str(at), an_hour_on)


def waiting_in(database: Database, table: str, condition: str, *values: int) -> WaitingLeads | None:
    rows = database.read(
        f"SELECT SUBSTR(reason, 1, {_REASON_START}), COUNT(*), MIN(created_at) FROM {table}"
        f" WHERE {condition} GROUP BY 1",
        *values,
    )
    if not rows:
        return None
    reasons: Counter[str] = Counter()
    for reason, number, _ in sorted(rows, key=lambda row: row[0] or "not tried yet"):
        reasons[(reason or "not tried yet").partition(":")[0]] += int(number)
    oldest = time_of(min(number_of(oldest) for *_, oldest in rows))
    return WaitingLeads(sum(reasons.values()), oldest, dict(reasons.most_common(_MAX_REASONS)))
