from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from types import TracebackType
from typing import TypeVar

import anyio
import httpx2

from ._attempt import Answer, Content, Problem, Silence, read_response
from ._calls import Call, Calls
from ._sending import Limits, Sending
from .models import CreatedLead, Lead, LeadCapture, LeadList

T = TypeVar("T")


class AsyncLeadIntakeClient:
    """
    The API with one key, for asyncio. What comes of a request is told by a LeadIntakeError; a ValueError, of
    text that cannot stand in a header, comes before anything is sent. Whoever cancels a creation does not hear whether
    the lead was written, and repeats it with the same idempotency key to know.
    """

    def __init__(
        self,
        base_url: str,
        api_key: str,
        *,
        deadline_seconds: float = 60.0,
        attempt_timeout_seconds: float = 10.0,
        http_client: httpx2.AsyncClient | None = None,
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
        self._http = httpx2.AsyncClient() if http_client is None else http_client

    async def create_lead(self, capture: LeadCapture, *, idempotency_key: str | None = None) -> CreatedLead:
        """
        Creates a lead, and makes sure of it: a creation whose outcome is unknown is repeated with the same key.

        :param idempotency_key: a UUID that stands for this lead, the same whenever its creation is repeated: kept with
            the data, it survives a crash of the caller; unless given, one is made for this call and its attempts
        """
        return await self._send(self._calls.create_lead(capture, idempotency_key))

    async def get_lead(self, lead_id: str) -> Lead:
        """Reads a lead as it stands."""
        return await self._send(self._calls.get_lead(lead_id))

    async def list_leads(self, *, limit: int | None = None, cursor: str | None = None) -> LeadList:
        """
        Reads one page of the list, newest first.

        :param limit: leads per page, 1 to 100; unless told, 25
        :param cursor: the ``next_cursor`` of the page before; unless given, the first page
        """
        return await self._send(self._calls.list_leads(limit, cursor))

    async def all_leads(self, *, limit: int | None = None) -> AsyncIterator[Lead]:
        """All leads, newest first; pages are asked for as they are needed, each with a deadline of its own."""
        cursor: str | None = None
        while True:
            page = await self.list_leads(limit=limit, cursor=cursor)
            for lead in page.leads:
                yield lead
            cursor = page.next_cursor
            if cursor is None:
                return

    async def aclose(self) -> None:
        """Closes the connections that are kept open."""
        if self._owns_http:
            await self._http.aclose()

    async def __aenter__(self) -> AsyncLeadIntakeClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def _send(self, call: Call[T]) -> T:
        sending = Sending(self._limits, call.idempotency_key)
        while True:
            outcome = await self._attempt(call, sending.attempt_timeout())
            if isinstance(outcome, Answer):
                return outcome.value
            await anyio.sleep(sending.time_to_wait_after(outcome))

    async def _attempt(self, call: Call[T], timeout: float) -> Answer[T] | Problem | Silence:
        request = call.to_request(timeout)
        try:
            # The library bounds each step only: an answer that comes byte by byte would last for as long as it likes.
            with anyio.fail_after(timeout):
                response, content = await self._exchange(request)
        except Exception as cause:
            if isinstance(cause, RuntimeError) and self._http.is_closed:
                raise
            return Silence(cause)
        return read_response(response, content, call.read)

    async def _exchange(self, request: httpx2.Request) -> tuple[httpx2.Response, Content]:
        content = Content()
        async with aclosing(await self._http.send(request, auth=None, follow_redirects=False, stream=True)) as response:
            async with aclosing(response.aiter_bytes()) as pieces:
                async for piece in pieces:
                    content.add(piece)
                    if content.is_too_long:
                        break
        return response, content
