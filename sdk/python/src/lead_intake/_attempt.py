"""What comes of sending a request once, and what follows from it for the next attempt."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from urllib.parse import unquote

import httpx2

from .errors import (
    IdempotencyConflictError,
    LeadAlreadyOpenError,
    LeadIntakeError,
    NoAnswerError,
    ProblemError,
    Written,
)

T = TypeVar("T")

#: Makes what a call gives of the answer's JSON and headers; raises what a dictionary or a conversion does otherwise.
Read = Callable[[Any, httpx2.Headers], T]

#: No answer of the service is nearly as long; bytes, once they are unpacked.
_MAX_CONTENT = 4 * 1024 * 1024

#: Failures at which the request never left.
_NOT_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)


class NotAnAnswerError(ValueError):
    """What has come is no answer of the service. The message has nothing in it that came."""


class Content:
    """What an answer has in it, as it comes: whoever reads it stops when it is too long."""

    def __init__(self) -> None:
        self.bytes = bytearray()

    def add(self, piece: bytes) -> None:
        self.bytes += piece

    @property
    def is_too_long(self) -> bool:
        """Whether the service cannot have sent it."""
        return len(self.bytes) > _MAX_CONTENT


@dataclass(frozen=True)
class Answer(Generic[T]):
    """What was asked for."""

    value: T


@dataclass(frozen=True)
class Problem:
    """The service has said no."""

    status: int
    body: dict[str, Any]
    headers: httpx2.Headers

    @property
    def name(self) -> str:
        return f"{self.status} {self.body['code']}"

    @property
    def retry_after_seconds(self) -> int | None:
        return _retry_after(self.headers)

    @property
    def leaves_outcome_open(self) -> bool:
        """Whether the attempt, taken alone, may have written something without saying so."""
        return self.status >= 500 and self.body["code"] != "integration_rate_unavailable"

    @property
    def settles_outcome(self) -> bool:
        """
        Whether it also settles what earlier attempts have left open: the service has looked at the idempotency key, or
        at data that would have been refused before, too. Others (a revoked key, a quota) say nothing of it.
        """
        return self.status in (400, 409)

    @property
    def is_worth_repeating(self) -> bool:
        """Whether the same request may succeed later."""
        return _is_passing(self.status)

    def to_error(self, written: Written, idempotency_key: str | None, attempts: int) -> LeadIntakeError:
        kinds = {
            "integration_lead_already_open": LeadAlreadyOpenError,
            "integration_idempotency_conflict": IdempotencyConflictError,
        }
        error = kinds.get(self.body["code"], ProblemError)(
            type=_text(self.body.get("type")) or "about:blank",
            title=_text(self.body.get("title")) or f"The service has answered {self.name}.",
            status=self.status,
            code=self.body["code"],
            detail=_text(self.body.get("detail")),
            fields=_texts_by_field(self.body.get("fields")),
            request_id=_text(self.body.get("requestId")) or "",
            retry_after_seconds=self.retry_after_seconds,
            written=written,
            idempotency_key=idempotency_key,
            attempts=attempts,
        )
        if isinstance(error, LeadAlreadyOpenError):
            error.existing_lead_id = _existing_lead_in(self.headers)
        return error


@dataclass(frozen=True)
class Silence:
    """The service has not answered: nobody has, or something on the way."""

    cause: Exception
    #: What something on the way has answered.
    response: httpx2.Response | None = None

    @property
    def name(self) -> str:
        return "no answer" if self.response is None else f"{self.response.status_code}, not of the service"

    @property
    def retry_after_seconds(self) -> int | None:
        return None if self.response is None else _retry_after(self.response.headers)

    @property
    def leaves_outcome_open(self) -> bool:
        return not isinstance(self.cause, _NOT_SENT)

    @property
    def settles_outcome(self) -> bool:
        return False

    @property
    def is_worth_repeating(self) -> bool:
        # Something on the way may answer 200 in the service's place for a while.
        return self.response is None or self.response.is_success or _is_passing(self.response.status_code)

    def to_error(self, written: Written, idempotency_key: str | None, attempts: int) -> LeadIntakeError:
        error = NoAnswerError(
            "The service has not answered", written=written, idempotency_key=idempotency_key, attempts=attempts
        )
        error.__cause__ = self.cause
        return error


def read_response(response: httpx2.Response, content: Content, read: Read[T]) -> Answer[T] | Problem | Silence:
    """Reads what was answered; what the service would not answer is not from the service."""
    if content.is_too_long:
        return Silence(NotAnAnswerError(f"the answer {response.status_code} is longer than 4 MiB"), response)
    media_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    try:
        if response.is_success and media_type == "application/json":
            return Answer(read(json.loads(content.bytes), response.headers))
        if response.is_error and media_type == "application/problem+json":
            body = json.loads(content.bytes)
            if isinstance(body["code"], str):
                return Problem(response.status_code, body, response.headers)
    except (AttributeError, KeyError, MemoryError, RecursionError, TypeError, ValueError):
        pass
    return Silence(NotAnAnswerError(f"the answer {response.status_code} is not one of the service"), response)


def _is_passing(status: int) -> bool:
    return status in (408, 429) or status >= 500


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _texts_by_field(fields: object) -> dict[str, list[str]]:
    if not isinstance(fields, dict):
        return {}
    return {
        name: [message for message in messages if isinstance(message, str)]
        for name, messages in fields.items()
        if isinstance(messages, list)
    }


def _retry_after(headers: httpx2.Headers) -> int | None:
    value = headers.get("retry-after", "")
    # A date would be held against a clock that may be wrong. More digits than these would outlast every deadline, too.
    return int(value[:10]) if re.fullmatch("[0-9]+", value) else None


def _existing_lead_in(headers: httpx2.Headers) -> str | None:
    found = re.search('/([^/>]+)>; *rel="existing-lead"', headers.get("link", ""))
    return unquote(found[1]) if found else None
