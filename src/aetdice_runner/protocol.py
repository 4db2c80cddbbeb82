"""HTTP/1.1 of uvicorn, which by itself waits for ever for a request that never comes."""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_SECONDS = 10.0
"""How long a connection may be open before its request's head is there."""


class TimedProtocol(H11Protocol):
    """A connection is closed if a head does not arrive in time, however slowly its bytes come.

    Between requests the keep-alive time of uvicorn counts. Heads are bounded by h11 at 64 KiB.
    """

    _due: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._expect_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state is h11.IDLE:  # part of a head
            self._expect_head()
        else:
            self._forget()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget()
        super().connection_lost(exc)

    def _expect_head(self) -> None:
        if self._due is None:
            self._due = self.loop.call_later(HEAD_SECONDS, self.transport.close)

    def _forget(self) -> None:
        if self._due is not None:
            self._due.cancel()
            self._due = None
