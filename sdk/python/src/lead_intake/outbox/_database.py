"""The database operations of the outbox, for each kind of connection that a website may have."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from inspect import iscoroutinefunction
from typing import Any, Literal, Protocol

from .errors import OutboxError

#: MariaDB counts as MySQL.
Engine = Literal["sqlite", "postgresql", "mysql"]

Row = tuple[Any, ...]


class Connection(Protocol):
    """
    A connection of sqlite3, psycopg, psycopg2, PyMySQL or mysqlclient; a Connection or Session of SQLAlchemy; or one of
    Django's ``django.db.connections``.
    """

    def commit(self) -> Any: ...

    def close(self) -> Any: ...


class Database(Protocol):
    """A connection. Placeholders are ``?``; statements contain no other question mark, colon or per cent sign."""

    engine: Engine

    def change(self, sql: str, *values: object) -> int:
        """Executes a statement that returns no rows; returns the number of changed rows."""

    def read(self, sql: str, *values: object) -> list[Row]:
        """Executes a query and returns its rows."""


def database_of(connection: Any) -> Database:
    """Returns the operations on a connection; raises a TypeError when the outbox does not support its kind."""
    if iscoroutinefunction(getattr(connection, "commit", None)):
        raise TypeError(
            "The outbox does not support asyncio connections. With SQLAlchemy, "
            "await session.run_sync(lambda session: outbox.add(session, capture))."
        )
    # Sessions and connections are often instances of subclasses that the website defines.
    modules = {kind.__module__.partition(".")[0] for kind in type(connection).__mro__}
    if "sqlalchemy" in modules:
        return _SqlAlchemy(connection)
    # Django's connections all use %s, and have the engine as their vendor.
    vendor = _ENGINES.get(getattr(connection, "vendor", ""))
    if vendor is not None:
        return _DbApi(connection, vendor, "%s")
    for module in modules & _DRIVERS.keys():
        return _DbApi(connection, *_DRIVERS[module])
    raise TypeError(f"The outbox does not support connections such as {type(connection).__qualname__}.")


@contextmanager
def committing(connect: Callable[[], Connection]) -> Iterator[Database]:
    """Yields a connection that commits after each statement, whatever the driver's autocommit, and then closes it."""
    connection = connect()
    database = database_of(connection)
    if _is_in_transaction(connection):
        raise OutboxError("connect has returned a connection with an open transaction, which the outbox would commit.")
    with closing(connection):
        yield _Committing(connection, database)


def _is_in_transaction(connection: Any) -> bool:
    is_open = getattr(connection, "in_transaction", False)  # sqlite3; a method in SQLAlchemy
    if isinstance(is_open, bool):
        # Without autocommit, sqlite3 has a transaction open at any time.
        is_open = is_open and getattr(connection, "autocommit", None) is not False
    else:
        is_open = is_open()
    status = getattr(getattr(connection, "info", None), "transaction_status", 0)  # psycopg
    in_transaction = getattr(connection, "server_status", 0) & 1  # PyMySQL
    return bool(is_open or status or in_transaction or getattr(connection, "in_atomic_block", False))


_ENGINES: dict[str, Engine] = {"sqlite": "sqlite", "postgresql": "postgresql", "mysql": "mysql", "mariadb": "mysql"}

#: For each driver's package: the engine, and the placeholder in its statements.
_DRIVERS: dict[str, tuple[Engine, str]] = {
    "sqlite3": ("sqlite", "?"),
    "psycopg": ("postgresql", "%s"),
    "psycopg2": ("postgresql", "%s"),
    "pymysql": ("mysql", "%s"),
    "MySQLdb": ("mysql", "%s"),
}


#: How drivers report a missing table: a text of SQLite, an SQLSTATE of PostgreSQL, a number of MySQL.
_NO_SUCH_TABLE = "no such table"
_UNDEFINED_TABLE = "42P01"
_ER_NO_SUCH_TABLE = 1146


@contextmanager
def _explaining() -> Iterator[None]:
    """Raises an OutboxError when a table is missing."""
    try:
        yield
    except Exception as error:
        if any(map(_is_of_missing_table, (error, getattr(error, "orig", None), error.__cause__))):
            raise OutboxError(
                "The table of the outbox does not exist: call set_up once, or run the statements of set_up_sql, and compare"
                " the name of the table."
            ) from error
        raise


def _is_of_missing_table(error: object) -> bool:
    states = (getattr(error, "sqlstate", None), getattr(error, "pgcode", None))
    number = (getattr(error, "args", None) or (None,))[0]
    return _UNDEFINED_TABLE in states or number == _ER_NO_SUCH_TABLE or _NO_SUCH_TABLE in str(number)


class _DbApi:
    def __init__(self, connection: Any, engine: Engine, placeholder: str) -> None:
        self.engine = engine
        self._connection = connection
        self._placeholder = placeholder

    def change(self, sql: str, *values: object) -> int:
        with _explaining(), closing(self._connection.cursor()) as cursor:
            cursor.execute(self._in_its_style(sql), values)
            return int(cursor.rowcount)

    def read(self, sql: str, *values: object) -> list[Row]:
        with _explaining(), closing(self._connection.cursor()) as cursor:
            cursor.execute(self._in_its_style(sql), values)
            # A website may configure rows as dictionaries.
            return [tuple(row.values() if isinstance(row, dict) else row) for row in cursor.fetchall()]

    def _in_its_style(self, sql: str) -> str:
        return sql.replace("?", self._placeholder)


class _SqlAlchemy:
    def __init__(self, connection: Any) -> None:
        bind = connection.get_bind() if hasattr(connection, "get_bind") else connection
        engine = _ENGINES.get(bind.dialect.name)
        if engine is None:
            raise TypeError(f"The outbox does not support SQLAlchemy's dialect {bind.dialect.name}.")
        self.engine = engine
        self._connection = connection

    def change(self, sql: str, *values: object) -> int:
        return int(self._execute(sql, values).rowcount)

    def read(self, sql: str, *values: object) -> list[Row]:
        return [tuple(row) for row in self._execute(sql, values).all()]

    def _execute(self, sql: str, values: tuple[object, ...]) -> Any:
        from sqlalchemy import text
        from sqlalchemy.exc import StatementError

        named = {f"value_{index}": value for index, value in enumerate(values)}
        names = iter(named)
        try:
            with _explaining():
                return self._connection.execute(text(re.sub(r"\?", lambda _: f":{next(names)}", sql)), named)
        except StatementError as error:
            # With them, its message would show the visitor's data.
            error.params = None
            raise
        except OutboxError as error:
            if isinstance(error.__cause__, StatementError):
                error.__cause__.params = None
            raise


class _Committing:
    def __init__(self, connection: Connection, database: Database) -> None:
        self.engine = database.engine
        self._connection = connection
        self._database = database

    def change(self, sql: str, *values: object) -> int:
        changed = self._database.change(sql, *values)
        self._connection.commit()
        return changed

    def read(self, sql: str, *values: object) -> list[Row]:
        rows = self._database.read(sql, *values)
        # Otherwise the transaction would stay open, and later reads would see the same snapshot.
        self._connection.commit()
        return rows
