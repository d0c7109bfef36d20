from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from threading import Event
from typing import Any

from .._client import LeadIntakeClient
from ..models import LeadCapture
from ._database import Connection, committing, database_of
from ._delivery import Listener, Pass
from ._entries import Attention, Delivery
from ._keys import checked_key
from ._rows import Rows
from ._stored import text_of
from ._table import DEFAULT_TABLE, checked_table, set_up

#: How soon a worker that rests hears that it is to stop; seconds.
_NAP = 0.2

#: The longest that a worker rests because passes fail; seconds.
_MAX_REST = 60.0

_log = logging.getLogger("lead_intake")


class Outbox:
    """
    Leads in a table of the website's database: stored in the transaction that the website has anyway, sent by a worker
    later. Threads and processes may share the table, also with outboxes in other languages. Errors of the database come
    as they are.
    """

    def __init__(
        self, connect: Callable[[], Connection], *, table: str = DEFAULT_TABLE, keep_settled_days: float = 30
    ) -> None:
        """
        :param connect: gives whatever is done but ``add`` a connection of its own, on which each statement is
            committed, and which is closed in the end
        :param table: its name, of letters, digits and ``_``
        :param keep_settled_days: how long what is settled stays in the table, without its data
        :raises ValueError: when the name or the days cannot be any
        """
        if not 0 <= keep_settled_days < float("inf"):
            raise ValueError("keep_settled_days must be a number of days")
        self._connect = connect
        self._table = checked_table(table)
        self._keep_settled_days = keep_settled_days

    def set_up(self) -> None:
        """Makes the table and its index where they are missing. Several processes may do so at once."""
        with committing(self._connect) as database:
            set_up(database, self._table)

    def add(
        self,
        connection: Connection,
        capture: LeadCapture | Mapping[str, Any],
        *,
        idempotency_key: str | None = None,
    ) -> str:
        """
        Stores a lead, in the transaction that the connection has: once that is committed, the lead will be sent. A key
        that is there already, with the same data or with data erased since, changes nothing.

        :param connection: the website's own; it is neither committed nor rolled back
        :param capture: the lead, or its JSON as the API takes it
        :param idempotency_key: a UUID of the versions 1 to 8 that stands for this lead's data for ever, such as
            ``key_for`` makes; unless given, a new one
        :returns: the key
        :raises ValueError, TypeError: when the data is no JSON object, or the key no such UUID; nothing was written
        :raises OutboxError: when the key is there with other data
        """
        key = checked_key(idempotency_key)
        Rows(database_of(connection), self._table).add(key, text_of(capture))
        return key

    def deliver(self, client: LeadIntakeClient, *, limit: int = 100, on_settled: Listener | None = None) -> Delivery:
        """
        Sends what is due, first what was tried least, in one pass. Several may do so at once: they share the leads.

        :param limit: how many leads are sent at most
        :param on_settled: is told of each lead that is settled, before its data is erased. At least once: after a crash
            it may be told again. When it raises, the lead stays with its data, and is tried again later.
        :raises OutboxError: when ``on_settled``, or sending a lead, has raised, as ``__cause__`` says; the others were
            sent all the same
        """
        return self._deliver(client, limit, on_settled, lambda: False)

    def run(
        self, client: LeadIntakeClient, stop: Event, *, poll_seconds: float = 5.0, on_settled: Listener | None = None
    ) -> None:
        """
        Makes one pass after the other, until it is to stop, after the lead that is being sent. Passes that fail, because
        the database is away or the listener raises, are told to the logger ``lead_intake``, and made again later.

        :param stop: set when the worker is to end; a handler of a signal may do so
        :param poll_seconds: how long to rest between two passes
        """
        failures = 0
        while not stop.is_set():
            try:
                self._deliver(client, 100, on_settled, stop.is_set)
                failures = 0
            except Exception as error:
                failures += 1
                # No statement has the data of a lead in it, and the listener's error is a cause, which is not told.
                _log.error("a pass over the outbox has failed: %s: %s", type(error).__name__, error)
            _rest(max(poll_seconds, min(_MAX_REST, 2.0 ** min(failures, 6) - 1)), stop)

    def needs_attention(self, *, limit: int = 100) -> Attention:
        """
        Leads that need a person: refused ones, those that wait because of the API key (401, 402, 403), and those that
        have waited for more than a day, or were stored more than a day in the future, by a clock that was wrong.

        :param limit: how many are listed at most
        """
        with self._rows() as rows:
            return rows.attention(limit)

    def retry(self, idempotency_key: str, capture: LeadCapture | Mapping[str, Any] | None = None) -> None:
        """
        Has a lead that waits or was refused be sent again, at once.

        :param capture: its data, mended; unless given, it is sent as it is
        :raises ValueError, TypeError: when the data is no JSON object
        :raises OutboxError: when none waits or was refused under the key
        """
        text = None if capture is None else text_of(capture)
        with self._rows() as rows:
            rows.retry(idempotency_key, text)

    def discard(self, idempotency_key: str) -> None:
        """
        Erases a lead that waits or was refused, for good: it is not sent.

        :raises OutboxError: when none waits, was refused or was discarded under the key
        """
        with self._rows() as rows:
            rows.discard(idempotency_key)

    def _deliver(
        self, client: LeadIntakeClient, limit: int, on_settled: Listener | None, is_to_stop: Callable[[], bool]
    ) -> Delivery:
        with self._rows() as rows:
            return Pass(rows, client, on_settled, self._keep_settled_days).run(limit, is_to_stop)

    @contextmanager
    def _rows(self) -> Iterator[Rows]:
        with committing(self._connect) as database:
            yield Rows(database, self._table)


def _rest(seconds: float, stop: Event) -> None:
    # Nobody waits for the event itself: a signal's handler that sets it could wait for the waiter's lock, for ever.
    end = time.monotonic() + seconds
    while not stop.is_set() and (left := end - time.monotonic()) > 0:
        time.sleep(min(_NAP, left))
