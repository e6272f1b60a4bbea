"""Provides a TCP port that leads to a Unix socket, for clients that cannot use the socket."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from types import TracebackType
from typing import Self

from visenv.background import EventLoopThread


class Relay:
    """Passes bytes between a port of this machine and the socket of a server; a context manager.

    Args:
        url: Address of the server, ``unix:/path``.

    Attributes:
        url: Address of the port.
    """

    def __init__(self, url: str) -> None:
        self._path = url.removeprefix("unix:")
        self._loop = EventLoopThread("relay")
        self.url = ""

    def __enter__(self) -> Self:
        self._server = self._loop.run(asyncio.start_server(self._connected, "127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.close()
        self._loop.stop()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        replies, requests = await asyncio.open_unix_connection(self._path)
        await asyncio.gather(_copied(reader, requests), _copied(replies, writer))


async def _copied(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(2**16):
            writer.write(data)
            await writer.drain()
    writer.close()
