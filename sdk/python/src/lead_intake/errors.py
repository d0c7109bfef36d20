"""The errors of failed requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

#: Whether any attempt of a request may have written its lead. Always ``no`` for reads.
Written = Literal["no", "unknown"]


class LeadIntakeError(Exception):
    """The base class of request errors: a ProblemError or a NoAnswerError."""

    #: ``no``: nothing was written. ``unknown``: an attempt may have written the lead; repeat the creation at any later
    #: time with the same data and this idempotency key to get the one lead.
    written: Written
    #: The idempotency key of the creation, for resuming it; None for reads.
    idempotency_key: str | None
    #: The number of times the request was sent.
    attempts: int
    #: The ``Retry-After`` of the last response, even if an intermediary sent it; seconds.
    retry_after_seconds: int | None = None

    def __init__(self, message: str, *, written: Written, idempotency_key: str | None, attempts: int) -> None:
        resume = f"; whether the lead was written is unknown: repeat with the idempotency key {idempotency_key}"
        super().__init__(message.removesuffix(".") + resume if written == "unknown" else message)
        self.written = written
        self.idempotency_key = idempotency_key
        self.attempts = attempts

    def __reduce__(self) -> tuple[object, ...]:
        """Pickles the error, without its ``__cause__``: a pool of processes returns it to the caller."""
        return _unpickled, (type(self), self.args), vars(self)


class ProblemError(LeadIntakeError):
    """The service refused the request or failed, and retries did not or cannot help. Branch on ``code``."""

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
        faulty = f" ({', '.join(fields)})" if fields else ""
        message = f"{status} {code}{faulty}: {detail or title}"
        super().__init__(message, written=written, idempotency_key=idempotency_key, attempts=attempts)
        #: The URL of the page that documents the code.
        self.type = type
        self.title = title
        self.status = status
        #: Equals a ProblemCode.
        self.code = code
        #: A human-readable explanation of this occurrence.
        self.detail = detail
        #: Validation messages by header, parameter, or path into the body such as ``contact.value``.
        self.fields = fields
        #: The id of the last attempt in the service's logs.
        self.request_id = request_id
        self.retry_after_seconds = retry_after_seconds


class LeadAlreadyOpenError(ProblemError):
    """409: the contact already has an open lead, created with another key or elsewhere. A normal outcome."""

    #: The id of the open lead; None when the API key may not read leads.
    existing_lead_id: str | None = None


class IdempotencyConflictError(ProblemError):
    """409: the idempotency key was already used to create a lead with different data. New data needs a new key."""


class NoAnswerError(LeadIntakeError):
    """The service sent no valid response: the network failed, the deadline passed, or the caller cancelled; see ``__cause__``."""

    #: The status of an intermediary's response, such as a proxy's; None when there was none.
    status: int | None = None


def _unpickled(kind: type[LeadIntakeError], args: tuple[object, ...]) -> LeadIntakeError:
    return kind.__new__(kind, *args)
