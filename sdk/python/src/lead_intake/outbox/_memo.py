"""The memo of an outbox: a table for its data other than leads."""

from __future__ import annotations

from collections.abc import Callable

from ._database import Connection, Database, committing
from ._table import MEMO_NAME_LENGTH, memo_table, set_up_memo


class Memo:
    """One entry of the memo, such as the position of a comparison."""

    def __init__(self, database: Database, table: str, name: str) -> None:
        """The table must exist: see ``ensure_memo``."""
        self._database = database
        self._table = memo_table(table)
        # Two tables with long names can share one memo.
        self._name = name + table[MEMO_NAME_LENGTH:]
        if not self._select():
            is_mysql = database.engine == "mysql"
            unless_there = "ON DUPLICATE KEY UPDATE name = name" if is_mysql else "ON CONFLICT (name) DO NOTHING"
            database.change(
                f"INSERT INTO {self._table} (name, value, token) VALUES (?, '', '') {unless_there}", self._name
            )

    def read(self) -> tuple[str, str]:
        """Returns the text and the token; empty before the first write."""
        return next(iter(self._select()), ("", ""))

    def take(self, token: str) -> None:
        """Takes the entry over: callers with an earlier token can no longer write it."""
        self._database.change(f"UPDATE {self._table} SET token = ? WHERE name = ?", token, self._name)

    def write(self, value: str, token: str, expected: str) -> bool:
        """Changes the text and the token, if the token is still the expected one; returns whether it was."""
        changed = self._database.change(
            f"UPDATE {self._table} SET value = ?, token = ? WHERE name = ? AND token = ?",
            value,
            token,
            self._name,
            expected,
        )
        # MySQL does not count a row that has these values already.
        return changed == 1 or (token == expected and self.read() == (value, token))

    def _select(self) -> list[tuple[str, str]]:
        rows = self._database.read(f"SELECT value, token FROM {self._table} WHERE name = ?", self._name)
        return [(str(value), str(token)) for value, token in rows]


def ensure_memo(connect: Callable[[], Connection], table: str) -> None:
    """Creates the memo's table if an earlier release has set up the outbox."""
    try:
        with committing(connect) as database:
            database.read(f"SELECT token FROM {memo_table(table)} LIMIT 1")
    except Exception:
        # On a connection of its own: on PostgreSQL the failure has ended the other one's transaction.
        with committing(connect) as database:
            set_up_memo(database, table)
