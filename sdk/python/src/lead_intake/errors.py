"""What becomes of a request that fails."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

#: Whether this request has written its lead, over all of its attempts. A request that reads writes nothing.
Written = Literal["no", "unknown"]


class LeadIntakeError(Exception):
    """A request that failed: a ProblemError or a NoAnswerError."""

    #: ``no``: nothing was written. ``unknown``: an attempt may have written the lead; create it again with the same
    #: data and this idempotency key, at any later time, and the answer is the one lead.
    written: Written
    #: The key that the creation was sent with, to resume it; None for requests that read.
    idempotency_key: str | None
    #: How often the request was sent.
    attempts: int

    def __init__(self, message: str, *, written: Written, idempotency_key: str | None, attempts: int) -> None:
        resume = f"; whether the lead was written is unknown: repeat with the idempotency key {idempotency_key}"
        super().__init__(message.removesuffix(".") + resume if written == "unknown" else message)
        self.written = written
        self.idempotency_key = idempotency_key
        self.attempts = attempts


class ProblemError(LeadIntakeError):
    """The service has answered with a problem, which a retry has not helped, or cannot help. Decide by its code."""

    def __init__(
        self,
        *,
        type: str,
        title: str,
        status: int,
        code: str,
        detail: str | None,
        fields: Mapping[str, Sequence[str]],
        request_id: str,
        retry_after_seconds: int | None,
        written: Written,
        idempotency_key: str | None,
        attempts: int,
    ) -> None:
        super().__init__(str(detail or title), written=written, idempotency_key=idempotency_key, attempts=attempts)
        #: The address of the page that explains the code.
        self.type = type
        self.title = title
        self.status = status
        #: Equals a ProblemCode; the service may come to have others.
        self.code = code
        #: What happened this time, for people.
        self.detail = detail
        #: What is wrong, by header, parameter, or path into the body such as ``contact.value``.
        self.fields = fields
        #: The name of the last attempt in the logs of the service.
        self.request_id = request_id
        #: How long the service asks to wait before the next attempt.
        self.retry_after_seconds = retry_after_seconds


class LeadAlreadyOpenError(ProblemError):
    """409: the contact has an open lead, under another key or from elsewhere. A normal outcome: the studio knows it."""

    #: The id of that lead; None when the API key may not read leads.
    existing_lead_id: str | None = None


class IdempotencyConflictError(ProblemError):
    """409: the idempotency key has already created a lead, with other data. New data needs a new key."""


class NoAnswerError(LeadIntakeError):
    """The service has given no answer that can be understood. ``__cause__`` says why: the network, or the time."""
