"""The rules of the texts of a creation. Generated from common/rules/field-rules.ts. Do not edit."""

#: The patterns that the texts of a creation must match, with the message and the code for a text that does not.
CAPTURE_RULES = {
    "displayName": (
        (r"^[^\ud800-\udfff]*\Z", "must be well-formed Unicode (it contains half of a surrogate pair)", "malformed"),
        (r"^[^\0]*\Z", "must not contain the NUL character", "malformed"),
        (r"^[\s\S]{1,160}\Z", "must be 1 to 160 characters long", "wrong_length"),
        (
            r"^[\s\S]*[^\u0000-\u0020\u007f-\u00a0\u00ad\u034f\u061c\u115f-\u1160\u1680\u17b4-\u17b5\u180b-\u180f\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]",
            "must have a visible character",
            "not_visible",
        ),
    ),
    "email": (
        (r"^[^\ud800-\udfff]*\Z", "must be well-formed Unicode (it contains half of a surrogate pair)", "malformed"),
        (r"^[^\0]*\Z", "must not contain the NUL character", "malformed"),
        (r"^[\s\S]{1,254}\Z", "must be 1 to 254 characters long", "wrong_length"),
        (r"^[^@]+@[^@]+\Z", "must have exactly one @ with something on both sides", "no_email_address"),
        (
            r"^[^\u0000-\u0020\u007f-\u00a0\u1680\u2000-\u200a\u2028-\u2029\u202f\u205f\u3000\ufeff]*\Z",
            "must not contain white space or control characters",
            "has_white_space",
        ),
    ),
    "phone": (
        (r"^[^\ud800-\udfff]*\Z", "must be well-formed Unicode (it contains half of a surrogate pair)", "malformed"),
        (r"^[^\0]*\Z", "must not contain the NUL character", "malformed"),
        (r"^[\s\S]{5,64}\Z", "must be 5 to 64 characters long", "wrong_length"),
        (r"^(?:\D*\d){3}", "must contain at least 3 digits", "too_few_digits"),
    ),
    "sourceId": (
        (
            r"^(?:[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[1-8][0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}|0{8}-0{4}-0{4}-0{4}-0{12}|[fF]{8}-[fF]{4}-[fF]{4}-[fF]{4}-[fF]{12})\Z",
            "must be a UUID with hyphens",
            "no_uuid",
        ),
    ),
    "note": (
        (r"^[^\ud800-\udfff]*\Z", "must be well-formed Unicode (it contains half of a surrogate pair)", "malformed"),
        (r"^[^\0]*\Z", "must not contain the NUL character", "malformed"),
        (r"^[\s\S]{1,2000}\Z", "must be 1 to 2000 characters long", "wrong_length"),
    ),
}

#: The texts of a creation that may be null, left out or blank.
OPTIONAL_TEXTS = ("sourceId", "note")

#: Matches blank text: the white space of ECMAScript, so that all languages agree.
BLANK = r"^[\u0009-\u000d\u0020\u00a0\u1680\u2000-\u200a\u2028-\u2029\u202f\u205f\u3000\ufeff]*\Z"
