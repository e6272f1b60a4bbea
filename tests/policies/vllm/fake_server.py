"""A server with vLLM's endpoints and no model: it can be killed, restarted and made to hang."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from typing_extensions import override

from visenv.policies.vllm.weights import part_of


class Held:
    """What a server's worker holds.

    Attributes:
        sums: Of its weights, by part.
        identity: What they were called.
        changed: Whether they were changed since.
    """

    def __init__(self) -> None:
        self.sums: dict[str, int] = {}
        self.identity = ""
        self.changed = False


class FakeServer:
    """Answers at a port of its own, also after `start_anew`.

    Attributes:
        url: Where it answers.
        held: What its worker holds.
        sampling: Held back, turns wait: clear it.
        asked: Called at the beginning of each turn.
    """

    def __init__(self) -> None:
        self.held = Held()
        self.sampling = threading.Event()
        self.sampling.set()
        self.asked: Callable[[], None] = lambda: None
        self._aborted = threading.Event()
        self._sockets: set[Any] = set()
        self._serve(0)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def _serve(self, port: int) -> None:
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            @override
            def setup(self) -> None:
                super().setup()
                fake._sockets.add(self.connection)

            def do_GET(self) -> None:
                self._reply({"data": [{"max_model_len": 64}]})

            def do_POST(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                body = json.loads(self.rfile.read(length) or "{}")
                self._reply(fake.answer(self.path, body))

            def _reply(self, answer: Any) -> None:
                content = json.dumps(answer).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            @override
            def log_message(self, *_: Any) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            block_on_close = False

            @override
            def handle_error(self, *_: Any) -> None:
                pass  # connections are cut here on purpose

        self._server = Server(("127.0.0.1", port), Handler)
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def answer(self, path: str, body: dict[str, Any]) -> Any:
        """What it says at one of its endpoints."""
        if path == "/inference/v1/generate":
            return self._sampled(body)
        if path == "/collective_rpc":
            return {"results": [self._worker(body["method"], body["kwargs"])]}
        if path == "/abort_requests" or path.startswith("/pause"):
            self._aborted.set()
        return {}

    def _sampled(self, body: dict[str, Any]) -> Any:
        self.asked()
        self._aborted.clear()
        while not self.sampling.wait(0.01) and not self._aborted.is_set():
            pass
        done = self.sampling.is_set()
        logprobs = {"content": [{"logprob": -0.5}] if done else []}
        choice = {
            "token_ids": [7] if done else [],
            "logprobs": logprobs,
            "finish_reason": "stop" if done else "abort",
        }
        return {"prompt_token_ids": body["token_ids"], "choices": [choice]}

    def _worker(self, method: str, told: dict[str, str]) -> Any:
        held = self.held
        if method == "visenv_sums":
            return held.sums
        if method == "visenv_mark":
            held.identity, held.changed = told["identity"], False
        if method == "visenv_holds":
            return {"same": held.identity == told["identity"] and not held.changed}
        return {"identity": held.identity}

    def take(self, sums: dict[str, int]) -> None:
        """Hold other weights, whose sums these are by plain name."""
        self.held.sums = {}
        for name, total in sums.items():
            self.held.sums[part_of(name)] = self.held.sums.get(part_of(name), 0) + total
        self.held.changed = True

    def die(self) -> None:
        """Cut all connections, and answer no more."""
        self._server.shutdown()
        self._server.server_close()
        for each in self._sockets:
            with suppress(OSError):  # it is closed already
                each.shutdown(socket.SHUT_RDWR)
        self._sockets.clear()

    def start_anew(self) -> None:
        """Die, and come back at the same place with the checkpoint's weights."""
        port = self._server.server_port
        self.die()
        self.held = Held()
        self._serve(port)
