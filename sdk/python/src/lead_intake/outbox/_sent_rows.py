"""The rows of sent leads, for a comparison."""

from __future__ import annotations

from dataclasses import dataclass

from ..models import Lead, other_text, texts_of
from ._database import Database
from ._reconciliation import Run, SentState
from ._stored import capture_in

#: The number of rows in memory at a time.
_BATCH_SIZE = 500

_SENT = "state IN ('delivered', 'already_open')"


@dataclass(frozen=True)
class SentRow:
    """A row of a sent lead."""

    key: str
    lead_id: str
    state: SentState
    #: Milliseconds since 1970.
    created_at: int
    #: Whether the table still has the visitor's data.
    has_data: bool


class SentRows:
    """The reads of a comparison."""

    def __init__(self, database: Database, table: str) -> None:
        self._database = database
        self._table = table
        self._capture = "CAST(capture AS BLOB)" if database.engine == "sqlite" else "capture"

    def beginning(self) -> Run:
        """Counts the rows to compare."""
        [(rows, total, up_to, since)] = self._database.read(
            # Rows may be dictionaries, and PostgreSQL names both counts alike.
            "SELECT COUNT(lead_id) AS number, COUNT(*) AS total, MAX(lead_id) AS up_to, MIN(settled_at) AS since"
            f" FROM {self._table} WHERE {_SENT}"
        )
        return Run(up_to or "", int(rows), None if since is None else int(since), int(total) - int(rows))

    def behind(self, up_to: str, after: tuple[str, str] | None) -> list[SentRow]:
        """Returns the next rows by descending id and key, up to an id, and behind a row if there is one."""
        where = "" if after is None else " AND (lead_id < ? OR (lead_id = ? AND idempotency_key < ?))"
        values = [] if after is None else [after[0], *after]
        rows = self._database.read(
            "SELECT idempotency_key, lead_id, state, created_at, CASE WHEN capture IS NULL THEN 0 ELSE 1 END"
            f" FROM {self._table} WHERE {_SENT} AND lead_id <= ?{where}"
            f" ORDER BY lead_id DESC, idempotency_key DESC LIMIT {_BATCH_SIZE}",
            up_to,
            *values,
        )
        return [
            SentRow(str(key), str(lead_id), state, int(created_at), int(has_data) == 1)
            for key, lead_id, state, created_at, has_data in rows
        ]

    def have_other(self, row: SentRow, lead: Lead) -> bool:
        """
        Returns whether a lead has other data than its row has kept. An already open lead comes from another creation.
        """
        if row.state != "delivered":
            return False
        stored = self._database.read(f"SELECT {self._capture} FROM {self._table} WHERE idempotency_key = ?", row.key)
        capture = capture_in(stored[0][0]) if stored else None
        return capture is not None and other_text(capture, texts_of(lead)) is not None

    def unsent(self) -> tuple[int, int]:
        """Returns the numbers of leads that wait, and that were refused."""
        rows = self._database.read(
            f"SELECT state, COUNT(*) FROM {self._table} WHERE state IN ('waiting', 'refused') GROUP BY state"
        )
        counts = {str(state): int(count) for state, count in rows}
        return counts.get("waiting", 0), counts.get("refused", 0)
