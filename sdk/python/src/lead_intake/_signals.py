"""Recognizes errors that signal handlers raise, such as a job's time limit: they end any work in progress."""

from __future__ import annotations

import signal
from traceback import walk_tb


def is_of_signal(error: BaseException) -> bool:
    handlers = [signal.getsignal(number) for number in signal.valid_signals()]
    codes = [getattr(getattr(handler, "__func__", handler), "__code__", None) for handler in handlers]
    return any(frame.f_code in codes for frame, _ in walk_tb(error.__traceback__))


def raise_if_of_signal(error: BaseException) -> None:
    """Raises the signal handler's error that a transport has wrapped: it takes any TimeoutError for its own."""
    cause: BaseException | None = error
    while cause is not None:
        if is_of_signal(cause):
            raise cause
        cause = cause.__cause__ or cause.__context__
