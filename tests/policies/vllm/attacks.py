"""Builds requests that would change a vLLM server, or run code in it."""

from __future__ import annotations

import base64
import pickle
from typing import Any

import httpx

from tests.on_load import OnLoad

_FURTHER = (
    *(("GET", path) for path in ("/metrics", "/docs", "/redoc", "/openapi.json", "/", "/none")),
    *(("GET", path) for path in ("//health", "/v1/../health", "/v1/realtime", "/static/x")),
    *(("OPTIONS", path) for path in ("/collective_rpc", "/update_weights", "/v1/models", "*")),
    *((method, "/health") for method in ("HEAD", "PUT", "PATCH", "DELETE", "TRACE", "PROPFIND")),
)
"""Requests that the server's own list of paths does not contain."""

_EXPECTED = {
    *("/collective_rpc", "/sleep", "/wake_up", "/pause", "/resume", "/abort_requests"),
    *("/init_weight_transfer_engine", "/start_weight_update", "/update_weights"),
    *("/finish_weight_update", "/reset_prefix_cache", "/reset_mm_cache", "/get_world_size"),
    *("/health", "/version", "/server_info", "/v1/models", "/v1/chat/completions", "/tokenize"),
    *("/inference/v1/generate", "/invocations"),
}
"""Paths that the server's list must contain."""


def update_with(handles: object) -> dict[str, Any]:
    """Return the body of ``/update_weights`` for ``ipc``, with pickled handles of GPU memory."""
    pickled = base64.b64encode(pickle.dumps(handles)).decode()
    empty: dict[str, list[Any]] = {"names": [], "dtype_names": [], "shapes": []}
    return {"update_info": {**empty, "ipc_handles_pickled": pickled}}


def every_request(client: httpx.Client, handles: OnLoad) -> list[dict[str, Any]]:
    """Return requests for every path of a server, as arguments of `httpx.Client.request`.

    Args:
        client: A client with the token.
        handles: The object that is pickled in the body of ``/update_weights``.
    """
    bodies: dict[str, Any] = {
        "/collective_rpc": {"method": "visenv_mark", "kwargs": {"identity": "of another"}},
        "/update_weights": update_with(handles),
        "/init_weight_transfer_engine": {"init_info": {"packed": True}},
    }
    listed = client.get("/openapi.json").json()["paths"]
    assert listed.keys() >= _EXPECTED, _EXPECTED - listed.keys()
    requests = [
        {"method": method.upper(), "url": path} | ({"json": bodies[path]} if path in bodies else {})
        for path, methods in listed.items()
        for method in methods
    ]
    return requests + [{"method": method, "url": path} for method, path in _FURTHER]


def state_of(client: httpx.Client) -> list[Any]:
    """Return what requests without the token must not change."""
    bodies = [{"method": method} for method in ("visenv_sums", "visenv_marked")]
    found = [client.post("/collective_rpc", json=body).json() for body in bodies]
    return found + [client.get(path).json() for path in ("/is_paused", "/is_sleeping")]


def http(method: str, path: str, *, upgrade: bool = False) -> str:
    """Return the text of a request without a token; `upgrade` asks for a WebSocket."""
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost"]
    if upgrade:
        lines += ["Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13"]
        lines += ["Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="]
    return "\r\n".join([*lines, "", ""])
