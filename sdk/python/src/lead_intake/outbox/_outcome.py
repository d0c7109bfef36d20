"""The outcome of sending a lead."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from .._attempt import is_temporary, why_no_answer
from .._client import LeadIntakeClient
from .._outcomes import (
    CONFIGURATION_REASONS,
    PAUSE_REASONS,
    REASON_NOT_TAKEN,
    REASON_REPLAYED,
    REASON_UNREADABLE,
)
from ..errors import LeadAlreadyOpenError, NoAnswerError, ProblemError
from ._stored import StoredCapture

#: The length of the column ``reason``; characters.
_MAX_REASON = 1000

#: The number of characters by which reasons are distinguished.
_MARK = 4

_UNANSWERED = "no answer"


@dataclass(frozen=True)
class Settled:
    """The lead needs no further attempt."""

    state: Literal["delivered", "already_open"]
    lead_id: str | None
    #: Why the data is kept for a person: perhaps nobody got the visitor's message. None: the data is erased.
    reason: str | None


@dataclass(frozen=True)
class Refused:
    """A retry cannot help: the lead needs a person's attention."""

    reason: str
    state: Literal["refused"] = "refused"


@dataclass(frozen=True)
class Postponed:
    """The lead is sent again later."""

    reason: str
    retry_after_seconds: int | None = None
    #: Whether the attempt does not count: it wrote nothing, and the lead did not cause its failure.
    is_free: bool = False
    state: Literal["waiting"] = "waiting"

    @property
    def is_of_all(self) -> bool:
        """Whether other leads would currently get the same response."""
        return self.reason[:_MARK] in CONFIGURATION_REASONS + PAUSE_REASONS

    @property
    def is_unanswered(self) -> bool:
        """Whether the service may be unavailable."""
        return self.reason.startswith(_UNANSWERED)


Outcome = Settled | Refused | Postponed


def send(client: LeadIntakeClient, key: str, capture: dict[str, Any] | None, passes: int) -> Outcome:
    """Sends a lead with its stored data. ``passes``: how many have sent it, with this one."""
    if capture is None:
        return Refused(REASON_UNREADABLE)
    try:
        created = client.create_lead(StoredCapture(capture), idempotency_key=key)
        # This website sent nothing else with this key, so the lead belongs to another visit.
        is_other = created.replayed and created.attempts == 1 and passes == 1
        return Settled("delivered", created.lead.id, REASON_REPLAYED if is_other else None)
    except LeadAlreadyOpenError as error:
        return Settled("already_open", error.existing_lead_id, None if capture.get("note") is None else REASON_NOT_TAKEN)
    except ProblemError as error:
        return _outcome_of(error)
    except NoAnswerError as error:
        return Postponed(reason_of(error), error.retry_after_seconds)


def postponed_by(error: Exception, prefix: str = "") -> Postponed:
    """Returns the outcome after an unexpected error. Keeps only its name: its message may contain the visitor's data."""
    return Postponed(_reason(f"{prefix}{type(error).__name__}"))


def reason_of(error: ProblemError | NoAnswerError) -> str:
    """Returns the cause of a failed request, in the form of the column ``reason``."""
    if isinstance(error, NoAnswerError):
        return _reason(f"{_mark_of(error)}: {why_no_answer(error.__cause__, error.status)}")
    return _reason(
        f"{error.status} {error.code}: {error.detail or error.title}{_about(error.fields)} (request {error.request_id})"
    )


def _outcome_of(problem: ProblemError) -> Outcome:
    reason = reason_of(problem)
    postponed = Postponed(reason, problem.retry_after_seconds)
    if postponed.is_of_all:
        return replace(postponed, is_free=problem.written == "no")
    return postponed if is_temporary(problem.status) else Refused(reason)


def like(marks: tuple[str, ...]) -> str:
    """Returns the condition of rows whose reason begins like one of these."""
    return f"SUBSTR(reason, 1, {_MARK}) IN {marks}"


def _about(fields: Mapping[str, Any]) -> str:
    faults = "; ".join(f"{name}: {', '.join(messages)}" for name, messages in fields.items())
    return f" [{faults}]" if faults else ""


def _mark_of(error: NoAnswerError) -> str:
    """Returns the beginning of the reason. Another web server, at a wrong address, answers 404 or 405."""
    if error.retry_after_seconds is not None:
        return "wait asked for"
    return f"{error.status} {_UNANSWERED}" if error.status in (404, 405) else _UNANSWERED


def _reason(text: str) -> str:
    """Returns a text in ASCII, which no connection's encoding can alter, up to the length of the column."""
    ascii_text = text.encode("ascii", "replace").decode()
    return "".join(character if character.isprintable() else " " for character in ascii_text)[:_MAX_REASON]
