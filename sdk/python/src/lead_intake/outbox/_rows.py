"""The rows of the table, with one statement for each state change of a lead."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from .._outcomes import CONFIGURATION_REASONS, PAUSE_REASONS, SQL_RETRIED_ATTEMPTS, SQL_WITH_DATA
from ..models import is_uuid
from ._database import Database
from ._entries import Attention, Entry
from ._outcome import Outcome, Postponed, Refused, Settled, like
from ._stored import capture_in, is_same_data
from ._times import now, number_of, time_of
from .errors import OutboxError

_SECOND_MS = 1000
_MINUTE_MS = 60 * _SECOND_MS
_HOUR_MS = 60 * _MINUTE_MS
_DAY_MS = 24 * _HOUR_MS

#: The lease on a lead in flight. When its worker is killed, the lead is sent again only after this time.
_LEASE_MS = 5 * _MINUTE_MS

_FIRST_BACK_OFF_MS = 30 * _SECOND_MS
_MAX_BACK_OFF_MS = _HOUR_MS

#: The maximum time by which a lead is postponed.
_MAX_WAIT_MS = _DAY_MS

#: A row whose next attempt is further away was written while a clock was ahead: it counts as due.
_CLOCK_WAS_AHEAD_MS = _MAX_WAIT_MS + _HOUR_MS

#: The maximum number of rows that a pass deletes, so that deleting does not delay it.
_MAX_DELETED_ROWS = 500

_STATES = ("waiting", "refused", "already_open", "delivered")
_SETTLED = "('delivered', 'already_open', 'discarded')"


@dataclass(frozen=True)
class TakenUp:
    """A lead leased by this worker."""

    key: str
    #: None when the stored data cannot be read.
    capture: dict[str, Any] | None
    created_at: datetime
    #: Includes this attempt.
    attempts: int
    #: When the lease ends, stored as the time of the next attempt: while the row has it, the row is unchanged.
    lease_end: int


class Rows:
    """The table, accessed through one connection."""

    def __init__(self, database: Database, table: str) -> None:
        self._database = database
        self._table = table
        # As bytes on SQLite, which may store text that is not UTF-8: its driver would not return it.
        self._capture = "CAST(capture AS BLOB)" if database.engine == "sqlite" else "capture"

    def add(self, key: str, text: str) -> None:
        """
        Stores a lead, unless its key is already stored.

        :raises OutboxError: when the key is stored with other data
        """
        is_mysql = self._database.engine == "mysql"
        unless_there = (
            "ON DUPLICATE KEY UPDATE idempotency_key = idempotency_key"
            if is_mysql
            else "ON CONFLICT (idempotency_key) DO NOTHING"
        )
        at = now()
        self._database.change(
            f"INSERT INTO {self._table} (idempotency_key, capture, state, attempts, created_at, next_attempt_at)"
            f" VALUES (?, ?, 'waiting', 0, ?, ?) {unless_there}",
            key,
            text,
            at,
            at,
        )
        # When the key already exists, the row counts of drivers differ. On MySQL, only a locking read sees rows that were
        # committed since this transaction began.
        locking = " FOR UPDATE" if is_mysql else ""
        stored = self._database.read(f"SELECT {self._capture} FROM {self._table} WHERE idempotency_key = ?{locking}", key)
        if not stored:
            raise OutboxError(f"The lead {key} was not stored.")
        [(stored_text,)] = stored
        if stored_text is not None and not is_same_data(stored_text, text):
            raise OutboxError(f"The key {key} has been stored with other data. New data needs a new key.")

    def due(self, limit: int) -> list[tuple[str, int]]:
        """
        Returns keys and next attempt times of the due leads, fewest attempts first, then those due for longest. Thus leads
        that never get a response, or whose attempts do not count, cannot block others.
        """
        at = now()
        rows = self._database.read(
            f"SELECT idempotency_key, next_attempt_at FROM {self._table}"
            " WHERE state = 'waiting' AND (next_attempt_at <= ? OR next_attempt_at > ?)"
            " ORDER BY attempts, next_attempt_at, created_at, idempotency_key LIMIT ?",
            at,
            at + _CLOCK_WAS_AHEAD_MS,
            limit,
        )
        return [(_key(key), int(next_attempt_at)) for key, next_attempt_at in rows]

    def pause(self) -> str | None:
        """Returns the reason of a requested pause that has not ended; until then, nothing is sent. None: there is none."""
        at = now()
        rows = self._database.read(
            f"SELECT reason FROM {self._table} WHERE state = 'waiting' AND {like(PAUSE_REASONS)}"
            " AND next_attempt_at > ? AND next_attempt_at <= ? LIMIT 1",
            at,
            at + _CLOCK_WAS_AHEAD_MS,
        )
        return next((str(reason) for (reason,) in rows), None)

    def take_up(self, key: str, next_attempt_at: int) -> TakenUp | None:
        """Leases a lead to this worker; returns None when another worker was faster."""
        lease_end = now() + _LEASE_MS
        # Clears the previous reason, which would make the end of the lease a pause.
        changed = self._database.change(
            f"UPDATE {self._table} SET attempts = attempts + 1, next_attempt_at = ?, reason = NULL"
            " WHERE idempotency_key = ? AND state = 'waiting' AND next_attempt_at = ?",
            lease_end,
            key,
            next_attempt_at,
        )
        if changed != 1:
            return None
        # Read after leasing: until then, a person may change the data.
        for capture, created_at, attempts in self._database.read(
            f"SELECT {self._capture}, created_at, attempts FROM {self._table}"
            " WHERE idempotency_key = ? AND state = 'waiting' AND next_attempt_at = ?",
            key,
            lease_end,
        ):
            return TakenUp(key, capture_in(capture), time_of(created_at), int(attempts), lease_end)
        return None

    def note(self, lead: TakenUp, outcome: Outcome) -> bool:
        """Stores the outcome, unless the row was changed in the meantime; returns whether it was stored."""
        match outcome:
            case Postponed(reason=reason, retry_after_seconds=seconds):
                # The end of an outage must be noticed as soon as the end of a pause.
                is_short = outcome.is_of_all or outcome.is_unanswered
                wait = _pause(seconds) if is_short else _time_to_wait(lead.attempts, seconds or 0)
                return self._while_leased(
                    lead,
                    "attempts = ?, next_attempt_at = ?, reason = ?",
                    lead.attempts - outcome.is_free,
                    now() + wait,
                    reason,
                )
            case Refused(reason=reason):
                return self._while_leased(lead, "state = 'refused', reason = ?", reason)
            case Settled(reason=str(reason)):
                return self._while_leased(
                    lead,
                    "state = ?, lead_id = ?, reason = ?",
                    outcome.state,
                    _lead_id(outcome.lead_id),
                    reason,
                )
            case settled:
                return self._while_leased(
                    lead,
                    "state = ?, lead_id = ?, settled_at = ?, capture = NULL, reason = NULL",
                    settled.state,
                    _lead_id(settled.lead_id),
                    now(),
                )

    def release(self) -> None:
        """Makes the leads due that wait because of the configuration."""
        at = now()
        self._database.change(
            f"UPDATE {self._table} SET next_attempt_at = ? WHERE state = 'waiting' AND next_attempt_at > ?"
            f" AND {like(CONFIGURATION_REASONS)}",
            at,
            at,
        )

    def count_waiting(self) -> int:
        """Returns the number of waiting leads, due or not."""
        [(count,)] = self._database.read(f"SELECT COUNT(*) FROM {self._table} WHERE state = 'waiting'")
        return int(count)

    def delete_settled(self, keep_days: float) -> None:
        """Removes rows of leads that were settled more than ``keep_days`` ago."""
        before = now() - int(keep_days * _DAY_MS)
        # MySQL does not support LIMIT in a subquery of IN.
        rows = self._database.read(
            f"SELECT idempotency_key FROM {self._table} WHERE state IN {_SETTLED} AND settled_at < ? LIMIT ?",
            before,
            _MAX_DELETED_ROWS,
        )
        if rows:
            keys = [key for (key,) in rows]
            self._database.change(
                f"DELETE FROM {self._table} WHERE idempotency_key IN ({', '.join('?' * len(keys))})", *keys
            )

    def attention(self, limit: int) -> Attention:
        """Returns the leads that need a person's attention."""
        of_configuration = like(CONFIGURATION_REASONS)
        where = (
            f"WHERE {SQL_WITH_DATA} AND (state <> 'waiting' OR created_at < ? OR created_at > ? OR {of_configuration})"
        )
        at = now()
        values = (at - _DAY_MS, at + _DAY_MS)
        [(count,)] = self._database.read(f"SELECT COUNT(*) FROM {self._table} {where}", *values)
        rows = self._database.read(
            f"SELECT idempotency_key, state, created_at, attempts, reason, {self._capture} FROM {self._table} {where}"
            " ORDER BY created_at, idempotency_key LIMIT ?",
            *values,
            limit,
        )
        return Attention(
            int(count),
            [
                Entry(
                    _key(key),
                    state if state in _STATES else "refused",
                    time_of(number_of(created_at)),
                    number_of(attempts),
                    reason or None,
                    capture_in(capture),
                )
                for key, state, created_at, attempts, reason, capture in rows
            ],
        )

    def retry(self, key: str, text: str | None) -> None:
        """
        Schedules a lead to be sent again.

        :raises OutboxError: when no lead with data has the key
        """
        stored_key = self._key_as_stored(key, SQL_WITH_DATA)
        self._database.change(
            f"UPDATE {self._table} SET attempts = {SQL_RETRIED_ATTEMPTS}, state = 'waiting', next_attempt_at = ?, reason = NULL,"
            f" capture = COALESCE(?, capture) WHERE idempotency_key = ? AND {SQL_WITH_DATA}",
            now(),
            text,
            stored_key,
        )

    def sent(self, key: str) -> tuple[str, str | None, dict[str, Any] | None] | None:
        """Returns the key, id and data of a delivered or already open lead; None: there is no such lead."""
        for stored_key, lead_id, capture in self._database.read(
            f"SELECT idempotency_key, lead_id, {self._capture} FROM {self._table}"
            " WHERE idempotency_key IN (?, ?) AND state IN ('delivered', 'already_open')",
            key,
            key.lower(),
        ):
            return _key(stored_key), lead_id, capture_in(capture)
        return None

    def send_again(self, key: str, text: str) -> bool:
        """Schedules a delivered or already open lead to be sent again; returns whether it still was one."""
        # Counts as a second attempt, because the service may have the lead after all.
        changed = self._database.change(
            f"UPDATE {self._table} SET state = 'waiting', attempts = 1, next_attempt_at = ?, settled_at = NULL,"
            " reason = NULL, capture = ? WHERE idempotency_key = ? AND state IN ('delivered', 'already_open')",
            now(),
            text,
            key,
        )
        return changed == 1

    def discard(self, key: str) -> None:
        """
        Discards a lead and erases its data.

        :raises OutboxError: when no lead with data, and no discarded one, has the key
        """
        stored_key = self._key_as_stored(key, f"({SQL_WITH_DATA} OR state = 'discarded')")
        self._database.change(
            f"UPDATE {self._table} SET state = 'discarded', settled_at = ?, capture = NULL, reason = NULL"
            f" WHERE idempotency_key = ? AND {SQL_WITH_DATA}",
            now(),
            stored_key,
        )

    def _while_leased(self, lead: TakenUp, changes: str, *values: object) -> bool:
        changed = self._database.change(
            f"UPDATE {self._table} SET {changes} WHERE idempotency_key = ? AND state = 'waiting' AND next_attempt_at = ?",
            *values,
            lead.key,
            lead.lease_end,
        )
        return changed == 1

    def _key_as_stored(self, key: str, condition: str) -> str:
        """Returns the stored key of a row that meets the condition; a person may have entered it in upper case."""
        for (stored_key,) in self._database.read(
            f"SELECT idempotency_key FROM {self._table} WHERE idempotency_key IN (?, ?) AND {condition}", key, key.lower()
        ):
            return _key(stored_key)
        for (state,) in self._database.read(
            f"SELECT state FROM {self._table} WHERE idempotency_key IN (?, ?)", key, key.lower()
        ):
            raise OutboxError(f"The lead with the key {key} is {state}, and its data is erased: add it again, with another key.")
        raise OutboxError(
            f"There is no lead with the key {key}: compare the key and the table. Settled leads are deleted later."
        )


def _key(stored: object) -> str:
    if not isinstance(stored, str):
        raise OutboxError(
            f"The connection returns the key of a lead as {type(stored).__name__}, not as str: configure it to return"
            " text unchanged."
        )
    return stored


def _lead_id(lead_id: str | None) -> str | None:
    # The column holds only a UUID; the lead is settled without it.
    return lead_id.lower() if lead_id is not None and is_uuid(lead_id) else None


def _pause(retry_after_seconds: int | None) -> int:
    """Returns the wait that the service has asked for, in ms; the first backoff when it has not."""
    return _FIRST_BACK_OFF_MS if retry_after_seconds is None else min(_MAX_WAIT_MS, retry_after_seconds * _SECOND_MS)


def _time_to_wait(attempts: int, retry_after_seconds: int) -> int:
    """Returns the backoff in ms: doubled each time, minus up to a half of jitter, and at least Retry-After."""
    back_off = min(_MAX_BACK_OFF_MS, _FIRST_BACK_OFF_MS * 2.0 ** min(attempts - 1, 30))
    wait = max(retry_after_seconds * _SECOND_MS, back_off * (1 - random.random() / 2))
    return round(min(_MAX_WAIT_MS, wait))
