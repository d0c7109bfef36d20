"""The results of a comparison, and how it is stored."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Literal

from .._outcomes import REASON_NOT_READ, REASON_NOT_THERE, REASON_OTHER_DATA
from ._times import now, time_of

#: ``already_open``: the id is that of the contact's open lead, which another creation made.
SentState = Literal["delivered", "already_open"]
#: ``not_there``: no lead with the id can be read. ``other_data``: a text differs from the one that was sent.
#: ``not_read``: not known, because the service has failed to read it.
Kind = Literal["not_there", "other_data", "not_read"]

_REASONS: dict[Kind, str] = {
    "not_there": REASON_NOT_THERE,
    "other_data": REASON_OTHER_DATA,
    "not_read": REASON_NOT_READ,
}

#: An older comparison is not continued: its numbers would mix different days.
_MAX_AGE_MS = 24 * 60 * 60 * 1000


@dataclass(frozen=True)
class Difference:
    """A lead that differs between the outbox and the service, or could not be read. Has no personal data."""

    idempotency_key: str
    #: The id that the service had returned.
    lead_id: str
    state: SentState
    kind: Kind
    #: A possible cause, in one sentence.
    reason: str
    #: When the lead was stored in the outbox, by the website's clock; UTC.
    created_at: datetime


@dataclass(frozen=True)
class Reconciliation:
    """The findings of a comparison of an outbox with the service, complete or so far."""

    is_complete: bool
    #: Why it is not complete; None when it is. The next call continues where it stopped.
    stopped_because: str | None
    started_at: datetime
    #: When the oldest of the rows without data was settled; None when there are none. Older ones are deleted.
    since: datetime | None
    #: Leads that were delivered, and how many of these are there.
    sent: int
    there: int
    #: Leads whose contact had an open lead of another creation, and how many of those open leads are there.
    already_open: int
    open_lead_there: int
    #: How many of the leads that are there have other data than the outbox has kept.
    other_data: int
    #: Leads that the service has failed to read, so that they may be there or not.
    not_read: int
    #: Leads without an id in the outbox: the API key could not read leads when they were sent.
    without_id: int
    #: Leads still to compare.
    left: int
    #: Leads that are not sent: those that wait, and those that were refused.
    waiting: int
    refused: int
    #: The first 100, newest leads first.
    differences: list[Difference]
    #: The number of requests to the service.
    requests: int
    #: The numbers in plain sentences: ``1,204 sent since 2026-10-28, 1,204 there.``
    summary: str


@dataclass(frozen=True)
class WaitingLeads:
    """A summary of waiting leads, such as those that have waited for more than a day. Has no personal data."""

    count: int
    #: When the oldest of them was stored, by the website's clock; UTC.
    oldest: datetime
    #: How many wait for which reason, such as ``401 integration_key_invalid``; most frequent first, at most 20.
    reasons: dict[str, int]


@dataclass
class StoredDifference:
    """A difference as all outboxes store it."""

    key: str
    leadId: str
    state: SentState
    kind: Kind
    createdAt: int

    def difference(self) -> Difference:
        created_at = time_of(self.createdAt)
        return Difference(self.key, self.leadId, self.state, self.kind, _REASONS[self.kind], created_at)


@dataclass
class Run:
    """A comparison as all outboxes store it: as JSON with these names, whose times are milliseconds since 1970."""

    #: The newest id when it began.
    upTo: str
    #: The number of rows when it began.
    rows: int
    since: int | None
    #: Rows without the id of a lead.
    withoutId: int
    startedAt: int = field(default_factory=now)
    isComplete: bool = False
    stoppedBecause: str | None = None
    #: Id and key of the last compared row.
    after: tuple[str, str] | None = None
    #: The cursor of the next page; None: the first one.
    cursor: str | None = None
    #: Whether it reads pages; otherwise it reads leads one by one.
    isPaging: bool = True
    #: The number of pages without a lead of the outbox.
    idlePages: int = 0
    requests: int = 0
    #: The id of a lead of this studio; None: none was seen yet.
    seen: str | None = None
    sent: int = 0
    there: int = 0
    alreadyOpen: int = 0
    openLeadThere: int = 0
    otherData: int = 0
    notRead: int = 0
    waiting: int = 0
    refused: int = 0
    #: How many leads in a row that no page had could not be read one by one either.
    confirmed: int = 0
    differences: list[StoredDifference] = field(default_factory=list)

    @staticmethod
    def of(text: str) -> Run | None:
        if text == "":
            return None
        stored = json.loads(text)
        stored["differences"] = [StoredDifference(**each) for each in stored["differences"]]
        return Run(**stored)

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    def is_to_go_on(self) -> bool:
        return not self.isComplete and abs(now() - self.startedAt) <= _MAX_AGE_MS

    @property
    def done(self) -> int:
        """The number of leads that were compared."""
        return self.sent + self.alreadyOpen

    def report(self) -> Reconciliation:
        left = 0 if self.isComplete else max(0, self.rows - self.done)
        return Reconciliation(
            is_complete=self.isComplete,
            stopped_because=self.stoppedBecause,
            started_at=time_of(self.startedAt),
            since=None if self.since is None else time_of(self.since),
            sent=self.sent,
            there=self.there,
            already_open=self.alreadyOpen,
            open_lead_there=self.openLeadThere,
            other_data=self.otherData,
            not_read=self.notRead,
            without_id=self.withoutId,
            left=left,
            waiting=self.waiting,
            refused=self.refused,
            differences=[each.difference() for each in self.differences],
            requests=self.requests,
            summary=self._summary(left),
        )

    def _summary(self, left: int) -> str:
        """Returns the summary, in the same sentences in all languages."""
        since = "" if self.since is None else f" since {time_of(self.since):%Y-%m-%d}"
        open_there = f"{self.openLeadThere:,} of these leads there."
        sentences = {
            f"Not finished, {left:,} left ({self.stoppedBecause}). So far:": not self.isComplete,
            f"{self.sent:,} sent{since}, {self.there:,} there.": True,
            f"{self.alreadyOpen:,} with an open lead of another creation, {open_there}": self.alreadyOpen > 0,
            "None is there: is the API key of another studio, or the address of another deployment?": (
                self.done > 0 and self.there + self.openLeadThere == 0
            ),
            f"{self.otherData:,} there with other data.": self.otherData > 0,
            f"{self.notRead:,} that the service has failed to read.": self.notRead > 0,
            f"{self.withoutId:,} not compared: the outbox has no id of their leads.": self.withoutId > 0,
            f"{self.waiting:,} waiting.": self.waiting > 0,
            f"{self.refused:,} refused.": self.refused > 0,
        }
        return " ".join(sentence for sentence, is_said in sentences.items() if is_said)
