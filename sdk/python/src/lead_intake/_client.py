from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import closing
from contextvars import copy_context
from threading import Thread
from types import TracebackType
from typing import TypeVar

import httpx2

from ._attempt import TRANSPORT_ERRORS, Answer, Content, Problem, Silence, read_response
from ._calls import Call, Calls
from ._cancellation import Cancellation
from ._check import Checking
from ._pools import Pools
from ._quota import Quota, quota_in
from ._sending import Limits, OnAttempt, Sending
from .models import CheckReport, CreatedLead, Lead, LeadCapture, LeadList

T = TypeVar("T")


class LeadIntakeClient:
    """
    A client of the API with one key. A request that fails raises a LeadIntakeError; a faulty call raises a
    ValueError or a TypeError before anything is sent, and one of a closed client a RuntimeError. Thread-safe.
    """

    def __init__(
        self,
        base_url: str,
        api_key: str,
        *,
        deadline_seconds: float = 60.0,
        attempt_timeout_seconds: float = 10.0,
        http_client: httpx2.Client | None = None,
        on_attempt: OnAttempt | None = None,
        allow_http: bool = False,
    ) -> None:
        """
        :param base_url: the base URL of the API, without ``/v1``: ``https://api.example.com``
        :param api_key: the secret of an API key, ``lik_…``; keep it on the server
        :param deadline_seconds: the time limit of a request over all attempts
        :param attempt_timeout_seconds: the time limit of one attempt
        :param http_client: sends the requests instead of a client of its own; the caller closes it
        :param on_attempt: called after each attempt of each request, for logs; its errors are logged to ``lead_intake``
        :param allow_http: permits an http address outside this machine and its network, where others can read the key
        and the leads
        :raises ValueError: when the base URL, the key or a time limit is invalid
        """
        self._calls = Calls(base_url, api_key, allow_http=allow_http)
        self._on_attempt = on_attempt
        self._limits = Limits(deadline_seconds, attempt_timeout_seconds)
        self._pools = Pools(httpx2.Client, http_client)
        self._quota: Quota | None = None
        # Proxy settings that cannot work fail here.
        self._pools.current()

    @classmethod
    def check(
        cls,
        base_url: str,
        api_key: str,
        *,
        attempt_timeout_seconds: float = 10.0,
        http_client: httpx2.Client | None = None,
        allow_http: bool = False,
    ) -> CheckReport:
        """
        Finds out before the first lead whether the address, the key, its scopes and the clock are right. Sends at most
        two requests, once each, which count against the quota: a list of one lead, and a creation that cannot write,
        because it has neither data nor an idempotency key. A malformed address or key becomes a finding, not an error.

        :param attempt_timeout_seconds: the time limit of each request
        """
        checking = Checking(base_url, api_key, allow_http=allow_http)
        if checking.call is not None:
            with cls(base_url, api_key, http_client=http_client, allow_http=allow_http) as client:
                while checking.call is not None:
                    checking.take(client._attempt(checking.call, attempt_timeout_seconds, Cancellation()))
        return checking.report()

    def create_lead(
        self,
        capture: LeadCapture,
        *,
        idempotency_key: str | None = None,
        deadline_seconds: float | None = None,
        cancellation: Cancellation | None = None,
    ) -> CreatedLead:
        """
        Creates a lead. Repeats a creation whose outcome is unknown with the same key.

        :param idempotency_key: a UUID that identifies this creation; store it with the data and reuse it to repeat the
            creation after a crash. By default one is generated for this call and its attempts
        :param deadline_seconds: the time limit of this call, instead of that of the client
        :param cancellation: ends this call from another thread
        """
        return self._send(self._calls.create_lead(capture, idempotency_key), deadline_seconds, cancellation)

    def get_lead(
        self, lead_id: str, *, deadline_seconds: float | None = None, cancellation: Cancellation | None = None
    ) -> Lead:
        """Returns the current state of a lead."""
        return self._send(self._calls.get_lead(lead_id), deadline_seconds, cancellation)

    def list_leads(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        deadline_seconds: float | None = None,
        cancellation: Cancellation | None = None,
    ) -> LeadList:
        """
        Returns one page of leads, newest first.

        :param limit: leads per page, 1 to 100; default: 25
        :param cursor: the ``next_cursor`` of the previous page; default: the first page
        """
        return self._send(self._calls.list_leads(limit, cursor), deadline_seconds, cancellation)

    def all_leads(
        self,
        *,
        limit: int | None = None,
        deadline_seconds: float | None = None,
        cancellation: Cancellation | None = None,
    ) -> Iterator[Lead]:
        """Iterates over all leads, newest first. Requests each page when it is needed, with a deadline per page."""
        cursor: str | None = None
        while True:
            page = self.list_leads(
                limit=limit, cursor=cursor, deadline_seconds=deadline_seconds, cancellation=cancellation
            )
            yield from page.leads
            cursor = page.next_cursor
            if cursor is None:
                return

    def quota(self) -> Quota | None:
        """Returns the quota from the latest response; None before the first one, and if it lacked the headers."""
        return self._quota

    def close(self) -> None:
        """Closes idle connections, unless the HTTP client was passed in."""
        for pool in self._pools.close():
            pool.close()

    def __enter__(self) -> LeadIntakeClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _send(self, call: Call[T], deadline_seconds: float | None, cancellation: Cancellation | None) -> T:
        sending = Sending(self._limits.of_call(deadline_seconds), call.idempotency_key, self._on_attempt)
        cancellation = cancellation or Cancellation()
        while True:
            if cancellation.is_cancelled:
                raise sending.cancelled()
            outcome = self._attempt(call, sending.attempt_timeout(), cancellation)
            if isinstance(outcome, Answer):
                return sending.result_of(outcome)
            cancellation.wait(sending.time_to_wait_after(outcome, is_cancelled=cancellation.is_cancelled))

    def _attempt(self, call: Call[T], timeout: float, cancellation: Cancellation) -> Answer[T] | Problem | Silence:
        http = self._pools.current()
        request = call.to_request(http, timeout)
        end = time.monotonic() + timeout
        exchange = _start(lambda: self._exchange(http, request, end, cancellation))
        # Outside of any try: a signal, such as the time limit of a job, may raise anything here.
        cancellation.wait(timeout, exchange)
        cause = exchange.exception() if exchange.done() else TimeoutError()
        if isinstance(cause, TimeoutError):
            return Silence(TimeoutError(f"no answer within {timeout:.1f} s"))
        if isinstance(cause, TRANSPORT_ERRORS):
            return Silence(cause)
        response, content = exchange.result()
        self._quota = quota_in(response.headers)
        return read_response(response, content, call.read)

    def _exchange(
        self, http: httpx2.Client, request: httpx2.Request, end: float, cancellation: Cancellation
    ) -> tuple[httpx2.Response, Content]:
        """Sends a request and reads the response; raises once the caller no longer waits."""

        def before_step(step: str, _: object) -> None:
            # Name resolution may have outlasted the attempt: its failure is already reported, so do not send.
            if step.endswith("send_request_headers.started"):
                _raise_after(end, cancellation)

        request.extensions["trace"] = before_step
        content = Content()
        with closing(http.send(request, auth=None, follow_redirects=False, stream=True)) as response:
            # A hook may have read it, which decodes it.
            for piece in response.iter_bytes() if response.is_stream_consumed else response.iter_raw():
                _raise_after(end, cancellation)
                content.add(response, piece)
                if content.is_too_long:
                    break
        return response, content


def _raise_after(end: float, cancellation: Cancellation) -> None:
    if time.monotonic() > end or cancellation.is_cancelled:
        raise TimeoutError


def _start(work: Callable[[], T]) -> Future[T]:
    """
    Runs work in a thread, so that the caller can stop waiting for it. The HTTP library only limits single steps, and
    name resolution not at all: a response sent byte by byte would block the caller indefinitely. The abandoned work
    ends when it next checks the time.
    """
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    Thread(target=copy_context().run, args=(run,), daemon=True).start()
    return future
