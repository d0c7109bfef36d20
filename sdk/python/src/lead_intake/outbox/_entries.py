"""What the outbox tells of its leads."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal


@dataclass(frozen=True)
class Entry:
    """A lead that needs a person."""

    idempotency_key: str
    state: Literal["waiting", "refused"]
    #: When it was stored; UTC.
    created_at: datetime
    #: How often it was taken up to be sent.
    attempts: int
    #: Why it is not delivered, without anything personal; None: nothing is known, for it was not tried yet, or a worker
    #: that had taken it up was killed.
    reason: str | None
    #: Its data, as the API takes it; None: what stands in the table is no JSON object. No log has it by chance.
    capture: dict[str, Any] | None = field(repr=False)


@dataclass(frozen=True)
class Attention:
    """Leads that need a person, oldest first."""

    #: All there are.
    count: int
    #: As many of them as were asked for.
    entries: list[Entry]


@dataclass(frozen=True)
class SettledLead:
    """A lead that needs not be sent any more, just before its data is erased."""

    idempotency_key: str
    #: Whether it was created, or its contact had an open lead already.
    outcome: Literal["delivered", "already_open"]
    #: Of the lead created, or of the open one; None when the API key may not read leads.
    lead_id: str | None
    #: Its data, as the API takes it.
    capture: dict[str, Any] = field(repr=False)
    #: When it was stored; UTC.
    created_at: datetime


@dataclass(frozen=True)
class Delivery:
    """What one pass has done: numbers of leads."""

    delivered: int
    #: The contact had an open lead already.
    already_open: int
    #: They need a person.
    refused: int
    #: They were tried, and wait for their next attempt.
    postponed: int
    #: All that wait now, due or not.
    waiting: int
    #: Why the pass ended before it was through with what was due; None when it was not so.
    stopped_because: str | None
