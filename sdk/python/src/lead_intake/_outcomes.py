"""The constants by which a client understands responses of the service, and its name in requests.

Generated from sdk/generate-outcomes.ts and the version in sdk/package.json. Do not edit."""

#: The codes of the service, which are frozen: a problem with another code comes from an intermediary.
PROBLEM_CODES = (
    "integration_invalid_request",
    "integration_source_invalid",
    "integration_key_invalid",
    "subscription_suspended",
    "integration_scope_forbidden",
    "integration_issuer_forbidden",
    "integration_lead_not_found",
    "integration_idempotency_conflict",
    "integration_lead_already_open",
    "integration_rate_limited",
    "integration_rate_unavailable",
    "route_not_found",
    "method_not_allowed",
    "internal_error",
    "integration_unavailable",
)

#: Codes that prove that no attempt has written: the service looks up the idempotency key before it sends them.
SETTLING_CODES = ("integration_source_invalid", "integration_idempotency_conflict", "integration_lead_already_open")

#: Codes that prove the same when all faulty fields are in the data: the service would have refused earlier attempts, too.
SETTLING_CODES_WITH_FIELDS = ("integration_invalid_request",)

#: Faulty fields outside the data: an intermediary may have spoiled only this attempt.
FIELDS_NOT_OF_DATA = (
    "body",
    "Content-Encoding",
    "Content-Type",
    "Expect",
    "Host",
    "HTTP version",
    "Idempotency-Key",
    "Transfer-Encoding",
)

#: From this status on, a response is a failure: the request may have written, and the same request may succeed later.
FAILING_FROM_STATUS = 500

#: Codes of failures that have written nothing.
CODES_WRITING_NOTHING = ("integration_rate_unavailable",)

#: Statuses of refusals after which the same request may succeed later.
TEMPORARY_STATUSES = (408, 429)

#: Beginnings of outbox reasons that hold up all leads until somebody corrects the key, the studio or the address.
CONFIGURATION_REASONS = ("401 ", "402 ", "403 ", "404 ", "405 ")

#: Beginnings of outbox reasons that pause all leads until the next attempt; an intermediary causes the last one.
PAUSE_REASONS = ("429 ", "503 ", "wait")

#: Matches http addresses within a machine or a private network. It suits all languages: no backslashes, and a dot for the bracket of IPv6.
HTTP_WITHIN = "^http://(?:[^./:]+|.(?:::1|f[cd][0-9a-f:]+)]|(?:127|10|192[.]168|172[.](?:1[6-9]|2[0-9]|3[01]))[.][0-9.]+|[^/:]+[.](?:home[.]arpa|internal|lan|local|localhost|svc|test))(?::[0-9]+)?(?:/|$)"

#: Selects the rows of an outbox that a person may send again or discard: nobody is known to have their data.
SQL_WITH_DATA = "(state IN ('waiting', 'refused') OR capture IS NOT NULL)"

#: The `attempts` of a row that a person sends again: 1 if an attempt had no answer, since it may have created the lead. Assigned before `state`, since MySQL assigns from left to right.
SQL_RETRIED_ATTEMPTS = "CASE WHEN attempts > 1 OR (attempts = 1 AND state = 'waiting') THEN 1 ELSE 0 END"

#: Why an outbox keeps the note of an already open lead.
REASON_NOT_TAKEN = "already open: the contact has an open lead; whether the studio got this note depends on its settings"

#: Why an outbox keeps a lead whose first attempt was answered with an earlier one.
REASON_REPLAYED = "replayed: its key had been used before, so perhaps nobody got this message"

#: Why an outbox refuses a row.
REASON_UNREADABLE = "unreadable: the data in the table is not a JSON object"

#: Why an API key may not find a lead of an outbox: the service gives all three cases the same response.
REASON_NOT_THERE = "not there: erased, lost in a restored database, or of another studio"

#: Why a text of a lead may differ from the one that the outbox has kept.
REASON_OTHER_DATA = "other data: changed in the studio since, or the lead of an earlier visit"

#: Why an outbox does not know whether a lead is there.
REASON_NOT_READ = "not read: the service has failed to read it, which its operator has to look into"

#: After this many leads in a row that no page had could not be read one by one either, the pages are trusted.
PAGES_MISSED = 100

#: The name of the client in requests; many firewalls refuse requests without one.
USER_AGENT = "lead-intake-python/2.0.0"

#: The findings of a check: whether each is good, and its sentence for people.
CHECK_FINDINGS = {
    "address_right": ("right", "The service answers at the address."),
    "address_malformed": (
        "wrong",
        "The address must be one such as https://api.example.com, without /v1 and credentials.",
    ),
    "address_not_https": (
        "wrong",
        "The address must begin with https: over http anybody on the way can read the key and the leads.",
    ),
    "name_unknown": (
        "wrong",
        "The name in the address cannot be resolved: it is misspelt, or the DNS does not work here.",
    ),
    "connection_refused": (
        "wrong",
        "Nothing accepts connections at the address: its port is wrong, or the service is down.",
    ),
    "tls_failed": (
        "wrong",
        "TLS fails: the certificate is not trusted, expired or of another name, the clock is wrong, or it is no TLS port.",
    ),
    "timed_out": (
        "wrong",
        "No answer came in time: the address is wrong, a firewall drops it, or the service is overloaded.",
    ),
    "no_answer": ("wrong", "No answer came: the connection could not be made, or it broke."),
    "redirected_to_https": ("wrong", "The address redirects to https, which no client follows: write https in it."),
    "redirected": (
        "wrong",
        "The address redirects elsewhere ({status}), which no client follows: use the final address.",
    ),
    "not_of_service": ("wrong", "Something else has answered ({status}): another website, a proxy or a login page."),
    "wrong_path": (
        "wrong",
        "The service answers, but not below the path of the address: correct what follows its host.",
    ),
    "unavailable": (
        "unknown",
        "The service answers, but cannot serve requests at present ({status}): check again later.",
    ),
    "key_right": ("right", "The service accepts the key."),
    "key_malformed": ("wrong", "The key must be the whole secret of an API key, lik_ and 48 characters: {fault}."),
    "key_refused": (
        "wrong",
        "The service refuses the key: it is unknown there, replaced, revoked or expired; which, only the studio can see.",
    ),
    "studio_suspended": ("wrong", "Access to the studio of the key is suspended: only its owner can change that."),
    "issuer_forbidden": ("wrong", "The person who issued the key may no longer do so: somebody else must issue one."),
    "quota_used_up": ("unknown", "The quota is used up, so this could not be checked: check again in {seconds} s."),
    "unexpected": ("unknown", "The service has answered what this check does not expect ({status})."),
    "not_checked": ("unknown", "Not checked: another finding says what must be corrected, or waited for, first."),
    "create_granted": ("right", "The key may create leads (leads.create)."),
    "create_missing": ("wrong", "The key may not create leads: it was issued without leads.create."),
    "create_stopped": ("wrong", "Something before the service stops creations ({status}), such as a firewall."),
    "read_granted": ("right", "The key may read leads (leads.read)."),
    "read_missing": ("right", "The key may not read leads (leads.read), which creating them does not need."),
    "clock_right": ("right", "The clock agrees with that of the service."),
    "clock_ahead": (
        "wrong",
        "The clock is {minutes} minutes ahead: leads arrive, but keys of forms and outboxes go by it.",
    ),
    "clock_behind": (
        "wrong",
        "The clock is {minutes} minutes behind: leads arrive, but keys of forms and outboxes go by it.",
    ),
    "clock_unknown": ("unknown", "The answer has no date to compare the clock with."),
}
