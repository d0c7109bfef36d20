"""The driver of this client for the conformance suite (sdk/conformance); with --asyncio, of its asyncio client.

One request per line of stdin, one report per line of stdout."""

from __future__ import annotations

import asyncio
import json
import re
import sys
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, replace
from datetime import datetime
from pathlib import Path
from typing import Any

# Imports the client beside the driver rather than an installed one.
sys.path.insert(0, str(Path(__file__).parent / "src"))

from lead_intake import (  # noqa: E402
    AsyncLeadIntakeClient,
    Cancellation,
    EmailContact,
    IdempotencyConflictError,
    Lead,
    LeadAlreadyOpenError,
    LeadCapture,
    LeadIntakeClient,
    LeadIntakeError,
    PhoneContact,
    ProblemError,
    outcome_of,
)


def report_on(request: dict[str, Any]) -> dict[str, Any]:
    kind = AsyncLeadIntakeClient if "--asyncio" in sys.argv else LeadIntakeClient
    if request["call"] == "check":
        options = options_of(request)
        del options["deadline_seconds"]
        report = kind.check(**options)
        found = asyncio.run(report) if asyncio.iscoroutine(report) else report
        names = {"can_create": "canCreate", "can_read": "canRead"}
        return {"result": {names.get(name, name): value for name, value in asdict(found).items()}}
    try:
        client = kind(**options_of(request), on_attempt=failing)
    except ValueError as error:
        return {"refused": str(error)}
    try:
        if isinstance(client, AsyncLeadIntakeClient):
            return {"result": asyncio.run(cancelled_after(client, request))}
        return {"result": result_of(client, request)}
    except (RuntimeError, TypeError, ValueError) as error:
        return {"refused": str(error)}
    except LeadIntakeError as error:
        return {"error": error_of(error)}
    except asyncio.CancelledError as error:
        outcome = outcome_of(error)
        assert outcome is not None
        return {"error": error_of(outcome)}


def failing(_: object) -> None:
    """Fails. This must not change the result of a call."""
    raise RuntimeError("the listener has failed")


def result_of(client: LeadIntakeClient, request: dict[str, Any]) -> dict[str, Any]:
    own = limits_of(request)
    if "cancelAfterMs" in request:
        own["cancellation"] = Cancellation()
        if request["cancelAfterMs"] == 0:
            own["cancellation"].cancel()
        else:
            threading.Timer(request["cancelAfterMs"] / 1000, own["cancellation"].cancel).start()
    if request.get("isClosed"):
        client.close()
    with client as leads:
        outcome, shown = begun(leads, request, own)
        return shown(outcome)


async def cancelled_after(client: AsyncLeadIntakeClient, request: dict[str, Any]) -> dict[str, Any]:
    task = asyncio.current_task()
    if request.get("cancelAfterMs") == 0:
        task.cancel()
    elif "cancelAfterMs" in request:
        asyncio.get_running_loop().call_later(request["cancelAfterMs"] / 1000, task.cancel)
    return await result_of_asyncio(client, request)


async def result_of_asyncio(client: AsyncLeadIntakeClient, request: dict[str, Any]) -> dict[str, Any]:
    own = limits_of(request)
    if request.get("isClosed"):
        await client.aclose()
    async with client as leads:
        outcome, shown = begun(leads, request, own)
        return shown([lead async for lead in outcome] if request["call"] == "allLeads" else await outcome)


def begun(leads: Any, request: dict[str, Any], own: dict[str, Any]) -> tuple[Any, Callable[[Any], dict[str, Any]]]:
    """Begins the call of a request with either client. Returns its outcome, awaitable with asyncio, and how to report it."""
    match request["call"]:
        case "createLead":
            key = request.get("idempotencyKey")
            return leads.create_lead(capture_of(request), idempotency_key=key, **own), created_of
        case "getLead":
            return leads.get_lead(request["leadId"], **own), lambda lead: {"lead": public_lead(lead)}
        case "listLeads":
            return leads.list_leads(limit=request.get("limit"), cursor=request.get("cursor"), **own), page_of
        case "allLeads":
            return leads.all_leads(limit=request.get("limit"), **own), leads_of
        case other:
            raise ValueError(f"no call is named {other}")


def limits_of(request: dict[str, Any]) -> dict[str, Any]:
    return {"deadline_seconds": request["callDeadlineMs"] / 1000} if "callDeadlineMs" in request else {}


def options_of(request: dict[str, Any]) -> dict[str, Any]:
    return {
        "base_url": request["baseUrl"],
        "api_key": request["apiKey"],
        "deadline_seconds": request["options"]["deadlineMs"] / 1000,
        "attempt_timeout_seconds": request["options"]["attemptTimeoutMs"] / 1000,
        "allow_http": request.get("allowHttp", False),
    }


def capture_of(request: dict[str, Any]) -> Any:
    capture = request["capture"]
    kind = EmailContact if capture["contact"]["type"] == "email" else PhoneContact
    texts = {re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", name): text for name, text in capture.items()}
    lead = LeadCapture(**{**texts, "contact": kind(capture["contact"]["value"])})
    mistakes = {
        "nothing": None,
        "text": "Grace",
        "list": [],
        "not-a-number": replace(lead, note=float("nan")),
        "infinite": replace(lead, note=float("inf")),
    }
    return mistakes[request["captureAs"]] if "captureAs" in request else lead


def created_of(created: Any) -> dict[str, Any]:
    return {
        "lead": public_lead(created.lead),
        "replayed": created.replayed,
        "idempotencyKey": created.idempotency_key,
    }


def page_of(page: Any) -> dict[str, Any]:
    return {**leads_of(page.leads), "nextCursor": page.next_cursor}


def leads_of(leads: Iterable[Lead]) -> dict[str, Any]:
    return {"leads": [public_lead(lead) for lead in leads]}


def public_lead(lead: Lead) -> dict[str, Any]:
    return {
        re.sub("_(.)", lambda found: found[1].upper(), name): time_of(value) if isinstance(value, datetime) else value
        for name, value in asdict(lead).items()
    }


def time_of(value: datetime) -> str:
    return value.isoformat(timespec="milliseconds" if value.microsecond else "seconds").replace("+00:00", "Z")


def error_of(error: LeadIntakeError) -> dict[str, Any]:
    kinds: dict[type[LeadIntakeError], str] = {
        LeadAlreadyOpenError: "lead-already-open",
        IdempotencyConflictError: "idempotency-conflict",
        ProblemError: "problem",
    }
    parts: dict[str, Any] = {
        "kind": kinds.get(type(error), "no-answer"),
        "written": error.written,
        "attempts": error.attempts,
        "idempotencyKey": error.idempotency_key,
    }
    if isinstance(error, ProblemError):
        parts |= {
            "code": error.code,
            "status": error.status,
            "requestId": error.request_id,
            "retryAfterSeconds": error.retry_after_seconds,
            "fields": dict(error.fields),
        }
    else:
        parts["message"] = str(error)
    if isinstance(error, LeadAlreadyOpenError):
        parts["existingLeadId"] = error.existing_lead_id
    return parts


# The suite sets the clock with libfaketime, which breaks the system call of time.sleep.
time.sleep = lambda seconds: threading.Event().wait(seconds)  # type: ignore[assignment]

for line in sys.stdin:
    request = json.loads(line)
    print(json.dumps({"id": request["id"], **report_on(request)}), flush=True)
