from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from types import TracebackType
from typing import TypeVar

import anyio
import anyio.lowlevel
import httpx2

from ._attempt import TRANSPORT_ERRORS, Answer, Content, Problem, Silence, read_response
from ._calls import Call, Calls
from ._check import Checking
from ._pools import Pools
from ._quota import Quota, quota_in
from ._sending import Limits, OnAttempt, Sending
from ._signals import raise_if_of_signal
from .models import CheckReport, CreatedLead, Lead, LeadCapture, LeadList

T = TypeVar("T")


class AsyncLeadIntakeClient:
    """
    A client of the API with one key, for asyncio. A request that fails raises a LeadIntakeError; a faulty call
    raises a ValueError or a TypeError before anything is sent, and one of a closed client a RuntimeError. When its task
    is cancelled, ``outcome_of`` the CancelledError says whether the lead may have been written.
    """

    def __init__(
        self,
        base_url: str,
        api_key: str,
        *,
        deadline_seconds: float = 60.0,
        attempt_timeout_seconds: float = 10.0,
        http_client: httpx2.AsyncClient | None = None,
        on_attempt: OnAttempt | None = None,
        allow_http: bool = False,
    ) -> None:
        """Parameters and errors are those of LeadIntakeClient."""
        self._calls = Calls(base_url, api_key, allow_http=allow_http)
        self._on_attempt = on_attempt
        self._limits = Limits(deadline_seconds, attempt_timeout_seconds)
        self._pools = Pools(httpx2.AsyncClient, http_client, asyncio.get_running_loop)
        self._quota: Quota | None = None

    @classmethod
    async def check(
        cls,
        base_url: str,
        api_key: str,
        *,
        attempt_timeout_seconds: float = 10.0,
        http_client: httpx2.AsyncClient | None = None,
        allow_http: bool = False,
    ) -> CheckReport:
        """Finds out before the first lead whether the configuration is right, as ``LeadIntakeClient.check`` does."""
        checking = Checking(base_url, api_key, allow_http=allow_http)
        if checking.call is not None:
            async with cls(base_url, api_key, http_client=http_client, allow_http=allow_http) as client:
                while checking.call is not None:
                    checking.take(await client._attempt(checking.call, attempt_timeout_seconds))
        return checking.report()

    async def create_lead(
        self, capture: LeadCapture, *, idempotency_key: str | None = None, deadline_seconds: float | None = None
    ) -> CreatedLead:
        """Creates a lead, as ``LeadIntakeClient.create_lead`` does."""
        return await self._send(self._calls.create_lead(capture, idempotency_key), deadline_seconds)

    async def get_lead(self, lead_id: str, *, deadline_seconds: float | None = None) -> Lead:
        """Returns the current state of a lead."""
        return await self._send(self._calls.get_lead(lead_id), deadline_seconds)

    async def list_leads(
        self, *, limit: int | None = None, cursor: str | None = None, deadline_seconds: float | None = None
    ) -> LeadList:
        """Returns one page of leads, newest first, as ``LeadIntakeClient.list_leads`` does."""
        return await self._send(self._calls.list_leads(limit, cursor), deadline_seconds)

    async def all_leads(
        self, *, limit: int | None = None, deadline_seconds: float | None = None
    ) -> AsyncIterator[Lead]:
        """Iterates over all leads, newest first. Requests each page when it is needed, with a deadline per page."""
        cursor: str | None = None
        while True:
            page = await self.list_leads(limit=limit, cursor=cursor, deadline_seconds=deadline_seconds)
            for lead in page.leads:
                yield lead
            cursor = page.next_cursor
            if cursor is None:
                return

    def quota(self) -> Quota | None:
        """Returns the quota from the latest response; None before the first one, and if it lacked the headers."""
        return self._quota

    async def aclose(self) -> None:
        """Closes idle connections, unless the HTTP client was passed in."""
        for pool in self._pools.close():
            await pool.aclose()

    async def __aenter__(self) -> AsyncLeadIntakeClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def _send(self, call: Call[T], deadline_seconds: float | None) -> T:
        sending = Sending(self._limits.of_call(deadline_seconds), call.idempotency_key, self._on_attempt)
        try:
            # A task that is cancelled already sends nothing.
            await anyio.lowlevel.checkpoint()
            while True:
                outcome = await self._attempt(call, sending.attempt_timeout())
                if isinstance(outcome, Answer):
                    return sending.result_of(outcome)
                await anyio.sleep(sending.time_to_wait_after(outcome))
        except asyncio.CancelledError as cancelled:
            # asyncio and anyio expect their own error back, not another one.
            cancelled.__cause__ = sending.cancelled()
            raise

    async def _attempt(self, call: Call[T], timeout: float) -> Answer[T] | Problem | Silence:
        http = self._pools.current()
        request = call.to_request(http, timeout)
        # The HTTP library only limits single steps: a response sent byte by byte would never time out.
        with anyio.move_on_after(timeout):
            try:
                response, content = await self._exchange(http, request)
            except TRANSPORT_ERRORS as cause:
                raise_if_of_signal(cause)
                return Silence(cause)
            self._quota = quota_in(response.headers)
            return read_response(response, content, call.read)
        return Silence(TimeoutError(f"no answer within {timeout:.1f} s"))

    async def _exchange(self, http: httpx2.AsyncClient, request: httpx2.Request) -> tuple[httpx2.Response, Content]:
        content = Content()
        async with aclosing(await http.send(request, auth=None, follow_redirects=False, stream=True)) as response:
            # A hook may have read it, which decodes it.
            read = response.aiter_bytes() if response.is_stream_consumed else response.aiter_raw()
            async with aclosing(read) as pieces:
                async for piece in pieces:
                    content.add(response, piece)
                    if content.is_too_long:
                        break
        return response, content
