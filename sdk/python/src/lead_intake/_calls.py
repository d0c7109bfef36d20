"""The calls of the API: their requests, and how responses are read."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from urllib.parse import quote, urlencode
from uuid import uuid4

import httpx2

from ._attempt import ACCEPT_ENCODING, Read
from ._capture_rules import CAPTURE_RULES
from ._configuration import authorization, leads_url
from ._outcomes import USER_AGENT
from .models import CreatedLead, Lead, LeadCapture, LeadList, other_text

T = TypeVar("T")


@dataclass(frozen=True, repr=False)
class Call(Generic[T]):
    """A request, identical in all attempts."""

    method: str
    url: str
    headers: dict[str, str]
    read: Read[T]
    content: bytes | None = None
    #: None for reads.
    idempotency_key: str | None = None

    def to_request(self, http: httpx2.Client | httpx2.AsyncClient, timeout_seconds: float) -> httpx2.Request:
        """Returns the request of one attempt, with a time limit for each step and the HTTP client's own headers."""
        name = http.headers.get("user-agent", "")
        headers = {**self.headers, "Accept-Encoding": ACCEPT_ENCODING}
        if name.startswith("python-httpx"):
            headers["User-Agent"] = USER_AGENT
        return http.build_request(self.method, self.url, headers=headers, content=self.content, timeout=timeout_seconds)


class Calls:
    """Builds the calls of one API key."""

    def __init__(self, base_url: str, api_key: str, *, allow_http: bool) -> None:
        self._leads_url = leads_url(base_url, allow_http=allow_http)
        self._authorization = authorization(api_key)

    def create_lead(self, capture: LeadCapture, idempotency_key: str | None) -> Call[CreatedLead]:
        key = str(uuid4()) if idempotency_key is None else idempotency_key
        if not isinstance(key, str) or not re.match(CAPTURE_RULES["sourceId"][0][0], key):
            raise ValueError("idempotency_key must be a UUID with hyphens")
        if not isinstance(capture, LeadCapture):
            raise TypeError('create_lead takes a LeadCapture, such as LeadCapture("Ada", EmailContact("ada@example.com"))')
        headers = {**self._authorization, "Content-Type": "application/json", "Idempotency-Key": key}
        content = json.dumps(capture.to_json(), allow_nan=False).encode()
        # As the service reads it: JSON combines surrogates.
        sent = json.loads(content)

        def read(body: Any, headers: httpx2.Headers) -> CreatedLead:
            lead = Lead.from_json(body["lead"])
            if other := other_text(sent, body["lead"]):
                raise ValueError(f"another {other}")
            return CreatedLead(lead, "idempotent-replayed" in headers, key)

        return Call("POST", self._leads_url, headers, read, content, key)

    def get_lead(self, lead_id: str) -> Call[Lead]:
        # A URL drops `.` and `..` from its path, and an empty id would address the list.
        if lead_id in ("", ".", ".."):
            raise ValueError("get_lead takes the id of a lead")
        return self._get(f"/{quote(lead_id, safe='')}", lambda body, _: Lead.from_json(body["lead"]))

    def list_leads(self, limit: int | None, cursor: str | None) -> Call[LeadList]:
        query = urlencode({name: value for name, value in (("limit", limit), ("cursor", cursor)) if value is not None})
        return self._get(
            f"?{query}" if query else "",
            lambda body, _: LeadList([Lead.from_json(lead) for lead in body["leads"]], body["nextCursor"]),
        )

    def _get(self, path: str, read: Read[T]) -> Call[T]:
        return Call("GET", self._leads_url + path, self._authorization, read)
