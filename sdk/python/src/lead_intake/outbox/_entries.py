"""The results of the outbox."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal


@dataclass(frozen=True)
class Entry:
    """A lead that needs a person's attention."""

    idempotency_key: str
    #: ``refused``: it is not sent again; a row in an unknown state counts as refused. ``waiting``: it fails again until someone fixes the
    #: cause. ``already_open``, ``delivered``: it is not sent again, but perhaps nobody got the visitor's message; discard it once somebody has.
    state: Literal["waiting", "refused", "already_open", "delivered"]
    #: When it was stored; UTC.
    created_at: datetime
    #: The number of attempts so far. Attempts that wrote nothing and would have failed for any lead do not count.
    attempts: int
    #: Why it needs attention, without personal data; None when it was not tried yet, or the worker that leased it was
    #: killed.
    reason: str | None
    #: Its data in the form of the API; None when the stored text is not a JSON object. Not part of the repr, to keep it
    #: out of logs.
    capture: dict[str, Any] | None = field(repr=False)


@dataclass(frozen=True)
class Attention:
    """Leads that need a person's attention, oldest first."""

    #: Their total number.
    count: int
    #: The oldest of them, up to the limit.
    entries: list[Entry]


@dataclass(frozen=True)
class SettledLead:
    """A lead that needs no further attempt, just before its data is erased."""

    idempotency_key: str
    #: Whether it was created, or its contact already had an open lead.
    outcome: Literal["delivered", "already_open"]
    #: The id of the created or already open lead; None when the API key may not read leads.
    lead_id: str | None
    #: Its data in the form of the API.
    capture: dict[str, Any] = field(repr=False)
    #: When it was stored; UTC.
    created_at: datetime
    #: Why perhaps nobody got the visitor's message; None when the service has it.
    reason: str | None = None


@dataclass(frozen=True)
class Delivery:
    """The result of one pass, in numbers of leads."""

    delivered: int
    #: Leads whose contact already had an open lead.
    already_open: int
    #: Leads that the service refused; they need a person's attention.
    refused: int
    #: Leads tried in this pass that wait for their next attempt.
    postponed: int
    #: All waiting leads, due or not.
    waiting: int
    #: Why the pass stopped before all due leads were tried; None when it did not.
    stopped_because: str | None
