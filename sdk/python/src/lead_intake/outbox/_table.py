"""The table, the same for the outboxes of all languages."""

from __future__ import annotations

import re

from ._database import Database, Engine

#: The default name of the table, deprecated.
DEFAULT_TABLE = "lead_intake_outbox"

DEFAULT_TABLE_WARNING = (
    f"The default table {DEFAULT_TABLE} of an outbox is deprecated, because a second website in the same database would "
    'send its leads: name a table, such as Outbox(…, table="example_com_leads"), or the present one.'
)

#: Prevents conflicts in PostgreSQL's catalogue between concurrent set-ups; the same number in all languages.
_SET_UP_LOCK = 7_165_204_417

_COLUMNS = """\
  idempotency_key CHAR(36) NOT NULL PRIMARY KEY,
  capture TEXT NULL,
  state VARCHAR(16) NOT NULL,
  attempts INTEGER NOT NULL,
  created_at BIGINT NOT NULL,
  next_attempt_at BIGINT NOT NULL,
  settled_at BIGINT NULL,
  lead_id CHAR(36) NULL,
  reason VARCHAR(1000) NULL"""

_MEMO_COLUMNS = """\
  name VARCHAR(32) NOT NULL PRIMARY KEY,
  value TEXT NOT NULL,
  token VARCHAR(36) NOT NULL"""

_MYSQL_OPTIONS = "ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin"


#: The length of the table's name within its memo's name: names are limited to 63 characters.
MEMO_NAME_LENGTH = 58


def checked_table(name: str) -> str:
    """Returns the name; raises a ValueError when it would not be safe in a statement."""
    if not re.fullmatch("[A-Za-z_][A-Za-z0-9_]{0,62}", name):
        raise ValueError("The name of the table must be 1 to 63 letters, digits and _, and not begin with a digit.")
    return name


def set_up_sql(engine: Engine, table: str = DEFAULT_TABLE) -> str:
    """
    Returns the statements that create the table and its index if missing, for the website's own migrations.

    :raises ValueError: when the name would not be safe in a statement
    """
    return "".join(f"{statement};\n" for statement in _statements(engine, checked_table(table)))


def set_up(database: Database, table: str) -> None:
    """Creates the table, its index and its memo if missing."""
    _create(database, _statements(database.engine, table))


def set_up_memo(database: Database, table: str) -> None:
    """Creates the memo if an earlier release has set up the table."""
    _create(database, [_memo_statement(database.engine, table)])


def _create(database: Database, statements: list[str]) -> None:
    if database.engine == "postgresql":
        # One statement is one transaction, whose end releases the lock.
        steps = [f"PERFORM pg_advisory_xact_lock({_SET_UP_LOCK})", *statements]
        statements = [f"DO $$ BEGIN {'; '.join(steps)}; END $$"]
    for statement in statements:
        database.change(statement)


def memo_table(table: str) -> str:
    """Returns the name of the memo's table, for data of the outbox other than leads."""
    return f"{table[:MEMO_NAME_LENGTH]}_memo"


def _memo_statement(engine: Engine, table: str) -> str:
    options = f" {_MYSQL_OPTIONS}" if engine == "mysql" else ""
    return f"CREATE TABLE IF NOT EXISTS {memo_table(table)} (\n{_MEMO_COLUMNS}\n){options}"


def _statements(engine: Engine, table: str) -> list[str]:
    # PostgreSQL limits names to 63 characters.
    index = f"{table[:59]}_due"
    if engine == "mysql":
        # MySQL does not support CREATE INDEX IF NOT EXISTS.
        columns = f"{_COLUMNS},\n  INDEX {index} (state, next_attempt_at)"
        create = f"CREATE TABLE IF NOT EXISTS {table} (\n{columns}\n) {_MYSQL_OPTIONS}"
        return [create, _memo_statement(engine, table)]
    return [
        f"CREATE TABLE IF NOT EXISTS {table} (\n{_COLUMNS}\n)",
        f"CREATE INDEX IF NOT EXISTS {index} ON {table} (state, next_attempt_at)",
        _memo_statement(engine, table),
    ]
