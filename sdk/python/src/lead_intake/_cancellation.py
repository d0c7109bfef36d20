"""Cancels calls."""

from __future__ import annotations

from concurrent.futures import FIRST_COMPLETED, Future, InvalidStateError, wait
from typing import Any

from .errors import LeadIntakeError


class Cancellation:
    """
    Cancels calls of a LeadIntakeClient from another thread: pass it to the calls that it may end. They end at once with
    a NoAnswerError, whose ``written`` says whether the lead may have been written.
    """

    def __init__(self) -> None:
        self._cancelled: Future[None] = Future()

    def cancel(self) -> None:
        """Cancels the calls that it was passed to, even those that begin later."""
        try:
            self._cancelled.set_result(None)
        except InvalidStateError:
            pass

    @property
    def is_cancelled(self) -> bool:
        return self._cancelled.done()

    def wait(self, seconds: float, *others: Future[Any]) -> None:
        """Waits until it is cancelled, one of ``others`` is done, or the time is over."""
        wait([self._cancelled, *others], seconds, FIRST_COMPLETED)


def outcome_of(error: BaseException | None) -> LeadIntakeError | None:
    """
    Returns the outcome of a call whose task was cancelled: a NoAnswerError, whose ``written`` says whether the lead may
    have been written.

    :param error: the CancelledError, or the TimeoutError that asyncio makes of it
    :returns: None when no call was under way
    """
    seen = set[int]()
    rest = [error]
    while rest:
        each = rest.pop()
        if isinstance(each, LeadIntakeError):
            return each
        if each is not None and id(each) not in seen:
            seen.add(id(each))
            rest += [each.__context__, each.__cause__]
    return None
