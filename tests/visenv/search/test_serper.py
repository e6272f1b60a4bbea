"""Tests `SerperSearch` against a real HTTP server that fails in many ways."""

from __future__ import annotations

import gzip
import json
import logging
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typing_extensions import override

from visenv.errors import ConfigurationError, ServiceError
from visenv.search import Passage
from visenv.search import serper as module
from visenv.search.corpus import LONGEST_QUERY
from visenv.search.serper import KEY, SerperSearch

SECRET = "0123456789abcdef-secret"
ANSWER = {
    "searchParameters": {"q": "q", "type": "search", "num": 4, "engine": "google"},
    "answerBox": {"title": "x", "answer": "y"},
    "knowledgeGraph": {"title": "z", "attributes": {}},
    "organic": [
        {"title": "One", "link": "https://one", "snippet": "first", "position": 1},
        {"title": "No snippet", "link": "https://two", "position": 2},
        {"link": "https://three", "snippet": "third", "date": "2020"},
        "nonsense",
    ],
    "peopleAlsoAsk": [],
    "credits": 1,
}
Act = Callable[[BaseHTTPRequestHandler], None]


class Server(ThreadingHTTPServer):
    daemon_threads = True
    acts: list[Act]
    requests: list[dict[str, Any]]
    done: threading.Event


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        request = {"headers": dict(self.headers), "body": json.loads(body), "path": self.path}
        self.server.requests.append(request)
        acts = self.server.acts
        (acts.pop(0) if len(acts) > 1 else acts[0])(self)

    @override
    def log_message(self, *args: Any) -> None:
        pass


def says(body: bytes, status: int = 200, **headers: str) -> Act:
    def act(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    return act


GOOD = says(json.dumps(ANSWER).encode())


def hangs(handler: BaseHTTPRequestHandler) -> None:
    handler.server.done.wait()  # type: ignore[attr-defined]


def drops(handler: BaseHTTPRequestHandler) -> None:
    handler.connection.close()


def never_ends(handler: BaseHTTPRequestHandler) -> None:
    """Send a gigabyte, or as much as the client reads."""
    handler.send_response(200)
    handler.end_headers()
    try:
        for _ in range(1024):
            handler.wfile.write(b" " * 2**20)
    except OSError:
        pass


def trickles(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.end_headers()
    try:
        while not handler.server.done.wait(0.05):  # type: ignore[attr-defined]
            handler.wfile.write(b" ")
            handler.wfile.flush()
    except OSError:
        pass


def trickles_headers(handler: BaseHTTPRequestHandler) -> None:
    """Send a byte for each read, but never the end of the headers."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-Wait: ")
    try:
        while not handler.server.done.wait(0.05):  # type: ignore[attr-defined]
            handler.wfile.write(b"x")
            handler.wfile.flush()
    except OSError:
        pass


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv(KEY, SECRET)
    monkeypatch.setattr(module, "_FIRST_WAIT", 0.001)
    server = Server(("127.0.0.1", 0), Handler)
    server.acts, server.requests, server.done = [GOOD], [], threading.Event()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.done.set()
    server.shutdown()
    server.server_close()
    thread.join()


def searcher(server: Server, **options: Any) -> SerperSearch:
    return SerperSearch(url=f"http://127.0.0.1:{server.server_port}/search", **options)


def test_request_and_answer_have_serpers_shapes(server: Server) -> None:
    found = searcher(server, settings={"gl": "de", "hl": "de"}).search("who\n founded it", 4)
    assert found == [Passage("One", "first", "https://one"), Passage("", "third", "https://three")]
    (request,) = server.requests
    assert request["body"] == {"q": "who founded it", "num": 4, "gl": "de", "hl": "de"}
    assert {key.lower(): value for key, value in request["headers"].items()}["x-api-key"] == SECRET


def test_serper_returns_no_more_than_asked_for(server: Server) -> None:
    assert len(searcher(server).search("q", 1)) == 1


@pytest.mark.parametrize(
    "act",
    [
        says(b"slow down", 429, Retry_After="0"),
        says(b"<html>busy</html>", 500),
        says(b"", 503, Retry_After="Wed, 21 Oct 2015 07:28:00 GMT"),
        says(b"<html>a portal</html>"),
        says(b'{"organic": [{"title": "half'),
        says(b"[]"),
        says(b"[" * 100_000),
        drops,
    ],
)
def test_transient_failure_is_tried_again(server: Server, act: Act) -> None:
    server.acts = [act, act, GOOD]
    assert searcher(server).search("q", 1) == [Passage("One", "first", "https://one")]
    assert len(server.requests) == 3


@pytest.mark.parametrize("act", [says(b"{}"), says(b'{"organic": null}'), says(b'{"organic": 3}')])
def test_serper_without_results_is_no_error(server: Server, act: Act) -> None:
    server.acts = [act]
    assert searcher(server).search("q", 4) == []
    assert len(server.requests) == 1


@pytest.mark.parametrize("act", [hangs, trickles, trickles_headers])
def test_server_that_hangs_is_given_up(server: Server, act: Act) -> None:
    server.acts = [act]
    with pytest.raises(ServiceError, match="Serper failed 2 times"):
        searcher(server, timeout=0.3, retries=1).search("q", 4)


def test_endless_answer_is_cut_off(server: Server) -> None:
    server.acts = [never_ends]
    with pytest.raises(ServiceError, match="exceeds 4,194,304 bytes"):
        searcher(server, timeout=60).search("q", 4)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 302])
def test_refusal_is_not_tried_again(server: Server, status: int) -> None:
    server.acts = [says(SECRET.encode(), status, Location="http://elsewhere")]
    with pytest.raises(ServiceError, match=f"status {status}") as raised:
        searcher(server).search("q", 4)
    assert len(server.requests) == 1
    assert SECRET not in str(raised.value)


@pytest.mark.attack("keys: an API key is read at each request, and never saved, logged or pickled")
def test_key_is_neither_logged_nor_kept(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    server.acts = [drops]
    asking = searcher(server, retries=1)
    with pytest.raises(ServiceError) as raised:
        asking.search("q", 4)
    assert SECRET not in caplog.text + str(raised.value) + repr(vars(asking))


def test_empty_query_is_not_sent(server: Server) -> None:
    assert searcher(server).search(" \x00 ", 4) == []
    assert server.requests == []


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
@given(st.text(max_size=700) | st.binary(max_size=40).map(lambda raw: raw.decode("latin-1")))
def test_query_of_any_bytes_is_sent_as_one_line(server: Server, query: str) -> None:
    server.requests.clear()
    assert len(searcher(server).search(query, 1)) <= 1
    for request in server.requests:
        assert request["body"]["num"] == 1
        assert 0 < len(request["body"]["q"]) <= LONGEST_QUERY
        assert request["body"]["q"].isprintable()


@pytest.mark.parametrize("key", ["", "  ", "schlüssel", "line\nbreak"])
def test_key_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    monkeypatch.setenv(KEY, key)
    with pytest.raises(ConfigurationError, match=KEY) as raised:
        SerperSearch()
    assert not key.strip() or key not in str(raised.value)


@pytest.mark.parametrize("options", [{"timeout": 0}, {"timeout": float("nan")}, {"retries": -1}])
def test_impossible_options_are_refused(server: Server, options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="Expected timeout"):
        searcher(server, **options)


def test_compressed_answer_is_not_asked_for_and_not_unpacked(server: Server) -> None:
    """Check that compression is refused, because a megabyte of gzip can unpack to a gigabyte."""
    bomb = gzip.compress(b" " * 2**24)
    server.acts = [says(bomb, Content_Encoding="gzip")]
    with pytest.raises(ServiceError, match="compressed"):
        searcher(server, retries=0).search("q", 1)
    assert server.requests[0]["headers"]["Accept-Encoding"] == "identity"
