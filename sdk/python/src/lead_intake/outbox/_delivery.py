"""One pass over the due leads."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from .._client import LeadIntakeClient
from .._signals import is_of_signal
from ._entries import Delivery, SettledLead
from ._outcome import Outcome, Postponed, Settled, postponed_by, send
from ._rows import Rows, TakenUp
from .errors import OutboxError

#: Called for each settled lead.
Listener = Callable[[SettledLead], object]

#: After this many consecutive leads without a response, the service is considered unavailable.
_MAX_UNANSWERED = 3

_log = logging.getLogger("lead_intake")


class Pass:
    """
    Leases each lead before sending it and stores the outcome afterwards. When the worker is killed in between, the lead
    keeps waiting and is sent again with the same key.
    """

    def __init__(
        self,
        rows: Rows,
        client: LeadIntakeClient,
        on_settled: Listener | None,
        keep_settled_days: float,
        tell_waiting: Callable[[], object],
    ) -> None:
        self._tell_waiting = tell_waiting
        self._rows = rows
        self._client = client
        self._on_settled = on_settled
        self._keep_settled_days = keep_settled_days
        self._counts: Counter[str] = Counter()
        self._unanswered = 0
        self._stopped_because: str | None = None
        self._failure: OutboxError | None = None

    def run(self, limit: int, should_stop: Callable[[], bool]) -> Delivery:
        """
        :raises OutboxError: when a listener or sending a lead failed; the other leads were still sent
        """
        # When the service asked one lead to wait, all leads wait.
        self._stopped_because = self._rows.pause()
        for key, next_attempt_at in self._rows.due(limit) if self._stopped_because is None else ():
            if should_stop():
                self._stopped_because = "ended by the caller"
            if self._stopped_because is not None:
                break
            lead = self._rows.take_up(key, next_attempt_at)
            if lead is not None:
                self._process(lead)
        if self._counts["delivered"] + self._counts["already_open"] > 0:
            self._rows.release()
        self._rows.delete_settled(self._keep_settled_days)
        self._tell()
        if self._failure is not None:
            raise self._failure
        return Delivery(
            delivered=self._counts["delivered"],
            already_open=self._counts["already_open"],
            refused=self._counts["refused"],
            postponed=self._counts["waiting"],
            waiting=self._rows.count_waiting(),
            stopped_because=self._stopped_because,
        )

    def _tell(self) -> None:
        try:
            self._tell_waiting()
        except Exception as error:
            self._fail(f"on_waiting has raised {type(error).__name__}: it is called again in an hour", error)

    def _process(self, lead: TakenUp) -> None:
        outcome = self._notify(lead, self._send(lead))
        is_noted = self._rows.note(lead, outcome)
        if is_noted:
            self._counts[outcome.state] += 1
        postponed = outcome if isinstance(outcome, Postponed) else None
        self._unanswered = self._unanswered + 1 if postponed and postponed.is_unanswered else 0
        if not isinstance(outcome, Settled):
            if is_noted:
                _log.info("lead %s is %s: %s", lead.key, outcome.state, outcome.reason)
            if (postponed and postponed.is_of_all) or self._unanswered == _MAX_UNANSWERED:
                self._stopped_because = outcome.reason

    def _send(self, lead: TakenUp) -> Outcome:
        try:
            return send(self._client, lead.key, lead.capture, lead.attempts)
        except Exception as error:
            self._fail(f"sending a lead has raised {type(error).__name__}: the lead keeps waiting", error)
            return postponed_by(error)

    def _notify(self, lead: TakenUp, outcome: Outcome) -> Outcome:
        """
        Calls the listener for a settled lead. Once the listener has returned, somebody has the data. When it raises, the
        lead keeps waiting.
        """
        if self._on_settled is None or lead.capture is None or not isinstance(outcome, Settled):
            return outcome
        try:
            self._on_settled(
                SettledLead(lead.key, outcome.state, outcome.lead_id, lead.capture, lead.created_at, outcome.reason)
            )
        except Exception as error:
            raised = type(error).__name__
            self._fail(f"on_settled has raised {raised}: the lead keeps waiting", error)
            return postponed_by(error, "listener: ")
        return replace(outcome, reason=None)

    def _fail(self, message: str, cause: Exception) -> None:
        """
        Keeps the first error, to be raised at the end of the pass. A signal handler's error, such as a job's time limit,
        ends the pass at once.
        """
        if is_of_signal(cause):
            raise cause
        if self._failure is None:
            self._failure = OutboxError(message)
            self._failure.__cause__ = cause
