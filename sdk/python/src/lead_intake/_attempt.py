"""The outcome of one attempt, and its consequences for the next one."""

from __future__ import annotations

import errno
import json
import re
import socket
import ssl
import zlib
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from urllib.parse import unquote

import httpx2

from ._outcomes import (
    CODES_WRITING_NOTHING,
    FAILING_FROM_STATUS,
    FIELDS_NOT_OF_DATA,
    PROBLEM_CODES,
    SETTLING_CODES,
    SETTLING_CODES_WITH_FIELDS,
    TEMPORARY_STATUSES,
)
from .errors import (
    IdempotencyConflictError,
    LeadAlreadyOpenError,
    LeadIntakeError,
    NoAnswerError,
    ProblemError,
    Written,
)

T = TypeVar("T")

#: Builds a call's result from the response's JSON and headers; raises the errors of dict access and conversions.
Read = Callable[[Any, httpx2.Headers], T]

#: The maximum size of a decompressed response; bytes. Far more than the service's longest response.
_MAX_CONTENT = 4 * 1024 * 1024

#: The encoding that is decoded. Intermediaries that encode unasked use it, too.
ACCEPT_ENCODING = "gzip"

#: Errors of the exchange. Others, such as the time limit of a job that calls the client, are the caller's.
TRANSPORT_ERRORS = (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError, ssl.SSLError)

#: Errors after which the request was certainly not sent: no connection, or one whose TLS handshake has failed.
_NOT_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)


class NotAnAnswerError(ValueError):
    """The response is not from the service. The message contains nothing of the response."""


def are_of_data(fields: Collection[str]) -> bool:
    """Whether a refusal names faulty fields, all of them in the lead's data."""
    return bool(fields) and not any(field in FIELDS_NOT_OF_DATA for field in fields)


class UnreadEncoding(NotAnAnswerError):
    """The response has an encoding that is not decoded, or is not encoded as it says."""

    def __init__(self, coding: str) -> None:
        named = re.search(r"[\w-]{1,32}", coding, re.ASCII)
        super().__init__(f"in an encoding that the client cannot read: {named[0] if named else 'unnamed'}")


class Content:
    """
    The received part of a response body. The reader stops when it is too long. It decodes only gzip, and only up to the
    maximum size: a few bytes can stand for gigabytes.
    """

    def __init__(self) -> None:
        self.bytes = bytearray()
        self._gzip: Any = None
        self._is_unread = False

    def add(self, response: httpx2.Response, piece: bytes) -> None:
        coding = response.headers.get("content-encoding", "").strip().lower()
        # JSON does not begin like gzip. A hook that decodes a response may leave its header.
        if coding in ("gzip", "x-gzip") and self._gzip is None and not self.bytes and piece.startswith(b"\x1f"):
            self._gzip = zlib.decompressobj(wbits=31)
        try:
            self.bytes += piece if self._gzip is None else self._gzip.decompress(piece, _MAX_CONTENT + 1 - len(self.bytes))
        except zlib.error:
            self._is_unread = True

    @property
    def is_json(self) -> bool:
        """Whether it was decoded to its end, and is JSON."""
        try:
            json.loads(self.bytes)
        except (MemoryError, RecursionError, ValueError):
            return False
        return not self._is_unread and (self._gzip is None or self._gzip.eof)

    @property
    def is_too_long(self) -> bool:
        """Whether it exceeds the maximum size."""
        return len(self.bytes) > _MAX_CONTENT


@dataclass(frozen=True)
class Answer(Generic[T]):
    """A successful result."""

    value: T
    headers: httpx2.Headers
    #: Nothing has failed.
    name = None


@dataclass(frozen=True)
class Problem:
    """A problem returned by the service."""

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
        """Whether this attempt alone may have written the lead without reporting it."""
        return self.status >= FAILING_FROM_STATUS and self.body["code"] not in CODES_WRITING_NOTHING

    @property
    def settles_outcome(self) -> bool:
        """
        Whether it also settles earlier attempts: the service has looked up the idempotency key, or the data would have
        been refused before as well. Other refusals (a revoked key, a quota, a request spoiled on the way) say nothing
        about them.
        """
        code = self.body["code"]
        return code in SETTLING_CODES or (code in SETTLING_CODES_WITH_FIELDS and are_of_data(self.fields))

    @property
    def is_worth_repeating(self) -> bool:
        """Whether the same request may succeed later."""
        return is_temporary(self.status)

    @property
    def fields(self) -> dict[str, list[str]]:
        return _texts_by_field(self.body.get("fields"))

    def to_error(self, written: Written, idempotency_key: str | None, attempts: int) -> LeadIntakeError:
        kinds = {
            "integration_lead_already_open": LeadAlreadyOpenError,
            "integration_idempotency_conflict": IdempotencyConflictError,
        }
        error = kinds.get(self.body["code"], ProblemError)(
            type=_text(self.body.get("type")) or "about:blank",
            title=_text(self.body.get("title")) or "without a title",
            status=self.status,
            code=self.body["code"],
            detail=_text(self.body.get("detail")),
            fields=self.fields,
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
    """No response from the service: none at all, or one from an intermediary such as a proxy."""

    cause: Exception
    #: The intermediary's response.
    response: httpx2.Response | None = None

    @property
    def name(self) -> str:
        return "no answer" if self.response is None else why_no_answer(self.cause, self.response.status_code)

    @property
    def retry_after_seconds(self) -> int | None:
        return _retry_after(self.headers)

    @property
    def headers(self) -> httpx2.Headers:
        return httpx2.Headers() if self.response is None else self.response.headers

    @property
    def leaves_outcome_open(self) -> bool:
        return not isinstance(self.cause, _NOT_SENT)

    @property
    def settles_outcome(self) -> bool:
        return False

    @property
    def is_worth_repeating(self) -> bool:
        # A proxy may temporarily respond with 200 in place of the service.
        return self.response is None or self.response.is_success or is_temporary(self.response.status_code)

    def to_error(self, written: Written, idempotency_key: str | None, attempts: int) -> LeadIntakeError:
        status = None if self.response is None else self.response.status_code
        message = f"The service has not answered: {why_no_answer(self.cause, status)}"
        error = NoAnswerError(message, written=written, idempotency_key=idempotency_key, attempts=attempts)
        error.status = status
        error.retry_after_seconds = self.retry_after_seconds
        if isinstance(self.cause, httpx2.HTTPError):
            # The request would show the key and the lead to anything that inspects the error.
            vars(self.cause).update(dict.fromkeys(vars(self.cause)))
        error.__cause__ = self.cause
        return error


def read_response(response: httpx2.Response, content: Content, read: Read[T]) -> Answer[T] | Problem | Silence:
    """Reads a response. Anything not in the service's form counts as no response."""
    if content.is_too_long:
        return Silence(NotAnAnswerError(f"the answer {response.status_code} is longer than 4 MiB"), response)
    media_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    coding = response.headers.get("content-encoding")
    if coding is not None and "json" in media_type and not content.is_json:
        return Silence(UnreadEncoding(coding), response)
    try:
        if response.is_success and media_type == "application/json":
            return Answer(read(json.loads(content.bytes), response.headers), response.headers)
        if response.is_error and media_type == "application/problem+json":
            body = json.loads(content.bytes)
            if body["code"] in PROBLEM_CODES:
                return Problem(response.status_code, body, response.headers)
    except (AttributeError, KeyError, MemoryError, RecursionError, TypeError, ValueError):
        pass
    return Silence(NotAnAnswerError(f"the answer {response.status_code} is not from the service"), response)


def fault_of_connection(error: BaseException | None) -> str:
    """Returns why there is no answer, as far as the error tells."""
    causes = list(_causes(error))
    if any(isinstance(cause, (httpx2.TimeoutException, TimeoutError)) for cause in causes):
        return "timed_out"
    if any(isinstance(cause, socket.gaierror) for cause in causes):
        return "name_unknown"
    if any(isinstance(cause, ssl.SSLError) for cause in causes):
        return "tls_failed"
    return "connection_refused" if isinstance(error, httpx2.ConnectError) else "no_answer"


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def why_no_answer(cause: BaseException | None, status: int | None) -> str:
    """
    Returns why the service has not answered, without addresses and data: ``connection refused (ECONNREFUSED)``, or
    ``403, not of the service`` when something else has answered with a status. The same words in all languages.
    """
    if status is not None:
        return f"{status}, {cause if isinstance(cause, UnreadEncoding) else 'not of the service'}"
    fault = fault_of_connection(cause)
    if fault == "timed_out":
        return "timed out"
    words = "connection failed" if fault == "no_answer" else fault.replace("_", " ").replace("tls", "TLS")
    return f"{words} ({next(_codes(cause), type(cause).__name__)})"


def _codes(error: BaseException | None) -> Iterator[str]:
    """Yields the system's codes, such as ``ECONNRESET``. Other texts may contain the address."""
    for cause in _causes(error):
        if isinstance(cause, ssl.SSLError):
            if cause.reason:
                yield cause.reason
        elif isinstance(cause, OSError) and not isinstance(cause, socket.gaierror):
            if name := errno.errorcode.get(cause.errno or 0):
                yield name


def is_temporary(status: int) -> bool:
    """Whether the same request may succeed after this status."""
    return status in TEMPORARY_STATUSES or status >= FAILING_FROM_STATUS


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
    # Dates are ignored: the local clock may be wrong. Ten digits already exceed every deadline.
    return int(value[:10]) if re.fullmatch("[0-9]+", value) else None


def _existing_lead_in(headers: httpx2.Headers) -> str | None:
    found = re.search('/([^/>]+)>; *rel="existing-lead"', headers.get("link", ""))
    return unquote(found[1]) if found else None
