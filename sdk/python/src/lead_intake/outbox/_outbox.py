from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from inspect import iscoroutinefunction
from threading import Event
from typing import Any

from .._client import LeadIntakeClient
from ..errors import ProblemError
from ..models import LeadCapture
from ._comparison import Comparison, OnDifference
from ._database import Connection, committing, database_of
from ._delivery import Listener, Pass
from ._entries import Attention, Delivery
from ._keys import checked_key
from ._memo import Memo, ensure_memo
from ._reconciliation import Reconciliation, Run, WaitingLeads
from ._rows import Rows
from ._sent_rows import SentRows
from ._stored import text_of
from ._table import DEFAULT_TABLE, DEFAULT_TABLE_WARNING, checked_table, set_up
from ._times import pause
from ._waiting import OnWaiting, tell_waiting, waiting_in
from .errors import OutboxError

#: The maximum pause after failed passes; seconds.
_MAX_PAUSE = 60.0

_RECONCILIATION = "reconciliation"

_log = logging.getLogger("lead_intake")


class Outbox:
    """
    Stores leads in a table of the website's database, within the website's own transaction; a worker sends them later.
    Threads and processes may share the table, also with outboxes in other languages. Errors of the database are passed
    through.
    """

    def __init__(
        self, connect: Callable[[], Connection], *, table: str | None = None, keep_settled_days: float = 30
    ) -> None:
        """
        :param connect: opens a connection for every operation except ``add``; the outbox commits each statement on it
            and closes it
        :param table: the table's name, of letters, digits and ``_``. Name it after the website, because a website sends all
            leads in its table. The default, ``lead_intake_outbox``, is deprecated.
        :param keep_settled_days: how long rows of settled leads stay in the table, without their data
        :raises ValueError: when the name or the number of days is invalid
        """
        if not 0 <= keep_settled_days < float("inf"):
            raise ValueError("keep_settled_days must be a number of days")
        self._connect = connect
        self._table = checked_table(DEFAULT_TABLE if table is None else table)
        self._is_table_named = table is not None
        self._keep_settled_days = keep_settled_days

    def set_up(self) -> None:
        """
        Creates the table and its index if they do not exist. Safe to call concurrently from several processes. Warns if
        no table was named.
        """
        # Only this warns: cron would mail each warning of a worker or a report.
        if not self._is_table_named:
            warnings.warn(DEFAULT_TABLE_WARNING, DeprecationWarning, stacklevel=2)
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
        Stores a lead within the connection's open transaction; it is sent once that is committed. Leaves out
        optional texts that are empty or blank, and makes each line break of the note one character. Does nothing when
        the key is already stored with the same data, or with data that has been erased since.

        :param connection: the website's connection; it is neither committed nor rolled back
        :param capture: the lead, or its JSON in the form of the API
        :param idempotency_key: a UUID of version 1 to 8 that identifies this lead's data permanently, such as
            ``key_for`` returns; default: a new one
        :returns: the key
        :raises ValueError, TypeError: when the data is not a JSON object or the key is invalid; nothing was written
        :raises OutboxError: when the key is stored with different data
        """
        key = checked_key(idempotency_key)
        Rows(database_of(connection), self._table).add(key, text_of(capture))
        return key

    def deliver(
        self,
        client: LeadIntakeClient,
        *,
        limit: int = 100,
        on_settled: Listener | None = None,
        on_waiting: OnWaiting | None = None,
    ) -> Delivery:
        """
        Makes one pass: sends the due leads, fewest attempts first. Concurrent passes share the leads.

        :param limit: the maximum number of leads to send
        :param on_settled: called for each settled lead before its data is erased. Called at least once: a crash may
            cause a repeat. When it raises, the lead keeps its data and is retried later. Without it, leads with a
            reason are kept.
        :param on_waiting: called at the end of a pass with the leads that have waited for more than a day, for instance
            to mail this; at most once a day, over all workers. When it raises, it is called again in an hour.
        :raises ValueError: when ``limit`` is below 1
        :raises OutboxError: when ``on_settled``, ``on_waiting`` or sending a lead raised, see ``__cause__``; the other leads were still
            sent
        """
        if limit < 1:
            raise ValueError("limit must be 1 or more")
        return self._deliver(_checked(client), limit, on_settled, on_waiting, lambda: False)

    def run(
        self,
        client: LeadIntakeClient,
        stop: Event,
        *,
        poll_seconds: float = 5.0,
        on_settled: Listener | None = None,
        on_waiting: OnWaiting | None = None,
    ) -> None:
        """
        Makes passes until ``stop`` is set; ends after the lead in flight. Failed passes, for instance when the database
        is unavailable or the listener raises, are logged to ``lead_intake`` and retried later.

        :param stop: ends the worker; may be set by a signal handler
        :param poll_seconds: the pause between two passes
        :raises ValueError: when ``poll_seconds`` is not a number of seconds
        """
        if not 0 <= poll_seconds < float("inf"):
            raise ValueError("poll_seconds must be a number of seconds")
        _checked(client)
        failures = 0
        while not stop.is_set():
            try:
                self._deliver(client, 100, on_settled, on_waiting, stop.is_set)
                failures = 0
            except Exception as error:
                failures += 1
                # Free of personal data: statements have parameters, and the listener's error is a cause, not logged.
                _log.error("a pass over the outbox %s has failed: %s: %s", self._table, type(error).__name__, error)
            pause(max(poll_seconds, min(_MAX_PAUSE, 2.0 ** min(failures, 6) - 1)), stop.is_set)

    def needs_attention(self, *, limit: int = 100) -> Attention:
        """
        Returns the leads that need a person's attention: leads that were refused, that wait because of the API key,
        the studio or the address (401 to 405), that have waited for more than a day, that were stored by a clock more than a day
        ahead, or whose message perhaps nobody got.

        :param limit: the maximum number of entries
        """
        with self._rows() as rows:
            return rows.attention(limit)

    def waiting(self) -> WaitingLeads | None:
        """Summarizes all waiting leads: how many, since when, and why; None: there are none."""
        with committing(self._connect) as database:
            return waiting_in(database, self._table, "state = 'waiting'")

    def retry(self, idempotency_key: str, capture: LeadCapture | Mapping[str, Any] | None = None) -> None:
        """
        Makes a lead due immediately, with its key. For a delivered lead, the service would only return the earlier lead:
        add it with another key instead.

        :param capture: replaces its data; None keeps it
        :raises ValueError, TypeError: when the data is not a JSON object
        :raises OutboxError: when no lead with data has the key
        """
        text = None if capture is None else text_of(capture)
        with self._rows() as rows:
            rows.retry(idempotency_key, text)

    def discard(self, idempotency_key: str) -> None:
        """
        Discards a lead and erases its data.

        :raises OutboxError: when no lead with data, and no discarded one, has the key
        """
        with self._rows() as rows:
            rows.discard(idempotency_key)

    def reconcile(
        self,
        client: LeadIntakeClient,
        *,
        max_seconds: float | None = None,
        stop: Event | None = None,
        restart: bool = False,
        on_difference: OnDifference | None = None,
    ) -> Reconciliation:
        """
        Compares the leads that were sent with the service. It only reads. The next call within a day continues one that
        was stopped or killed. Leaves half of the quota to the website.

        :param client: a client whose key has the scope ``leads.read``
        :param max_seconds: no request begins and no wait for the quota ends after this time
        :param stop: ends the comparison between two requests
        :param restart: begins anew instead of where the last call stopped
        :param on_difference: called at least once for each difference; after a crash or an error, again for some
        :raises OutboxError: when the key may not read leads, or another comparison has begun
        """
        _checked(client)
        ensure_memo(self._connect, self._table)
        should_stop = (lambda: False) if stop is None else stop.is_set
        with committing(self._connect) as database:
            rows = SentRows(database, self._table)
            memo = Memo(database, self._table, _RECONCILIATION)
            token = checked_key(None)
            # A later comparison takes over, and ends the earlier one.
            memo.take(token)
            earlier = Run.of(memo.read()[0])
            run = rows.beginning() if restart or earlier is None or not earlier.is_to_go_on() else earlier
            comparison = Comparison(client, rows, memo, token, run, max_seconds, should_stop, on_difference)
            return comparison.run().report()

    def last_reconciliation(self) -> Reconciliation | None:
        """Returns the latest comparison, finished or not; None: there was none."""
        ensure_memo(self._connect, self._table)
        with committing(self._connect) as database:
            run = Run.of(Memo(database, self._table, _RECONCILIATION).read()[0])
        return None if run is None else run.report()

    def send_again(
        self,
        client: LeadIntakeClient,
        idempotency_key: str,
        capture: LeadCapture | Mapping[str, Any] | None = None,
        *,
        may_create: bool,
    ) -> None:
        """
        Schedules a sent lead that the service no longer has to be sent again, with its key and data. Looks it up first. The
        service refuses an erased lead. It creates a lost one again, unless its contact has an open lead.

        :param capture: the data, if the outbox has erased it; None: the data that the outbox has kept
        :param may_create: confirms that this may create another lead: a service that has lost the lead has lost its key,
            too
        :raises ValueError, TypeError: when the data is not a JSON object
        :raises OutboxError: when the service has the lead, it was not sent, has no data, or ``may_create`` is false
        :raises LeadIntakeError: when the service could not be asked
        """
        _checked(client)
        with self._rows() as rows:
            sent = rows.sent(idempotency_key)
        if sent is None:
            raise OutboxError(f"There is no lead with the key {idempotency_key} that was sent.")
        key, lead_id, kept = sent
        data = kept if capture is None else capture
        if data is None:
            raise OutboxError(f"The data of the lead with the key {key} is erased: pass it, to send it again.")
        if not may_create:
            raise OutboxError(
                f"If the service no longer has the key {key}, such as after its database was restored, this creates"
                " another lead: confirm that by may_create."
            )
        if lead_id is not None and _is_there(client, lead_id):
            raise OutboxError(f"The lead with the key {key} is at the service: there is nothing to send.")
        with self._rows() as rows:
            if not rows.send_again(key, text_of(data)):
                raise OutboxError(f"The lead with the key {key} was changed in the meantime.")

    def _deliver(
        self,
        client: LeadIntakeClient,
        limit: int,
        on_settled: Listener | None,
        on_waiting: OnWaiting | None,
        should_stop: Callable[[], bool],
    ) -> Delivery:
        def tell() -> None:
            if on_waiting is not None:
                ensure_memo(self._connect, self._table)
                with committing(self._connect) as database:
                    tell_waiting(database, self._table, on_waiting)

        with self._rows() as rows:
            return Pass(rows, client, on_settled, self._keep_settled_days, tell).run(limit, should_stop)

    @contextmanager
    def _rows(self) -> Iterator[Rows]:
        with committing(self._connect) as database:
            yield Rows(database, self._table)


def _checked(client: LeadIntakeClient) -> LeadIntakeClient:
    """Returns the client; raises a TypeError when it is not a client, or one for asyncio."""
    create_lead = getattr(client, "create_lead", None)
    if callable(create_lead) and not iscoroutinefunction(create_lead):
        return client
    raise TypeError(f"The outbox takes a LeadIntakeClient, not {type(client).__name__}.")


def _is_there(client: LeadIntakeClient, lead_id: str) -> bool:
    try:
        client.get_lead(lead_id)
    except ProblemError as problem:
        if problem.code == "integration_lead_not_found":
            return False
        raise
    return True
