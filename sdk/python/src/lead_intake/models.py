"""The data of requests and responses: the schemas of the OpenAPI document, with Python names."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from enum import Enum
from typing import Any, Literal

from ._capture_rules import BLANK, CAPTURE_RULES, OPTIONAL_TEXTS

#: The texts of a creation that its lead repeats. ``/v1`` never adds one.
_TEXTS = ("displayName", "sourceId", "note")


@dataclass(frozen=True)
class EmailContact:
    """An email address of up to 254 characters."""

    value: str
    type = "email"


@dataclass(frozen=True)
class PhoneContact:
    """A phone number as people type it: 5 to 64 characters, with at least 3 digits."""

    value: str
    type = "phone"


@dataclass(frozen=True)
class LeadCapture:
    """The data of a lead to create."""

    #: The name of the person; 1 to 160 characters.
    display_name: str
    contact: EmailContact | PhoneContact
    #: The id of an enabled lead source of the key's studio; None or blank: none.
    source_id: str | None = None
    #: The visitor's message or any other information, up to 2,000 characters; None or blank: none.
    note: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.contact, (EmailContact, PhoneContact)):
            raise TypeError('contact must be an EmailContact or a PhoneContact, such as EmailContact("ada@example.com")')

    def to_json(self) -> dict[str, Any]:
        """Returns the lead in the format of the API."""
        texts = {name: getattr(self, _attribute(name)) for name in OPTIONAL_TEXTS}
        return {
            "displayName": self.display_name,
            "contact": {"type": self.contact.type, "value": self.contact.value},
            **{name: value for name, value in texts.items() if value is not None and not is_blank(value)},
        }

    def faults(self) -> dict[str, list[str]]:
        """
        Returns the faults of the lead, with the messages and keys of the service's ``fields``, such as ``contact.value``.
        If there are none, the service accepts the lead, unless the studio lacks its source. Also refuses a name without a
        visible character, which the service accepts. Checks the lead as an outbox stores it, with one character for each
        line break of the note. Call it before you thank a visitor.
        """
        return {name: [message] for name, (message, _) in self._faults().items()}

    def fault_codes(self) -> dict[str, list[str]]:
        """
        Returns the codes of the faults, such as ``wrong_length``, with the keys of ``faults``, for a page in another
        language.
        """
        return {name: [code] for name, (_, code) in self._faults().items()}

    def _faults(self) -> dict[str, tuple[str, str]]:
        written = as_written(self.to_json())
        contact = written.pop("contact")
        faults = {name: _fault_in(name, text) for name, text in written.items()}
        faults["contact.value"] = _fault_in(contact["type"], contact["value"])
        return {name: fault for name, fault in faults.items() if fault}


class LeadStage(str, Enum):
    """The stages of a lead known to this release."""

    NEW = "new"
    CONTACTED = "contacted"
    TRIAL_BOOKED = "trial_booked"
    TRIAL_ATTENDED = "trial_attended"
    WON = "won"
    LOST = "lost"


@dataclass(frozen=True)
class Lead:
    """
    A lead; responses never contain its contact. The service always sends every field. If a response lacks one, or has it
    in another form, it is None here.
    """

    id: str
    display_name: str
    #: Equals a LeadStage; later versions of the service may add others.
    stage: str
    source_id: str | None
    note: str | None
    #: When the lead was created; UTC.
    created_at: datetime
    #: When the lead was last changed; UTC.
    updated_at: datetime

    @classmethod
    def from_json(cls, lead: Any) -> Lead:
        """
        Parses a lead of a response, ignoring unknown fields.

        :raises KeyError, TypeError, ValueError: when it is not a lead: its id is not a UUID
        """
        lead_id = lead["id"]
        if not is_uuid(lead_id):
            raise ValueError("the id of a lead must be a UUID")
        text: Callable[[str], Any] = {name: value for name, value in lead.items() if isinstance(value, str)}.get
        return cls(
            id=lead_id,
            stage=text("stage"),
            created_at=_time(text("createdAt")),
            updated_at=_time(text("updatedAt")),
            **{_attribute(name): text(name) for name in _TEXTS},
        )


@dataclass(frozen=True)
class CreatedLead:
    """The lead created by this request, or by an earlier one with the same idempotency key."""

    #: The lead as it was when created.
    lead: Lead
    #: Whether an earlier request had created it.
    replayed: bool
    idempotency_key: str
    #: The number of times the request was sent. If 1, and ``replayed`` is true, another call had created it.
    attempts: int = 1


@dataclass(frozen=True)
class AttemptReport:
    """A report on one attempt, without keys and personal data."""

    #: 1 for the first attempt of a request.
    attempt: int
    #: The failure, such as ``429 integration_rate_limited``, ``502, not of the service`` or ``no answer``; or None.
    failure: str | None
    #: The id of the attempt in the service's logs.
    request_id: str | None
    #: The number of requests that the quota still allows in its window.
    quota_remaining: int | None
    #: The delay before the next attempt; None: there is none.
    retry_in_seconds: float | None


@dataclass(frozen=True)
class CheckFinding:
    """A finding about one part of a configuration."""

    #: ``address``, ``key``, ``leads.create``, ``leads.read`` or ``clock``.
    about: str
    verdict: Literal["right", "wrong", "unknown"]
    #: For programs, such as ``key_refused``.
    code: str
    #: For people: one sentence, without the key and the address.
    sentence: str


@dataclass(frozen=True)
class CheckReport:
    """The result of a check."""

    #: Whether address and key are known to work for creating leads. When false, the findings say why.
    can_create: bool
    #: Whether address and key are known to work for reading leads.
    can_read: bool
    #: One for each part: address, key, leads.create, leads.read, clock.
    findings: list[CheckFinding]


@dataclass(frozen=True)
class LeadList:
    """A page of leads, newest first."""

    leads: list[Lead]
    #: Pass it unchanged as ``cursor`` to get the next page; None on the last page.
    next_cursor: str | None


class ProblemCode(str, Enum):
    """The codes of problems known to this release."""

    INTEGRATION_INVALID_REQUEST = "integration_invalid_request"
    INTEGRATION_SOURCE_INVALID = "integration_source_invalid"
    INTEGRATION_KEY_INVALID = "integration_key_invalid"
    SUBSCRIPTION_SUSPENDED = "subscription_suspended"
    INTEGRATION_SCOPE_FORBIDDEN = "integration_scope_forbidden"
    INTEGRATION_ISSUER_FORBIDDEN = "integration_issuer_forbidden"
    INTEGRATION_LEAD_NOT_FOUND = "integration_lead_not_found"
    INTEGRATION_IDEMPOTENCY_CONFLICT = "integration_idempotency_conflict"
    INTEGRATION_LEAD_ALREADY_OPEN = "integration_lead_already_open"
    INTEGRATION_RATE_LIMITED = "integration_rate_limited"
    INTEGRATION_RATE_UNAVAILABLE = "integration_rate_unavailable"
    ROUTE_NOT_FOUND = "route_not_found"
    METHOD_NOT_ALLOWED = "method_not_allowed"
    INTERNAL_ERROR = "internal_error"
    INTEGRATION_UNAVAILABLE = "integration_unavailable"


def is_blank(value: object) -> bool:
    """Whether the value is text that is empty or only white space, such as a form's field that was left empty."""
    return isinstance(value, str) and re.match(BLANK, value) is not None


def as_written(data: Mapping[str, Any]) -> dict[str, Any]:
    """
    Removes what forms add to a visitor's text: fields left empty, which the service refuses, and the second character of
    each line break, which ``maxlength`` does not count.
    """
    written = {name: value for name, value in data.items() if name not in OPTIONAL_TEXTS or not is_blank(value)}
    if isinstance(note := written.get("note"), str):
        written["note"] = note.replace("\r\n", "\n").replace("\r", "\n")
    return written


def texts_of(lead: Lead) -> dict[str, Any]:
    """Returns the texts that a lead repeats, by their names in the API."""
    return {name: getattr(lead, _attribute(name)) for name in _TEXTS}


def other_text(sent: Mapping[str, Any], lead: Mapping[str, Any]) -> str | None:
    """
    Returns the first text of a lead that differs from the one that was sent; None: there is none. The service changes
    only the letter case of ``sourceId``. A missing or undocumented value proves nothing.
    """
    for name in _TEXTS:
        value = lead.get(name, ...)
        is_documented = isinstance(value, str) or (value is None and name != "displayName")
        if is_documented and _in_one_case(name, value) != _in_one_case(name, sent.get(name)):
            return name
    return None


def is_uuid(value: object) -> bool:
    """Whether the value is the text of a UUID, of any version."""
    return isinstance(value, str) and bool(re.fullmatch("[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", value))


def _attribute(name: str) -> str:
    """Returns the Python name of a field of the API."""
    return re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", name)


def _in_one_case(name: str, value: object) -> object:
    return value.lower() if name == "sourceId" and isinstance(value, str) else value


def _time(text: Any) -> Any:
    try:
        # Seconds may be missing and have any number of decimals, which Python 3.10 does not parse.
        whole, _, decimals = text.removesuffix("Z").partition(".")
        microsecond = int(decimals[:6].ljust(6, "0"))
        return datetime.fromisoformat(whole).replace(microsecond=microsecond, tzinfo=timezone.utc)
    except (AttributeError, ValueError):
        return None


def _fault_in(name: str, text: object) -> tuple[str, str] | None:
    """Returns the message and the code."""
    if not isinstance(text, str):
        return "must be a string", "not_text"
    return next(((fault, code) for pattern, fault, code in CAPTURE_RULES[name] if not re.match(pattern, text)), None)
