"""The idempotency keys of leads."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from hashlib import sha256
from time import time
from typing import Any
from uuid import UUID, uuid4

from .._capture_rules import CAPTURE_RULES
from ..models import LeadCapture
from ._stored import canonical_text_of

#: Version 8 (custom bits) of the standard variant.
_VERSION_BITS, _VERSION_8 = 0xF000 << 64, 0x8000 << 64
_VARIANT_BITS, _STANDARD_VARIANT = 0xC000 << 48, 0x8000 << 48


def key_for(
    form_key: str | None, capture: LeadCapture | Mapping[str, Any], *, submitted_at: datetime | None = None
) -> str:
    """
    Derives the idempotency key of a form submission: equal for the same form and data within an hour, such as a double
    click; different when any differs, such as after the visitor corrects the address. Without the hour, all visits to a
    cached page would share one key.

    :param form_key: a random string rendered into the form, such as a UUID; it is not stored. A form without one has the
        key "", as if all visitors had one cached page
    :param capture: the lead, or its JSON in the form of the API
    :param submitted_at: when the form was submitted; default: now
    :raises ValueError, TypeError: when the data cannot be stored
    """
    hour = int((time() if submitted_at is None else submitted_at.timestamp()) // 3600)
    digest = sha256(f"{form_key or ''}\0{hour}\0{canonical_text_of(capture)}".encode()).digest()
    number = int.from_bytes(digest[:16], "big") & ~(_VERSION_BITS | _VARIANT_BITS)
    return str(UUID(int=number | _VERSION_8 | _STANDARD_VARIANT))


def checked_key(key: str | None) -> str:
    """
    Returns a key in its stored form, lower case; a new one for None.

    :raises ValueError: when the service does not accept such a key
    """
    if key is None:
        return str(uuid4())
    if not re.match(CAPTURE_RULES["sourceId"][0][0], key):
        raise ValueError("The idempotency key must be a UUID with hyphens, of version 1 to 8.")
    return key.lower()
