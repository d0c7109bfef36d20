"""Decides whether and when to retry, without I/O: the clients wait and send."""

from __future__ import annotations

import logging
import random
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from ._attempt import Answer, Problem, Silence
from ._signals import is_of_signal
from .errors import NoAnswerError, Written
from .models import AttemptReport, CreatedLead

T = TypeVar("T")

#: Receives a report after each attempt.
OnAttempt = Callable[[AttemptReport], None]

#: The first and the maximum backoff; seconds.
_FIRST_BACK_OFF = 0.5
_MAX_BACK_OFF = 30.0

#: The minimum time for another attempt; seconds. With less, it would more likely time out and leave it unknown.
_MIN_ATTEMPT = 1.0

_log = logging.getLogger("lead_intake")


@dataclass(frozen=True)
class Limits:
    """Time limits."""

    #: The limit of a request, over all attempts.
    deadline_seconds: float
    #: The limit of one attempt.
    attempt_timeout_seconds: float

    def __post_init__(self) -> None:
        for name, seconds in vars(self).items():
            if not 0 < seconds < float("inf"):
                raise ValueError(f"{name} must be a positive number of seconds")

    def of_call(self, deadline_seconds: float | None) -> Limits:
        """Returns the limits of a call, whose deadline may be its own."""
        return self if deadline_seconds is None else replace(self, deadline_seconds=deadline_seconds)


class Sending:
    """One request, from its first attempt to its last."""

    def __init__(self, limits: Limits, idempotency_key: str | None, on_attempt: OnAttempt | None) -> None:
        self._limits = limits
        self._on_attempt = on_attempt
        self._idempotency_key = idempotency_key
        self._end = time.monotonic() + limits.deadline_seconds
        self._attempts = 0
        self._is_open = False
        self._is_in_flight = False

    def attempt_timeout(self) -> float:
        """Returns the time limit of the attempt that begins now; seconds, more than 0."""
        self._is_in_flight = True
        return min(self._limits.attempt_timeout_seconds, max(0.001, self._end - time.monotonic()))

    def result_of(self, answer: Answer[T]) -> T:
        self._report(answer, self._attempts + 1, None)
        value = answer.value
        # The result of a creation has the number of attempts.
        return replace(value, attempts=self._attempts + 1) if isinstance(value, CreatedLead) else value

    def time_to_wait_after(self, failed: Problem | Silence, *, is_cancelled: bool = False) -> float:
        """
        Returns the delay before the next attempt; seconds.

        :raises ProblemError, NoAnswerError: there is no next attempt
        """
        self._attempts += 1
        self._is_in_flight = False
        self._is_open = (self._is_open and not failed.settles_outcome) or failed.leaves_outcome_open
        seconds = _back_off(self._attempts, failed.retry_after_seconds or 0)
        is_in_time = time.monotonic() + seconds + _MIN_ATTEMPT < self._end
        is_last = is_cancelled or not failed.is_worth_repeating or not is_in_time
        self._report(failed, self._attempts, None if is_last else seconds)
        if is_cancelled:
            raise self.cancelled()
        if is_last:
            raise failed.to_error(self._written(), self._idempotency_key, self._attempts)
        _log.info("attempt %d failed (%s), the next one in %.1f s", self._attempts, failed.name, seconds)
        return seconds

    def cancelled(self) -> NoAnswerError:
        """Returns the outcome of a call that ends here, even during an attempt."""
        if self._is_in_flight:
            self._is_in_flight = False
            self._attempts += 1
            self._is_open = True
        key, attempts = self._idempotency_key, self._attempts
        return NoAnswerError("The call was cancelled", written=self._written(), idempotency_key=key, attempts=attempts)

    def _written(self) -> Written:
        return "unknown" if self._idempotency_key is not None and self._is_open else "no"

    def _report(self, outcome: Answer[Any] | Problem | Silence, attempt: int, retry_in_seconds: float | None) -> None:
        if self._on_attempt is not None:
            remaining = re.search("; *r=([0-9]+)", outcome.headers.get("ratelimit", ""))
            request_id = outcome.headers.get("x-request-id")
            quota = None if remaining is None else int(remaining[1])
            try:
                self._on_attempt(AttemptReport(attempt, outcome.name, request_id, quota, retry_in_seconds))
            except Exception as error:
                # A listener's failure does not fail the request, which may have succeeded. A signal handler's error ends it.
                if is_of_signal(error):
                    raise
                _log.error("on_attempt has raised %s: %s", type(error).__name__, error)


def _back_off(attempts: int, retry_after_seconds: int) -> float:
    """Exponential backoff with up to half of it as jitter; never less than ``Retry-After``."""
    half = min(_MAX_BACK_OFF, _FIRST_BACK_OFF * 2.0 ** (attempts - 1)) / 2
    return max(half, retry_after_seconds) + random.random() * half
