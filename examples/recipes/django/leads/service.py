"""The service that gets the leads."""

import os

from django.core.management.base import CommandError
from lead_intake import LeadIntakeClient

#: The names of the worker's API key, and of one with only the scope leads.read, for pages.
KEY = "LEAD_INTAKE_KEY"
READ_KEY = "LEAD_INTAKE_READ_KEY"


def client(key_name: str) -> LeadIntakeClient:
    """
    :param key_name: the name of the key in the environment
    :raises CommandError: when the environment has no address or key, or a wrong one
    """
    try:
        # The client need not retry for long, because the outbox does.
        return LeadIntakeClient(os.environ["LEAD_INTAKE_URL"], os.environ[key_name], deadline_seconds=10)
    except KeyError as missing:
        raise CommandError(f"{missing} must be set") from None
    except ValueError as wrong:
        raise CommandError(f"LEAD_INTAKE_URL or {key_name} is wrong: {wrong}") from None
