"""The comparison of the sent leads with the service."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Union

from .._client import LeadIntakeClient
from .._outcomes import PAGES_MISSED
from ..models import Lead, LeadList
from ._memo import Memo
from ._paced_reads import PacedReads, Stopped
from ._reconciliation import Difference, Kind, Run, StoredDifference
from ._sent_rows import SentRow, SentRows
from .errors import OutboxError

#: Called for each difference.
OnDifference = Callable[[Difference], object]

_PAGE_SIZE = 100

_NOT_READ: Literal["not_read"] = "not_read"

#: The lead of a row; None: it is not there.
Found = Union[Lead, Literal["not_read"], None]

#: The maximum number of differences in a report.
_MAX_DIFFERENCES = 100


class Comparison:
    """
    Merges pages of leads with the rows, both by descending id, with a few hundred of each in memory. When it has read as
    many pages without a lead of the outbox as rows are left, it reads the remaining leads one by one. So it makes at most
    twice the requests of the cheaper way, however many other leads the studio has.
    """

    def __init__(
        self,
        client: LeadIntakeClient,
        rows: SentRows,
        memo: Memo,
        token: str,
        run: Run,
        max_seconds: float | None,
        should_stop: Callable[[], bool],
        on_difference: OnDifference | None,
    ) -> None:
        self._rows = rows
        self._memo = memo
        self._token = token
        self._run = run
        self._on_difference = on_difference
        self._reads = PacedReads(client, max_seconds, should_stop, self._save)
        self._batch: list[SentRow] = []
        self._saved = 0

    def run(self) -> Run:
        """
        :raises OutboxError: when the key may not read leads, or another comparison has begun
        """
        try:
            # With the key of another studio, the numbers would mix both studios.
            if self._run.seen is not None and self._lead(self._run.seen) is None:
                self._run = self._rows.beginning()
            while self._run.isPaging and not self._compare_page():
                self._save()
            if not self._run.isPaging:
                self._compare_one_by_one()
            self._run.isComplete = True
            self._run.stoppedBecause = None
        except Stopped as stopped:
            self._run.stoppedBecause = str(stopped)
        self._save()
        return self._run

    def _compare_page(self) -> bool:
        """Compares the rows of one page; returns whether it was the last one."""
        run = self._run
        before = run.done
        page = self._page()
        leads = {lead.id.lower(): lead for lead in page.leads}
        if run.seen is None:
            run.seen = next(iter(leads), None)
        if run.seen is None:
            # A studio without leads needs no confirmation that these are missing.
            run.confirmed = PAGES_MISSED
        lowest = "" if page.next_cursor is None else next(reversed(leads), "")
        while (row := self._next()) is not None and row.lead_id >= lowest:
            lead: Found = leads.get(row.lead_id)
            if lead is None and run.confirmed < PAGES_MISSED:
                lead = self._missed_lead(row.lead_id)
            self._settle(row, lead)
        run.idlePages += run.done == before
        run.cursor = page.next_cursor
        if run.cursor is None:
            return True
        run.isPaging = run.idlePages < run.rows - run.done
        return False

    def _compare_one_by_one(self) -> None:
        while (row := self._next()) is not None:
            self._settle(row, self._lead(row.lead_id))
            self._save()

    def _page(self) -> LeadList:
        cursor = self._run.cursor
        page = self._reads.read(lambda client: client.list_leads(limit=_PAGE_SIZE, cursor=cursor))
        if page is None:
            raise Stopped("the service has refused the position: begin anew")
        return page

    def _lead(self, lead_id: str) -> Found:
        """Reads a lead; ``not_read`` when the service cannot, which does not end the comparison."""
        return self._reads.read(lambda client: client.get_lead(lead_id), _NOT_READ)

    def _missed_lead(self, lead_id: str) -> Found:
        """Reads a lead that no page has, and counts how many such leads in a row were missing."""
        lead = self._lead(lead_id)
        if lead != _NOT_READ:
            self._run.confirmed = self._run.confirmed + 1 if lead is None else 0
        return lead

    def _settle(self, row: SentRow, found: Found) -> None:
        """Counts a row."""
        run = self._run
        is_there = isinstance(found, Lead)
        is_other = isinstance(found, Lead) and row.has_data and self._rows.have_other(row, found)
        if not isinstance(found, Lead):
            self._report(row, found or "not_there")
        elif is_other:
            self._report(row, "other_data")
        run.notRead += found == _NOT_READ
        if row.state == "delivered":
            run.sent += 1
            run.there += is_there
        else:
            run.alreadyOpen += 1
            run.openLeadThere += is_there
        run.otherData += is_other
        run.after = (row.lead_id, row.key)
        del self._batch[0]

    def _report(self, row: SentRow, kind: Kind) -> None:
        stored = StoredDifference(row.key, row.lead_id, row.state, kind, row.created_at)
        if self._on_difference is not None:
            self._on_difference(stored.difference())
        if len(self._run.differences) < _MAX_DIFFERENCES:
            self._run.differences.append(stored)

    def _next(self) -> SentRow | None:
        """Returns the next row to compare, by descending id."""
        if not self._batch:
            self._batch = self._rows.behind(self._run.upTo, self._run.after)
        return self._batch[0] if self._batch else None

    def _save(self) -> None:
        self._run.requests += self._reads.made - self._saved
        self._saved = self._reads.made
        self._run.waiting, self._run.refused = self._rows.unsent()
        if not self._memo.write(self._run.to_json(), self._token, self._token):
            raise OutboxError("Another comparison of this outbox has begun, and replaces this one.")
