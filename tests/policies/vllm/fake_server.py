"""Provides a server with vLLM's endpoints and no model, which can die, restart or hang."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from typing_extensions import override

from visenv.policies.vllm.weights import part_of


class Held:
    """Holds the state of a server's worker.

    Attributes:
        sums: Sums of the worker's weights, by part.
        identity: Identity that was set for the weights.
        changed: Whether the weights have changed since then.
    """

    def __init__(self) -> None:
        self.sums: dict[str, int] = {}
        self.identity = ""
        self.changed = False


class FakeServer:
    """Answers on its own port, which `start_anew` keeps.

    Attributes:
        url: Address of the server.
        held: State of its worker.
        sampling: Event without which turns wait.
        asked: Function that is called at the beginning of each turn.
        answering: Function that is called before each turn is answered.
        image_processor: Fingerprint of the image processor of its worker.
        context: Maximum number of tokens in a conversation.
    """

    context = 64

    def __init__(self, image_processor: str = "") -> None:
        self.image_processor = image_processor
        self.held = Held()
        self.sampling = threading.Event()
        self.sampling.set()
        self.asked: Callable[[], None] = lambda: None
        self.answering: Callable[[], object] = lambda: None
        self._aborts = 0
        self._resumed = threading.Event()
        self._resumed.set()
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
                self._reply({"data": [{"max_model_len": fake.context}]})

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
                pass  # tests cut connections on purpose

        self._server = Server(("127.0.0.1", port), Handler)
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def answer(self, path: str, body: dict[str, Any]) -> Any:
        """Return the response of one endpoint."""
        if path == "/inference/v1/generate":
            return self._sampled(body)
        if path == "/collective_rpc":
            return {"results": [self._worker(body["method"], body["kwargs"])]}
        if path.startswith("/pause"):
            self._resumed.clear()
        if path == "/resume":
            self._resumed.set()
        if path == "/abort_requests" or path.startswith("/pause"):
            self._aborts += 1
        return {}

    def _sampled(self, body: dict[str, Any]) -> Any:
        aborts = self._aborts
        self.asked()
        while self._aborts == aborts and not (self.sampling.is_set() and self._resumed.is_set()):
            time.sleep(0.005)
        done = self._aborts == aborts
        self.answering()
        logprobs = {"content": [{"logprob": -0.5}] if done else []}
        choice = {
            "token_ids": [7] if done else [],
            "logprobs": logprobs,
            "finish_reason": "stop" if done else "abort",
        }
        return {"prompt_token_ids": body["token_ids"], "choices": [choice]}

    def _worker(self, method: str, told: dict[str, str]) -> Any:
        held = self.held
        if method == "visenv_processor":
            return {"image_processor": self.image_processor}
        if method == "visenv_sums":
            return held.sums
        if method == "visenv_mark":
            held.identity, held.changed = told["identity"], False
        if method == "visenv_holds":
            return {"same": held.identity == told["identity"] and not held.changed}
        return {"identity": held.identity}

    def take(self, sums: dict[str, int]) -> None:
        """Take other weights, given their sums by plain name."""
        self.held.sums = {}
        for name, total in sums.items():
            self.held.sums[part_of(name)] = self.held.sums.get(part_of(name), 0) + total
        self.held.changed = True

    def die(self) -> None:
        """Cut all connections and stop answering."""
        self._server.shutdown()
        self._server.server_close()
        for each in self._sockets:
            with suppress(OSError):  # closed already
                each.shutdown(socket.SHUT_RDWR)
        self._sockets.clear()

    def start_anew(self) -> None:
        """Die and restart at the same address with the checkpoint's weights."""
        port = self._server.server_port
        self.die()
        self.held = Held()
        self._resumed.set()
        self._serve(port)
