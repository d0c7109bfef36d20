"""What is sent and answered: the schemas of the OpenAPI document, in Python's names."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timezone
from enum import Enum
from typing import Any


@dataclass(frozen=True)
class EmailContact:
    """An e-mail address, of up to 254 characters."""

    value: str
    type = "email"


@dataclass(frozen=True)
class PhoneContact:
    """A phone number as people type it, of 5 to 64 characters, with at least 3 digits."""

    value: str
    type = "phone"


@dataclass(frozen=True)
class LeadCapture:
    """A lead to be created."""

    #: Name of the person, of 1 to 160 characters.
    display_name: str
    contact: EmailContact | PhoneContact
    #: An enabled lead source of the key's studio; None: none.
    source_id: str | None = None
    #: What the visitor wrote, or what else there is to know, of 1 to 2,000 characters; None: nothing.
    note: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The lead as the API takes it."""
        optional = {"sourceId": self.source_id, "note": self.note}
        return {
            "displayName": self.display_name,
            "contact": {"type": self.contact.type, "value": self.contact.value},
            **{name: value for name, value in optional.items() if value is not None},
        }


class LeadStage(str, Enum):
    """Where a lead stands, as far as this release knows."""

    NEW = "new"
    CONTACTED = "contacted"
    TRIAL_BOOKED = "trial_booked"
    TRIAL_ATTENDED = "trial_attended"
    WON = "won"
    LOST = "lost"


@dataclass(frozen=True)
class Lead:
    """
    A lead; its contact is in no answer. What an answer has not, or not as documented, is None, but for the id: no answer
    of the service is like that.
    """

    id: str
    display_name: str
    #: Equals a LeadStage; the service may come to know others.
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
        A lead as the API answers it, whatever else stands there.

        :raises KeyError, TypeError, ValueError: when it is none: it has no UUID as its id
        """
        lead_id = lead["id"]
        if not is_uuid(lead_id):
            raise ValueError("the id of a lead must be a UUID")
        text: Callable[[str], Any] = {name: value for name, value in lead.items() if isinstance(value, str)}.get
        return cls(
            id=lead_id,
            display_name=text("displayName"),
            stage=text("stage"),
            source_id=text("sourceId"),
            note=text("note"),
            created_at=_time(text("createdAt")),
            updated_at=_time(text("updatedAt")),
        )


@dataclass(frozen=True)
class CreatedLead:
    """A lead that there is now, because of this creation or of an earlier one with the same key."""

    #: As it was created.
    lead: Lead
    #: Whether an earlier attempt had created it.
    replayed: bool
    idempotency_key: str


@dataclass(frozen=True)
class LeadList:
    """A page of the list, newest first."""

    leads: list[Lead]
    #: Give it unchanged as ``cursor`` to get the next page; None: there is none.
    next_cursor: str | None


class ProblemCode(str, Enum):
    """What the service has against a request, as far as this release knows."""

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


def is_uuid(value: object) -> bool:
    """Whether it is the text of a UUID, of any version."""
    return isinstance(value, str) and bool(re.fullmatch("[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", value))


def _time(text: Any) -> Any:
    try:
        # Seconds may be missing and have any number of decimals, which Python 3.10 does not read by itself.
        whole, _, decimals = text.removesuffix("Z").partition(".")
        microsecond = int(decimals[:6].ljust(6, "0"))
        return datetime.fromisoformat(whole).replace(microsecond=microsecond, tzinfo=timezone.utc)
    except (AttributeError, ValueError):
        return None
