"""A Schemathesis check for what the OpenAPI document cannot express: which valid data may be refused, with which messages."""

import schemathesis

# Described in prose only, because readers of JSON Schema differ in their support of such patterns.
BEYOND_SCHEMAS = {
    ("cursor", "must be unchanged, from this studio"),
    ("contact.value", "must contain at least 3 digits"),
    ("contact.value", "must not contain white space or control characters"),
}


@schemathesis.check
def valid_data_is_refused_only_beyond_schemas(ctx, response, case):
    is_valid = case.meta is not None and case.meta.generation.mode.is_positive
    if not is_valid or response.status_code != 400:
        return
    problem = response.json()
    if problem["code"] == "integration_source_invalid":
        return
    faults = {(field, message) for field, messages in problem.get("fields", {}).items() for message in messages}
    assert faults and faults <= BEYOND_SCHEMAS, f"Valid data was refused: {problem}"
