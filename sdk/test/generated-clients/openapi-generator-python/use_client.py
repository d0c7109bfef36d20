"""Uses the client that openapi-generator makes for Python, and prints the results as JSON."""

import json
import os
import uuid

import lead_intake
from lead_intake import Contact, EmailContact, LeadCapture, PhoneContact


def api_with(key, url=os.environ["URL"]):
    configuration = lead_intake.Configuration(host=url, access_token=os.environ[key])
    return lead_intake.LeadsApi(lead_intake.ApiClient(configuration))


def lead_fields(lead):
    """Returns a lead as plain values, with times in milliseconds since 1970."""
    return {
        "id": lead.id,
        "displayName": lead.display_name,
        "stage": lead.stage.value,
        "sourceId": lead.source_id,
        "note": lead.note,
        "createdAt": round(lead.created_at.timestamp() * 1000),
        "updatedAt": round(lead.updated_at.timestamp() * 1000),
    }


def header_of(headers, name):
    """Returns a header, whatever the case of its name."""
    return {each.lower(): value for each, value in headers.items()}.get(name)


def refusal(call):
    try:
        call()
    except lead_intake.ApiException as error:
        problem = error.data
        return {
            "status": error.status,
            "code": problem.code.value,
            "fields": problem.fields,
            "requestId": problem.request_id,
            "retryAfter": header_of(error.headers, "retry-after"),
        }


def captured(contact, **more):
    return LeadCapture(display_name="Zoë 🦉", contact=Contact(contact), **more)


email = captured(EmailContact(type="email", value="zoë@straße.example"), note="a\nb")
phone = captured(PhoneContact(type="phone", value="+49 30 123456"), source_id=os.environ["SOURCE_ID"])
other = captured(EmailContact(type="email", value="other@example.org"))
letters = captured(PhoneContact(type="phone", value="call me"))
foreign = captured(EmailContact(type="email", value="other@example.org"), source_id=str(uuid.uuid4()))


def create(capture, key="KEY", idempotency_key=None, **more):
    idempotency_key = idempotency_key or str(uuid.uuid4())
    return api_with(key, **more).create_lead_with_http_info(idempotency_key=idempotency_key, lead_capture=capture)


api = api_with("KEY")
idempotency_key = str(uuid.uuid4())
created = create(email, idempotency_key=idempotency_key)
replayed = create(email, idempotency_key=idempotency_key)
by_phone = create(phone)

pages, cursor = [], None
while True:
    page = api.list_leads(limit=1, cursor=cursor)
    pages.append([lead.id for lead in page.leads])
    cursor = page.next_cursor
    if cursor is None:
        break

used_up = {"key": "SCARCE_KEY", "url": os.environ["SCARCE_URL"]}
create(other, **used_up)

print(
    json.dumps(
        {
            "created": lead_fields(created.data.lead),
            "isReplay": [header_of(answer.headers, "idempotent-replayed") for answer in (created, replayed)],
            "replayed": lead_fields(replayed.data.lead),
            "byPhone": lead_fields(by_phone.data.lead),
            "read": lead_fields(api.get_lead(created.data.lead.id).lead),
            "pages": pages,
            "refusals": {
                "invalid contact": refusal(lambda: create(letters)),
                "invalid cursor": refusal(lambda: api.list_leads(cursor="none")),
                "invalid source": refusal(lambda: create(foreign)),
                "invalid key": refusal(lambda: create(other, "INVALID_KEY")),
                "suspended": refusal(lambda: create(other, "SUSPENDED_KEY")),
                "other scope": refusal(lambda: create(other, "READING_KEY")),
                "issuer": refusal(lambda: create(other, "FORMER_OWNER_KEY")),
                "unknown lead": refusal(lambda: api.get_lead(str(uuid.uuid4()))),
                "other data": refusal(lambda: create(other, idempotency_key=idempotency_key)),
                "already open": refusal(lambda: create(email)),
                "used up": refusal(lambda: create(other, **used_up)),
            },
        }
    )
)
