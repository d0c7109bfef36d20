"""A page of the outbox, for the people who look after its leads."""

from __future__ import annotations

import json
import logging
import math
import re
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

from .._client import LeadIntakeClient
from ._outbox import Outbox
from ._page_html import HEADERS, PAGE
from ._stored import LONE_SURROGATE
from .errors import OutboxError

#: The maximum duration of a comparison in one request. The next request continues it.
_COMPARING_SECONDS = 20

#: The maximum size of a request's body; bytes. The page's own are far below 1 KiB.
_MAX_BODY_BYTES = 65_536

#: Captures that are nested more deeply are shown as unreadable, because the parsers of the languages differ.
_MAX_DEPTH = 100

_FAILED = (
    "The website has failed, perhaps because its database does not answer. Refresh in a minute; if it fails again, ask"
    " whoever runs the website."
)
_NOT_SET_UP = "The API key or the address of the service is not set up correctly: tell whoever runs the website."

#: Not every database can look for a key with these.
_NO_KEY = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")

_log = logging.getLogger("lead_intake")


@dataclass(frozen=True)
class PageResponse:
    """A response, to be sent as it is."""

    status: int
    headers: dict[str, str]
    body: str = field(repr=False)


class OutboxPage:
    """
    A page of an outbox. It shows personal data and has no login: mount it behind the website's.
    """

    def __init__(
        self, outbox: Outbox, client: LeadIntakeClient | Callable[[], LeadIntakeClient] | None = None
    ) -> None:
        """
        :param client: a client whose key has the scope ``leads.read``, or a function that creates one for each
            comparison, so that wrong settings break nothing else. Without a client, the page cannot compare.
        """
        self._outbox = outbox
        self._client = client

    def respond(self, method: str, headers: Mapping[str, str], body: str | bytes = "") -> PageResponse:
        """
        Returns the page, its JSON, or a refusal. Raises nothing: errors, such as those of the database, are logged to
        ``lead_intake`` and answered with 500.

        :param headers: those of the request
        :param body: its text
        """
        named = {name.lower(): value for name, value in headers.items()}
        try:
            if method == "POST":
                self._act(_body_of(named, body))
            elif method not in ("GET", "HEAD"):
                raise _Refusal(405, "The page accepts only GET and POST.")
            elif "application/json" not in named.get("accept", ""):
                return PageResponse(200, {**HEADERS, "Content-Type": "text/html; charset=utf-8"}, PAGE)
            return _json(200, self._report())
        except _Refusal as refusal:
            return _json(refusal.status, {"error": str(refusal)})
        except OutboxError as error:
            return _json(409, {"error": str(error)})
        except Exception as error:
            _tell(error)
            return _json(500, {"error": _FAILED})

    def _act(self, request: dict[str, Any]) -> None:
        action, key = request.get("action"), request.get("idempotencyKey")
        if action == "compare":
            if self._client is None:
                raise _Refusal(409, "The page has no API key with the scope leads.read.")
            with _reader_of(self._client) as client:
                self._outbox.reconcile(client, max_seconds=_COMPARING_SECONDS)
        elif action in ("retry", "discard") and isinstance(key, str) and not _NO_KEY.search(key):
            (self._outbox.retry if action == "retry" else self._outbox.discard)(key)
        else:
            raise _Refusal(400, "The action must be compare, or retry or discard with an idempotencyKey.")

    def _report(self) -> dict[str, Any]:
        attention = self._outbox.needs_attention()
        waiting = self._outbox.waiting()
        comparison = self._outbox.last_reconciliation()
        compared = None if comparison is None else _in_json(comparison)
        if compared is not None and comparison is not None:
            compared["differences"] = [_in_json(each) for each in comparison.differences]
        return {
            "needsAttention": {
                "count": attention.count,
                "entries": [
                    {**_in_json(entry), "capture": entry.capture if _is_portable(entry.capture) else None}
                    for entry in attention.entries
                ],
            },
            "waiting": {
                "count": waiting.count if waiting else 0,
                "since": _time(waiting.oldest) if waiting else None,
                "reasons": waiting.reasons if waiting else {},
            },
            "comparison": compared,
            "mayCompare": self._client is not None,
        }


class _Refusal(Exception):
    """A refused request, with the status of its response."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def _body_of(headers: Mapping[str, str], body: str | bytes) -> dict[str, Any]:
    # Before a browser lets another website's page send either, it asks for permission (CORS), which nothing here gives.
    if not re.match(r"application/json\b", headers.get("content-type", ""), re.IGNORECASE):
        raise _Refusal(415, "The request must have the type application/json.")
    if headers.get("x-outbox-page", "").strip() != "1":
        raise _Refusal(403, "The request is not from the page: it must have the header X-Outbox-Page: 1.")
    if len(body if isinstance(body, bytes) else body.encode(errors="replace")) > _MAX_BODY_BYTES:
        raise _Refusal(413, "The request is longer than 64 KiB.")
    try:
        request = json.loads(body.decode() if isinstance(body, bytes) else body)
    except (ValueError, RecursionError):
        raise _Refusal(400, "The request is not JSON.") from None
    return request if isinstance(request, dict) else {}


def _json(status: int, body: dict[str, Any]) -> PageResponse:
    return PageResponse(status, {**HEADERS, "Content-Type": "application/json"}, json.dumps(body, allow_nan=False))


def _is_portable(value: object, depth: int = 0) -> bool:
    """Whether all languages render the value as the same JSON."""
    if isinstance(value, str):
        return not LONE_SURROGATE.search(value)
    if isinstance(value, (int, float)):
        try:
            return math.isfinite(value)
        except OverflowError:
            return False
    if not isinstance(value, (dict, list)):
        return True
    parts = [*value, *value.values()] if isinstance(value, dict) else value
    return depth < _MAX_DEPTH and all(_is_portable(part, depth + 1) for part in parts)


def _reader_of(
    client: LeadIntakeClient | Callable[[], LeadIntakeClient],
) -> AbstractContextManager[LeadIntakeClient]:
    if isinstance(client, LeadIntakeClient):
        return nullcontext(client)
    try:
        return client()
    except Exception as error:
        _tell(error)
        raise _Refusal(409, _NOT_SET_UP) from None


def _tell(error: Exception) -> None:
    _log.error("the page of the outbox has failed: %s: %s", type(error).__name__, error)


def _in_json(values: object) -> dict[str, Any]:
    return {
        re.sub("_([a-z])", lambda found: found[1].upper(), name): _time(value) if isinstance(value, datetime) else value
        for name, value in vars(values).items()
    }


def _time(time: datetime) -> str:
    return time.astimezone(timezone.utc).replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"
