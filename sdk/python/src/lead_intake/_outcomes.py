"""What the responses of the service mean, and how requests name the client.

Generated from sdk/generate-outcomes.ts and the version in sdk/package.json. Do not edit."""

#: Codes that prove that no attempt has written: the service looks up the idempotency key before it sends them.
SETTLING_CODES = ("integration_source_invalid", "integration_idempotency_conflict", "integration_lead_already_open")

#: Codes that prove it if they name the faulty fields: the same data would have been refused before as well.
SETTLING_CODES_WITH_FIELDS = ("integration_invalid_request",)

#: From this status on, a response is a failure: the request may have written, and the same request may succeed later.
FAILING_FROM_STATUS = 500

#: Codes of failures that have written nothing.
CODES_WRITING_NOTHING = ("integration_rate_unavailable",)

#: Statuses of refusals after which the same request may succeed later.
TEMPORARY_STATUSES = (408, 429)

#: How reasons of an outbox begin that hold up all leads until somebody corrects the key, the studio or the address.
CONFIGURATION_REASONS = ("401 ", "402 ", "403 ", "404 ", "405 ")

#: How reasons of an outbox begin until whose next attempt no lead is sent; the last one is of an intermediary.
PAUSE_REASONS = ("429 ", "503 ", "wait")

#: The condition of rows of an outbox that a person may send again or discard: no one is known to have their data.
SQL_WITH_DATA = "(state IN ('waiting', 'refused') OR capture IS NOT NULL)"

#: Why an outbox keeps the note of an already open lead.
REASON_NOT_TAKEN = "already open: the contact has an open lead, and no one has got this note"

#: Why an outbox keeps a lead whose first attempt was answered with an earlier one.
REASON_REPLAYED = "replayed: its key had been used before, and no one may have got this message"

#: Why an outbox refuses a row.
REASON_UNREADABLE = "unreadable: the data in the table is not a JSON object"

#: How requests name the client; many firewalls refuse requests without a name.
USER_AGENT = "lead-intake-python/1.1.0"
