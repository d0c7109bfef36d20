"""The HTTP clients of a client: their connections belong to one process, and to one event loop."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

import httpx2

Http = TypeVar("Http", bound="httpx2.Client | httpx2.AsyncClient")


class _Process:
    """Takes the place of the event loop where there is none."""


_PROCESS = _Process()


class Pools(Generic[Http]):
    """
    Makes an HTTP client for each process and event loop that uses the client. Two processes that share a connection
    after a fork get each other's responses, and a connection of another event loop waits forever.
    """

    def __init__(
        self, make: Callable[[], Http], given: Http | None, owner: Callable[[], object] = lambda: _PROCESS
    ) -> None:
        """
        :param make: makes an HTTP client
        :param given: the caller's HTTP client, which is used instead
        :param owner: returns the event loop
        """
        self._make = make
        self._given = given
        self._owner = owner
        self._process = os.getpid()
        self._by_owner: WeakKeyDictionary[object, Http] = WeakKeyDictionary()
        #: The clients of the process before a fork. Deleting them could end its connections.
        self._inherited: list[object] = []
        self._is_closed = False

    def current(self) -> Http:
        """
        Returns the HTTP client of this process and event loop.

        :raises RuntimeError: when the client is closed, or the caller's HTTP client is of another process
        """
        if self._is_closed:
            raise RuntimeError("The client is closed.")
        if self._given is not None:
            if self._process != os.getpid():
                must = "Create the client and its http_client after the fork, in the process that uses them."
                raise RuntimeError(must)
            return self._given
        if self._process != os.getpid():
            self._inherited.append(self._by_owner)
            self._by_owner = WeakKeyDictionary()
            self._process = os.getpid()
        owner = self._owner()
        http = self._by_owner.get(owner)
        if http is None:
            # Two threads that make one at the same time both use the first.
            http = self._by_owner.setdefault(owner, self._make())
        return http

    def close(self) -> list[Http]:
        """Ends the use of the client; returns the HTTP clients to close."""
        self._is_closed = True
        mine = self._by_owner.get(self._owner()) if self._process == os.getpid() else None
        return [] if mine is None else [mine]
