"""Creates a lead with Python 3.9 or later, nothing to install: create_lead.py LEAD_AS_JSON [IDEMPOTENCY_KEY]"""

import json
import os
import random
import sys
import time
import urllib.error
import urllib.request
import uuid
from http.client import HTTPException

ATTEMPTS = 6


class OutcomeUnknown(Exception):
    """Retry later, with the same data and the same key."""


def create_lead(lead: dict, idempotency_key: str) -> "dict | None":
    """Returns the lead; None when the contact already has an open one, which is a normal outcome."""
    for attempt in range(ATTEMPTS):
        status, body, retry_after = send(lead, idempotency_key)
        if status == 201:
            return body["lead"]
        if body.get("code") == "integration_lead_already_open":
            return None
        # A retry does not help for other 4xx, nor for a key that created a lead with other data (409): the response
        # states the problem.
        if status and status < 500 and status not in (408, 429):
            raise ValueError(json.dumps(body))

        back_off = 2**attempt * (1 + random.random() / 4)
        if attempt + 1 < ATTEMPTS:
            time.sleep(max(back_off, retry_after))
    last = f"{status} {body.get('code', '')}" if status else "no answer"
    raise OutcomeUnknown(f"no certain outcome ({last}): repeat later with the same data and the key {idempotency_key}")


def send(lead: dict, idempotency_key: str) -> "tuple[int | None, dict, int]":
    request = urllib.request.Request(
        os.environ["LEAD_INTAKE_URL"] + "/v1/integrations/leads",
        data=json.dumps(lead).encode(),
        headers={
            "Authorization": "Bearer " + os.environ["LEAD_INTAKE_KEY"],
            "Content-Type": "application/json",
            "Idempotency-Key": idempotency_key,
        },
    )
    try:
        try:
            response = urllib.request.urlopen(request, timeout=10)
        except urllib.error.HTTPError as problem:
            response = problem
        with response:
            return response.status, json.load(response), int(response.headers.get("Retry-After", 0))
    except (OSError, HTTPException, ValueError):
        # The lead may have been created nevertheless; a retry with the same key finds out.
        return None, {}, 0


if __name__ == "__main__":
    # One key per lead, the same for every retry: store it with the lead until there is a response.
    key = sys.argv[2] if len(sys.argv) > 2 else str(uuid.uuid4())
    try:
        created = create_lead(json.loads(sys.argv[1]), key)
        print(json.dumps({"lead": created}) if created else "open already")
    except (OutcomeUnknown, ValueError) as error:
        print(error, file=sys.stderr)
        sys.exit(75 if isinstance(error, OutcomeUnknown) else 1)
