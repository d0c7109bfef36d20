"""The stored form of the data of a lead."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from ..models import LeadCapture, as_written

#: The capacity of MySQL's TEXT, which truncates longer text unless in strict mode; bytes.
_MAX_TEXT = 65_535

LONE_SURROGATE = re.compile(r"[\ud800-\udfff]")


class StoredCapture(LeadCapture):
    """A lead as it was stored, possibly by another language or a later release; it is sent unchanged."""

    def __init__(self, stored: dict[str, Any]) -> None:
        object.__setattr__(self, "_stored", stored)

    def to_json(self) -> dict[str, Any]:
        stored: dict[str, Any] = vars(self)["_stored"]
        return stored


def text_of(capture: LeadCapture | Mapping[str, Any]) -> str:
    """
    Returns the stored form of a lead: JSON in ASCII, which no connection's encoding can alter. The service validates
    the data.

    :raises ValueError, TypeError: when it is not a JSON object, or longer than the column
    """
    value = capture.to_json() if isinstance(capture, LeadCapture) else capture
    if not isinstance(value, Mapping):
        raise TypeError("The data of a lead must be a LeadCapture, or an object of JSON.")
    written = as_written(value)
    text = json.dumps(written, allow_nan=False)
    # Not by encoding it: the error would have the text.
    if LONE_SURROGATE.search(json.dumps(written, ensure_ascii=False)):
        raise ValueError("The data of the lead has text that is not well-formed Unicode.")
    if len(text) > _MAX_TEXT:
        raise ValueError(f"The data of a lead must not be longer than {_MAX_TEXT} bytes of JSON.")
    return text


def capture_in(text: str | bytes | None) -> dict[str, Any] | None:
    """Returns the stored data; None when there is none, or it is not a JSON object."""
    try:
        # Not bytes: json would guess their encoding.
        value = json.loads(text.decode() if isinstance(text, bytes) else text or "null")
    except (TypeError, ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def canonical_text_of(capture: LeadCapture | Mapping[str, Any]) -> str:
    """Returns equal text for equal data, in all languages."""
    return _canonical(json.loads(text_of(capture)))


def is_same_data(one: str | bytes, other: str) -> bool:
    """Whether two texts are the same data of a visitor, regardless of the order of members and the writer."""
    first, second = capture_in(one), capture_in(other)
    if first is None or second is None:
        return False
    return _canonical(first) == _canonical(second)


def _canonical(value: object) -> str:
    return json.dumps(_without_nulls(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _without_nulls(value: object) -> object:
    if isinstance(value, dict):
        return {name: _without_nulls(member) for name, member in value.items() if member is not None}
    if isinstance(value, list):
        return [_without_nulls(member) for member in value]
    return value
