"""The data of a lead, as it stands in the table."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ..models import LeadCapture

#: As much as MySQL's TEXT holds; more it cuts, unless it is strict. Bytes.
_MAX_TEXT = 65_535


class StoredCapture(LeadCapture):
    """A lead as it was stored, perhaps by another language or a later release: it is sent as it is, whatever it has."""

    def __init__(self, stored: dict[str, Any]) -> None:
        object.__setattr__(self, "_stored", stored)

    def to_json(self) -> dict[str, Any]:
        stored: dict[str, Any] = vars(self)["_stored"]
        return stored


def text_of(capture: LeadCapture | Mapping[str, Any]) -> str:
    """
    A lead as it is stored: JSON in ASCII, which no encoding of a connection can spoil. Whether it is one is for the
    service to say.

    :raises ValueError, TypeError: when it is no JSON object, or longer than the column
    """
    value = capture.to_json() if isinstance(capture, LeadCapture) else capture
    if not isinstance(value, Mapping):
        raise TypeError("The data of a lead must be a LeadCapture, or an object of JSON.")
    text = json.dumps(dict(value), allow_nan=False)
    try:
        json.dumps(dict(value), ensure_ascii=False).encode()
    except UnicodeEncodeError:
        # The error has the text in it.
        raise ValueError("The data of the lead has text that is not well-formed Unicode.") from None
    if len(text) > _MAX_TEXT:
        raise ValueError(f"The data of a lead must not be longer than {_MAX_TEXT} bytes of JSON.")
    return text


def capture_in(text: str | None) -> dict[str, Any] | None:
    """What was stored; None when it is nothing, or no object."""
    try:
        value = json.loads(text or "null")
    except (TypeError, ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def is_same_data(one: str, other: str) -> bool:
    """Whether two texts are the same data to the service, whoever wrote them in whatever order."""
    return _canonical(capture_in(one)) == _canonical(capture_in(other))


def _canonical(value: object) -> str:
    return json.dumps(_without_nulls(value), sort_keys=True)


def _without_nulls(value: object) -> object:
    if isinstance(value, dict):
        return {name: _without_nulls(member) for name, member in value.items() if member is not None}
    if isinstance(value, list):
        return [_without_nulls(member) for member in value]
    return value
