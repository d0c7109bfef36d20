"""Creates a lead with Python 3.9 or later, nothing to install: create_lead.py LEAD_AS_JSON [IDEMPOTENCY_KEY]"""

import gzip
import json
import os
import random
import re
import sys
import time
import urllib.error
import urllib.request
import uuid
import zlib
from http.client import HTTPException

ATTEMPTS = 6
# The service has only these codes. A firewall's response with another code is not a refusal.
CODES = r"integration_\w+|subscription_suspended|route_not_found|method_not_allowed|internal_error"


class OutcomeUnknown(Exception):
    """The outcome is unknown: retry later, with the same data and the same key."""


def create_lead(lead: dict, idempotency_key: str) -> "dict | None":
    """Returns the lead; None when the contact already has an open one, which is a normal outcome."""
    for attempt in range(ATTEMPTS):
        status, media_type, body, retry_after = send(lead, idempotency_key)
        created, code = body.get("lead"), body.get("code")
        # Only the service's own response counts: proxies respond as well, even with JSON.
        if status == 201 and media_type == "application/json" and isinstance(created, dict) and is_uuid(created.get("id")):
            return created
        is_of_service = isinstance(code, str) and re.fullmatch(CODES, code)
        is_problem = status >= 400 and media_type == "application/problem+json" and is_of_service
        if is_problem and code == "integration_lead_already_open":
            return None
        # A retry does not help for other 4xx, nor for a key that created a lead with other data (409): the response
        # states the problem.
        if is_problem and status < 500 and status not in (408, 429):
            raise ValueError(json.dumps(body))

        back_off = 2**attempt * (1 + random.random() / 4)
        if attempt + 1 < ATTEMPTS:
            time.sleep(min(max(back_off, retry_after), 86_400))
    last = f"{status} {code if is_problem else 'not from the service'}" if status else "no answer"
    raise OutcomeUnknown(f"no certain outcome ({last}): repeat later with the same data and the key {idempotency_key}")


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follows no redirect, which would send the key elsewhere, or turn the creation into a GET."""

    def redirect_request(self, *args) -> None:
        return None


def send(lead: dict, idempotency_key: str) -> "tuple[int, str, dict, int]":
    request = urllib.request.Request(
        os.environ["LEAD_INTAKE_URL"].rstrip("/") + "/v1/integrations/leads",
        data=json.dumps(lead).encode(),
        headers={
            "Authorization": "Bearer " + os.environ["LEAD_INTAKE_KEY"],
            "Content-Type": "application/json",
            "Idempotency-Key": idempotency_key,
        },
    )
    try:
        try:
            response = urllib.request.build_opener(NoRedirect).open(request, timeout=10)
        except urllib.error.HTTPError as problem:
            response = problem
        with response:
            media_type, text = response.headers.get_content_type(), response.read()
            # An intermediary may encode the response unasked.
            if response.headers.get("Content-Encoding") == "gzip":
                text = gzip.decompress(text)
            retry_after = response.headers.get("Retry-After", "")
            body = json.loads(text) if media_type.endswith("json") else {}
            seconds = int(retry_after) if retry_after.isdecimal() else 0
            return response.status, media_type, body if isinstance(body, dict) else {}, seconds
    except (EOFError, OSError, HTTPException, ValueError, zlib.error):
        # The lead may have been created nevertheless; a retry with the same key finds out.
        return 0, "", {}, 0


def is_uuid(value: object) -> bool:
    return isinstance(value, str) and bool(re.fullmatch(r"[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}", value, re.I | re.A))


if __name__ == "__main__":
    # One key per lead, the same for every retry: store it with the lead until there is a response.
    key = sys.argv[2] if len(sys.argv) > 2 else str(uuid.uuid4())
    try:
        lead = json.loads(sys.argv[1])
        created = create_lead(lead, key)
        print(json.dumps({"lead": created}) if created else "open already")
        # A setting of the studio decides whether it keeps the note of such a lead, so keep it yourself.
        sys.exit(3 if not created and lead.get("note") else 0)
    except (OutcomeUnknown, ValueError) as error:
        print(error, file=sys.stderr)
        sys.exit(75 if isinstance(error, OutcomeUnknown) else 1)
