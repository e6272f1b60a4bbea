"""Runs a real HTTP server on the loopback interface whose behavior a test sets."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from typing_extensions import override


class Answer(NamedTuple):
    """Describes a reply of the server.

    `pause` is the time between the two halves of the body, in seconds; with `cut`, the second half
    is left out.
    """

    body: str | bytes
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    content_type: str = "application/json"
    pause: float = 0.0
    cut: bool = False


class Hang(NamedTuple):
    """Makes the server send nothing until the test ends."""


Act = Answer | Hang


def said(content: Any, finish: str | None = "stop", **fields: Any) -> Answer:
    choice = {"message": {"role": "assistant", "content": content}, "finish_reason": finish}
    return Answer(json.dumps({"choices": [choice]} | fields))


class ChatServer(ThreadingHTTPServer):
    """Passes each body to `act`, does the returned action, and records all requests."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.act: Callable[[str, dict[str, Any]], Act] = lambda path, body: said("hello")
        self.bodies: list[dict[str, Any]] = []
        self.paths: list[str] = []
        self.keys: list[str | None] = []
        self.in_flight = 0
        self.most_in_flight = 0
        self.over = threading.Event()
        self.lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def script(self, *acts: Act) -> None:
        """Do these actions one after another, and repeat the last one."""
        left = list(acts)
        self.act = lambda path, body: left.pop(0) if len(left) > 1 else left[0]


class Handler(BaseHTTPRequestHandler):
    server: ChatServer

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        server = self.server
        with server.lock:
            server.bodies.append(body)
            server.paths.append(self.path)
            server.keys.append(self.headers["Authorization"])
            server.in_flight += 1
            server.most_in_flight = max(server.most_in_flight, server.in_flight)
            act = server.act(self.path, body)
        rest = b""
        try:
            if isinstance(act, Hang):
                server.over.wait()
            else:
                rest = self._send_all_but_the_end(act)
        except OSError:
            pass  # the client has closed the connection
        finally:
            with server.lock:
                server.in_flight -= 1
        # When the client has the end of the reply, it may send its next request at once.
        with contextlib.suppress(OSError):
            self.wfile.write(rest)

    def _send_all_but_the_end(self, answer: Answer) -> bytes:
        """Send a reply up to its middle, pause, and return the rest; nothing if it is cut."""
        content = answer.body.encode() if isinstance(answer.body, str) else answer.body
        self.send_response(answer.status)
        for name, value in answer.headers:
            self.send_header(name, value)
        self.send_header("Content-Type", answer.content_type)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        middle = len(content) // 2
        self.wfile.write(content[:middle])
        self.wfile.flush()
        time.sleep(answer.pause)
        return b"" if answer.cut else content[middle:]

    @override
    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""


@contextlib.contextmanager
def running() -> Iterator[ChatServer]:
    with ChatServer() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.over.set()
            server.shutdown()
            thread.join()
