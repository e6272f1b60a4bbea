"""Connects a worker process to the scorers of the process that started it, by a Unix socket.

Both ends run on the event loop of scorers of their process. A message consists of a number that
pairs request and reply, a length, and that many bytes. A client must first send the key, which is
only contained in pickled handles and `ScorerAddress`; no bytes are unpickled before that.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import hmac
import itertools
import os
import secrets
import shutil
import socket
import struct
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NamedTuple

from typing_extensions import override

from visenv.scorers.batching import loop
from visenv.socket_folder import socket_folder

_HEAD = struct.Struct(">QQ")
_KEY_BYTES = 32
_SOCKET = "scorers"


class ScorerAddress(NamedTuple):
    """Holds the address of the scorers of a process.

    Attributes:
        path: The path of the socket.
        key: The key that a client must send.
        machine: The name of the machine, because the path is only valid there.
        pid: The process id.
    """

    path: str
    key: bytes
    machine: str
    pid: int

    @override
    def __repr__(self) -> str:
        return f"Address(pid={self.pid})"  # the key must not appear in a log


def this_machine() -> str:
    """Return a name that identifies this machine and its current boot."""
    boot = Path("/proc/sys/kernel/random/boot_id")
    return f"{socket.gethostname()}/{boot.read_text().strip() if boot.exists() else ''}"


class ScorerServer:
    """Answers the requests of worker processes of this process.

    Args:
        answer: Returns the reply to a message.

    Attributes:
        address: The address for worker processes.
    """

    def __init__(self, answer: Callable[[bytes], Awaitable[bytes]]) -> None:
        self._answer = answer
        folder = socket_folder("visenv-", len(_SOCKET))
        path = str(folder / _SOCKET)
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(path)
        # Clients may connect from now on; they wait in the backlog until the loop accepts them.
        self._socket.listen(1024)
        self._socket.setblocking(False)
        self.address = ScorerAddress(
            path, secrets.token_bytes(_KEY_BYTES), this_machine(), os.getpid()
        )
        self._writers: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None
        loop.submit(self._serve())
        atexit.register(self._remove, folder)  # runs before the loop is stopped

    def close_inherited(self) -> None:
        """Close a forked child's copies of the sockets, so that clients notice the parent's end."""
        for writer in self._writers:
            _close_inherited(writer)
        os.close(self._socket.detach())

    def _remove(self, folder: Path) -> None:
        if os.getpid() == self.address.pid:
            with contextlib.suppress(TimeoutError):  # the loop is blocked
                loop.submit(self._close()).result(1.0)
            shutil.rmtree(folder, ignore_errors=True)

    async def _serve(self) -> None:
        self._server = await asyncio.start_unix_server(self._converse, sock=self._socket)

    async def _close(self) -> None:
        if self._server is not None:
            self._server.close()

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            async with asyncio.TaskGroup() as replies:  # its exit cancels running tasks
                given = await reader.readexactly(_KEY_BYTES)
                while hmac.compare_digest(given, self.address.key):
                    number, message = await _read(reader)
                    replies.create_task(self._reply(writer, number, message))
        except* (asyncio.IncompleteReadError, OSError):
            pass  # the worker process has ended
        finally:
            self._writers.discard(writer)
            writer.close()

    async def _reply(self, writer: asyncio.StreamWriter, number: int, message: bytes) -> None:
        await _write(writer, number, await self._answer(message))


class ScorerClient:
    """Holds the connection of a worker process, which is opened with the first message.

    Args:
        address: The address of the process that holds the models.
    """

    def __init__(self, address: ScorerAddress) -> None:
        self._address = address
        self._writer: asyncio.StreamWriter | None = None
        self._reading: asyncio.Task[None] | None = None
        self._connecting = asyncio.Lock()
        self._numbers = itertools.count()
        self._waiting: dict[int, asyncio.Future[bytes]] = {}

    async def call(self, message: bytes) -> bytes:
        """Return the reply to a message; runs on the event loop of scorers.

        Raises:
            OSError: If the other process cannot be reached, or ends before it replies.
        """
        async with self._connecting:
            if self._writer is None:
                reader, self._writer = await asyncio.open_unix_connection(self._address.path)
                self._writer.write(self._address.key)
                self._reading = asyncio.create_task(self._read_replies(reader))
        number = next(self._numbers)
        future = self._waiting[number] = asyncio.get_running_loop().create_future()
        try:
            await _write(self._writer, number, message)
            reply: bytes = await future
            return reply
        finally:
            self._waiting.pop(number, None)

    def close_inherited(self) -> None:
        """Close a forked child's copy of the socket."""
        if self._writer is not None:
            _close_inherited(self._writer)

    async def _read_replies(self, reader: asyncio.StreamReader) -> None:
        try:
            while True:
                number, message = await _read(reader)
                future = self._waiting.get(number)
                if future is not None and not future.done():
                    future.set_result(message)
        except (asyncio.IncompleteReadError, OSError):
            pass
        finally:
            if self._writer is not None:
                self._writer.close()
            self._writer = None
            for future in self._waiting.values():
                if not future.done():
                    future.set_exception(ConnectionResetError("the process has ended"))


async def _read(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    number, length = _HEAD.unpack(await reader.readexactly(_HEAD.size))
    return number, await reader.readexactly(length)


async def _write(writer: asyncio.StreamWriter, number: int, message: bytes) -> None:
    writer.write(_HEAD.pack(number, len(message)))
    writer.write(message)
    await writer.drain()


def _close_inherited(writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError, ValueError):
        os.close(writer.get_extra_info("socket").fileno())
