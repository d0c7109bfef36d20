"""The driver of this outbox for the suite of all outboxes (sdk/test/outbox); with --sqlalchemy, over a SQLAlchemy Session.

Takes commands from stdin, as documented in sdk/test/outbox/README.md."""

from __future__ import annotations

import json
import re
import resource
import signal
import sqlite3
import sys
import threading
from contextlib import closing
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

# Imports the client beside the driver rather than an installed one.
sys.path.insert(0, str(Path(__file__).parent / "src"))

from lead_intake import LeadIntakeClient  # noqa: E402
from lead_intake.outbox import (  # noqa: E402
    Connection,
    Difference,
    Engine,
    Entry,
    Outbox,
    OutboxPage,
    Reconciliation,
    SettledLead,
    WaitingLeads,
    key_for,
    set_up_sql,
)

BUSY_TIMEOUT_SECONDS = 10
ENGINES: dict[str, Engine] = {"sqlite": "sqlite", "mariadb": "mysql", "postgresql": "postgresql"}


def print_line(line: dict[str, Any]) -> None:
    print(json.dumps(line), flush=True)


def connect(database: dict[str, Any]) -> Connection:
    login = {name: database[name] for name in ("host", "port", "user", "password") if name in database}
    match database["kind"]:
        case "sqlite":
            return sqlite3.connect(database["file"], timeout=BUSY_TIMEOUT_SECONDS)
        case "mariadb":
            import pymysql

            return pymysql.connect(**login, database=database["database"])
        case other:
            import psycopg
            from psycopg.rows import dict_row, tuple_row

            assert other == "postgresql"
            # A website may configure dictionaries, which merge columns of the same name. SQLAlchemy expects tuples.
            rows: Any = tuple_row if "--sqlalchemy" in sys.argv else dict_row
            return psycopg.connect(**login, dbname=database["database"], row_factory=rows)


def connect_by_sqlalchemy(database: dict[str, Any]) -> Connection:
    from sqlalchemy import create_engine, pool
    from sqlalchemy.orm import Session

    kinds = {"sqlite": "sqlite", "mariadb": "mariadb+pymysql", "postgresql": "postgresql+psycopg"}
    creator = partial(connect, database)
    return Session(create_engine(f"{kinds[database['kind']]}://", creator=creator, poolclass=pool.NullPool))


def execute(connection: Any, statement: str) -> None:
    if "--sqlalchemy" in sys.argv:
        from sqlalchemy import text

        connection.execute(text(statement))
    else:
        connection.cursor().execute(statement)


def visit(connection: Any, note: str) -> None:
    if "--sqlalchemy" in sys.argv:
        from sqlalchemy import text

        connection.execute(text("INSERT INTO visits (note) VALUES (:note)"), {"note": note})
    else:
        place = "?" if isinstance(connection, sqlite3.Connection) else "%s"
        connection.cursor().execute(f"INSERT INTO visits (note) VALUES ({place})", (note,))


def add(outbox: Outbox, connection: Any, lead: dict[str, Any]) -> None:
    end = lead.get("end", "commit")
    capture = lead["capture"]
    # Each database driver begins the transaction implicitly.
    visit(connection, str(capture.get("displayName") if isinstance(capture, dict) else capture)[:100])
    try:
        key = outbox.add(connection, capture, **({"idempotency_key": lead["key"]} if "key" in lead else {}))
    except Exception as error:
        if end != "commit-anyway":
            raise
        connection.commit()
        print_line({"refused": str(error)})
        return
    if end == "hang":
        print_line({"hanging": key})
        threading.Event().wait()
    elif end == "rollback":
        connection.rollback()
        print_line({"rolledBack": key})
    else:
        connection.commit()
        print_line({"added": key})


def client(settings: dict[str, Any]) -> LeadIntakeClient:
    names = {"deadlineMs": "deadline_seconds", "attemptTimeoutMs": "attempt_timeout_seconds"}
    seconds: dict[str, Any] = {option: settings[name] / 1000 for name, option in names.items() if name in settings}
    listening = {"on_attempt": fail} if "onAttempt" in settings else {}
    return LeadIntakeClient(settings["baseUrl"], settings["apiKey"], **seconds, **listening)


def fail(_: object) -> None:
    raise RuntimeError("listener failed")


def listener(arguments: dict[str, Any]) -> dict[str, Any]:
    def on_settled(lead: SettledLead) -> None:
        keys = {"key": lead.idempotency_key, "leadId": lead.lead_id}
        print_line({"settled": {**keys, "outcome": lead.outcome, "capture": lead.capture, "reason": lead.reason}})
        if arguments["onSettled"] == "throw":
            raise RuntimeError("listener failed")

    def on_waiting(waiting: WaitingLeads) -> None:
        reasons = [{"reason": reason, "count": count} for reason, count in waiting.reasons.items()]
        print_line({"waits": {"count": waiting.count, "oldest": milliseconds(waiting.oldest), "reasons": reasons}})
        if arguments["onWaiting"] == "throw":
            raise RuntimeError("listener failed")

    settled = {"on_settled": on_settled} if "onSettled" in arguments else {}
    return settled | ({"on_waiting": on_waiting} if "onWaiting" in arguments else {})


def milliseconds(time: datetime) -> int:
    return round(time.timestamp() * 1000)


def in_camel_case(values: dict[str, Any]) -> dict[str, Any]:
    return {re.sub("_([a-z])", lambda found: found[1].upper(), name): value for name, value in values.items()}


def public(entry: Difference | Entry) -> dict[str, Any]:
    values = in_camel_case(vars(entry))
    return {"key": values.pop("idempotencyKey"), **values, "createdAt": milliseconds(entry.created_at)}


def public_report(report: Reconciliation) -> dict[str, Any]:
    return {
        **in_camel_case(vars(report)),
        "startedAt": milliseconds(report.started_at),
        "since": None if report.since is None else milliseconds(report.since),
        "differences": [public(each) for each in report.differences],
    }


def reconcile(outbox: Outbox, arguments: dict[str, Any], settings: dict[str, Any]) -> dict[str, Any]:
    options: dict[str, Any] = {"restart": arguments["restart"]} if "restart" in arguments else {}
    if "maxMs" in arguments:
        options["max_seconds"] = arguments["maxMs"] / 1000
    if "onDifference" in arguments:
        options["on_difference"] = lambda each: print_line({"difference": public(each)})
    with client(settings) as leads:
        report = public_report(outbox.reconcile(leads, **options))
    return {**report, "peakKiB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}


def run(outbox: Outbox, arguments: dict[str, Any], settings: dict[str, Any]) -> None:
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    poll = {"poll_seconds": arguments["pollMs"] / 1000} if "pollMs" in arguments else {}
    with client(settings) as leads:
        outbox.run(leads, stop, **poll, **listener(arguments))


def result_of(command: str, arguments: dict[str, Any], settings: dict[str, Any]) -> dict[str, Any]:
    keep = {"keep_settled_days": arguments["keepSettledDays"]} if "keepSettledDays" in arguments else {}
    limit = {"limit": arguments["limit"]} if "limit" in arguments else {}
    database, table = settings["database"], settings.get("table")
    connecting = partial(connect_by_sqlalchemy if "--sqlalchemy" in sys.argv else connect, database)

    def connect_with_statement() -> Connection:
        connection: Any = connecting()
        execute(connection, arguments["before"])
        return connection  # type: ignore[no-any-return]

    outbox = Outbox(connect_with_statement if "before" in arguments else connecting, table=table, **keep)
    match command:
        case "set-up":
            outbox.set_up()
        case "set-up-sql":
            return {"sql": set_up_sql(ENGINES[database["kind"]], *([table] if table else []))}
        case "keys-for":
            keys = [
                key_for(each["formKey"], each["capture"], submitted_at=datetime.fromisoformat(each["at"]))
                for each in arguments["submissions"]
            ]
            return {"keys": keys}
        case "add":
            with closing(connecting()) as connection:
                for lead in arguments["leads"]:
                    add(outbox, connection, lead)
        case "deliver":
            with client(settings) as leads:
                done = outbox.deliver(leads, **limit, **listener(arguments))
            return in_camel_case(vars(done))
        case "run":
            run(outbox, arguments, settings)
        case "needs-attention":
            needed = outbox.needs_attention(**limit)
            return {"count": needed.count, "entries": [public(entry) for entry in needed.entries]}
        case "retry":
            outbox.retry(arguments["key"], arguments.get("capture"))
        case "discard":
            outbox.discard(arguments["key"])
        case "reconcile":
            return reconcile(outbox, arguments, settings)
        case "last-reconciliation":
            last = outbox.last_reconciliation()
            return {} if last is None else public_report(last)
        case "send-again":
            with client(settings) as leads:
                outbox.send_again(
                    leads,
                    arguments["key"],
                    arguments.get("capture"),
                    may_create=arguments.get("mayCreate", False),
                )
        case "page":
            if "lazily" in arguments:
                page = OutboxPage(outbox, partial(client, settings))
                return {"responses": [vars(page.respond(**request)) for request in arguments["requests"]]}
            with client(settings) as leads:
                page = OutboxPage(outbox, leads) if arguments.get("mayCompare", True) else OutboxPage(outbox)
                return {"responses": [vars(page.respond(**request)) for request in arguments["requests"]]}
        case other:
            raise ValueError(f"no command is named {other}")
    return {}


if __name__ == "__main__":
    for line in sys.stdin:
        try:
            print_line({"result": result_of(**json.loads(line))})
        except Exception as error:
            print_line({"error": f"{type(error).__name__}: {error}"})
