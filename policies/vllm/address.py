"""Defines `ServerAddress`: where a vLLM server listens, and the token that it demands."""

from __future__ import annotations

import socket
from dataclasses import dataclass, field

import httpx
from typing_extensions import override

from visenv.errors import ConfigurationError

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
