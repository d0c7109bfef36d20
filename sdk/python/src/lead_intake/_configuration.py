"""Checks the arguments of a client."""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode
from zlib import crc32

import httpx2

from ._outcomes import HTTP_WITHIN

#: The address of the API: no user or password before the host, and no parameters.
_BASE_URL = re.compile(r"https?://[^\s/?#@\0]+(?:/[^\s?#\0]*)?", re.IGNORECASE)

#: A path that the client appends itself.
_PATH_OF_API = re.compile(r"/v1(?:/integrations(?:/leads)?)?/*\Z")

#: The form of a key's secret: 32 random bytes and their CRC-32, in base64url.
_KEY = re.compile("lik_([A-Za-z0-9_-]{48})")
_KEY_LENGTH = 52


def is_open_to_others(base_url: str) -> bool:
    """Whether others on the network can read requests to the address."""
    return base_url.lower().startswith("http:") and not re.match(HTTP_WITHIN, base_url, re.IGNORECASE)


def leads_url(base_url: str, *, allow_http: bool) -> str:
    """
    Returns the address of the leads.

    :raises ValueError: when the base URL is malformed, or open to others
    """
    if not _BASE_URL.fullmatch(base_url) or _PATH_OF_API.search(base_url) or not _is_url(base_url):
        raise ValueError("base_url must be an address such as https://api.example.com, without /v1 and credentials")
    if not allow_http and is_open_to_others(base_url):
        raise ValueError("base_url must begin with https, or others can read the key and the leads; allow_http permits http")
    return f"{base_url.rstrip('/')}/v1/integrations/leads"


def authorization(api_key: str) -> dict[str, str]:
    """
    Returns the header of a key.

    :raises ValueError: when the key is malformed; its message omits the key
    """
    fault = fault_of_key(api_key)
    if fault is not None:
        raise ValueError(f"api_key must be the whole secret of an API key, lik_ and 48 characters: {fault}")
    return {"Authorization": f"Bearer {api_key}"}


def fault_of_key(api_key: str) -> str | None:
    """Returns the fault of a key, without the key, in the words of all clients."""
    if not isinstance(api_key, str) or api_key == "":
        return "it is empty"
    if api_key.lower().startswith("bearer"):
        return "it begins with Bearer, which the client adds itself"
    if re.search(r"\s", api_key):
        return "it has white space"
    if len(api_key) != _KEY_LENGTH:
        return "it has another length"
    found = _KEY.fullmatch(api_key)
    if found is None:
        return "it has other characters"
    data = urlsafe_b64decode(found[1])
    is_right = crc32(data[:32]).to_bytes(4, "big") == data[32:]
    return None if is_right else "its checksum is wrong, so it has a wrong character"


def _is_url(text: str) -> bool:
    try:
        return bool(httpx2.URL(text).host)
    except httpx2.InvalidURL:
        return False
