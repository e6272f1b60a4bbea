"""Defines `ServerClient`: a client of vLLM's HTTP server and its token-in, token-out endpoint.

An image or a video is sent once; after that its name is sent, until the server reports that it is
no longer cached (`request`).

When weights change, turns in progress are aborted and return their tokens so far, as in
`EngineThread`. No request is active during the change, so that each returned piece has one version.
A `WeightCheck` (`weights`) checks whether the server still holds the weights.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TypeVar

import httpx

from visenv.errors import PolicyError

from .control import FIRST_WAIT, LONGEST_WAIT, ServerControl, message_of
from .handover import hand_over
from .request import EngineOutput, EngineRequest, decode, encode, shown
from .transfer import WeightTransfer
from .weights import WeightCheck, WeightUpdate, compare

Result = TypeVar("Result")

_GLANCE = 0.05
_CONNECTED = ("connection.connect_tcp.complete", "connection.connect_unix_socket.complete")
_FORGOTTEN = "Cache miss"
"""Text of vLLM's error for the name of an image that is no longer cached."""


class ServerClient:
    """Implements `EngineClient` for a server.

    Args:
        control: The control connection of the server.
        transfer: The transfer of weights to the server.
        end_id: The token that ends a turn.
        alive: Returns whether the server's process runs, as far as known.
        timeout: Maximum number of seconds of one turn.
        transfer_timeout: Maximum number of seconds until the server has aborted its requests, and
            of the transfer of weights.
        retries: Further attempts after a failure that may be temporary.
        sleep_level: The sleep level of vLLM.
        leads: Whether this process sends the weights and the commands. If several processes sample
            from one server, only one leads, and the others call `load` at the same time
            (`WeightSync`).

    Attributes:
        context: Maximum number of tokens in a conversation.
        version: Version of the weights with which the engine samples.
        stale: Whether the engine lacks the weights of that version.

    Raises:
        PolicyError: If there is no such server.
    """

    def __init__(
        self,
        control: ServerControl,
        transfer: WeightTransfer,
        end_id: int,
        alive: Callable[[], bool],
        *,
        timeout: float,
        transfer_timeout: float,
        retries: int,
        sleep_level: int,
        leads: bool = True,
    ) -> None:
        self.version = 0
        self.stale = False
        self.context = control.context()
        self._control = control
        self._transfer = transfer
        self._end_id = end_id
        self._alive = alive
        self._transfer_timeout = transfer_timeout
        self._retries = retries
        self._sleep_level = sleep_level
        self._leads = leads
        self._known: set[str] = set()
        self._weights = WeightCheck(self._holds)
        self._closed = False
        self._flying = 0
        self._gate = asyncio.Event()
        self._gate.set()
        self._http = control.address.async_client(timeout)
        self._submitting = threading.Lock()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="visenv-vllm-client", daemon=True
        )
        self._thread.start()

    # ------------------------------------------------------------------ for any thread

    def submit(self, request: EngineRequest) -> Future[EngineOutput]:
        """Sample a turn on the server; cancelling the future aborts the turn."""
        with self._submitting:
            if not self._closed:
                return asyncio.run_coroutine_threadsafe(self._answer(request), self._loop)
        failed: Future[EngineOutput] = Future()
        failed.set_exception(self._gone())
        return failed

    def check(self) -> None:
        """Raise if the server died; a server that hangs is detected by the timeout of each turn."""
        if not self._alive():
            raise PolicyError(f"The vLLM server at {self._control.url} died.")

    def load(self, delivery: WeightUpdate, version: int) -> None:
        """Send the weights to the server."""
        with self._quiet():
            self.stale = True
            if self._leads:
                self._lead(delivery, version)
            else:
                self._follow(delivery)
            self._weights.identity = delivery.identity(version)
            self._weights.doubt()
            self.version = version
            self.stale = False

    @property
    def broken(self) -> bool:
        """Return whether a transfer was interrupted: no weights can be sent after that."""
        return self._transfer.broken

    @property
    def lost(self) -> bool:
        """Return whether the server does not hold the weights that were sent: connect again."""
        return self._weights.lost

    def find(self) -> None:
        """Set `lost` if the server is not the one to which weights were sent.

        Raises:
            PolicyError: If the server does not answer.
        """
        held = self._control.call("visenv_marked") if self._leads else []
        expected = self._weights.identity
        self._weights.lost |= any(each["identity"] != expected for each in held)

    def _lead(self, delivery: WeightUpdate, version: int) -> None:
        """Send the weights, and compare them with those in the server."""
        hand_over(self._transfer, delivery, self._transfer_timeout, self.check)
        self._control.forget()
        if problem := delivery.problem():
            raise PolicyError(f"These are not the model's weights: {problem}.")
        held = self._control.call("visenv_sums")
        for sums in held:
            compare(delivery.sums, sums, whole=len(held) == 1)
        self._control.call("visenv_mark", {"identity": delivery.identity(version)})

    def _follow(self, delivery: WeightUpdate) -> None:
        """Read the weights without sending them: another process sends them to the server."""
        for _ in delivery:
            pass
        if problem := delivery.problem():
            raise PolicyError(f"These are not the model's weights: {problem}.")

    def sleep(self) -> None:
        """Interrupt all turns and put the server to sleep."""
        self._interrupt()
        if self._leads and self._sleep_level:
            self._control.sleep(self._sleep_level)

    def wake(self) -> None:
        """Wake the server."""
        if self._leads:
            if self._sleep_level:
                self._control.wake()
            self._control.resume()
        self._weights.doubt()
        if self._sleep_level < 2:
            self._do(self._open())

    def close(self) -> None:
        """Close the connections; turns in progress raise `PolicyError`.

        The server keeps running.
        """
        with self._submitting:
            if self._closed:
                return
            self._closed = True
        self._do(self._end())
        self._control.close()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @contextmanager
    def _quiet(self) -> Iterator[None]:
        """Interrupt all turns, and hold new requests until the end of the block."""
        try:
            self._interrupt()
            yield
        finally:
            try:
                if self._leads:
                    self._control.resume()
            finally:
                self._do(self._open())

    def _interrupt(self) -> None:
        """Abort the turns in progress, and start no new ones."""
        self._do(self._shut())
        if self._leads:
            self._control.pause()
        self._known.clear()
        end = time.monotonic() + self._transfer_timeout
        while self._flying:
            if time.monotonic() > end:
                raise PolicyError(
                    f"{self._flying} turns did not end within transfer_timeout, "
                    f"{self._transfer_timeout} s, after the vLLM server was asked to abort them."
                )
            self._control.abort_all()
            time.sleep(_GLANCE)

    def _do(self, work: Coroutine[Any, Any, Result]) -> Result:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    # ------------------------------------------------------------------ on the client's loop

    async def _shut(self) -> None:
        self._gate.clear()

    async def _open(self) -> None:
        self._gate.set()

    async def _end(self) -> None:
        """Fail all turns in progress, and close the connections."""
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await self._http.aclose()

    def _gone(self) -> PolicyError:
        return PolicyError(f"The connection to the vLLM server at {self._control.url} was closed.")

    async def _answer(self, request: EngineRequest) -> EngineOutput:
        try:
            return await self._generate(request)
        except asyncio.CancelledError:
            if self._closed:
                raise self._gone() from None
            raise

    async def _generate(self, request: EngineRequest) -> EngineOutput:
        wait, problem = FIRST_WAIT, ""
        for _ in range(self._retries + 1):
            body = await asyncio.to_thread(encode, request, self._end_id, frozenset(self._known))
            try:
                async with self._flight():
                    version = self.version
                    response = await self._post("/inference/v1/generate", body)
                    if response.is_success:
                        piece = decode(response.json(), version)
                        await self._require_own_weights(interrupted=piece.finish == "abort")
                        self._known.update(item.sha256 for item in shown(request))
                        return piece
            except httpx.TransportError as error:
                self._weights.doubt()
                problem = repr(error)
            else:
                problem = message_of(response)
                if _FORGOTTEN in problem:
                    self._known.clear()
                    continue
                if response.is_client_error:
                    raise PolicyError(f"vLLM rejects this prompt: {problem}")
            await asyncio.sleep(wait)
            wait = min(2 * wait, LONGEST_WAIT)
        raise PolicyError(f"The vLLM server at {self._control.url} does not answer: {problem}")

    @asynccontextmanager
    async def _flight(self) -> AsyncIterator[None]:
        """Wait until sampling is possible.

        Inside the block, `load` waits, so that weights do not change.
        """
        await self._gate.wait()
        if self.stale:
            raise PolicyError(
                f"The vLLM server at {self._control.url} lacks the current weights: call load "
                "before sampling."
            )
        if not self._flying:
            self._weights.begin_turns()
        self._flying += 1
        try:
            yield
        finally:
            self._flying -= 1

    async def _post(self, path: str, body: dict[str, Any]) -> httpx.Response:
        return await self._http.post(path, json=body, extensions={"trace": self._note})

    async def _note(self, event: str, _: Any) -> None:
        """Mark the weights of the server as unchecked after a new connection."""
        if event in _CONNECTED:
            self._weights.doubt()

    async def _require_own_weights(self, *, interrupted: bool) -> None:
        """Ask the workers which weights they hold, unless they confirmed them since the last doubt.

        The weights are in doubt after a new connection, a time without turns, or an interruption of
        the turn by this client or by others.
        """
        if interrupted and self._gate.is_set():  # this client did not abort the turn
            self._weights.record_interruption()
        if not await self._weights.passes():
            self.stale = True
            raise PolicyError(
                f"The vLLM server at {self._control.url} does not hold the weights of version "
                f"{self.version}: it was restarted, or another program has sent it others. "
                "They must be loaded again."
            )

    async def _holds(self, identity: str) -> bool:
        """Return whether every worker of the server has the weights of this identity."""
        asked = {"method": "visenv_holds", "kwargs": {"identity": identity}}
        response = await self._http.post("/collective_rpc", json=asked)
        if not response.is_success:
            raise PolicyError(
                f"The vLLM server at {self._control.url} does not report its weights "
                f"({message_of(response)}): start it as docs/vllm.md shows."
            )
        return all(each["same"] for each in response.json()["results"])
