"""Finds out before the first lead whether a configuration is right, without I/O: the clients send."""

from __future__ import annotations

import re
import time
from email.utils import parsedate_to_datetime
from typing import Any, Literal, cast

import httpx2

from ._attempt import Answer, Problem, Silence, are_of_data, fault_of_connection
from ._calls import Call
from ._configuration import authorization, fault_of_key, is_open_to_others, leads_url
from ._outcomes import CHECK_FINDINGS, FAILING_FROM_STATUS
from .models import CheckFinding, CheckReport

#: A code, with the number or the fault that its sentence contains.
_Found = tuple[str, int | str | None]

#: The largest acceptable difference between the clocks; seconds.
_MAX_CLOCK_DIFFERENCE = 5 * 60

_PARTS = ("address", "key", "leads.create", "leads.read", "clock")

_KEY_PROBLEMS = {
    "integration_key_invalid": "key_refused",
    "subscription_suspended": "studio_suspended",
    "integration_issuer_forbidden": "issuer_forbidden",
}


class Checking:
    """A check: the clients send ``call`` until it is None, and pass each outcome to ``take``."""

    def __init__(self, base_url: str, api_key: str, *, allow_http: bool) -> None:
        self._found: dict[str, _Found] = {}
        self.call: Call[Any] | None = None
        url, self._headers = "", dict[str, str]()
        try:
            url = leads_url(base_url, allow_http=True)
        except ValueError:
            self._found["address"] = ("address_malformed", None)
        if url and not allow_http and is_open_to_others(base_url):
            self._found["address"] = ("address_not_https", None)
        try:
            self._headers = authorization(api_key)
        except ValueError:
            self._found["key"] = ("key_malformed", fault_of_key(api_key))
        self._url = url
        if not self._found:
            self.call = Call("GET", f"{url}?limit=1", self._headers, lambda body, _: list(body["leads"]))

    def take(self, outcome: Answer[Any] | Problem | Silence) -> None:
        """Takes the outcome of ``call``, and makes the next one."""
        is_of_creation = self.call is not None and self.call.method == "POST"
        self.call = None
        if is_of_creation:
            self._take_creation(outcome)
            return
        self._found["clock"] = ("not_checked", None) if isinstance(outcome, Silence) else _clock(outcome.headers)
        if isinstance(outcome, Silence):
            self._found["address"] = _without_answer(outcome)
        elif isinstance(outcome, Problem) and outcome.body["code"] in ("route_not_found", "method_not_allowed"):
            self._found["address"] = ("wrong_path", None)
        elif isinstance(outcome, Problem) and outcome.status >= FAILING_FROM_STATUS:
            self._found["address"] = ("unavailable", outcome.status)
        elif isinstance(outcome, Problem) and outcome.body["code"] != "integration_scope_forbidden":
            self._found |= {"address": ("address_right", None), "key": _problem(outcome)}
        else:
            read = "read_missing" if isinstance(outcome, Problem) else "read_granted"
            self._found |= {"address": ("address_right", None), "key": ("key_right", None), "leads.read": (read, None)}
            headers = {**self._headers, "Content-Type": "application/json"}
            self.call = Call("POST", self._url, headers, lambda body, _: dict(body["lead"]), b"{}")

    def _take_creation(self, outcome: Answer[Any] | Problem | Silence) -> None:
        if isinstance(outcome, Silence):
            status = None if outcome.response is None else outcome.response.status_code
            stopped = _without_answer(outcome) if status is None else ("create_stopped", status)
            self._found["leads.create"] = stopped
        elif isinstance(outcome, Answer):
            self._found["leads.create"] = ("unexpected", 201)
        elif outcome.body["code"] in _KEY_PROBLEMS:
            self._found["key"] = _problem(outcome)
        elif outcome.body["code"] == "integration_invalid_request" and are_of_data(
            outcome.fields.keys() - {"Idempotency-Key"}
        ):
            # The service checks the data last, so faulty fields prove that all else is right. The key was left out.
            self._found["leads.create"] = ("create_granted", None)
        elif outcome.body["code"] == "integration_scope_forbidden":
            self._found["leads.create"] = ("create_missing", None)
        elif outcome.status >= FAILING_FROM_STATUS:
            self._found["leads.create"] = ("unavailable", outcome.status)
        else:
            self._found["leads.create"] = _problem(outcome)

    def report(self) -> CheckReport:
        findings = [_finding(about, *self._found.get(about, ("not_checked", None))) for about in _PARTS]
        codes = [finding.code for finding in findings]
        return CheckReport("create_granted" in codes, "read_granted" in codes, findings)


def _finding(about: str, code: str, part: int | str | None) -> CheckFinding:
    verdict, sentence = CHECK_FINDINGS[code]
    kind = cast(Literal["right", "wrong", "unknown"], verdict)
    return CheckFinding(about, kind, code, re.sub(r"\{\w+\}", str(part), sentence))


def _problem(problem: Problem) -> _Found:
    code = problem.body["code"]
    if code == "integration_rate_limited":
        return "quota_used_up", problem.retry_after_seconds or 1
    return _KEY_PROBLEMS.get(code, "unexpected"), problem.status


def _without_answer(silence: Silence) -> _Found:
    if silence.response is None:
        return fault_of_connection(silence.cause), None
    status = silence.response.status_code
    if not 300 <= status < 400:
        return "not_of_service", status
    is_to_https = silence.response.headers.get("location", "").lower().startswith("https:")
    return "redirected_to_https" if is_to_https else "redirected", status


def _clock(headers: httpx2.Headers) -> _Found:
    try:
        ahead = time.time() - parsedate_to_datetime(headers["date"]).timestamp()
    except (KeyError, ValueError):
        return "clock_unknown", None
    if abs(ahead) <= _MAX_CLOCK_DIFFERENCE:
        return "clock_right", None
    return "clock_ahead" if ahead > 0 else "clock_behind", round(abs(ahead) / 60)
