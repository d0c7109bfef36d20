"""Client of the Lead Intake API for servers: creates leads without losing or doubling any, and reads them back."""

from ._async_client import AsyncLeadIntakeClient
from ._cancellation import Cancellation, outcome_of
from ._client import LeadIntakeClient
from ._quota import Quota
from .errors import (
    IdempotencyConflictError,
    LeadAlreadyOpenError,
    LeadIntakeError,
    NoAnswerError,
    ProblemError,
    Written,
)
from .models import (
    AttemptReport,
    CheckFinding,
    CheckReport,
    CreatedLead,
    EmailContact,
    Lead,
    LeadCapture,
    LeadList,
    LeadStage,
    PhoneContact,
    ProblemCode,
)

__all__ = [
    "AsyncLeadIntakeClient",
    "AttemptReport",
    "Cancellation",
    "CheckFinding",
    "CheckReport",
    "CreatedLead",
    "EmailContact",
    "IdempotencyConflictError",
    "Lead",
    "LeadAlreadyOpenError",
    "LeadCapture",
    "LeadIntakeClient",
    "LeadIntakeError",
    "LeadList",
    "LeadStage",
    "NoAnswerError",
    "PhoneContact",
    "ProblemCode",
    "ProblemError",
    "Quota",
    "Written",
    "outcome_of",
]
