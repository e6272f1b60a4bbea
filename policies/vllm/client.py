"""ServerClient: an engine behind vLLM's HTTP server, by its token-in, token-out endpoint.

``/inference/v1/generate`` takes our collapsed tokens and images by name (``content_parts``, vLLM
0.28 or newer), and returns the tokens it read. An image goes over the wire once; after that its
name is enough, until the server has forgotten it and says so.

Weights: turns under way are aborted and come back with what they have, as in `EngineThread`. No
request is in flight while they change, so each piece is of one version.
"""

from __future__ import annotations

import asyncio
import base64
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, TypeVar

import httpx

from visenv.errors import PolicyError
from visenv.types import FinishReason, Image

from .control import FIRST_WAIT, LONGEST_WAIT, ServerControl, message_of
from .request import Piece, Request
from .transfer import Transfer
from .weights import Delivery, compare

Result = TypeVar("Result")

_FINISH: dict[str, FinishReason] = {"stop": "stop", "length": "length", "abort": "abort"}
_GLANCE = 0.05
_FORGOTTEN = "Cache miss"
"""What vLLM's error says when an image was named that it knows no more."""


class ServerClient:
    """A `Client` of a server.

    Args:
        control: Of the server.
        transfer: How it is sent weights.
        end_id: The token that ends a turn.
        alive: Whether the server's process runs, as far as is known.
        timeout: Most seconds for one turn.
        transfer_timeout: Most seconds until the server has let go of its requests.
        retries: Further attempts after a failure that may pass.
        sleep_level: vLLM's.
        leads: Whether this process sends the weights and gives orders; of several that sample from
            one server only one does, and the others load when it does (`WeightSync`).

    Attributes:
        context: Most tokens in a conversation.
        version: Of the weights the engine samples with.
        stale: Whether it lacks the weights it should sample with.

    Raises:
        PolicyError: If there is no such server.
    """

    def __init__(
        self,
        control: ServerControl,
        transfer: Transfer,
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
        self._flying = 0
        self._gate = asyncio.Event()
        self._gate.set()
        self._http = httpx.AsyncClient(
            base_url=control.url, timeout=timeout, limits=httpx.Limits(max_connections=None)
        )
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="visenv-vllm-client", daemon=True
        )
        self._thread.start()

    # ------------------------------------------------------------------ for any thread

    def submit(self, request: Request) -> Future[Piece]:
        """See `Client.submit`."""
        return asyncio.run_coroutine_threadsafe(self._generate(request), self._loop)

    def check(self) -> None:
        """See `Client.check`; a server that hangs is known by the time-out of each turn."""
        if not self._alive():
            raise PolicyError(f"The vLLM server at {self._control.url} died.")

    def load(self, delivery: Delivery, version: int) -> None:
        """See `Client.load`."""
        with self._quiet():
            self.stale = True
            if not self._leads:
                self._follow(delivery, version)
                return
            self._transfer.send(delivery)
            self._control.forget()
            if problem := delivery.problem():
                raise PolicyError(f"These are not the model's weights: {problem}.")
            held = self._control.call("visenv_sums")
            for sums in held:
                compare(delivery.sums, sums, whole=len(held) == 1)
            self.version = version
            self.stale = False

    def _follow(self, delivery: Delivery, version: int) -> None:
        """Another process sends these: the server, which that has paused, goes on with them."""
        for _ in delivery:
            pass
        if problem := delivery.problem():
            raise PolicyError(f"These are not the model's weights: {problem}.")
        self.version = version
        self.stale = False

    def sleep(self) -> None:
        """See `Client.sleep`."""
        self._do(self._shut())
        if not self._leads:
            return
        self._control.pause()
        if self._sleep_level:
            self._control.sleep(self._sleep_level)

    def wake(self) -> None:
        """See `Client.wake`."""
        if self._leads:
            if self._sleep_level:
                self._control.wake()
            self._control.resume()
        if self._sleep_level < 2:
            self._do(self._open())

    def close(self) -> None:
        """Close the connections; the server goes on."""
        if self._loop.is_closed():
            return
        self._do(self._http.aclose())
        self._control.close()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @contextmanager
    def _quiet(self) -> Iterator[None]:
        """Nothing is sampled, and no request is on its way."""
        self._do(self._shut())
        try:
            if self._leads:
                self._control.pause()
            self._known.clear()
            end = time.monotonic() + self._transfer_timeout
            while self._flying:
                if time.monotonic() > end:
                    raise PolicyError("The vLLM server does not let go of its requests.")
                self._control.abort_all()
                time.sleep(_GLANCE)
            yield
        finally:
            try:
                if self._leads:
                    self._control.resume()
            finally:
                self._do(self._open())

    def _do(self, work: Coroutine[Any, Any, Result]) -> Result:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    # ------------------------------------------------------------------ on the client's loop

    async def _shut(self) -> None:
        self._gate.clear()

    async def _open(self) -> None:
        self._gate.set()

    async def _generate(self, request: Request) -> Piece:
        wait, problem = FIRST_WAIT, ""
        for _ in range(self._retries + 1):
            await self._gate.wait()
            if self.stale:
                raise PolicyError("The server has not the present weights: load them.")
            version = self.version
            try:
                response = await self._post(request)
            except httpx.TransportError as error:
                problem = repr(error)
            else:
                if response.is_success:
                    self._known.update(image.sha256 for image in request.images)
                    return _piece(response.json(), version)
                problem = message_of(response)
                if _FORGOTTEN in problem:
                    self._known.clear()
                    continue
                if response.is_client_error:
                    raise PolicyError(f"vLLM does not take this prompt: {problem}")
            await asyncio.sleep(wait)
            wait = min(2 * wait, LONGEST_WAIT)
        raise PolicyError(f"The vLLM server at {self._control.url} gives no answer: {problem}")

    async def _post(self, request: Request) -> httpx.Response:
        body = await asyncio.to_thread(self._body, request)
        self._flying += 1
        try:
            return await self._http.post("/inference/v1/generate", json=body)
        finally:
            self._flying -= 1

    def _body(self, request: Request) -> dict[str, Any]:
        known = frozenset(self._known)
        body = {
            "token_ids": request.token_ids,
            "sampling_params": request.parameters(self._end_id),
            "return_token_ids": True,
        }
        if request.images:
            body["content_parts"] = [_part(image, known) for image in request.images]
        return body


def _part(image: Image, known: frozenset[str]) -> dict[str, Any]:
    url = None
    if image.sha256 not in known:
        url = "data:image/png;base64," + base64.b64encode(image.png()).decode()
    return {"type": "image_url", "url": url, "uuid": image.sha256}


def _piece(answer: dict[str, Any], version: int) -> Piece:
    choice = answer["choices"][0]
    logprobs = [] if choice["logprobs"] is None else choice["logprobs"]["content"]
    return Piece(
        answer["prompt_token_ids"],
        choice["token_ids"],
        [token["logprob"] for token in logprobs],
        _FINISH.get(choice["finish_reason"], "abort"),
        version,
    )
