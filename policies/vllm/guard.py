"""Defines `TokenGuard`, middleware that demands a token for every path of vLLM's server.

vLLM's own ``--api-key`` demands a key only for paths that begin with ``/v1``, ``/v2``,
``/inference`` and ``/cohere``. The development endpoints, with which weights are changed, accept
requests of anyone, and so do ``/health``, ``/metrics`` and ``/docs``. vLLM also answers any
``Host``, and allows pages of any origin to read its replies (CORS). `VLLMServer` passes this class
to vLLM as ``--middleware visenv.policies.vllm.guard.TokenGuard``.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import json
import os
import socket
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final
from urllib.parse import urlsplit

from visenv.errors import ConfigurationError

TOKEN_VARIABLE: Final = "VISENV_SERVER_TOKEN"
"""Environment variable with the token, for the server and for its clients."""

HOSTS_VARIABLE: Final = "VISENV_SERVER_HOSTS"
"""Environment variable with further names of the server's machine, separated by commas."""

_SHORTEST = 32
"""Fewest characters of a token."""

_Message = MutableMapping[str, Any]
_Receive = Callable[[], Awaitable[_Message]]
_Send = Callable[[_Message], Awaitable[None]]
_App = Callable[[_Message, _Receive, _Send], Awaitable[None]]


class TokenGuard:
    """Refuses requests without the token, before any endpoint sees them (ASGI middleware).

    Each request, including those that open a WebSocket, is checked in this order:

    1. ``Authorization`` must be ``Bearer <token>``, otherwise the answer is 401.
    2. ``Host`` must be an IP address, ``localhost``, the name of this machine, or a name in
       ``VISENV_SERVER_HOSTS``, otherwise the answer is 421. A page that maps its own name to this
       machine (DNS rebinding) sends its own name.
    3. A body must be of type ``application/json``, otherwise the answer is 415. A page of another
       origin cannot send that type without the permission of the server.

    Headers that would allow pages of other origins to read a reply are removed from all replies.

    Args:
        app: The application that receives the accepted requests.

    Raises:
        ConfigurationError: If ``VISENV_SERVER_TOKEN`` is not set, or too short.
    """

    def __init__(self, app: _App) -> None:
        token = os.environ.get(TOKEN_VARIABLE, "")
        if len(token) < _SHORTEST:
            raise ConfigurationError(
                f"{TOKEN_VARIABLE} must contain a token of at least {_SHORTEST} characters, got "
                f"{len(token)} characters. Create a token with: openssl rand -hex 32"
            )
        self._app = app
        self._digest = _digest(token.encode())
        further = os.environ.get(HOSTS_VARIABLE, "").lower().split(",")
        self._names = {"localhost", socket.gethostname().lower(), *map(str.strip, further)} - {""}

    async def __call__(self, scope: _Message, receive: _Receive, send: _Send) -> None:
        """Pass an accepted request on, or answer it with an error."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        refusal = self._refusal(scope["headers"])
        if refusal is None:
            await self._app(scope, receive, _without_cors(send))
        else:
            await _refuse(scope, send, *refusal)

    def _refusal(self, headers: list[tuple[bytes, bytes]]) -> tuple[int, str] | None:
        """Return the status and the message for a request that is refused, or None."""
        if not self._has_token(_values(headers, b"authorization")):
            return 401, f"This server demands the token of {TOKEN_VARIABLE} as a bearer token."
        if not self._is_own_name(_values(headers, b"host")):
            return 421, f"This server has another name: add the name to {HOSTS_VARIABLE}."
        if not _is_json(headers):
            return 415, "This server accepts only bodies of type application/json."
        return None

    def _has_token(self, values: list[bytes]) -> bool:
        scheme, _, token = values[0].partition(b" ") if len(values) == 1 else (b"", b"", b"")
        return hmac.compare_digest(_digest(token), self._digest) and scheme.lower() == b"bearer"

    def _is_own_name(self, values: list[bytes]) -> bool:
        if len(values) != 1:
            return False
        try:
            name = urlsplit(f"//{values[0].decode('ascii')}").hostname or ""
        except ValueError:
            return False
        return name in self._names or _is_address(name)


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _is_json(headers: list[tuple[bytes, bytes]]) -> bool:
    """Return whether a request has a JSON body, or no body."""
    types = _values(headers, b"content-type")
    if types:
        media = types[0].partition(b";")[0].strip().lower()
        return len(types) == 1 and media == b"application/json"
    has_length = any(value != b"0" for value in _values(headers, b"content-length"))
    return not has_length and not _values(headers, b"transfer-encoding")


def _values(headers: list[tuple[bytes, bytes]], name: bytes) -> list[bytes]:
    return [value.strip() for key, value in headers if key.lower() == name]


def _digest(token: bytes) -> bytes:
    return hashlib.sha256(token).digest()


def _without_cors(send: _Send) -> _Send:
    async def send_without(message: _Message) -> None:
        if "headers" in message:
            kept = [
                (name, value)
                for name, value in message["headers"]
                if not name.lower().startswith(b"access-control-")
            ]
            message = {**message, "headers": kept}
        await send(message)

    return send_without


async def _refuse(scope: _Message, send: _Send, status: int, message: str) -> None:
    kind = "http.response"
    if scope["type"] == "websocket":
        kind = "websocket.http.response"
        if kind not in scope.get("extensions", {}):
            await send({"type": "websocket.close"})  # the server answers 403
            return
    body = json.dumps({"error": {"message": message, "code": status}}).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
    ]
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": f"{kind}.start", "status": status, "headers": headers})
    await send({"type": f"{kind}.body", "body": body})
