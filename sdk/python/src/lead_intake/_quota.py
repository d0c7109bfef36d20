"""The quota, from the headers of a response."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Quota:
    """The remaining quota of the key or of its studio, whichever will be used up first."""

    #: The number of requests in a window.
    limit: int
    #: How many of them are left.
    remaining: int
    #: The time until the window ends.
    ends_in_seconds: int


def quota_in(headers: Mapping[str, str]) -> Quota | None:
    """Reads the headers ``RateLimit-Policy`` and ``RateLimit``; None when one is missing."""
    limit = re.search("; *q=([0-9]+)", headers.get("ratelimit-policy", ""))
    left = re.search("; *r=([0-9]+); *t=([0-9]+)", headers.get("ratelimit", ""))
    return None if limit is None or left is None else Quota(int(limit[1]), int(left[1]), int(left[2]))
