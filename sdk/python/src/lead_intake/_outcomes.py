"""What the responses of the service mean, and how requests name the client.

Generated from sdk/outcomes.json and the version in sdk/package.json. Do not edit."""

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

#: Statuses that hold up all leads of an API key until somebody corrects the key or the studio.
STATUSES_OF_THE_KEY = (401, 402, 403)

#: How requests name the client; many firewalls refuse requests without a name.
USER_AGENT = "lead-intake-python/1.1.0"
