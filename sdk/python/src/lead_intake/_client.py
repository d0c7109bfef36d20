from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import closing
from contextvars import copy_context
from threading import Thread
from types import TracebackType
from typing import TypeVar

import httpx2

from ._attempt import Answer, Content, Problem, Silence, read_response
from ._calls import Call, Calls
from ._sending import Limits, Sending
from .models import CreatedLead, Lead, LeadCapture, LeadList

T = TypeVar("T")


class LeadIntakeClient:
    """
    The API with one key. What comes of a request is told by a LeadIntakeError; a ValueError, of text that cannot stand
    in a header, comes before anything is sent. Threads may share a client.
    """

    def __init__(
        self,
        base_url: str,
        api_key: str,
        *,
        deadline_seconds: float = 60.0,
        attempt_timeout_seconds: float = 10.0,
        http_client: httpx2.Client | None = None,
    ) -> None:
        """
        :param base_url: where the API is, without ``/v1``: ``https://api.example.com``
        :param api_key: the secret of an API key, ``lik_…``; keep it on the server
        :param deadline_seconds: when to give up on a request, over all of its attempts
        :param attempt_timeout_seconds: when to give up on one attempt
        :param http_client: sends the requests, in place of one of the client's own; whoever gives it closes it
        :raises ValueError: when the address, the key or a time cannot be one
        """
        self._calls = Calls(base_url, api_key)
        self._limits = Limits(deadline_seconds, attempt_timeout_seconds)
        self._owns_http = http_client is None
        self._http = httpx2.Client() if http_client is None else http_client

    def create_lead(self, capture: LeadCapture, *, idempotency_key: str | None = None) -> CreatedLead:
        """
        Creates a lead, and makes sure of it: a creation whose outcome is unknown is repeated with the same key.

        :param idempotency_key: a UUID that stands for this lead, the same whenever its creation is repeated: kept with
            the data, it survives a crash of the caller; unless given, one is made for this call and its attempts
        """
        return self._send(self._calls.create_lead(capture, idempotency_key))

    def get_lead(self, lead_id: str) -> Lead:
        """Reads a lead as it stands."""
        return self._send(self._calls.get_lead(lead_id))

    def list_leads(self, *, limit: int | None = None, cursor: str | None = None) -> LeadList:
        """
        Reads one page of the list, newest first.

        :param limit: leads per page, 1 to 100; unless told, 25
        :param cursor: the ``next_cursor`` of the page before; unless given, the first page
        """
        return self._send(self._calls.list_leads(limit, cursor))

    def all_leads(self, *, limit: int | None = None) -> Iterator[Lead]:
        """All leads, newest first; pages are asked for as they are needed, each with a deadline of its own."""
        cursor: str | None = None
        while True:
            page = self.list_leads(limit=limit, cursor=cursor)
            yield from page.leads
            cursor = page.next_cursor
            if cursor is None:
                return

    def close(self) -> None:
        """Closes the connections that are kept open."""
        if self._owns_http:
            self._http.close()

    def __enter__(self) -> LeadIntakeClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _send(self, call: Call[T]) -> T:
        sending = Sending(self._limits, call.idempotency_key)
        while True:
            outcome = self._attempt(call, sending.attempt_timeout())
            if isinstance(outcome, Answer):
                return outcome.value
            time.sleep(sending.time_to_wait_after(outcome))

    def _attempt(self, call: Call[T], timeout: float) -> Answer[T] | Problem | Silence:
        request = call.to_request(timeout)
        end = time.monotonic() + timeout
        try:
            response, content = _within(timeout, lambda: self._exchange(request, end))
        except Exception as cause:
            if isinstance(cause, RuntimeError) and self._http.is_closed:
                raise
            return Silence(cause)
        return read_response(response, content, call.read)

    def _exchange(self, request: httpx2.Request, end: float) -> tuple[httpx2.Response, Content]:
        """Sends a request and reads the answer; ends by itself when nobody waits for it any more."""

        def before_step(step: str, _: object) -> None:
            # Looking up a name may have lasted: the caller was told by now what became of the request.
            if step.endswith("send_request_headers.started"):
                _raise_after(end)

        request.extensions["trace"] = before_step
        content = Content()
        with closing(self._http.send(request, auth=None, follow_redirects=False, stream=True)) as response:
            for piece in response.iter_bytes():
                _raise_after(end)
                content.add(piece)
                if content.is_too_long:
                    break
        return response, content


def _raise_after(end: float) -> None:
    if time.monotonic() > end:
        raise TimeoutError


def _within(seconds: float, work: Callable[[], T]) -> T:
    """
    Does work, and leaves it to itself when it takes longer. The library bounds each step only, and looking up a name not
    even that: an answer that comes byte by byte would keep the caller for as long as it likes. The work ends by itself
    once it notices.
    """
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    Thread(target=copy_context().run, args=(run,), daemon=True).start()
    try:
        return future.result(seconds)
    except (FutureTimeoutError, TimeoutError) as error:  # two classes in Python 3.10
        raise TimeoutError(f"no answer within {seconds:.1f} s") from error
