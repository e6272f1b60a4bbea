"""Defines `ServerAddress` and `ServerControl`: a trainer's commands to a vLLM server.

The address says where the server listens, and the token that it demands. The commands are calls of
development endpoints, which exist if ``VLLM_SERVER_DEV_MODE=1`` is set, as `VLLMServer` does.
`TokenGuard` protects them.
"""

from __future__ import annotations

import base64
import pickle
import socket
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import httpx
from typing_extensions import override

from visenv.errors import ConfigurationError, PolicyError

from .guard import TOKEN_VARIABLE

_SCHEMES = ("http://", "https://", "unix:")


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """Holds the address of a server, and makes HTTP clients for it.

    Attributes:
        url: ``http://host:port`` or ``https://host:port`` without ``/v1``, or ``unix:/path`` for a
            Unix socket.
        token: The token that clients send with every request (`guard`); None sends no token.

    Raises:
        ConfigurationError: If the address has another form.
    """

    url: str
    token: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not self.url.startswith(_SCHEMES):
            raise ConfigurationError(
                f"The address of a vLLM server must begin with one of {_SCHEMES}, got {self.url!r}."
            )

    def client(self, timeout: float) -> httpx.Client:
        """Return a client; `timeout` is the maximum number of seconds of one call."""
        transport = _UnixTransport(self._socket) if self._socket else None
        return httpx.Client(
            base_url=self._base,
            headers=self._headers,
            timeout=timeout,
            transport=transport,
        )

    def async_client(self, timeout: float) -> httpx.AsyncClient:
        """Return an asynchronous client with any number of connections."""
        limits = httpx.Limits(max_connections=None)
        transport = (
            httpx.AsyncHTTPTransport(uds=self._socket, limits=limits) if self._socket else None
        )
        return httpx.AsyncClient(
            base_url=self._base,
            headers=self._headers,
            timeout=timeout,
            limits=limits,
            transport=transport,
        )

    def without_token(self) -> ServerAddress:
        """Return the same address, for a client that sends no token."""
        return ServerAddress(self.url)

    @property
    def _socket(self) -> str | None:
        return self.url.removeprefix("unix:") if self.url.startswith("unix:") else None

    @property
    def _base(self) -> str:
        return "http://localhost" if self._socket else self.url

    @property
    def _headers(self) -> dict[str, str]:
        return {} if self.token is None else {"Authorization": f"Bearer {self.token}"}


class _UnixTransport(httpx.HTTPTransport):
    """Sends requests to a Unix socket.

    httpcore 1.0 does not close its socket if it cannot connect, which it must not try then.
    """

    def __init__(self, path: str) -> None:
        super().__init__(uds=path)
        self._path = path

    @override
    def handle_request(self, request: httpx.Request) -> httpx.Response:
        with socket.socket(socket.AF_UNIX) as probe:
            try:
                probe.connect(self._path)
            except OSError as error:
                raise httpx.ConnectError(str(error), request=request) from error
        return super().handle_request(request)


FIRST_WAIT, LONGEST_WAIT = 0.25, 8.0
"""Seconds before the first retry, which are doubled each time, and their maximum."""

_SHOWN = 400
_PROBE_TIMEOUT = 10.0


class ServerControl:
    """Calls one server, and retries calls after failures that may be temporary.

    Args:
        address: Address of the server, and its token.
        timeout: Maximum number of seconds of one call.
        retries: Further attempts after a failure that may be temporary.

    Attributes:
        address: Address of the server, and its token.
        url: The address without the token, for messages.
    """

    def __init__(self, address: ServerAddress, timeout: float, retries: int) -> None:
        self.address = address
        self.url = address.url
        self._retries = retries
        self._http = address.client(timeout)

    def context(self) -> int:
        """Return the largest number of tokens in a conversation."""
        return int(self._ask("GET", "/v1/models").json()["data"][0]["max_model_len"])

    def workers(self) -> int:
        """Return the number of processes with weights."""
        return int(self._ask("GET", "/get_world_size").json()["world_size"])

    def pause(self) -> None:
        """Abort every request, empty all caches, and start no new requests."""
        self._ask("POST", "/pause?mode=abort")

    def abort_all(self) -> None:
        """Abort the requests that arrived after `pause`."""
        self._ask("POST", "/abort_requests", {})

    def resume(self) -> None:
        """Let the server accept requests again."""
        self._ask("POST", "/resume")

    def forget(self) -> None:
        """Empty the caches of keys and values and of image features."""
        self._ask("POST", "/reset_prefix_cache")
        self._ask("POST", "/reset_encoder_cache")

    def sleep(self, level: int) -> None:
        """Let the server release GPU memory."""
        self._ask("POST", f"/sleep?level={level}")

    def wake(self) -> None:
        """Let the server allocate the memory that `sleep` released."""
        self._ask("POST", "/wake_up")

    def call(self, method: str, arguments: dict[str, str] | None = None) -> list[Any]:
        """Call a method of every worker; return the result of each."""
        body = {"method": method, "kwargs": arguments or {}}
        results: list[Any] = self._ask("POST", "/collective_rpc", body).json()["results"]
        return results

    def answers_strangers(self) -> bool:
        """Return whether a development endpoint answers a request without the token.

        A server that cannot be reached does not.
        """
        with (
            suppress(httpx.TransportError),
            self.address.without_token().client(_PROBE_TIMEOUT) as stranger,
        ):
            return stranger.get("/get_world_size").is_success
        return False

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    # ------------------------------------------------------------------ vLLM's weight transfer

    # The names and arguments are those of vLLM's `VLLMWeightSyncClient`. A repeated call would not
    # fit the data that is sent beside it, so there are no retries.

    def init_weight_transfer_engine(self, init_info: dict[str, Any]) -> None:
        """Initialize the transfer in the workers."""
        self._ask("POST", "/init_weight_transfer_engine", {"init_info": init_info}, retries=0)

    def start_weight_update(self) -> None:
        """Prepare the workers for weights."""
        self._ask("POST", "/start_weight_update", retries=0)

    def update_weights(self, update_info: dict[str, Any]) -> None:
        """Tell the workers about a bucket of weights.

        Handles of GPU memory (``transfer="ipc"``) are sent as a pickle, which the workers unpickle.
        """
        self._ask("POST", "/update_weights", {"update_info": _as_json(update_info)}, retries=0)

    def finish_weight_update(self, weight_version: str | None = None) -> None:
        """Let the workers finish the update."""
        self._ask("POST", "/finish_weight_update", retries=0)

    def _ask(
        self, method: str, path: str, body: Any = None, *, retries: int | None = None
    ) -> httpx.Response:
        wait = FIRST_WAIT
        retries = self._retries if retries is None else retries
        for attempt in range(retries + 1):
            problem = ""
            try:
                response = self._http.request(method, path, json=body)
            except httpx.ReadTimeout as error:  # the server hangs: a retry would hang, too
                raise PolicyError(
                    f"The vLLM server at {self.url} does not answer {path}: {error!r}"
                ) from error
            except httpx.TransportError as error:
                problem = f"does not answer {path}: {error!r}"
            else:
                if response.is_success:
                    return response
                problem = f"answers {path} with {response.status_code}: {message_of(response)}"
                if response.status_code == httpx.codes.UNAUTHORIZED:
                    problem += f" Set {TOKEN_VARIABLE} to the token of the server."
                if response.is_client_error:
                    break
            if attempt < retries:
                time.sleep(wait)
                wait = min(2 * wait, LONGEST_WAIT)
        raise PolicyError(f"The vLLM server at {self.url} {problem}")


def message_of(response: httpx.Response) -> str:
    """Return the error message of a server's response."""
    try:
        message = response.json()["error"]["message"]
    except (ValueError, KeyError, TypeError):
        message = response.text
    return str(message)[:_SHOWN]


def _as_json(update_info: dict[str, Any]) -> dict[str, Any]:
    """Return the description of a bucket of weights with pickled handles of GPU memory, if any."""
    handles = update_info.get("ipc_handles")
    if handles is None:
        return update_info
    others = {name: value for name, value in update_info.items() if name != "ipc_handles"}
    return others | {"ipc_handles_pickled": base64.b64encode(pickle.dumps(handles)).decode()}
