"""Tests writing with a model behind a real OpenAI-compatible server on the loopback interface."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from typing_extensions import override

from visenv.cli import main
from visenv.envs.arm.curation import ScriptedGenerator
from visenv.types import Message, Sampling, TurnRequest

pytestmark = pytest.mark.component("opencv")


class Server(ThreadingHTTPServer):
    """Serves a model that fails once, replies once without JSON, and then writes."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.bodies: list[dict[str, Any]] = []
        self.lock = threading.Lock()


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.server.lock:
            self.server.bodies.append(body)
            number = len(self.server.bodies)
        said = "Gladly! What about?" if number == 2 else written(body)
        message = {"role": "assistant", "content": said}
        content = json.dumps({"choices": [{"message": message, "finish_reason": "stop"}]}).encode()
        self.send_response(500 if number == 1 else 200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    @override
    def log_message(self, format: str, *args: Any) -> None:
        pass


def written(body: dict[str, Any]) -> str:
    """Return the reply of the scripted generator to the texts of a request."""
    writer = ScriptedGenerator()
    session = writer.open(0)
    for message in body["messages"]:
        content = message["content"]
        parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
        texts = tuple(part["text"] for part in parts if part["type"] == "text")
        session.observe([Message(message["role"], texts)])
    return asyncio.run(writer.respond(session, TurnRequest(), Sampling(seed=body["seed"]))).text


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_server_writes_through_failures_and_chatter(kit: Any, server: Server) -> None:
    image = str(kit.folder / kit.image())
    rows = [{"question": "What colour?", "response": "red", "images": [image]}] * 3
    lines = kit.rows(rows)
    url = f"base_url=http://127.0.0.1:{server.server_address[1]}/v1"
    status = main(
        [
            *("data", "negatives", str(lines.path), "--out", str(kit.folder / "pairs.jsonl")),
            *("--policy-option", "model=tester", "--policy-option", url, "--concurrency", "1"),
        ]
    )
    assert status == 0
    pairs = kit.read("pairs.jsonl")
    assert [pair["source"] for pair in pairs] == ["r0", "r1", "r2"]
    assert all(pair["chosen"] == "red" != pair["rejected"] for pair in pairs)
    assert len(server.bodies) == 5  # one failed, and one reply was unusable
    first, again = server.bodies[1], server.bodies[2]
    assert first["model"] == "tester"
    assert [part["type"] for part in first["messages"][0]["content"]] == ["image_url", "text"]
    assert "one JSON object and nothing else" in again["messages"][-1]["content"][0]["text"]
    assert again["seed"] != first["seed"]
    journal = (kit.folder / "pairs.journal.jsonl").read_text()
    assert "openai model=tester" in journal
    # so that another address of the same model can resume the file
    assert "127.0.0.1" not in journal
