"""Tests `TokenGuard` with every kind of request; test_server.py tests it in a real server."""

from __future__ import annotations

import asyncio
import json
import socket
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("torch")

from visenv.errors import ConfigurationError
from visenv.policies.vllm.guard import TokenGuard

pytestmark = pytest.mark.component("torch", "transformers")

TOKEN = "0123456789abcdef" * 4
GOOD = {"authorization": f"Bearer {TOKEN}", "host": "localhost"}
Headers = list[tuple[bytes, bytes]]


class Asked:
    """Sends requests to a guarded application.

    Attributes:
        reached: The scopes that the application received.
    """

    def __init__(self) -> None:
        self.reached: list[Any] = []
        self._guard = TokenGuard(self._app)

    async def _app(self, scope: Any, receive: Any, send: Any) -> None:
        self.reached.append(scope)
        headers = [(b"Access-Control-Allow-Origin", b"*"), (b"x-own", b"1")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"{}"})

    def __call__(self, headers: Headers, kind: str = "http", **scope: Any) -> list[Any]:
        """Return the messages that answer a request."""
        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message)

        async def receive() -> Any:
            raise AssertionError("the guard must not read a body")

        asked = {"type": kind, "path": "/collective_rpc", "method": "POST", "headers": headers}
        asyncio.run(self._guard(asked | scope, receive, send))
        return sent

    def status(self, headers: Headers) -> int:
        """Return the status of the answer, after checking that a refusal reached no endpoint."""
        before = len(self.reached)
        status: int = self(headers)[0]["status"]
        assert (len(self.reached) > before) == (status == 200)
        return status


@pytest.fixture(scope="module")
def asked() -> Asked:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VISENV_SERVER_TOKEN", TOKEN)
        patch.setenv("VISENV_SERVER_HOSTS", "gpu-3.cluster, other")
        return Asked()


def headers(**changed: str | None) -> Headers:
    named = GOOD | {name.replace("_", "-"): value for name, value in changed.items()}
    return [(name.encode(), value.encode()) for name, value in named.items() if value is not None]


def test_request_with_the_token_reaches_the_application(asked: Asked) -> None:
    assert asked.status(headers()) == 200
    assert asked.status(headers(authorization=f"bearer {TOKEN}")) == 200  # schemes have no case


@pytest.mark.attack("servers: a vLLM server refuses requests without its token on every path")
@pytest.mark.parametrize(
    "value",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        f"Bearer {TOKEN[:-1]}",
        f"Bearer {TOKEN}0",
        f"Bearer {TOKEN.upper()}",
        f"Bearer {TOKEN}, Bearer {TOKEN}",
        f"Basic {TOKEN}",
        TOKEN,
        f"token {TOKEN}",
        "Bearer \xe9",
    ],
)
def test_request_without_the_token_gets_401(asked: Asked, value: str | None) -> None:
    assert asked.status(headers(authorization=value)) == 401
    assert asked.status(headers(authorization=value, host="evil.example")) == 401


@pytest.mark.attack("servers: a vLLM server refuses requests without its token on every path")
@given(token=st.binary(max_size=80), twice=st.booleans())
def test_token_of_any_bytes_is_refused(asked: Asked, token: bytes, twice: bool) -> None:
    given = [(b"Authorization", b"Bearer " + token)] * (1 + twice)
    assert asked.status([*given, (b"host", b"localhost")]) == 401
    assert asked.status([*headers(), *given]) == 401  # two values are none


@pytest.mark.attack("servers: a vLLM server refuses requests without its token on every path")
def test_websocket_without_the_token_gets_401(asked: Asked) -> None:
    extensions: dict[str, Any] = {"websocket.http.response": {}}
    start, body = asked(headers(authorization=None), "websocket", extensions=extensions)
    assert (start["type"], start["status"]) == ("websocket.http.response.start", 401)
    assert body["type"] == "websocket.http.response.body"
    closed = asked(headers(authorization=None), "websocket", extensions={})
    assert closed == [{"type": "websocket.close"}]
    assert all(scope["type"] != "websocket" for scope in asked.reached)
    asked(headers(), "websocket")
    assert asked.reached.pop()["type"] == "websocket"


@pytest.mark.attack(
    "servers: a vLLM server answers only its own names and JSON, and no other origin"
)
@pytest.mark.parametrize(
    "host",
    [
        *("evil.example", "evil.example:8000", "127.0.0.1.evil.example", "localhost.evil.example"),
        *("localhost@evil.example", "", None, "127.0.0.1 evil", "[::1", "\xe9", "other.cluster"),
        *("0x7f.1", "2130706433x"),
    ],
)
def test_host_of_another_name_gets_421(asked: Asked, host: str | None) -> None:
    assert asked.status(headers(host=host)) == 421


@pytest.mark.parametrize(
    "host",
    [
        *(
            "localhost",
            "LOCALHOST:8000",
            "127.0.0.1:8000",
            "[::1]:8000",
            "10.0.0.7",
            "gpu-3.cluster",
        ),
        *("other:80", socket.gethostname()),
    ],
)
def test_host_of_this_machine_is_accepted(asked: Asked, host: str) -> None:
    assert asked.status(headers(host=host)) == 200


@pytest.mark.attack(
    "servers: a vLLM server answers only its own names and JSON, and no other origin"
)
def test_request_with_two_hosts_gets_421(asked: Asked) -> None:
    assert asked.status([*headers(), (b"Host", b"localhost")]) == 421


@pytest.mark.attack(
    "servers: a vLLM server answers only its own names and JSON, and no other origin"
)
@pytest.mark.parametrize(
    "kind",
    [
        *("text/plain", "text/plain;charset=UTF-8", "application/x-www-form-urlencoded"),
        *("multipart/form-data; boundary=x", "application/jsonx", "text/json", ""),
        *("application/octet-stream", "text/plain, application/json"),
    ],
)
def test_body_of_another_type_gets_415(asked: Asked, kind: str) -> None:
    assert asked.status(headers(content_type=kind, content_length="2")) == 415
    assert asked.status(headers(content_type=kind)) == 415
    both = [*headers(content_type="application/json"), (b"content-type", kind.encode())]
    assert asked.status(both) == 415


@pytest.mark.attack(
    "servers: a vLLM server answers only its own names and JSON, and no other origin"
)
def test_body_without_a_type_gets_415(asked: Asked) -> None:
    assert asked.status(headers(content_length="2")) == 415
    assert asked.status(headers(transfer_encoding="chunked")) == 415
    assert asked.status(headers(content_length="0")) == 200
    assert asked.status(headers(content_length="2", content_type="application/json")) == 200
    kind = "Application/JSON; charset=utf-8"
    assert asked.status(headers(content_length="2", content_type=kind)) == 200


@pytest.mark.attack(
    "servers: a vLLM server answers only its own names and JSON, and no other origin"
)
def test_reply_allows_no_other_origin(asked: Asked) -> None:
    accepted = asked(headers(origin="https://evil.example"))[0]["headers"]
    assert accepted == [(b"x-own", b"1")]
    preflight = headers(authorization=None, access_control_request_method="POST")
    start, body = asked(preflight, method="OPTIONS")
    assert start["status"] == 401
    assert not [name for name, _ in start["headers"] if name.startswith(b"access-control")]
    assert "VISENV_SERVER_TOKEN" in json.loads(body["body"])["error"]["message"]
    assert (b"www-authenticate", b"Bearer") in start["headers"]


def test_guard_passes_the_start_and_the_end_of_the_server_on(asked: Asked) -> None:
    asked([], "lifespan")
    assert asked.reached.pop()["type"] == "lifespan"


@pytest.mark.parametrize("token", ["", "short", "a" * 31])
def test_guard_without_a_long_token_does_not_start(
    monkeypatch: pytest.MonkeyPatch, token: str
) -> None:
    monkeypatch.setenv("VISENV_SERVER_TOKEN", token)
    with pytest.raises(ConfigurationError, match=r"VISENV_SERVER_TOKEN .* openssl rand"):
        Asked()
