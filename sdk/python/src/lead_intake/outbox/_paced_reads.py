"""Reads that leave half of the quota to the website's own creations."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from .._client import LeadIntakeClient
from .._quota import Quota
from ..errors import NoAnswerError, ProblemError
from ._outcome import reason_of
from ._times import pause
from .errors import OutboxError

T = TypeVar("T")
F = TypeVar("F")

#: This many requests ignore the quota, so that each call compares at least one lead.
_MIN_REQUESTS = 3

#: A longer wait ends a comparison: after a day, it would begin anew; seconds.
_MAX_PAUSE = 24 * 60 * 60

#: Codes that say that no such lead, or no such page, can be read.
_NOT_THERE_CODES = ("integration_lead_not_found", "integration_invalid_request")


class Stopped(Exception):
    """Ends a comparison early."""


class PacedReads:
    def __init__(
        self,
        client: LeadIntakeClient,
        max_seconds: float | None,
        should_stop: Callable[[], bool],
        before_wait: Callable[[], None],
    ) -> None:
        #: The number of requests.
        self.made = 0
        self._client = client
        self._end = float("inf") if max_seconds is None else time.monotonic() + max_seconds
        self._should_stop = should_stop
        self._before_wait = before_wait

    def read(self, request: Callable[[LeadIntakeClient], T], failed: F | None = None) -> T | F | None:
        """
        Makes a request; returns None when there is no such lead, or no such page.

        :param failed: the result when the service fails to process this one request (500)
        :raises Stopped: when the service fails, the caller ends it, or the time is over
        :raises OutboxError: when the key may not read leads
        """
        while True:
            if self.made >= _MIN_REQUESTS:
                self._pause(_seconds_to_wait(self._client.quota()), "half of the quota is left to the website")
            if self._should_stop():
                raise Stopped("ended by the caller")
            if time.monotonic() > self._end:
                raise Stopped("the time is over")
            self.made += 1
            try:
                return request(self._client)
            except (ProblemError, NoAnswerError) as error:
                if isinstance(error, ProblemError) and error.code in _NOT_THERE_CODES:
                    return None
                if isinstance(error, ProblemError) and error.code == "internal_error" and failed is not None:
                    return failed
                self._wait_after(error)

    def _wait_after(self, error: ProblemError | NoAnswerError) -> None:
        """Waits until the request may be made again; raises if it may not."""
        if isinstance(error, ProblemError) and error.code == "integration_scope_forbidden":
            raise OutboxError("The API key may not read leads: to compare, it needs the scope leads.read.") from error
        reason = reason_of(error)
        if error.retry_after_seconds is None:
            raise Stopped(reason)
        self._pause(error.retry_after_seconds, reason)

    def _pause(self, seconds: float, reason: str) -> None:
        if seconds == 0:
            return
        if seconds > _MAX_PAUSE or time.monotonic() + seconds > self._end:
            raise Stopped(reason)
        self._before_wait()
        pause(seconds, self._should_stop)


def _seconds_to_wait(quota: Quota | None) -> int:
    return 0 if quota is None or quota.remaining * 2 > quota.limit else max(1, quota.ends_in_seconds)
