"""The rules of the texts of a creation. Generated from common/rules/field-rules.ts. Do not edit."""

#: What each text of a creation must match, and what is wrong with one that does not.
CAPTURE_RULES = {
    "displayName": (
        (r"^[^\ud800-\udfff]*\Z", "must be well-formed Unicode (it contains half of a surrogate pair)"),
        (r"^[^\0]*\Z", "must not contain the NUL character"),
        (r"^[\s\S]{1,160}\Z", "must be 1 to 160 characters long"),
    ),
    "email": (
        (r"^[^\ud800-\udfff]*\Z", "must be well-formed Unicode (it contains half of a surrogate pair)"),
        (r"^[^\0]*\Z", "must not contain the NUL character"),
        (r"^[\s\S]{1,254}\Z", "must be 1 to 254 characters long"),
        (r"^[^@]+@[^@]+\Z", "must have exactly one @ with something on both sides"),
        (
            r"^[^\u0000-\u0020\u007f-\u00a0\u1680\u2000-\u200a\u2028-\u2029\u202f\u205f\u3000\ufeff]*\Z",
            "must not contain white space or control characters",
        ),
    ),
    "phone": (
        (r"^[^\ud800-\udfff]*\Z", "must be well-formed Unicode (it contains half of a surrogate pair)"),
        (r"^[^\0]*\Z", "must not contain the NUL character"),
        (r"^[\s\S]{5,64}\Z", "must be 5 to 64 characters long"),
        (r"^(?:\D*\d){3}", "must contain at least 3 digits"),
    ),
    "sourceId": (
        (
            r"^(?:[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[1-8][0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}|0{8}-0{4}-0{4}-0{4}-0{12}|[fF]{8}-[fF]{4}-[fF]{4}-[fF]{4}-[fF]{12})\Z",
            "must be a UUID with hyphens",
        ),
    ),
    "note": (
        (r"^[^\ud800-\udfff]*\Z", "must be well-formed Unicode (it contains half of a surrogate pair)"),
        (r"^[^\0]*\Z", "must not contain the NUL character"),
        (r"^[\s\S]{1,2000}\Z", "must be 1 to 2000 characters long"),
    ),
}

#: Text that says nothing: the white space of ECMAScript, so that all languages agree.
BLANK = r"^[\u0009-\u000d\u0020\u00a0\u1680\u2000-\u200a\u2028-\u2029\u202f\u205f\u3000\ufeff]*\Z"
