"""Uses the client that openapi-python-client makes, and prints what came of it as JSON."""

import functools
import json
import os
import uuid

from lead_intake import AuthenticatedClient
from lead_intake.api.leads import create_lead, get_lead, list_leads
from lead_intake.models import EmailContact, LeadCapture, PhoneContact, ProblemDetails
from lead_intake.types import UNSET


@functools.cache
def client_with(key, url=os.environ["URL"]):
    return AuthenticatedClient(base_url=url, token=os.environ[key])


def lead_fields(lead):
    """A lead in plain values; times as milliseconds since 1970."""
    return {
        "id": lead.id,
        "displayName": lead.display_name,
        "stage": lead.stage.value,
        "sourceId": lead.source_id,
        "note": lead.note,
        "createdAt": round(lead.created_at.timestamp() * 1000),
        "updatedAt": round(lead.updated_at.timestamp() * 1000),
    }


def refusal(answer):
    problem = answer.parsed
    assert isinstance(problem, ProblemDetails), problem
    return {
        "status": int(answer.status_code),
        "code": problem.code.value,
        "fields": problem.fields.additional_properties if problem.fields else None,
        "requestId": problem.request_id,
        "retryAfter": answer.headers.get("Retry-After"),
    }


def captured(contact, **more):
    return LeadCapture(display_name="Zoë 🦉", contact=contact, **more)


email = captured(EmailContact(type_="email", value="zoë@straße.example"), note="a\nb")
phone = captured(PhoneContact(type_="phone", value="+49 30 123456"), source_id=os.environ["SOURCE_ID"])
other = captured(EmailContact(type_="email", value="other@example.org"))
letters = captured(PhoneContact(type_="phone", value="call me"))
foreign = captured(EmailContact(type_="email", value="other@example.org"), source_id=str(uuid.uuid4()))


def create(capture, key="KEY", idempotency_key=None, **more):
    idempotency_key = idempotency_key or str(uuid.uuid4())
    return create_lead.sync_detailed(client=client_with(key, **more), body=capture, idempotency_key=idempotency_key)


client = client_with("KEY")
idempotency_key = str(uuid.uuid4())
created = create(email, idempotency_key=idempotency_key)
replayed = create(email, idempotency_key=idempotency_key)
by_phone = create(phone)

pages, cursor = [], UNSET
while True:
    page = list_leads.sync(client=client, limit=1, cursor=cursor)
    pages.append([lead.id for lead in page.leads])
    cursor = page.next_cursor
    if cursor is None:
        break

used_up = {"key": "SCARCE_KEY", "url": os.environ["SCARCE_URL"]}
create(other, **used_up)

print(
    json.dumps(
        {
            "created": lead_fields(created.parsed.lead),
            "isReplay": [answer.headers.get("Idempotent-Replayed") for answer in (created, replayed)],
            "replayed": lead_fields(replayed.parsed.lead),
            "byPhone": lead_fields(by_phone.parsed.lead),
            "read": lead_fields(get_lead.sync(created.parsed.lead.id, client=client).lead),
            "pages": pages,
            "refusals": {
                "invalid contact": refusal(create(letters)),
                "invalid cursor": refusal(list_leads.sync_detailed(client=client, cursor="none")),
                "invalid source": refusal(create(foreign)),
                "invalid key": refusal(create(other, "INVALID_KEY")),
                "suspended": refusal(create(other, "SUSPENDED_KEY")),
                "other scope": refusal(create(other, "READING_KEY")),
                "issuer": refusal(create(other, "FORMER_OWNER_KEY")),
                "unknown lead": refusal(get_lead.sync_detailed(str(uuid.uuid4()), client=client)),
                "other data": refusal(create(other, idempotency_key=idempotency_key)),
                "already open": refusal(create(email)),
                "used up": refusal(create(other, **used_up)),
            },
        }
    )
)
